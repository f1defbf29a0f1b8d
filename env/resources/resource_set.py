"""Amounts of resources by label, such as what a node has or a task needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from env.base.errors import InputError
from env.resources.quantity import UNIT, as_number, from_float


@dataclass(frozen=True)
class ResourceSet:
    """Labels with amounts above 0; of any other there is none. A set never changes.

    As `ResourceSet` of Ray's `src/ray/common/scheduling/resource_set.h`; `==` compares amounts.

    Attributes:
        amounts: by label, in 1/10,000. Labels at 0 are dropped.

    Raises:
        InputError: an amount is negative.
    """

    amounts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label, units in self.amounts.items():
            if units < 0:
                raise InputError(f"{label}: found {as_number(units)}, at least 0 is needed")
        kept = {label: int(units) for label, units in self.amounts.items() if units}
        object.__setattr__(self, "amounts", kept)

    @classmethod
    def of(cls, **amounts: float) -> ResourceSet:
        """From plain numbers, as Ray reads them (`from_float`)."""
        return cls({label: from_float(amount) for label, amount in amounts.items()})

    def floats(self) -> dict[str, float]:
        """In plain numbers, by label."""
        return {label: units / UNIT for label, units in self.amounts.items()}

    def __getitem__(self, label: str) -> int:
        """In 1/10,000; 0 of what is not in the set."""
        return self.amounts.get(label, 0)

    def __le__(self, other: ResourceSet) -> bool:
        """Whether it is a subset: no label has more than in the other set. So `>=` asks too."""
        return all(units <= other[label] for label, units in self.amounts.items())

    def __add__(self, other: ResourceSet) -> ResourceSet:
        """Label by label."""
        labels = {**self.amounts, **other.amounts}
        return ResourceSet({label: self[label] + other[label] for label in labels})

    def __sub__(self, other: ResourceSet) -> ResourceSet:
        """Label by label, down to 0."""
        left = {label: max(0, units - other[label]) for label, units in self.amounts.items()}
        return ResourceSet(left)

    def subtract_strict(self, other: ResourceSet) -> ResourceSet:
        """The difference with a subset; an `InputError` if the other set is none."""
        for label, units in other.amounts.items():
            if units > self[label]:
                has = as_number(self[label])
                raise InputError(f"{label}: {as_number(units)} of {has} cannot be taken")
        return self - other

    def add_up_to(self, other: ResourceSet, capacity: ResourceSet) -> ResourceSet:
        """The sum, of each label that is added no more than the capacity."""
        added = {label: min(self[label] + other[label], capacity[label]) for label in other.amounts}
        return ResourceSet({**self.amounts, **added})
