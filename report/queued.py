"""What an evaluation under queued dispatch leaves: runs.csv, summary.csv, a figure and a table."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from agents.queued_evaluation import (
    Played,
    QueuedEvaluation,
    Summary,
    by_case,
    summarise_cases,
)
from report.table import PLAIN_WIDTH

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
CASE = ("sample", "ratio", "keep_alive", "order")
PARTS = {"queueing": "queueing time (s)", "cold_start": "cold start time (s)"}
SHOWN = {
    "speedup": ("speedup", ".2f"),
    "completion": ("mean", ".2f"),
    "completion_median": ("median", ".2f"),
    "queueing": ("queue", ".2f"),
    "cold_start": ("cold\nstart", ".2f"),
    "execution": ("work", ".2f"),
    "late": ("late", ".1%"),
    "slowdown": ("slow-\ndown", ".2f"),
}
"""Metrics of the table, their headings and how they are written; summary.csv has all."""
INTERVALS = ("speedup", "completion")
"""Metrics that are shown with their interval."""


def evaluate_queued(evaluation: QueuedEvaluation, folder: Path) -> None:
    """Plays everything, writes the files and prints the table.

    Args:
        evaluation: what is played.
        folder: of the run.
    """
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    settings = evaluation.settings
    played: list[Played] = []
    with (
        (folder / "runs.csv").open("w", newline="") as file,
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        writer = csv.writer(file)
        task = progress.add_task("cases", total=len(evaluation.cases) * len(settings.seeds))
        for each in evaluation.play():
            if not played:
                writer.writerow([*CASE, "seed", *each.row])
            cells = [getattr(each.case, name) for name in CASE]
            writer.writerow([*cells, each.seed, *each.row.values()])
            file.flush()
            played.append(each)
            progress.update(task, advance=1, description=f"{each.case.sample}, {each.case.order}")
    summary = summarise_cases(by_case(played), settings.orders[0])
    write_summary(folder / "summary.csv", summary)
    figure = folder / f"{settings.figure}.png"
    if settings.figure == "distribution":
        draw_distribution(played, summary, settings.slo, figure)
    elif settings.figure == "parts":
        draw_parts(summary, figure)
    else:
        draw_ratios(summary, figure)
    for name, report in evaluation.reports.items():
        print(f"{name}: {report}")
    console.print(queued_table(summary, len(settings.seeds)))
    print(f"results: {folder}")


def write_summary(path: Path, summary: Summary) -> None:
    """A row a case, three columns a metric: mean and 95% interval over seeds."""
    parts = ("mean", "ci_low", "ci_high")
    keys = list(summary[0][1])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*CASE, *(f"{key}_{part}" for key in keys for part in parts)])
        for case, found in summary:
            cells = [getattr(found[key], part) for key in keys for part in parts]
            writer.writerow([*(getattr(case, name) for name in CASE), *cells])


def queued_table(summary: Summary, seeds: int) -> Table:
    """A row a case."""
    table = Table(
        title=f"times in seconds, means over {seeds} seeds [95% interval]",
        caption="completion time: mean, median, its parts, share of late ones; speedup of the mean "
        "over that of the first order",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for name in CASE:
        table.add_column(name.replace("_", " "), no_wrap=True)
    shown = {key: column for key, column in SHOWN.items() if key in summary[0][1]}
    for heading, _ in shown.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for case, found in summary:
        cells = []
        for key, (_, form) in shown.items():
            cell = format(found[key].mean, form)
            if key in INTERVALS:
                low, high = found[key].ci_low, found[key].ci_high
                cell += f" [{format(low, form)}, {format(high, form)}]"
            cells.append(cell)
        table.add_row(case.sample, f"{case.ratio:g}", case.keep_alive, case.order, *cells)
    return table


def draw_ratios(summary: Summary, path: Path) -> None:
    """Mean completion time against the ratio: a panel a sample and policy, a line an order."""
    panels = list(dict.fromkeys((case.sample, case.keep_alive) for case, _ in summary))
    figure, grid = plt.subplots(
        1, len(panels), figsize=(4.5 * len(panels), 4), layout="constrained", squeeze=False
    )
    orders = list(dict.fromkeys(case.order for case, _ in summary))
    for axes, panel in zip(grid[0], panels, strict=True):
        for order, colour in zip(orders, COLOURS, strict=False):
            line = [
                (case.ratio, found["completion"])
                for case, found in summary
                if (case.sample, case.keep_alive, case.order) == (*panel, order)
            ]
            ratios = [ratio for ratio, _ in line]
            axes.plot(ratios, [cell.mean for _, cell in line], "o-", color=colour, label=order)
            low, high = [cell.ci_low for _, cell in line], [cell.ci_high for _, cell in line]
            axes.fill_between(ratios, np.maximum(low, 0.0), high, color=colour, alpha=0.15)
        axes.set_title(", ".join(panel), fontsize=11)
        axes.set_xlabel("downsampling ratio")
        axes.set_ylim(bottom=0)
    grid[0][0].set_ylabel("mean completion time (s), 95% interval")
    _finish(figure, grid[0], path)


def draw_parts(summary: Summary, path: Path) -> None:
    """Queueing and cold start time: a panel each, a group of bars a keep-alive policy."""
    figure, grid = plt.subplots(1, len(PARTS), figsize=(10, 4), layout="constrained")
    policies = list(dict.fromkeys(case.keep_alive for case, _ in summary))
    orders = list(dict.fromkeys(case.order for case, _ in summary))
    width = 0.8 / len(orders)
    for axes, (key, label) in zip(grid, PARTS.items(), strict=True):
        for number, (order, colour) in enumerate(zip(orders, COLOURS, strict=False)):
            cells = [found[key] for case, found in summary if case.order == order]
            places = np.arange(len(cells)) + width * (number - (len(orders) - 1) / 2)
            axes.bar(places, [c.mean for c in cells], width, color=colour, label=order)
            reach = [[c.mean - c.ci_low for c in cells], [c.ci_high - c.mean for c in cells]]
            axes.errorbar(
                places, [c.mean for c in cells], reach, fmt="none", ecolor="black", capsize=2
            )
        axes.set_xticks(range(len(policies)), policies)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    _finish(figure, grid, path)


def draw_distribution(
    played: Sequence[Played], summary: Summary, slo: Sequence[float], path: Path
) -> None:
    """Completion times of all seeds as a distribution, and the share of requests in time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    width = 0.8 / len(summary)
    for number, ((case, found), colour) in enumerate(zip(summary, COLOURS, strict=False)):
        times = np.concatenate([each.completions for each in played if each.case == case])
        left.plot(np.sort(times), np.linspace(0, 1, len(times)), color=colour, label=case.order)
        cells = [found[f"slo_{k:g}"] for k in slo]
        places = np.arange(len(slo)) + width * (number - (len(summary) - 1) / 2)
        right.bar(places, [c.mean for c in cells], width, color=colour, label=case.order)
    left.set_xscale("log")
    left.set_xlabel("completion time (s)")
    left.set_ylabel("share of requests")
    right.set_xticks(range(len(slo)), [f"{k:g}" for k in slo])
    right.set_xlabel("deadline, multiples of E + D of the function")
    right.set_ylabel("share of requests that meet it")
    _finish(figure, (left, right), path)


def _finish(figure: plt.Figure, panels: Sequence[Axes], path: Path) -> None:
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
