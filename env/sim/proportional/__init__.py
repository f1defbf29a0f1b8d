"""Who goes next among clients that hold tickets: mechanisms of proportional shares, compiled.

`mechanism.py` is what people use, `operations.py` the same for compiled code; a file a mechanism.
"""
