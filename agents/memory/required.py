"""Memory rule `required`: what the function needs."""

from typing import Literal

from agents.scheduler import Decision
from env.base.schema import Strict


class Required(Strict):
    """All of memory_req: the function runs at full speed."""

    name: Literal["required"]

    def allocate(self, decision: Decision) -> int:
        """MB for the current function."""
        return decision.function.memory_req
