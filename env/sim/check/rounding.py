"""When two numbers of a record are the same but for rounding."""

from collections.abc import Iterator

# The order of float64 additions is not part of the rules, and costs the last digits: of numbers of
# any size, and of a small difference of late times as many as the times have (seconds, USD).
TOLERANCE = 1e-9
RELATIVE_TOLERANCE = 1e-12
OF_ONE_ADDITION = 2.0**-53


def slack(size: float, additions: int = 0) -> float:
    """By how much a number may be off.

    Args:
        size: the largest number that it was computed from (s, USD).
        additions: that made it, beyond a few.
    """
    return max(TOLERANCE, (RELATIVE_TOLERANCE + additions * OF_ONE_ADDITION) * size)


def close(first: float, second: float, size: float = 0.0, additions: int = 0) -> bool:
    """Whether two numbers are the same; arguments as of `slack`, a size below theirs is theirs."""
    largest = max(abs(first), abs(second), size)
    return first == second or abs(first - second) <= slack(largest, additions) < float("inf")


def check_close(
    what: str, stated: float, due: float, size: float = 0.0, additions: int = 0
) -> Iterator[str]:
    """A line if a number of the record is not the one that is due."""
    if not close(stated, due, size, additions):
        yield f"{what} is {stated}, {due} is due"
