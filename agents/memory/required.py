"""Memory rule `required`: what the function needs."""

from typing import Literal

from agents.rule_kinds import MemoryRule
from agents.scheduler import Decision


class Required(MemoryRule):
    """All of memory_req: the function runs at full speed."""

    name: Literal["required"]

    def allocate(self, decision: Decision) -> int:
        """MB for the current function."""
        return decision.function.memory_req
