"""The figures of an evaluation, each as .png and .svg."""

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import Bbox

from evaluation.statistics import LARGEST_RATIO, Estimate, performance_profiles
from report import palette
from report.axes import end_of_axis
from report.digits import number
from report.flow_figures import draw_distribution, draw_parts, draw_sweep
from report.plots import LINES, finish, height, name_lines, name_rows, reach, save, scale
from report.summary import RANKED_BY, Summary, values_of
from report.sweep import Scenarios

MOST_LETTERS = 100
"""Of the name of a scenario, in that of its folder."""
MARKER = 6.0
"""Diameter of a point, in points (1/72 inch)."""
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


def draw_figures(
    summary: Summary, results: pd.DataFrame, scenarios: Scenarios, folder: Path
) -> list[Path]:
    """Draws all figures: of several scenarios each has a folder of its own, beside the sweep.

    Args:
        summary: of the results.
        results: from `evaluation.results.read_results`.
        scenarios: of run.json.
        folder: made if it is missing.

    Returns:
        The .png files.
    """
    pictures = []
    if summary.several:
        pictures.append(save(draw_sweep(summary, scenarios), "sweep", folder))
    for place, (scenario, own) in enumerate(results.groupby("scenario", sort=False), 1):
        where = folder / _file_name(place, scenario) if summary.several else folder
        for name, figure in _draw_scenario(summary.of(scenario), own).items():
            figure.suptitle(f"{scenario}\n{summary.title}".strip(), fontsize=11)
            pictures.append(save(figure, name, where))
    return pictures


def _draw_scenario(summary: Summary, results: pd.DataFrame) -> dict[str, Figure]:
    """By name; a figure is closed when it is saved."""
    names = [policy.policy for policy in summary.policies]
    values = values_of(results, RANKED_BY).loc[names].to_numpy()
    figures = {
        "comparison": draw_comparison(summary, results),
        "metrics": draw_metrics(summary),
        "improvement": draw_improvement(summary),
        "profiles": draw_profiles(summary, values),
        "distribution": draw_distribution(summary, results, values),
    }
    if "execution" in summary.metrics:
        figures["parts"] = draw_parts(summary)
    return figures


def _file_name(number: int, scenario: str) -> str:
    """Of the folder of a scenario, readable and not too long."""
    return f"{number:02}_{re.sub(r'[^A-Za-z0-9_.=+-]+', '_', scenario)[:MOST_LETTERS]}"


def draw_comparison(summary: Summary, results: pd.DataFrame) -> Figure:
    """The paired difference to the measure and, where anything is paid, time against cost."""
    names = [policy.label for policy in summary.policies]
    paid = "cost_ratio" in summary.metrics
    cost = [each.value for each in _means(summary, "cost_ratio")] if paid else [0.0]
    panels = 2 if min(cost) > 0 else 1
    figure, grid = plt.subplots(
        1, panels, figsize=(6.5 * panels, height(summary)), layout="constrained", squeeze=False
    )
    draw_forest(grid[0][0], summary, values_of(results, RANKED_BY))
    finish(grid.flat)
    if panels == 2:
        _draw_time_against_cost(grid[0][1], summary, names, cost)
    return figure


