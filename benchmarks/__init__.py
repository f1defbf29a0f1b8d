"""Measured speed and memory, each with its peer. Run them as `python -m benchmarks.NAME`."""
