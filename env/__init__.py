"""The world: an exact simulator, the workloads that enter it, and the same world as an RL environment."""