def draw_forest(axes: Axes, summary: Summary, values: pd.DataFrame) -> None:
    """Points in their intervals, hollow where a difference is not clear; `values` are J.

    Few episodes are points of their own. What lies far outside is written at the edge.
    """
    found = [summary.tellable(policy.relative) for policy in summary.policies]
    end = end_of_axis([each.value for each in found], [each.ci_high for each in found])
    colours = _colours(summary)
    axes.axvline(0.0, color="grey", linewidth=0.8)
    measure = values.loc[summary.measure]
    for row, (policy, each) in enumerate(zip(summary.policies, found, strict=True)):
        colour = colours[row]
        if each.value > end:
            axes.plot(end, row, ">", color=colour, clip_on=False)
            text = f"{number(each, 'share', '+')} "
            axes.annotate(
                text,
                (end, row),
                (-5, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8,
            )
            continue
        if summary.few:
            own = (values.loc[policy.policy] - measure) / measure.mean()
            axes.plot(np.minimum(own, end), [row] * len(own), ".", color=colour, markersize=4)
        axes.plot([each.ci_low, each.ci_high], [row, row], color=colour)
        filled = colour if summary.is_clear(policy.against) else "white"
        axes.plot(each.value, row, "o", color=colour, markerfacecolor=filled)
    name_rows(axes, [policy.label for policy in summary.policies])
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    clear = f"\nfull points: p < {1 - summary.confidence:g} after Holm's correction"
    axes.set_xlabel(
        f"{RANKED_BY} against {summary.measure}: mean paired difference over its mean {RANKED_BY}"
        + ("" if summary.few else clear)
    )


def _draw_time_against_cost(
    axes: Axes, summary: Summary, names: Sequence[str], cost: Sequence[float]
) -> None:
    slowdown = [each.value for each in _means(summary, "slowdown")]
    axes.scatter(cost, slowdown, s=MARKER**2, c=_colours(summary))
    axes.set_xlabel("cost ratio (rent / cheapest possible)")
    axes.set_ylabel("mean slowdown")
    scale(axes, "x", cost)
    scale(axes, "y", slowdown)
    axes.margins(0.2, 0.12)
    axes.figure.canvas.draw()  # settles the layout, which labels are placed by
    _label_points(axes, names, np.column_stack([cost, slowdown]))


def draw_metrics(summary: Summary) -> Figure:
    """Every metric of every policy, a panel a metric."""
    shown = list(summary.metrics.values())
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
    finish(grid.flat)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    return figure


def draw_improvement(summary: Summary) -> Figure:
    """How often every policy is better than the measure."""
    others = [policy for policy in summary.policies if policy.policy != summary.measure]
    figure, axes = plt.subplots(figsize=(8, height(summary)), layout="constrained")
    found = [summary.tellable(policy.against.probability) for policy in others]
    colours = [palette.KINDS[policy.kind] for policy in others]
    axes.scatter([each.value for each in found], range(len(found)), s=MARKER**2, c=colours)
    _draw_intervals(axes, [policy.label for policy in others], found)
    axes.axvline(0.5, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(f"share of episodes with a lower {RANKED_BY} than {summary.measure}")
    finish([axes])
    return figure


def draw_profiles(summary: Summary, values: np.ndarray) -> Figure:
    """How often a policy is within a ratio of the episode's best; `values` (P, N) are their J."""
    ratios = np.linspace(1.0, LARGEST_RATIO, 301)
    profiles = performance_profiles(values, ratios)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    lines = [(each.label, colour) for each, colour in zip(summary.policies, LINES, strict=False)]
    for (_, colour), profile in zip(lines, profiles, strict=False):
        axes.plot(ratios, profile, color=colour)
    axes.set_xlim(1.0, LARGEST_RATIO)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(f"ratio to the lowest {RANKED_BY} of the episode")
    axes.set_ylabel("share of episodes within it")
    finish([axes])
    name_lines(figure, lines, summary)
    return figure


def _means(summary: Summary, metric: str) -> list[Estimate]:
    return [summary.tellable(policy.metrics[metric].mean) for policy in summary.policies]


def _colours(summary: Summary) -> list[str]:
    return [palette.KINDS[policy.kind] for policy in summary.policies]


def _draw_bars(
    axes: Axes, names: Sequence[str], found: Sequence[Estimate], colours: Sequence[str]
) -> None:
    rows = range(len(names))
    axes.barh(rows, [each.value for each in found], color=colours, height=0.7)
    _draw_intervals(axes, names, found)
    if not any(each.value for each in found):
        axes.set_xlim(0, 1)


def _draw_intervals(axes: Axes, names: Sequence[str], found: Sequence[Estimate]) -> None:
    values = [each.value for each in found]
    rows, around = range(len(names)), reach(found)
    axes.errorbar(values, rows, xerr=around, fmt="none", ecolor="black", capsize=2, linewidth=1)
    name_rows(axes, names)


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
