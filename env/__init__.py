"""The world: an exact simulator, the workloads that enter it, the same world for agents."""
