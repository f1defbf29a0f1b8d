"""Amounts of resources by label, such as what a node has or a task needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from env.base.errors import InputError
from env.resources.quantity import as_number, from_float


class ResourceSet(Counter[str]):
    """Labels with amounts above 0, in 1/10,000; of any other there is none. A set never changes.

    As `ResourceSet` of Ray's `src/ray/common/scheduling/resource_set.h`. `<=` asks whether it is a
    subset: no label has more than in the other set; `==` compares amounts.

    Args:
        amounts: by label. Labels at 0 are dropped.

    Raises:
        InputError: an amount is negative.
    """

    def __init__(self, amounts: Mapping[str, int] | None = None) -> None:
        for label, units in (amounts or {}).items():
            if units < 0:
                raise InputError(f"{label}: found {as_number(units)}, at least 0 is needed")
        super().__init__({label: int(units) for label, units in (amounts or {}).items() if units})

    @classmethod
    def of(cls, **amounts: float) -> ResourceSet:
        """From plain numbers, as Ray reads them (`from_float`)."""
        return cls({label: from_float(amount) for label, amount in amounts.items()})

    def __add__(self, other: Counter[str]) -> ResourceSet:  # type: ignore[override]
        """Label by label."""
        return ResourceSet(super().__add__(other))

    def __sub__(self, other: Counter[str]) -> ResourceSet:
        """Label by label, down to 0."""
        return ResourceSet(super().__sub__(other))

    def subtract_strict(self, other: ResourceSet) -> ResourceSet:
        """The difference with a subset; an `InputError` if the other set is none."""
        for label, units in other.items():
            if units > self[label]:
                has = as_number(self[label])
                raise InputError(f"{label}: {as_number(units)} of {has} cannot be taken")
        return self - other

    def add_up_to(self, other: ResourceSet, capacity: ResourceSet) -> ResourceSet:
        """The sum, of each label that is added no more than the capacity."""
        added = {label: min(self[label] + other[label], capacity[label]) for label in other}
        return ResourceSet({**self, **added})
