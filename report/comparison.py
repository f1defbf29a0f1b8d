"""The comparison as one picture: J of every policy, and time against cost."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from matplotlib.transforms import Bbox

from agents.evaluation import Interval
from report.table import label

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = {"baseline": "#0072B2", "learned": "#D55E00", "reference": "#999999"}
MARKER = 6.0
"""Diameter of a point, in points (1/72 inch)."""
LOG_FROM = 5.0
"""Axes are logarithmic where the largest value is this many times the smallest."""
DISTANCES = range(6, 150, 6)
"""Of a name from its point, in points; the nearest free one is taken."""
SIDES = {
    (1, 0): ("left", "center"),
    (-1, 0): ("right", "center"),
    (0, 1): ("center", "bottom"),
    (0, -1): ("center", "top"),
    (0.7, 0.7): ("left", "bottom"),
    (0.7, -0.7): ("left", "top"),
    (-0.7, 0.7): ("right", "bottom"),
    (-0.7, -0.7): ("right", "top"),
}
"""Where a name can be: (right, up) of its point, and how it is aligned there."""


def draw_comparison(summary: Sequence[dict[str, str | Interval]], title: str, path: Path) -> None:
    """Writes the picture.

    Args:
        summary: rows of `summarise`, best first.
        title: what was evaluated.
        path: a .png file.
    """
    names = [label(row) for row in summary]
    colours = [COLOURS[str(row["kind"])] for row in summary]
    height = max(4.0, 1.2 + 0.36 * len(names))
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, height), layout="constrained")
    figure.suptitle(title, fontsize=11)
    _draw_bars(left, names, [_interval(row["J"]) for row in summary], colours)
    slowdown = [_interval(row["slowdown"]).mean for row in summary]
    cost = [_interval(row["cost_ratio"]).mean for row in summary]
    right.scatter(cost, slowdown, s=MARKER**2, c=colours)
    right.set_xlabel("cost ratio (rent / cheapest possible)")
    right.set_ylabel("mean slowdown")
    _scale(right, "x", cost)
    _scale(right, "y", slowdown)
    right.margins(0.2, 0.12)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.canvas.draw()  # settles the layout, which labels are placed by
    _label_points(right, names, np.column_stack([cost, slowdown]))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_bars(
    axes: Axes, names: Sequence[str], found: Sequence[Interval], colours: Sequence[str]
) -> None:
    rows = range(len(names))
    means = [cell.mean for cell in found]
    below = [cell.mean - cell.ci_low for cell in found]
    above = [cell.ci_high - cell.mean for cell in found]
    axes.barh(rows, means, color=colours, height=0.7)
    axes.errorbar(
        means, rows, xerr=[below, above], fmt="none", ecolor="black", capsize=2, linewidth=1
    )
    axes.set_yticks(list(rows), names)
    axes.invert_yaxis()
    axes.set_xlabel("J (lower is better), mean and 95% interval")


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    if max(values) < LOG_FROM * min(values):
        return
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _label_points(axes: Axes, names: Sequence[str], points: np.ndarray) -> None:
    """Names the points (P, 2), each at the nearest place that covers no other name or point."""
    pixels = axes.figure.dpi / 72.0
    half = MARKER * pixels / 2
    taken = [
        Bbox.from_extents(x - half, y - half, x + half, y + half)
        for x, y in axes.transData.transform(points)
    ]
    for name, point in zip(names, points, strict=True):
        label = axes.annotate(name, point, xytext=(0, 0), textcoords="offset points", fontsize=8)
        for distance, ((right, up), (horizontal, vertical)) in product(DISTANCES, SIDES.items()):
            label.set(ha=horizontal, va=vertical)
            label.xyann = (right * distance, up * distance)
            extent = label.get_window_extent()
            inside = axes.bbox.containsx(extent.x0) and axes.bbox.containsx(extent.x1)
            if inside and extent.count_overlaps(taken) == 0:
                break
        taken.append(extent)
        if distance > DISTANCES[0]:
            line = {"arrowstyle": "-", "linewidth": 0.5, "color": "grey", "shrinkA": 0}
            axes.annotate(
                "", point, xytext=label.xyann, textcoords="offset points", arrowprops=line
            )


def _interval(cell: str | Interval) -> Interval:
    assert isinstance(cell, Interval)
    return cell
