"""What Ray knows of resources: exact amounts, sets by label, units with ids.

A library that knows no simulator. The simulator takes the compiled functions of `instances.py`.
"""
