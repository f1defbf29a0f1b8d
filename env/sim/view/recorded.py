"""What views have in common: how they print, and attributes that are fields of a record."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from env.sim.state.block import State

T = TypeVar("T")


class Printed:
    """What prints itself as its class and the attributes that it `shows`."""

    shows: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.shows)
        return f"{type(self).__name__}({', '.join(shown)})"


class View(Printed):
    """Reads one record of a `table` of the state."""

    table: ClassVar[str]

    def __init__(self, state: State, index: int) -> None:
        self.state = state
        self.index = index

    @property
    def _record(self) -> np.void:
        record: np.void = getattr(self.state, self.table)[self.index]
        return record


class Recorded(Generic[T]):
    """A field of the view's `_record` as a number; `field` if its name is not the attribute's."""

    def __init__(self, kind: Callable[[Any], T], doc: str, field: str = "") -> None:
        self._kind, self.__doc__, self._field = kind, doc, field

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = self._field or name

    def __get__(self, view: Any, owner: type | None = None) -> T:
        return self._kind(view._record[self._field])


class RecordedOnce(Recorded[T | None]):
    """The same in some states of the view; None in other states and as long as it is nan."""

    def __init__(self, kind: Callable[[Any], T], doc: str, *states: int) -> None:
        super().__init__(kind, doc)
        self._states = states

    def __get__(self, view: Any, owner: type | None = None) -> T | None:
        number = super().__get__(view) if view._state in self._states else None
        return number if number == number else None
