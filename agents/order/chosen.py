"""Order `chosen`: whoever plays the episode chooses, as a learned queue agent does."""

from agents.rule_kinds import QueueOrder
from env.sim.declared.ordering import ByChoice


class Chosen(ByChoice, QueueOrder):
    """Asks which waiting function goes next, whenever one of them could start."""
