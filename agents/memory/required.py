"""Memory rule `required`: what the function needs."""

from pydantic import Field

from agents.rule_kinds import MemoryRule


class Required(MemoryRule):
    """All of memory_req: the function runs at full speed."""

    ratio: float = Field(default=1.0, ge=1, le=1)
