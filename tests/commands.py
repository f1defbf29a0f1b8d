"""Commands as tests run them; the fixture `in_process` of conftest.py makes them."""

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    """A finished command."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]
"""Takes overrides."""
InProcess = Callable[..., Command]
"""Takes the name of the command, its program and its check."""
