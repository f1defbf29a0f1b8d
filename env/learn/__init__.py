"""The same world for learners: observations, turns, layouts, environments and batches."""
