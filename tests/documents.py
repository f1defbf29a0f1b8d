"""Changes to nested documents, as files hold them, and what damaged ones get."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from env.base.errors import InputError

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


@contextmanager
def refused_in_a_line(begin: str, *words: str) -> Iterator[None]:
    """What is done within is refused in one short line with this begin and these words."""
    with pytest.raises(InputError) as caught:
        yield
    line = str(caught.value)
    assert line.startswith(begin)
    assert all(word in line for word in words), line
    assert line.isprintable() and len(line) < 600
