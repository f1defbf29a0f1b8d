"""Memory rule `required`: what the function needs."""

from typing import Literal

from pydantic import Field

from agents.rule_kinds import MemoryRule


class Required(MemoryRule):
    """All of memory_req: the function runs at full speed."""

    name: Literal["required"]
    ratio: float = Field(default=1.0, ge=1, le=1)
