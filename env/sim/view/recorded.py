"""`Recorded`: an attribute of a view that is a field of its record."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Recorded(Generic[T]):
    """A field of the view's `_record`, of the attribute's name unless told, as a number."""

    def __init__(self, kind: Callable[[Any], T], doc: str, field: str = "") -> None:
        self._kind, self.__doc__, self._field = kind, doc, field

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = self._field or name

    def __get__(self, view: Any, owner: type | None = None) -> T:
        return self._kind(view._record[self._field])


class RecordedOnce(Recorded[T | None]):
    """The same; None as long as the view's attribute `when` is false."""

    def __init__(self, kind: Callable[[Any], T], doc: str, when: str) -> None:
        super().__init__(kind, doc)
        self._when = when

    def __get__(self, view: Any, owner: type | None = None) -> T | None:
        return super().__get__(view) if getattr(view, self._when) else None
