"""What all figures have in common."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from env.base.files import written_whole
from env.base.schema import printable
from evaluation.statistics import Estimate
from report import palette
from report.axes import is_wide, log_ticks
from report.digits import low_of
from report.summary import Summary

# A name with two dollar signs is no formula.
matplotlib.rcParams["text.parse_math"] = False

FORMATS = ("png", "svg")
LONGEST = 100
"""Characters of a name in a figure."""
LINES = (*palette.SERIES, "black", palette.KINDS["reference"])
"""Of curves, of which there are at most so many: the policies with the lowest J."""


def in_figure(name: str) -> str:
    """A name from a file as a figure shows it: control characters spelt out, a long end cut off."""
    shown = printable(name)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


@contextmanager
def any_glyph() -> Iterator[None]:
    """Within it a character that the font does not have is drawn as a box, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save(figure: Figure, name: str, folder: Path) -> Path:
    """Writes <name>.png and <name>.svg into a folder, which is made if it is missing.

    The figure is closed; returns the .png file.
    """
    # The same numbers give the same file: no date, no random ids.
    with plt.rc_context({"svg.hashsalt": name}), any_glyph():
        for ending in FORMATS:
            about = {"Date": None} if ending == "svg" else None
            with written_whole(folder / f"{name}.{ending}") as temporary:
                folder.mkdir(parents=True, exist_ok=True)
                figure.savefig(temporary, dpi=130, format=ending, metadata=about)
    plt.close(figure)
    return folder / f"{name}.png"


def height(summary: Summary) -> float:
    """Inches for a row a policy."""
    return max(4.0, 1.2 + 0.36 * len(summary.policies))


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names the rows of a figure, the best on top."""
    axes.set_yticks(range(len(names)), names)
    # There is room for one where there is nobody to compare with.
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)


def name_lines(figure: Figure, lines: Sequence[tuple[str, Any]], summary: Summary) -> None:
    """A legend of (name, colour) beside the axes, which says so where there are more policies."""
    handles = [plt.Line2D([], [], color=colour, label=name) for name, colour in lines]
    left = len(summary.ranked) > len(lines)
    title = f"the best {len(lines)} policies" if left else None
    figure.legend(
        handles=handles, loc="outside right upper", frameon=False, fontsize=8, title=title
    )


def reach(found: Sequence[Estimate]) -> list[list[float]]:
    """How far intervals are drawn to the left (or down) and to the right (or up)."""
    return [
        [each.value - low_of(each) for each in found],
        [each.ci_high - each.value for each in found],
    ]


def finish(grid: Iterable[Axes]) -> None:
    """Leaves out the lines above and on the right, where there is no axis."""
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)


def scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    """Makes the x or y axis logarithmic where values lie far apart: ticks at 1, 2, 5, 10, ..."""
    if not is_wide(values):
        return
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log"})
    axis.set_major_locator(FixedLocator(log_ticks(values)))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_locator(NullLocator())
