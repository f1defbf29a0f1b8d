"""The Gantt chart of an episode as a PNG: `python -m report.gantt EPISODE`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from env.base.files import written_whole
from env.base.schema import printable
from report import palette
from report.episode_command import convert_episode
from report.timeline import PHASES, Phase, Timeline, read_timeline

# A name with two dollar signs is no formula.
matplotlib.rcParams["text.parse_math"] = False

ROW = 0.16
"""Height of a row in inches, as long as the figure is not higher than `HIGHEST`."""
LONGEST = 100
"""Characters of a name."""
WIDTH, LOWEST, HIGHEST = 13.0, 3.0, 40.0
"""Of the figure, in inches."""


def draw_gantt(timeline: Timeline, path: Path) -> None:
    """Writes the chart: a band a NUMA node, in it a row for each container at a time.

    Args:
        timeline: the episode.
        path: a .png file; appears whole or not at all.
    """
    rows = np.array([max(1, node.lanes) for node in timeline.nodes])
    first = np.concatenate([[0], rows.cumsum()])
    height = float(np.clip(1.6 + ROW * first[-1], LOWEST, HIGHEST))
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    containers = timeline.containers
    middle = first[containers["node"]] + containers["lane"] + 0.5
    for phase in PHASES:
        _draw_phase(axes, containers, middle, phase)
    warm = timeline.warm
    _draw_bars(
        axes,
        (warm["begin"], warm["end"]),
        first[warm["node"]] + warm["lane"] + 0.5,
        palette.WARM_HEIGHT,
        palette.WARM,
    )
    for index, node in enumerate(timeline.nodes):
        starts_server = node.node_id == 0
        axes.axhline(
            first[index], color="black" if starts_server else "silver", linewidth=0.6, zorder=0
        )
    axes.set_yticks(
        (first[:-1] + first[1:]) / 2,
        [f"{in_figure(node.server)} · NUMA {node.node_id}" for node in timeline.nodes],
    )
    axes.set(
        xlim=(0, timeline.end),
        ylim=(first[-1], 0),
        xlabel="time (s)",
        title=f"{in_figure(timeline.name)}: {len(containers)} containers, coloured by workflow",
    )
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)
    keys = [Patch(color=colour, label=name) for name, colour in palette.PHASES.items()]
    keys.append(Patch(color=palette.SERIES[0], label="running (colour of the workflow)"))
    keys.append(Patch(color=palette.WARM, label="warm and idle"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False)
    try:
        with written_whole(path) as temporary, warnings.catch_warnings():
            # A character that the font does not have is a box.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(temporary, dpi=130, format="png")
    finally:
        plt.close(figure)


def in_figure(name: str) -> str:
    """A name from a file as a figure shows it: control characters spelt out, a long end cut off."""
    shown = printable(name)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return convert_episode(
        read_timeline,
        draw_gantt,
        module="report.gantt",
        description="Draw the Gantt chart of an episode file as a PNG.",
        made="picture",
        output=Path("gantt.png"),
        arguments=arguments,
    )


def _draw_phase(axes: Axes, containers: np.ndarray, middle: np.ndarray, phase: Phase) -> None:
    """Bars of the containers that spend any time in a phase; `middle` (C,) is where they stand."""
    shown = containers[phase.end] > containers[phase.begin]
    colours = palette.PHASES.get(phase.name) or [
        palette.workflow_colour(int(wf_id)) for wf_id in containers["wf_id"][shown]
    ]
    times = containers[phase.begin][shown], containers[phase.end][shown]
    _draw_bars(axes, times, middle[shown], palette.PHASE_HEIGHTS[phase.name], colours)


def _draw_bars(
    axes: Axes,
    times: tuple[np.ndarray, np.ndarray],
    middle: np.ndarray,
    height: float,
    colours: str | list[str],
) -> None:
    """Bars from a time to another, (C,) each; `middle` (C,) is where they stand."""
    left, right = times
    low, high = middle - height / 2, middle + height / 2
    corners = [(left, low), (right, low), (right, high), (left, high)]
    bars = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)  # (C, 4, 2)
    axes.add_collection(PolyCollection(list(bars), facecolors=colours))


if __name__ == "__main__":
    sys.exit(main())
