"""The one exception for bad input, whatever it comes from."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Bad input of a user.

    Its text is one line that names the place (file and key, or argument), what was found and what
    is allowed. The entry points print it and leave with exit code 2. Notes (`add_note`) are lines
    below it.
    """


@contextmanager
def located(where: str) -> Iterator[None]:
    """An `InputError` in the block is reported as one of `where`."""
    try:
        yield
    except InputError as error:
        error.args = (f"{where}: {error}",)
        raise
