"""Memory rule `stingy`: less than the function needs, always."""

from typing import Annotated, Literal

from pydantic import Field

from agents.rule_kinds import MemoryRule
from agents.scheduler import Decision
from env.sim.state.containers import memory_tier


class Stingy(MemoryRule):
    """A fixed share of memory_req, rounded up: room for more at once, each of them slower."""

    name: Literal["stingy"]
    ratio: Annotated[float, Field(gt=0, le=1)]

    def allocate(self, decision: Decision) -> int:
        """MB for the current function."""
        return int(memory_tier(decision.function.memory_req, self.ratio))
