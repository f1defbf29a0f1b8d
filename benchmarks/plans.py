"""How fast deployment plans are estimated: `python -m benchmarks.plans [--json]`.

Plans of a workflow of 8 functions in 10 regions, drawn at random; some calls are conditional, and
some functions wait for several. The peer does the same in plain Python, on lists, and draws its
samples as it goes. Both have 2,000 samples a plan with conditional calls as drawn, and as many with
all of them made: Caribou's own code takes 2,000, since its test of intervals never ends its loop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np

from agents.deployment.inputs import CLIENT, Inputs
from agents.deployment.problem import TAIL, Plan
from benchmarks.figures import print_figures
from env.base.pipes import until_reader_leaves
from tests.agents.deployment.tables import drawn_inputs, problem

UNITS = {
    "plans_samples_per_s": "plans x samples per second",
    "plain_plans_samples_per_s": "the same in plain Python",
    "plans_ratio": "times as many",
}
NODES, REGIONS, SAMPLES = 8, 10, 2_000
Samples = tuple[Sequence[float], float]


class PlainEstimator:
    """What `Problem.estimate` does, of so many samples."""

    def __init__(self, inputs: Inputs, samples: int, seed: int) -> None:
        self._inputs, self._samples, self._draw = inputs, samples, Random(seed).random
        names = ("order", "request", "usd_per_s", "egress", "kwh_per_s", "kwh_per_gb")
        self._of = {name: getattr(inputs, name).tolist() for name in names}
        self._incoming: list[list[tuple[int, int, float]]] = [[] for _ in inputs.nodes]
        for edge, (source, target) in enumerate(inputs.edges.tolist()):
            self._incoming[target].append((edge, source, float(inputs.probability[edge])))
        self._move = cache(self._move_of)

    def estimate(self, plan: Plan, grid: list[float]) -> tuple[list[float], list[float]]:
        """Means, and 95th percentiles with all conditional calls."""
        places, count = [*plan, self._inputs.home], range(self._samples)  # clients are the last
        drawn = zip(*(self._play(places, grid, False) for _ in count), strict=True)
        certain = zip(*(self._play(places, grid, True) for _ in count), strict=True)
        tail = int(TAIL / 100 * self._samples)
        means = [sum(each) / self._samples for each in drawn]
        return means, [sorted(each)[tail] for each in certain]

    def _play(self, plan: list[int], grid: list[float], certain: bool) -> tuple[float, ...]:
        """Seconds, USD, gCO2e of a run."""
        of, draw = self._of, self._draw
        ends = {CLIENT: 0.0}
        usd = grams = 0.0
        for node in of["order"]:
            region, begin, reached = plan[node], 0.0, False
            for edge, caller, probability in self._incoming[node]:
                if caller not in ends:
                    continue
                origin, end = plan[caller], ends[caller]
                if certain or draw() < probability:
                    reached = True
                    samples, size = self._move(edge, origin, region)
                    end += samples[int(draw() * len(samples))]
                    if caller != CLIENT:
                        usd += size * of["egress"][origin][region]
                    route = 0.5 * (grid[origin] + grid[region])
                    grams += size * of["kwh_per_gb"][origin][region] * route
                begin = max(begin, end)
            if reached:
                samples = self._inputs.executions[node][region]
                seconds = samples[int(draw() * len(samples))]
                ends[node] = begin + seconds
                usd += of["request"][region] + seconds * of["usd_per_s"][node][region]
                grams += seconds * of["kwh_per_s"][node][region] * grid[region]
        return max(ends.values()), usd, grams

    def _move_of(self, edge: int, origin: int, region: int) -> Samples:
        """Seconds of a transfer from a region to another, and its GB."""
        regions, inputs = self._inputs.regions, self._inputs
        seconds = inputs.transfers[edge][regions[origin], regions[region]]
        return seconds, float(inputs.gigabytes[edge])


def measure(seconds: float) -> dict[str, float]:
    """The figures of `UNITS`, each side playing for about so many seconds of processor time."""
    inputs = drawn_inputs(NODES, REGIONS, seed=0)
    rng, grid = np.random.default_rng(1), inputs.intensity[0].tolist()
    ours = problem(inputs, tolerance=0.0, most_samples=SAMPLES)
    plain = PlainEstimator(inputs, SAMPLES, seed=0)

    def plans_per_s(estimate: Callable[[Plan], object]) -> float:
        for _ in range(2):  # first it compiles, and fills what is kept
            begin, count = time.process_time(), 0
            while time.process_time() - begin < seconds:
                estimate(tuple(rng.integers(REGIONS, size=NODES).tolist()))
                count += 1
        return count / (time.process_time() - begin)

    figure = SAMPLES * plans_per_s(ours.estimate)
    peer = SAMPLES * plans_per_s(lambda plan: plain.estimate(plan, grid))
    return dict(zip(UNITS, (figure, peer, figure / peer), strict=True))


@until_reader_leaves()
def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each side")
    options = parser.parse_args(arguments)
    print_figures(measure(options.seconds), UNITS, options.json)


if __name__ == "__main__":
    main()
