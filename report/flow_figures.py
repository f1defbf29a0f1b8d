"""The figures of where time goes and of what was swept."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from evaluation.episode_metrics import SHARES
from evaluation.statistics import Estimate
from report import palette
from report.digits import low_of
from report.plots import LINES, finish, height, name_lines, name_rows, reach, scale
from report.summary import RANKED_BY, Summary, flow_times
from report.sweep import Scenarios, axes_of, places

SWEPT = (RANKED_BY, "flow_time", "queueing", "container_start")
"""Metrics that are drawn against what was swept, as far as they are known; the report has all."""


def draw_distribution(summary: Summary, results: pd.DataFrame, values: np.ndarray) -> Figure:
    """How J is distributed over episodes, flow times over workflows, and which deadlines are met.

    Args:
        summary: of the scenario.
        results: its rows.
        values: (P, N) J of its policies.
    """
    met = [name for name in summary.metrics if name.startswith("slo_")]
    drawn = list(zip(summary.policies, LINES, strict=False))
    panels = 3 if met else 2
    figure, grid = plt.subplots(1, panels, figsize=(2 + 5 * panels, 4.5), layout="constrained")
    grid[0].set_xlabel(f"{RANKED_BY} of an episode")
    grid[0].set_ylabel("share of episodes at or below it")
    scale(grid[0], "x", values[: len(drawn)].ravel().tolist())
    times = [flow_times(results[results["policy"] == policy.policy]) for policy, _ in drawn]
    grid[1].set_xlabel("flow time (s)")
    grid[1].set_ylabel("share of workflows at or below it")
    scale(grid[1], "x", np.concatenate(times).tolist())
    for (_, colour), js, own in zip(drawn, values, times, strict=False):
        grid[0].ecdf(js, color=colour)
        grid[1].step(own, SHARES, where="post", color=colour)
    if met:
        width = 0.8 / len(drawn)
        for index, (policy, colour) in enumerate(drawn):
            shares = [policy.metrics[name].mean.value for name in met]
            grid[2].bar(np.arange(len(met)) + index * width, shares, width, color=colour)
        middles = np.arange(len(met)) + (len(drawn) - 1) / 2 * width
        grid[2].set_xticks(middles, [name.removeprefix("slo_") for name in met])
        grid[2].set_xlabel("deadline / time alone")
        grid[2].set_ylabel("share of workflows in time")
    finish(grid)
    name_lines(figure, [(policy.label, colour) for policy, colour in drawn], summary)
    return figure


def draw_parts(summary: Summary) -> Figure:
    """What the time of functions is made of, a bar a policy."""
    figure, axes = plt.subplots(figsize=(9, height(summary)), layout="constrained")
    left = np.zeros(len(summary.policies))
    for part, colour in palette.PARTS.items():
        if (name := part.replace(" ", "_")) in summary.metrics:
            seconds = np.array([each.metrics[name].mean.value for each in summary.policies])
            axes.barh(range(len(left)), seconds, 0.7, left, color=colour, label=part)
            left += seconds
    name_rows(axes, [policy.label for policy in summary.policies])
    axes.set_xlabel("seconds, mean over functions")
    figure.legend(loc="outside lower center", ncols=len(palette.PARTS), frameon=False)
    finish([axes])
    return figure


def draw_sweep(summary: Summary, scenarios: Scenarios) -> Figure:
    """Metrics against the first swept key that can be an axis; a panel a value of the others."""
    axis = axes_of(scenarios)[0]
    placed = places(scenarios, axis)
    panels = list(dict.fromkeys(placed["panel"]))
    numbers = is_numeric_dtype(placed["x"])
    values = sorted(set(placed["x"])) if numbers else list(dict.fromkeys(placed["x"]))
    ticks = values if numbers else range(len(values))
    shown = [metric for name, metric in summary.metrics.items() if name in SWEPT]
    found = {(row.scenario, row.policy): row.metrics for row in summary.policies}
    lines = list(zip(summary.ranked, LINES, strict=False))
    figure, grid = plt.subplots(
        len(shown),
        len(panels),
        figsize=(2.5 + 4 * len(panels), 1 + 2.8 * len(shown)),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    for (row, metric), (column, panel) in product(enumerate(shown), enumerate(panels)):
        own = placed[placed["panel"] == panel].sort_values("x", key=lambda x: x.map(values.index))
        at = own["x"].map(dict(zip(values, ticks, strict=True))).to_numpy()
        for index, (policy, colour) in enumerate(lines):
            means = [
                summary.tellable(found[scenario, policy][metric.name].mean)
                for scenario in own["scenario"]
            ]
            beside = 0.0 if numbers else 0.8 * ((index + 0.5) / len(lines) - 0.5)
            _draw_line(grid[row][column], at + beside, means, colour, joined=numbers)
        grid[row][0].set_ylabel(metric.heading)
        scale(grid[row][0], "y", [each[metric.name].mean.value for each in found.values()])
        grid[0][column].set_title(panel, fontsize=10)
        grid[-1][column].set_xlabel(axis)
    if numbers:
        scale(grid[0][0], "x", values)
    grid[0][0].set_xticks(ticks, [f"{value:g}" if numbers else value for value in values])
    figure.suptitle(summary.title, fontsize=11)
    finish(grid.flat)
    name_lines(figure, lines, summary)
    return figure


def _draw_line(
    axes: Axes, at: np.ndarray, means: Sequence[Estimate], colour: Any, joined: bool
) -> None:
    """A line in the band of its intervals, or points with theirs."""
    values = [each.value for each in means]
    if joined:
        axes.plot(at, values, "o-", color=colour, markersize=4)
        low, high = zip(*((low_of(each), each.ci_high) for each in means), strict=True)
        axes.fill_between(at, low, high, color=colour, alpha=0.15)
    else:
        axes.errorbar(at, values, reach(means), fmt="o", color=colour, capsize=2)
