"""Learned schedulers: the networks, how RLlib trains them, and how they are saved and loaded."""
