"""Placement rules: which NUMA node runs a function. One file, one rule."""
