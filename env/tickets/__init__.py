"""A resource shared by tickets, a library that knows no simulator.

`rights.py` says who is entitled to how much, `operations.py` which client is served next.
"""
