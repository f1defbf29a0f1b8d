"""The figure of an evaluation under queued dispatch, as .png and .svg."""

from collections.abc import Sequence
from dataclasses import astuple
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.interval import CONFIDENCE
from evaluation.queued_evaluation import SHARES, Case
from evaluation.queued_rows import CASE
from report import palette
from report.figures import log_scale, save
from report.queued.summary import Summary, load_names, pooled_quantiles
from run.dispatch_settings import Queued

COLOURS = (*palette.SERIES, "black", palette.KINDS["reference"])
"""Of orders, in the order of the configuration."""
PARTS = {"queueing": "queueing time (s)", "cold_start": "cold start time (s)"}


def draw_figure(summary: Summary, results: pd.DataFrame, settings: Queued, folder: Path) -> Path:
    """Draws what `figure` of the settings says and returns the .png file.

    Args:
        summary: of the results.
        results: from `evaluation.results.read_results`.
        settings: the group `dispatch`.
        folder: made if it is missing.
    """
    if settings.figure == "distribution":
        figure = draw_distribution(results, summary, settings.slo)
    elif settings.figure == "parts":
        figure = draw_parts(summary)
    else:
        figure = draw_ratios(summary)
    return save(figure, settings.figure, folder)


def draw_ratios(summary: Summary) -> Figure:
    """Mean completion time against the ratio: a panel a sample and policy, a line an order."""
    panels = list(dict.fromkeys((case.sample, case.keep_alive) for case, _ in summary.cases))
    figure, grid = plt.subplots(
        1, len(panels), figsize=(4.5 * len(panels), 4), layout="constrained", squeeze=False
    )
    orders = list(dict.fromkeys(case.order for case, _ in summary.cases))
    for axes, panel in zip(grid[0], panels, strict=True):
        for order, colour in zip(orders, cycle(COLOURS), strict=False):
            line = [
                (case.ratio, cells["completion"])
                for case, cells in summary.cases
                if (case.sample, case.keep_alive, case.order) == (*panel, order)
            ]
            ratios = [ratio for ratio, _ in line]
            axes.plot(ratios, [cell.mean for _, cell in line], "o-", color=colour, label=order)
            low, high = [cell.ci_low for _, cell in line], [cell.ci_high for _, cell in line]
            axes.fill_between(ratios, np.maximum(low, 0.0), high, color=colour, alpha=0.15)
        axes.set_title(", ".join(panel), fontsize=11)
        axes.set_xlabel("downsampling ratio")
        axes.set_ylim(bottom=0)
    grid[0][0].set_ylabel(f"mean completion time (s), {CONFIDENCE:.0%} interval")
    return _finish(figure, grid[0])


def draw_parts(summary: Summary) -> Figure:
    """Queueing and cold start time: a panel each, a group of bars a load and keep-alive policy."""
    names = load_names([case for case, _ in summary.cases])
    orders = list(dict.fromkeys(case.order for case, _ in summary.cases))
    size = (max(10, 2 * len(names)), 4)
    figure, grid = plt.subplots(1, len(PARTS), figsize=size, layout="constrained")
    width = 0.8 / len(orders)
    for axes, (key, label) in zip(grid, PARTS.items(), strict=True):
        for number, (order, colour) in enumerate(zip(orders, cycle(COLOURS), strict=False)):
            means, low, high = np.array(
                [astuple(cells[key]) for case, cells in summary.cases if case.order == order]
            ).T
            places = np.arange(len(means)) + width * (number - (len(orders) - 1) / 2)
            axes.bar(places, means, width, color=colour, label=order)
            reach = [means - low, high - means]
            axes.errorbar(places, means, reach, fmt="none", ecolor="black", capsize=2)
        axes.set_xticks(range(len(names)), list(names.values()))
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    return _finish(figure, grid)


def draw_distribution(results: pd.DataFrame, summary: Summary, slo: Sequence[float]) -> Figure:
    """Completion times of all seeds as a distribution; of requests the share in time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    names = load_names([case for case, _ in summary.cases])
    rows = {Case(*key): own for key, own in results.groupby(list(CASE), sort=False)}
    width = 0.8 / len(summary.cases)
    for number, ((case, cells), colour) in enumerate(
        zip(summary.cases, cycle(COLOURS), strict=False)
    ):
        load = names[case.sample, case.ratio, case.keep_alive]
        label = f"{case.order}, {load}" if load else case.order
        left.step(pooled_quantiles(rows[case]), SHARES, where="post", color=colour, label=label)
        met = [cells[name].mean for name in (f"slo_{k:g}" for k in slo) if name in cells]
        if met:  # workflows have no deadlines
            places = np.arange(len(slo)) + width * (number - (len(summary.cases) - 1) / 2)
            right.bar(places, met, width, color=colour, label=label)
    log_scale(left, "x")
    left.set_xlabel("completion time (s)")
    left.set_ylabel("share completed")
    right.set_xticks(range(len(slo)), [f"{k:g}" for k in slo])
    right.set_xlabel("deadline, multiples of E + D of the function")
    right.set_ylabel("share of requests that meet it")
    return _finish(figure, (left, right))


def _finish(figure: Figure, panels: Sequence[Axes]) -> Figure:
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure
