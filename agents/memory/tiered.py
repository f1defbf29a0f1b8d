"""Memory rule `tiered`: as much as can start at once."""

from typing import Annotated, Literal

from pydantic import Field

from agents.rules import MemoryRule
from agents.scheduler import Decision
from env.sim.containers import memory_tier


class Tiered(MemoryRule):
    """The largest tier with which some NUMA node could start the function without waiting.

    If there is none, all of memory_req: waiting and swapping at once would be paying twice.
    """

    name: Literal["tiered"]
    tiers: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]

    def allocate(self, decision: Decision) -> int:
        """MB for the current function."""
        memory_req = decision.function.memory_req
        for ratio in sorted(self.tiers, reverse=True):
            memory_alloc = int(memory_tier(memory_req, ratio))
            candidates = decision.candidates(memory_alloc)
            if ((candidates["feasible"] == 1) & (candidates["waits"] == 0)).any():
                return memory_alloc
        return memory_req
