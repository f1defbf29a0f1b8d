"""A NUMA node: its containers at work and idle, and how fast they are."""
