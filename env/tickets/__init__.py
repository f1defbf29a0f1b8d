"""A resource shared by tickets, a library that knows no simulator.

Who has a right to how much is in `rights.py`, with tickets that can be named, lent and split. Who
goes next is what `operations.py` says: lotteries, stride, dominant resources.
"""
