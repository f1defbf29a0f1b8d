"""Decision makers, hand-written and learned, behind the one protocol of `scheduler.py`."""
