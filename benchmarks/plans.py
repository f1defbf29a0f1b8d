"""How fast deployment plans are estimated: `python -m benchmarks.plans [--json]`.

Plans of a workflow of 8 functions in 10 regions, drawn at random; some calls are conditional, and
some functions wait for several. The peer does the same in plain Python, on lists, and draws its
samples as it goes. Both have 2,000 samples a plan with conditional calls as drawn, and as many with
all of them made: Caribou's own code takes 2,000, since its test of intervals never ends its loop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import Random

import numpy as np

from agents.deployment.estimate import Estimator
from agents.deployment.inputs import CLIENT, Inputs
from benchmarks.figures import print_figures
from env.base.pipes import until_reader_leaves
from tests.agents.deployment.tables import drawn_inputs, settings_with

UNITS = {
    "plans_samples_per_s": "plans x samples per second",
    "plain_plans_samples_per_s": "the same in plain Python",
    "plans_ratio": "times as many",
    "plans_per_s": "plans per second, of as many samples as the mean of carbon needs",
    "samples_per_plan": "of these, on average",
}
NODES, REGIONS, SAMPLES = 8, 10, 2_000
Metrics = tuple[float, float, float]


class PlainEstimator:
    """What `Estimator` does, of so many samples."""

    def __init__(self, inputs: Inputs, samples: int, seed: int) -> None:
        self._inputs, self._samples, self._draw = inputs, samples, Random(seed).random
        names = ("order", "request", "usd_per_s", "egress", "kwh_per_s", "kwh_per_gb")
        self._of = {name: getattr(inputs, name).tolist() for name in names}
        self._incoming: list[list[tuple[int, int, float]]] = [[] for _ in inputs.nodes]
        for edge, (source, target) in enumerate(inputs.edges.tolist()):
            self._incoming[target].append((edge, source, float(inputs.probability[edge])))
        self._measured: dict[tuple[int, int, int, float], tuple[list[float], float]] = {}

    def estimate(self, plan: list[int], intensity: list[float]) -> tuple[list[float], list[float]]:
        """Means, and 95th percentiles with all conditional calls."""
        count = range(self._samples)
        means, tails = (
            [
                sorted(each)
                for each in zip(*(self._play(plan, intensity, certain) for _ in count), strict=True)
            ]
            for certain in (False, True)
        )
        return [sum(each) / len(each) for each in means], [
            each[int(0.95 * len(each))] for each in tails
        ]

    def _play(self, plan: list[int], intensity: list[float], certain: bool) -> Metrics:
        """Seconds, USD, gCO2e of a run."""
        of, draw = self._of, self._draw
        ends: dict[int, float] = {}
        usd = grams = 0.0
        for node in of["order"]:
            region, begin, reached = plan[node], 0.0, False
            for edge, caller, probability in self._incoming[node]:
                origin = self._inputs.home if caller == CLIENT else plan[caller]
                if caller != CLIENT and caller not in ends:
                    continue
                end = 0.0 if caller == CLIENT else ends[caller]
                if certain or draw() < probability:
                    reached = True
                    sizes = self._inputs.transfers[edge].sizes
                    size = sizes[int(draw() * len(sizes))]
                    samples, added = self._moves(edge, origin, region, size)
                    end += samples[int(draw() * len(samples))] + added
                    if caller != CLIENT:
                        usd += size * of["egress"][origin][region]
                    route = 0.5 * (intensity[origin] + intensity[region])
                    grams += size * of["kwh_per_gb"][origin][region] * route
                begin = max(begin, end)
            if reached:
                samples = self._inputs.executions[node][region]
                seconds = samples[int(draw() * len(samples))]
                ends[node] = begin + seconds
                usd += of["request"][region] + seconds * of["usd_per_s"][node][region]
                grams += seconds * of["kwh_per_s"][node][region] * intensity[region]
        return max(ends.values()), usd, grams

    def _moves(self, edge: int, origin: int, region: int, size: float) -> tuple[list[float], float]:
        """Samples of a transfer of this size, and seconds that are added to each."""
        key = edge, origin, region, size
        if key not in self._measured:
            along = self._inputs.transfers[edge]
            pair = self._inputs.regions[origin], self._inputs.regions[region]
            if by_size := along.measured.get(pair):
                nearest = min(by_size, key=lambda each: abs(each - size))
                self._measured[key] = by_size[nearest], 0.0
            else:
                self._measured[key] = along.latency[pair], along.seconds_per_gb * size
        return self._measured[key]


def measure(seconds: float) -> dict[str, float]:
    """The figures of `UNITS`, each side playing for about so many seconds of processor time."""
    inputs = drawn_inputs(NODES, REGIONS, seed=0)
    rng, intensity = np.random.default_rng(1), inputs.intensity[0]
    every, counts = settings_with(tolerance=0.0, most_samples=SAMPLES), []
    ours = Estimator(inputs, every, "carbon", np.random.default_rng(0))
    tight = Estimator(inputs, settings_with(), "carbon", np.random.default_rng(0))
    plain, grid = PlainEstimator(inputs, SAMPLES, seed=0), intensity.tolist()

    def plans_per_s(estimate: Callable[[np.ndarray], object]) -> float:
        for _ in range(2):  # first it compiles, and fills what is kept
            begin, count = time.process_time(), 0
            while time.process_time() - begin < seconds:
                estimate(rng.integers(REGIONS, size=NODES))
                count += 1
        return count / (time.process_time() - begin)

    compiled = SAMPLES * plans_per_s(lambda plan: ours.estimate(plan, intensity))
    peer = SAMPLES * plans_per_s(lambda plan: plain.estimate(plan.tolist(), grid))
    fast = plans_per_s(lambda plan: counts.append(tight.estimate(plan, intensity).samples))
    figures = compiled, peer, compiled / peer, fast, float(np.mean(counts))
    return dict(zip(UNITS, figures, strict=True))


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
