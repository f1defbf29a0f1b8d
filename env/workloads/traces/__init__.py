"""Traces: requests of single functions, and playing them."""
