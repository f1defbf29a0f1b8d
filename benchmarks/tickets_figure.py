"""The figure of docs/tickets.md: `python -m benchmarks.tickets_figure [--folder docs/figures]`.

Published figures of Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), beside what the
mechanisms of `env/sim/proportional` do: errors of 100 : 1 x 100 tickets, response times of a client
with 1 of 20 tickets, throughput of 3 : 1. The command also prints the rows of the page's table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from env.base.pipes import until_reader_leaves
from env.sim.proportional import operations
from env.sim.proportional.mechanism import Mechanism
from report import palette

SEED = np.random.SeedSequence(1995)
SKEWED = np.array([100] + [1] * 100)
OF_TWENTY = np.array([10, 4, 3, 2, 1])
THREE_TO_ONE = np.array([3, 1])

ALLOCATIONS = 1_000
RESPONSES = 1_000_000
ITERATIONS = 3_212
"""2409.18 + 802.89, the published throughput of both clients."""

PUBLISHED_ERRORS = {"stride": 50.0, "hierarchical_stride": 4.5}
PUBLISHED_RESPONSES = {"lottery": (20.13, 19.64), "stride": (20.00, 0.01)}
PUBLISHED_ITERATIONS = (2409.18, 802.89)
COLOURS = dict(
    zip(("lottery", "stride", "hierarchical_stride", "eevdf"), palette.SERIES, strict=False)
)


def order_of(name: str, tickets: np.ndarray, allocations: int) -> np.ndarray:
    """int64 (A,): who goes, one allocation after another."""
    mechanism = Mechanism(name, len(tickets), SEED)
    clients = np.arange(len(tickets))
    operations.join_many(mechanism.shares, clients, tickets, np.ones(len(tickets)))
    return mechanism.allocate_many(allocations)


def largest_errors(name: str) -> np.ndarray:
    """float64 (A,): the largest absolute error of any client after each allocation."""
    order = order_of(name, SKEWED, ALLOCATIONS)
    received = (order[:, None] == np.arange(len(SKEWED))).cumsum(axis=0)
    entitled = np.arange(1, ALLOCATIONS + 1)[:, None] * (SKEWED / SKEWED.sum())
    return np.abs(received - entitled).max(axis=1)


def response_times(name: str) -> np.ndarray:
    """Quanta from one allocation to the next, of the client with 1 of 20 tickets."""
    return np.diff(np.flatnonzero(order_of(name, OF_TWENTY, RESPONSES) == 4))


def rows() -> list[tuple[str, str, str]]:
    """What is compared, as published and as found here."""
    found = []
    for name, error in PUBLISHED_ERRORS.items():
        what = f"largest error, one client of 100 tickets and 100 of 1, `{name}`"
        found.append((what, f"{error:.1f}", f"{largest_errors(name).max():.1f}"))
    for name, (mean, deviation) in PUBLISHED_RESPONSES.items():
        times = response_times(name)
        here = f"{times.mean():.2f} ± {times.std():.2f}"
        what = f"turn to turn, 1 of 20 tickets, quanta, `{name}`"
        found.append((what, f"{mean:.2f} ± {deviation:.2f}", here))
    one, other = np.bincount(order_of("stride", THREE_TO_ONE, ITERATIONS))
    published = f"{PUBLISHED_ITERATIONS[0]} : {PUBLISHED_ITERATIONS[1]}"
    found.append(("throughput, 3 : 1, `stride`", published, f"{one} : {other}"))
    return found


def draw_errors(axes: Axes) -> None:
    """Errors over time, the published maxima as dashed lines."""
    for name in ("lottery", "stride", "eevdf", "hierarchical_stride"):
        errors = largest_errors(name)
        axes.plot(np.arange(1, ALLOCATIONS + 1), errors, color=COLOURS[name], lw=1, label=name)
        if name in PUBLISHED_ERRORS:
            axes.axhline(PUBLISHED_ERRORS[name], color=COLOURS[name], ls="--", lw=0.8)
    axes.set(title="100 : 1 x 100 tickets", xlabel="allocations", ylabel="largest error (quanta)")
    axes.set_ylim(0, 68)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")


def draw_responses(axes: Axes) -> None:
    """How often each response time occurs; published means and deviations as bars above."""
    for height, name in enumerate(("lottery", "stride")):
        times = response_times(name)
        share = np.bincount(times, minlength=101)[1:101] / len(times)
        axes.plot(np.arange(1, 101), share, color=COLOURS[name], lw=1, label=name)
        mean, deviation = PUBLISHED_RESPONSES[name]
        at = [2.0 + height]
        axes.errorbar([mean], at, xerr=deviation, color=COLOURS[name], ls="--", marker="o", ms=3)
    geometric = 0.95 ** np.arange(100) * 0.05
    axes.plot(np.arange(1, 101), geometric, color="black", lw=0.7, ls=":", label="geometric")
    axes.set(yscale="log", xlim=(0, 100), ylim=(1e-4, 8))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set(title="1 of 20 tickets", xlabel="response time (quanta)", ylabel="share of responses")
    axes.legend(frameon=False, fontsize=8)


def draw_throughput(axes: Axes) -> None:
    """Quanta of both clients over time, the published iterations as dots."""
    for name in ("lottery", "stride"):
        order = order_of(name, THREE_TO_ONE, ITERATIONS)
        quanta = (order[:, None] == np.arange(2)).cumsum(axis=0)
        axes.plot(quanta, color=COLOURS[name], lw=1, label=[name, "_"])
    axes.plot([ITERATIONS] * 2, PUBLISHED_ITERATIONS, "o", color="black", ms=4, label="published")
    axes.set(title="3 : 1 tickets", xlabel="allocations", ylabel="quanta of each client")
    axes.legend(frameon=False, fontsize=8)


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """Draws, and prints the rows of the table."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/figures"))
    options = parser.parse_args(arguments)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    draw_errors(axes[0])
    draw_responses(axes[1])
    draw_throughput(axes[2])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.folder / "tickets.png", dpi=130)
    for row in rows():
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
