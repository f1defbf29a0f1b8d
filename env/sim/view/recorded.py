"""`Recorded`: an attribute of a view that is a field of its record."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Recorded(Generic[T]):
    """A field of the view's `_record`, of the attribute's name unless told, as a number.

    None as long as the view's attribute `when` is false, if one is named.
    """

    def __init__(self, kind: Callable[[Any], T], doc: str, field: str = "", when: str = "") -> None:
        self._kind, self.__doc__, self._field, self._when = kind, doc, field, when

    def __set_name__(self, owner: type, name: str) -> None:
        self._field = self._field or name

    def __get__(self, view: Any, owner: type | None = None) -> T:
        if self._when and not getattr(view, self._when):
            return None  # type: ignore[return-value]
        return self._kind(view._record[self._field])
