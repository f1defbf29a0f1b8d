"""The units of one resource of a node, by id: which of them a demand gets. The basis is compiled.

A demand is whole or a pure fraction. Whole ones get the first ids that nobody has a part of.
A fraction gets a part of one id: of the fullest that has room, so a whole one is split last.
"""

from __future__ import annotations

import numpy as np

from env.base.errors import InputError
from env.base.jit import compiled
from env.resources.quantity import UNIT, as_number


@compiled
def best_id(left: np.ndarray, first: int, count: int, need: int):
    """Where the id is that has the least left, but enough; -1 if none has (best fit)."""
    best = -1
    for place in range(first, first + count):
        if left[place] >= need and (best < 0 or left[place] < left[best]):
            best = place
    return best


@compiled
def holds(left: np.ndarray, first: int, count: int, need: int) -> bool:
    """Whether a demand can be met by the ids `first` to `first + count - 1`.

    Args:
        left: int64, what is left of each, in 1/10,000. A resource without ids is a single one of
            any size.
        first: where the ids of the resource begin.
        count: how many there are.
        need: in 1/10,000; a multiple of `UNIT` or less than it, unless `count` is 1.
    """
    if count == 1 or need < UNIT:
        return best_id(left, first, count, need) >= 0
    missing = need // UNIT
    for place in range(first, first + count):
        missing -= left[place] >= UNIT
    return missing <= 0


@compiled
def acquire(
    left: np.ndarray, first: int, count: int, need: int, taken: np.ndarray, begin: int
) -> None:
    """Takes a demand that `holds`; of the others as for that.

    Args:
        taken: int64, gets what is taken of each id from `begin` on.
        begin: where the ids of the resource begin there.
    """
    single = -1
    if count == 1 or need < UNIT:
        single = best_id(left, first, count, need)
    missing = need
    for place in range(first, first + count):
        amount = 0
        if place == single:
            amount = need
        elif single < 0 and missing >= UNIT and left[place] >= UNIT:
            amount = UNIT
        missing -= amount
        left[place] -= amount
        taken[begin + place - first] = amount


@compiled
def release(left: np.ndarray, first: int, count: int, taken: np.ndarray, begin: int) -> None:
    """Gives back what `acquire` took; parts of an id come together again."""
    for offset in range(count):
        left[first + offset] += taken[begin + offset]


def check_whole_or_fraction(label: str, units: int) -> None:
    """Raises an `InputError` for units with ids, of which nobody can have 1.5."""
    if units > UNIT and units % UNIT:
        raise InputError(
            f"{label}: {as_number(units)} is refused, as its units have ids: "
            "a whole number or less than 1 is needed"
        )


class Instances:
    """One resource of a node, with ids 0 to n - 1 or, without ids, as one of size n.

    As `ResourceIds` of Ray's raylet of 2019, and `NodeResourceInstanceSet` of today's
    (`src/ray/common/scheduling/resource_instance_set.h`).

    Args:
        label: its name, for errors.
        total: in 1/10,000.
        with_ids: whether its units have ids.

    Attributes:
        total: in 1/10,000, as last set.
        left: int64 (ids,), what is left of each, in 1/10,000.
        backlog: what `set_capacity` has yet to take away, in 1/10,000.
    """

    def __init__(self, label: str, total: int, with_ids: bool) -> None:
        self.label, self.with_ids = label, with_ids
        self.total = self.backlog = 0
        self.left = np.zeros(0 if with_ids else 1, np.int64)
        self._sizes = self.left.copy()
        self.set_capacity(total)

    @property
    def used(self) -> int:
        """What is taken, in 1/10,000."""
        return int(self._sizes.sum() - self.left.sum())

    @property
    def available(self) -> int:
        """What is left of the total, in 1/10,000; 0 where less than is used was left of it."""
        return max(0, self.total - self.used)

    def holds(self, need: int) -> bool:
        """Whether a demand can be met now; an `InputError` if it is of 1.5, and there are ids."""
        if self.with_ids:
            check_whole_or_fraction(self.label, need)
        return need <= self.available and bool(
            need == 0 or holds(self.left, 0, len(self.left), need)
        )

    def acquire(self, need: int) -> np.ndarray | None:
        """Takes a demand: int64 (ids,) of each; None if it does not hold it, and takes nothing."""
        if not self.holds(need):
            return None
        taken = np.zeros_like(self.left)
        acquire(self.left, 0, len(self.left), need, taken, 0)
        return taken

    def release(self, taken: np.ndarray) -> None:
        """Gives back what `acquire` returned; a backlog takes of it first."""
        self.left[: len(taken)] += taken
        self._shrink()

    def set_capacity(self, total: int) -> None:
        """Raises or lowers the total. What is in use stays until it is given back."""
        if self.with_ids:
            check_whole_or_fraction(self.label, total)
        self.backlog += self.total - total
        self.total = total
        self._shrink()
        while self.backlog < 0:
            self._grow()

    def _shrink(self) -> None:
        """Takes the backlog from what nobody has a part of, the last ids first."""
        for place in reversed(range(len(self.left))):
            free = self.left[place] == self._sizes[place] or not self.with_ids
            gone = min(int(self.left[place]), max(0, self.backlog)) if free else 0
            self.left[place] -= gone
            self._sizes[place] -= gone
            self.backlog -= gone

    def _grow(self) -> None:
        """Adds what is missing to the first id that is not whole, or a new one."""
        size = UNIT if self.with_ids else self.total
        places = np.flatnonzero(self._sizes < size)
        if len(places) == 0:
            self.left, self._sizes = np.append(self.left, 0), np.append(self._sizes, 0)
            places = np.array([len(self.left) - 1])
        more = min(-self.backlog, size - int(self._sizes[places[0]]))
        self.left[places[0]] += more
        self._sizes[places[0]] += more
        self.backlog += more
