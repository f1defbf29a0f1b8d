"""The comparison as one picture: J of every policy, and time against cost."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from agents.evaluation import Interval

# Okabe and Ito's colours, told apart by colour-blind readers.
BASELINE, LEARNED = "#0072B2", "#D55E00"


def draw_comparison(
    summary: Sequence[dict[str, str | Interval]], baselines: Sequence[str], title: str, path: Path
) -> None:
    """Writes the picture.

    Args:
        summary: rows of `summarise`, best first.
        baselines: names of hand-written schedulers; the others are learned.
        title: what was evaluated.
        path: a .png file.
    """
    names = [str(row["policy"]) for row in summary]
    colours = [BASELINE if name in baselines else LEARNED for name in names]
    height = max(3.2, 1.2 + 0.36 * len(names))
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, height), layout="constrained")
    figure.suptitle(title, fontsize=11)
    found = [_interval(row["J"]) for row in summary]
    rows = range(len(names))
    left.barh(rows, [cell.mean for cell in found], color=colours, height=0.7)
    left.errorbar(
        [cell.mean for cell in found],
        rows,
        xerr=[
            [cell.mean - cell.ci_low for cell in found],
            [cell.ci_high - cell.mean for cell in found],
        ],
        fmt="none",
        ecolor="black",
        capsize=2,
        linewidth=1,
    )
    left.set_yticks(list(rows), names)
    left.invert_yaxis()
    left.set_xlabel("J (lower is better), mean and 95% interval")
    for row, name, colour in zip(summary, names, colours, strict=True):
        slowdown, cost = _interval(row["slowdown"]), _interval(row["cost_ratio"])
        right.plot(cost.mean, slowdown.mean, "o", color=colour, markersize=6)
        right.annotate(
            name,
            (cost.mean, slowdown.mean),
            xytext=(6, 3),
            textcoords="offset points",
            fontsize=8,
        )
    right.set_xlabel("cost ratio (rent / cheapest possible)")
    right.set_ylabel("mean slowdown")
    right.set_xscale("log")
    right.set_yscale("log")
    right.margins(0.15)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _interval(cell: str | Interval) -> Interval:
    assert isinstance(cell, Interval)
    return cell
