"""The figure of who got what share of a recorded episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from env.base.errors import located
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from evaluation.shares import is_shared, shares_of
from report.plots import finish
from report.recordings import Recording, labels_of
from report.tenants import colours, share_curves

COLUMNS = 3
"""Of panels."""


def draw_shares(recordings: Sequence[Recording], workload: Mapping[str, Any]) -> Figure | None:
    """What tenants received and were entitled to in the first recorded episode, a panel a policy.

    Args:
        recordings: of the evaluation, best policy first.
        workload: the group of its configuration.

    Returns:
        None where nothing is recorded, or nobody waits centrally or holds tickets.
    """
    first = [each for each in recordings if each.episode == recordings[0].episode]
    found = {}
    for recording in first:
        with located(str(recording.path)):
            env = played(read_episode(recording.path))
        if not is_shared(env):
            return None
        found[recording.policy] = shares_of(env)
    if not found:
        return None
    label_of = labels_of(workload, recordings)
    colour_of = colours(label_of)
    columns = 2 if len(found) == 4 else min(COLUMNS, len(found))  # 2 x 2 leaves no hole
    rows = -(-len(found) // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(4.2 * columns, 0.9 + 2.6 * rows),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for axes, (policy, shares) in zip(grid.flat, found.items(), strict=False):
        for label, curves in share_curves(shares, label_of).items():
            for curve, style in zip(curves, ("-", "--"), strict=True):
                axes.step(
                    shares.times,
                    curve,
                    style,
                    where="post",
                    color=colour_of[label],
                    linewidth=1.4,
                )
        axes.set_title(policy, fontsize=10)
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    for axes in grid.flat[max(0, len(found) - columns) : len(found)]:  # nothing is below them
        axes.set_xlabel("time (s)")
        axes.tick_params(labelbottom=True)
    for axes in grid[:, 0]:
        axes.set_ylabel("core-seconds")
    finish(grid.flat)
    names = [plt.Line2D([], [], color=colour, label=name) for name, colour in colour_of.items()]
    styles = [
        plt.Line2D([], [], color="grey", linestyle="-", label="received"),
        plt.Line2D([], [], color="grey", linestyle="--", label="entitled by tickets"),
    ]
    figure.legend(
        handles=[*names, *styles], loc="outside lower center", ncols=len(names) + 2, frameon=False
    )
    figure.suptitle(f"episode {first[0].episode}", fontsize=11)
    return figure
