"""What all placement rules share: the protocol, and choosing the smallest of several keys."""

from typing import Protocol

import numpy as np

from agents.scheduler import Decision


class PlacementRule(Protocol):
    """Chooses among the candidates of a decision."""

    @property
    def name(self) -> str:
        """What the configuration calls it."""

    def choose(
        self,
        decision: Decision,
        candidates: np.ndarray,
        memory_alloc: int,
        rng: np.random.Generator,
    ) -> int:
        """Index of the NUMA node; only feasible ones may be chosen.

        Args:
            decision: the moment.
            candidates: CANDIDATE (N,) of `memory_alloc`.
            memory_alloc: MB that the function gets.
            rng: the episode's own generator.
        """


def smallest(candidates: np.ndarray, *keys: np.ndarray) -> int:
    """The feasible node with the smallest first key; ties by the next key, then by index."""
    feasible = np.flatnonzero(candidates["feasible"])
    order = np.lexsort(tuple(key[feasible] for key in reversed(keys)))
    return int(feasible[order[0]])


def free_memory(decision: Decision, candidates: np.ndarray) -> np.ndarray:
    """(N,) MB that no container holds or waits for; negative where a queue wants more."""
    memory: np.ndarray = decision.env.state.nodes["memory"] - candidates["allocated_memory"]
    return memory
