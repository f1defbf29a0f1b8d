"""What a plan comes to: compiled Monte Carlo, whose sample k has the same draws for every plan."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from agents.deployment.inputs import CLIENT, Inputs, drawn
from agents.deployment.settings import DeploymentSettings
from env.base.jit import compiled_apart

METRICS = ("runtime", "cost", "carbon")
"""s, USD, gCO2e of a run of the workflow; the order of all arrays of metrics."""
RUNTIME, COST, CARBON = range(len(METRICS))
TAIL = 95
"""Percentile, as in Caribou."""
NORMAL = 1.96
"""Standard errors on either side of a mean that make its 95% interval."""
KEPT = 8_192
"""Nodes in regions, and edges between regions, whose samples are kept for other plans."""


class Estimate(NamedTuple):
    """Of a plan, in the order of `METRICS`.

    Attributes:
        mean: (3,), with conditional calls as they are drawn.
        tail: (3,) 95th percentile, with all of them made: what hard constraints are held to. The
            published code has no such samples, and takes the tail of those of the mean.
        samples: that each is made of.
    """

    mean: np.ndarray
    tail: np.ndarray
    samples: int


@compiled_apart
def play(dag, calls, gigabytes, runs, moves, of_runs, of_moves, until, ends, out):
    """Runs of a workflow of N nodes and E edges, by the batch until a mean is tight.

    A node begins when all its callers have ended and what they sent has arrived. One that nobody
    calls costs nothing: what it takes to tell others of it is not measured.

    Args:
        dag: nodes in their order, where the edges to each of them begin (N + 1,), callers (E,).
        calls: (N, K), (E, K) 1 for nodes that run and calls that are made, 0 for others.
        gigabytes: (E, K) of transfers.
        runs, moves: (N, K), (E, K) seconds of executions and transfers by a plan.
        of_runs: (N, 3) USD, and USD and gCO2e per second.
        of_moves: (E, 2) USD and gCO2e per GB.
        until: K, the size of a batch, the metric whose mean it is, and the tolerance of half its
            interval, relative to the mean; with 0 it is never tight.
        ends: (N + 1, K) scratch; in the last row, that of clients, 0.
        out: (3, K), filled with seconds, USD, gCO2e.

    Returns:
        How many runs there were.
    """
    (order, incoming, source), (ran, taken), (most, batch, ranked, tolerance) = dag, calls, until
    total = squares = 0.0
    for start in range(0, most, batch):
        stop = min(start + batch, most)
        now = slice(start, stop)
        runtime, cost, carbon = out[RUNTIME, now], out[COST, now], out[CARBON, now]
        out[:, now] = 0.0
        for node in order:
            end = ends[node, now]
            end[:] = 0.0
            for edge in range(incoming[node], incoming[node + 1]):
                begun, (usd, grams) = ends[source[edge], now], of_moves[edge]
                made, move, size = taken[edge, now], moves[edge, now], gigabytes[edge, now]
                for at in range(len(end)):
                    end[at] = max(end[at], begun[at] + made[at] * move[at])
                    cost[at] += made[at] * size[at] * usd
                    carbon[at] += made[at] * size[at] * grams
            request, usd, grams = of_runs[node]
            run, all_ran = runs[node, now], ran[node, now]
            for at in range(len(end)):
                end[at] = all_ran[at] * (end[at] + run[at])
                runtime[at] = max(runtime[at], end[at])
                cost[at] += all_ran[at] * (request + run[at] * usd)
                carbon[at] += all_ran[at] * run[at] * grams
        for at in range(start, stop):
            total += out[ranked, at]
            squares += out[ranked, at] ** 2
        mean = total / stop
        variance = max(0.0, squares / stop - mean * mean) / (stop - 1)
        if NORMAL * np.sqrt(variance) < tolerance * mean:
            return stop
    return most


class Estimator:
    """Estimates plans.

    Args:
        inputs: of the workflow.
        settings: how many samples there are.
        ranked: the metric whose mean is to be tight.
        rng: of the draws, which belong to the samples of a node or an edge, whatever the plan.
    """

    def __init__(
        self, inputs: Inputs, settings: DeploymentSettings, ranked: str, rng: np.random.Generator
    ) -> None:
        nodes, edges, most = len(inputs.nodes), len(inputs.edges), settings.most_samples
        self._inputs, self._settings, self._ranked = inputs, settings, METRICS.index(ranked)
        self._of_runs, self._of_moves = rng.random((nodes, most)), rng.random((edges, most))
        sizes = zip(inputs.transfers, rng.random((edges, most)), strict=True)
        self._gigabytes = np.array([drawn(each.sizes, draws) for each, draws in sizes])
        incoming = np.searchsorted(inputs.edges[:, 1], np.arange(nodes + 1))
        source = np.ascontiguousarray(inputs.edges[:, 0])
        # The last row is that of clients, which CLIENT is the index of.
        ran = np.ones((nodes + 1, most))
        taken = (rng.random((edges, most)) < inputs.probability[:, None]).astype(np.float64)
        for node in inputs.order:
            to = slice(incoming[node], incoming[node + 1])
            taken[to] *= ran[source[to]]
            ran[node] = taken[to].max(axis=0)
        self._dag, self._calls = (inputs.order, incoming, source), (ran, taken)
        self._all_calls = np.ones_like(ran), np.ones_like(taken)
        self._run, self._move = (lru_cache(KEPT)(each) for each in (self._run_of, self._move_of))
        self._ends, self._out = np.zeros((nodes + 1, most)), np.empty((len(METRICS), most))

    def estimate(self, plan: np.ndarray, intensity: np.ndarray) -> Estimate:
        """What a plan (N,) comes to where the grid has an intensity (R,), gCO2e/kWh."""
        inputs, settings, out = self._inputs, self._settings, self._out
        nodes, edges = range(len(plan)), range(len(inputs.edges))
        origin, target = np.append(plan, inputs.home)[inputs.edges.T]
        egress = np.where(inputs.edges[:, 0] == CLIENT, 0.0, inputs.egress[origin, target])
        route = inputs.kwh_per_gb[origin, target] * (intensity[origin] + intensity[target]) / 2
        usd_per_s = inputs.usd_per_s[nodes, plan]
        grams_per_s = inputs.kwh_per_s[nodes, plan] * intensity[plan]
        of_plan = (
            self._gigabytes,
            np.array([*map(self._run, nodes, plan.tolist())]),
            np.array([*map(self._move, edges, origin.tolist(), target.tolist())]),
            np.stack([inputs.request[plan], usd_per_s, grams_per_s], axis=1),
            np.stack([egress, route], axis=1),
        )
        until = settings.most_samples, settings.batch, self._ranked, settings.tolerance
        count = play(self._dag, self._calls, *of_plan, until, self._ends, out)
        mean = out[:, :count].mean(axis=1)
        until = count, settings.batch, self._ranked, 0.0
        play(self._dag, self._all_calls, *of_plan, until, self._ends, out)
        return Estimate(mean, np.percentile(out[:, :count], TAIL, axis=1), count)

    def _run_of(self, node: int, region: int) -> np.ndarray:
        """(K,) seconds of a node in a region."""
        return drawn(self._inputs.executions[node][region], self._of_runs[node])

    def _move_of(self, edge: int, origin: int, region: int) -> np.ndarray:
        """(K,) seconds along an edge from a region to another."""
        pair = self._inputs.regions[origin], self._inputs.regions[region]
        gigabytes, draws = self._gigabytes[edge], self._of_moves[edge]
        return self._inputs.transfers[edge].seconds(pair, gigabytes, draws)
