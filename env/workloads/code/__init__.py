"""Workflows declared in Python: annotated functions that call each other, read and not executed."""
