"""Memory rule `stingy`: less than the function needs, always."""

from typing import Annotated

from pydantic import Field

from agents.rule_kinds import MemoryRule


class Stingy(MemoryRule):
    """A fixed share of memory_req, rounded up: room for more at once, each of them slower."""

    ratio: Annotated[float, Field(gt=0, le=1)]
