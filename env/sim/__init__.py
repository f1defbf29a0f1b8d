"""The simulator. One compiled engine on structured records; entities are readable views of them.

Imports numpy and numba, nothing of RL, Ray or Hydra.
"""
