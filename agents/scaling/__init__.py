"""Scaling rules: how many servers of each type are in service."""
