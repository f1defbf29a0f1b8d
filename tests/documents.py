"""Changes to nested documents, as files hold them."""

from collections.abc import Callable, Sequence
from typing import Any

Change = Callable[[Any], object]


def at(document: Any, keys: Sequence[Any]) -> Any:
    """What is at a place."""
    for key in keys:
        document = document[key]
    return document


def put(*keys: Any, to: Any) -> Change:
    """Gives a document another value at a place."""
    return lambda document: at(document, keys[:-1]).__setitem__(keys[-1], to)


def left_out(*keys: Any) -> Change:
    """Takes what is at a place out of a document."""
    return lambda document: at(document, keys[:-1]).pop(keys[-1])
