"""Tests of the world: simulator, workloads, environment."""
