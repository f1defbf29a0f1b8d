"""The figures of an evaluation, each as .png and .svg: ranking, metrics, distributions."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from matplotlib.transforms import Bbox

from env.base.errors import InputError
from evaluation.statistics import LARGEST_RATIO, Estimate, performance_profiles
from report import palette
from report.summary import RANKED_BY, Summary, values_of

# A name with two dollar signs is no formula.
matplotlib.rcParams["text.parse_math"] = False

FORMATS = ("png", "svg")
LINES = (*palette.SERIES, "black", palette.KINDS["reference"])
"""Of curves, of which there are at most so many: the policies with the lowest J."""
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


def draw_figures(summary: Summary, results: pd.DataFrame, folder: Path) -> list[Path]:
    """Draws all figures.

    Args:
        summary: of the results.
        results: from `evaluation.results.read_results`.
        folder: made if it is missing.

    Returns:
        The .png files.
    """
    names = [policy.policy for policy in summary.policies]
    values = values_of(results, RANKED_BY).loc[names].to_numpy()
    figures = {
        "comparison": draw_comparison(summary),
        "metrics": draw_metrics(summary),
        "improvement": draw_improvement(summary),
        "profiles": draw_profiles(summary, values),
        "distribution": draw_distribution(summary, values),
    }
    for figure in figures.values():
        figure.suptitle(summary.title, fontsize=11)
    return [save(figure, name, folder) for name, figure in figures.items()]


def save(figure: Figure, name: str, folder: Path) -> Path:
    """Writes a figure as <name>.png and <name>.svg, closes it and returns the .png file.

    Args:
        figure: as drawn.
        name: of the files.
        folder: made if it is missing.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    # The same numbers give the same file: no date, no random ids.
    with plt.rc_context({"svg.hashsalt": name}):
        for ending in FORMATS:
            about = {"Date": None} if ending == "svg" else None
            figure.savefig(folder / f"{name}.{ending}", dpi=130, metadata=about)
    plt.close(figure)
    return folder / f"{name}.png"


def draw_comparison(summary: Summary) -> Figure:
    """J of every policy, and time against cost."""
    names = [policy.label for policy in summary.policies]
    colours = _colours(summary)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, _height(summary)), layout="constrained")
    _draw_bars(left, names, _means(summary, RANKED_BY), colours)
    left.set_xlabel(f"{RANKED_BY} (lower is better), mean and {summary.confidence:.0%} interval")
    slowdown = [each.value for each in _means(summary, "slowdown")]
    cost = [each.value for each in _means(summary, "cost_ratio")]
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
    return figure


def draw_metrics(summary: Summary) -> Figure:
    """Every metric of every policy, a panel a metric; those without any number are left out."""
    shown = summary.shown_metrics
    names = [policy.label for policy in summary.policies]
    columns = 3
    rows = -(-len(shown) // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(13, rows * (0.8 + 0.2 * len(names))),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for axes, metric in zip(grid.flat, shown, strict=False):
        _draw_bars(axes, names, _means(summary, metric.name), _colours(summary))
        better = "" if metric.better is None else f", {metric.better} is better"
        axes.set_xlabel(f"{metric.heading}{better}", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    return figure


def draw_improvement(summary: Summary) -> Figure:
    """How often every policy is better than the measure."""
    others = [policy for policy in summary.policies if policy.policy != summary.measure]
    figure, axes = plt.subplots(figsize=(8, _height(summary)), layout="constrained")
    _draw_points(
        axes,
        [policy.label for policy in others],
        [policy.against.probability for policy in others],
        [palette.KINDS[policy.kind] for policy in others],
    )
    axes.axvline(0.5, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(f"share of episodes with a lower {RANKED_BY} than {summary.measure}")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_profiles(summary: Summary, values: np.ndarray) -> Figure:
    """Performance profiles: how often a policy is within a ratio of the episode's best.

    Args:
        summary: of the evaluation.
        values: (P, N) J of its policies.
    """
    ratios = np.linspace(1.0, LARGEST_RATIO, 301)
    profiles = performance_profiles(values, ratios)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for policy, profile, colour in zip(summary.policies, profiles, LINES, strict=False):
        axes.plot(ratios, profile, color=colour, label=policy.label)
    axes.set_xlim(1.0, LARGEST_RATIO)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(f"ratio to the lowest {RANKED_BY} of the episode")
    axes.set_ylabel("share of episodes within it")
    _finish_curves(axes, summary)
    return figure


def draw_distribution(summary: Summary, values: np.ndarray) -> Figure:
    """Share of episodes in which J is at most so much; arguments as of `draw_profiles`."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for policy, js, colour in zip(summary.policies, values, LINES, strict=False):
        axes.ecdf(js, color=colour, label=policy.label)
    _scale(axes, "x", values[: len(LINES)].ravel().tolist())
    axes.set_xlabel(f"{RANKED_BY} of an episode")
    axes.set_ylabel("share of episodes at or below it")
    _finish_curves(axes, summary)
    return figure


def _finish_curves(axes: Axes, summary: Summary) -> None:
    left = len(summary.policies) - len(LINES)
    title = f"the best {len(LINES)} policies" if left > 0 else None
    axes.legend(loc="lower right", fontsize=8, frameon=False, title=title, title_fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _means(summary: Summary, metric: str) -> list[Estimate]:
    return [policy.metrics[metric].mean for policy in summary.policies]


def _colours(summary: Summary) -> list[str]:
    return [palette.KINDS[policy.kind] for policy in summary.policies]


def _height(summary: Summary) -> float:
    """Inches for a row a policy."""
    return max(4.0, 1.2 + 0.36 * len(summary.policies))


def _draw_bars(
    axes: Axes, names: Sequence[str], found: Sequence[Estimate], colours: Sequence[str]
) -> None:
    rows = range(len(names))
    axes.barh(rows, [each.value for each in found], color=colours, height=0.7)
    _draw_intervals(axes, names, found)


def _draw_points(
    axes: Axes, names: Sequence[str], found: Sequence[Estimate], colours: Sequence[str]
) -> None:
    axes.scatter([each.value for each in found], range(len(names)), s=MARKER**2, c=colours)
    _draw_intervals(axes, names, found)


def _draw_intervals(axes: Axes, names: Sequence[str], found: Sequence[Estimate]) -> None:
    rows = range(len(names))
    values = [each.value for each in found]
    around = [
        [each.value - each.ci_low for each in found],
        [each.ci_high - each.value for each in found],
    ]
    axes.errorbar(values, rows, xerr=around, fmt="none", ecolor="black", capsize=2, linewidth=1)
    axes.set_yticks(list(rows), names)
    # The best on top; there is room for one where there is nobody to compare with.
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    if max(values) < LOG_FROM * min(values):
        return
    log_scale(axes, which)


def log_scale(axes: Axes, which: str) -> None:
    """Makes the x or y axis logarithmic, with plain numbers at 1, 2, 5, 10 and so on."""
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
