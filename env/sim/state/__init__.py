"""The records of an episode, in one block of memory, and what keeps them in order."""
