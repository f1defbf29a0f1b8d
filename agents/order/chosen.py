"""Order `chosen`: whoever plays the episode chooses, as a learned queue agent does."""

from typing import Literal

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import ByChoice


class Chosen(ByChoice, QueueOrder):
    """Asks which waiting function goes next, whenever one of them could start."""

    name: Literal["chosen"] = "chosen"
