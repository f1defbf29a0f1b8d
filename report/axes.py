"""What axes of pages and figures have in common: logarithms, their ticks, values far outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LOG_FROM = 5.0
"""Axes are logarithmic where the largest value is this many times the smallest."""
MOST_STEPS = 1000.0
"""Where it is more than this, ticks are at 1, 10, 100, ... alone."""
FAR = 3.0
"""Times the median distance from 0: how far an axis of differences or means goes at least."""
MUCH_FARTHER = 1.5
"""Times that, beyond which values are folded away: they would set the axis for all others."""


def is_wide(values: Sequence[float]) -> bool:
    """Whether values lie so far apart that their axis is logarithmic."""
    return 0 < LOG_FROM * min(values) <= max(values)


def log_ticks(values: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, ... as far as values go, or powers of ten alone."""
    low, high = min(values), max(values)
    steps = (1,) if high / low > MOST_STEPS else (1, 2, 5)
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [
        tick
        for decade in decades
        for step in steps
        if low <= (tick := float(f"{step}e{decade}")) <= high
    ]


def end_of_axis(values: Sequence[float], highs: Sequence[float]) -> float:
    """Beyond which values are folded away; infinity where none lies far outside.

    Args:
        values: means.
        highs: upper ends of their intervals: the axis shows those of what it shows whole.
    """
    distances = np.abs([value for value in values if value])
    end = FAR * float(np.median(distances)) if len(distances) else np.inf
    if max(values, default=0.0) <= MUCH_FARTHER * end:
        return np.inf
    while True:
        shown = [high for value, high in zip(values, highs, strict=True) if value <= end < high]
        if not shown:
            return end
        end = max(shown)
