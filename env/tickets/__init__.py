"""Rights to a shared cluster: tickets that can be named, lent and split (`rights.py`).

How rights become turns is in `env/sim/proportional`.
"""
