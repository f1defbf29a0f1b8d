"""What one node has of every resource: its total, what is available of it, and its load."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import numpy as np

from env.resources.instances import Instances
from env.resources.resource_set import ResourceSet

Mode = Literal["today", "2019"]
"""Of the resources, `today` those that are said to have ids have them; in Ray's design of `2019`
all have, so nobody can ask for 1.5 CPU."""
Taken = Mapping[str, np.ndarray]
"""What a task holds, by label: int64 (ids,), in 1/10,000 of each id."""


def has_ids(label: str, mode: Mode, with_ids: Collection[str]) -> bool:
    """Whether the units of a resource have ids."""
    return mode == "2019" or label in with_ids


class NodeResources:
    """The resources of a node, as `SchedulingResources` of Ray's raylet of 2019.

    Args:
        total: what the node has.
        mode: which resources have ids.
        with_ids: labels that have, today.

    Attributes:
        load: what ready tasks need that have not started; who places them keeps it.
    """

    def __init__(
        self, total: ResourceSet, mode: Mode = "today", with_ids: Collection[str] = ("GPU",)
    ) -> None:
        self._mode, self._with_ids = mode, with_ids
        self.instances: dict[str, Instances] = {}
        self.load = ResourceSet()
        for label, units in total.items():
            self.set_capacity(label, units)

    @property
    def total(self) -> ResourceSet:
        """What the node has."""
        return ResourceSet({label: own.total for label, own in self.instances.items()})

    @property
    def available(self) -> ResourceSet:
        """What is left of the total; with what is used it is the total, unless that was lowered."""
        return ResourceSet({label: own.available for label, own in self.instances.items()})

    def holds(self, demand: ResourceSet) -> bool:
        """Whether all of a demand can be met now; see `Instances.holds`."""
        return all([self._of(label).holds(units) for label, units in demand.items()])

    def acquire(self, demand: ResourceSet) -> Taken | None:
        """Takes all of a demand, or nothing, and returns None."""
        if not self.holds(demand):
            return None
        return {label: self.instances[label].take(units) for label, units in demand.items()}

    def release(self, taken: Taken) -> None:
        """Gives back what `acquire` returned."""
        for label, units in taken.items():
            self.instances[label].release(units)

    def set_capacity(self, label: str, total: int) -> None:
        """Sets what the node has of a resource, in 1/10,000; see `Instances.set_capacity`."""
        self.instances[label] = instances = self._of(label)
        instances.set_capacity(total)

    def _of(self, label: str) -> Instances:
        """The units of a resource, of which the node may have none."""
        return self.instances.get(label) or Instances(
            label, 0, has_ids(label, self._mode, self._with_ids)
        )
