"""Which plan is best in an hour, by whatever solver, and what plans come to.

That is compiled Monte Carlo, whose sample k has the same draws for every plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

import numpy as np

from agents.deployment.inputs import CLIENT, DeploymentSettings, Inputs
from agents.rule_kinds import Rule
from env.base.errors import InputError
from env.base.jit import compiled_apart
from env.workloads.code.configuration import Constraint, Constraints, Metric

METRICS: tuple[Metric, ...] = ("runtime", "cost", "carbon")
"""s, USD, gCO2e of a run of the workflow; the order of all arrays of metrics."""
TAIL = 95
"""Percentile, as in Caribou."""
NORMAL = 1.96
"""Standard errors on either side of a mean that make its 95% interval."""
KEPT = 8_192
"""Nodes in regions, and edges between regions, whose samples are kept for other plans."""
Plan = tuple[int, ...]
"""The region of each node."""
Estimate = dict[Literal["average", "tail"], dict[Metric, float]]
"""Of a plan: means, and 95th percentiles."""
Limits = Mapping[Metric, Constraint | None]


@compiled_apart
def play(dag, calls, runs, moves, of_runs, of_moves, until, ends, out):
    """Runs of a workflow of N nodes and E edges, by the batch until a mean is tight.

    A node begins when all its callers have ended and what they sent has arrived. One that nobody
    calls costs nothing: what it takes to tell others of it is not measured.

    Args:
        dag: nodes in their order, (E,) edges by whom they call, where those to a node begin among
            these (N + 1,), and the edges (E, 2).
        calls: (N + 1, K), (E, K) 1 for nodes that run and calls that are made, 0 for others.
        runs, moves: (N, K), (E, K) seconds of executions and transfers by a plan.
        of_runs: (N, 3) USD, and USD and gCO2e per second.
        of_moves: (E, 2) USD and gCO2e.
        until: K, the size of a batch, the metric whose mean it is, and the tolerance of half its
            interval, relative to the mean; with 0 it is never tight.
        ends: (N + 1, K) scratch; in the last row, that of clients, 0.
        out: (3, K), filled with seconds, USD, gCO2e.

    Returns:
        How many runs there were.
    """
    (order, incoming, begin, edges), (ran, made) = dag, calls
    most, batch, ranked, tolerance = until
    for start in range(0, most, batch):
        stop = min(start + batch, most)
        now = slice(start, stop)
        runtime, cost, carbon = out[0, now], out[1, now], out[2, now]
        out[:, now] = 0.0
        for node in order:
            end = ends[node, now]
            end[:] = 0.0
            for edge in incoming[begin[node] : begin[node + 1]]:
                caller, (usd, grams) = ends[edges[edge, 0], now], of_moves[edge]
                call, move = made[edge, now], moves[edge, now]
                for at in range(len(end)):
                    end[at] = max(end[at], caller[at] + call[at] * move[at])
                    cost[at] += call[at] * usd
                    carbon[at] += call[at] * grams
            (request, usd, grams), run, all_ran = of_runs[node], runs[node, now], ran[node, now]
            for at in range(len(end)):
                end[at] = all_ran[at] * (end[at] + run[at])
                runtime[at] = max(runtime[at], end[at])
                cost[at] += all_ran[at] * (request + run[at] * usd)
                carbon[at] += all_ran[at] * run[at] * grams
        found = out[ranked, :stop]
        if NORMAL * np.sqrt(found.var() / (stop - 1)) < tolerance * found.mean():
            return stop
    return most


class Problem:
    """What solvers see: where nodes may run, and what plans come to in an hour, see `turn_to`.

    Attributes:
        permitted: of each node the regions it may run in.
        home: the plan that has all nodes at home.
        estimate: what a plan comes to; it is played once.
        samples: of which the last estimate was made.

    Args:
        inputs: of the workflow.
        constraints: what plans have to keep to, and what they rank by; the mean of the first
            metric is to be tight.
        settings: how many samples there are.
        rng: of the draws, which belong to the samples of a node or an edge, whatever the plan.
    """

    def __init__(
        self,
        inputs: Inputs,
        constraints: Constraints,
        settings: DeploymentSettings,
        rng: np.random.Generator,
    ) -> None:
        nodes, edges, most = len(inputs.nodes), len(inputs.edges), settings.most_samples
        self.permitted = [np.flatnonzero(row).tolist() for row in inputs.permitted]
        self.home: Plan = (inputs.home,) * nodes
        self._inputs, self._constraints = inputs, constraints
        ranked = METRICS.index(constraints.priority_order[0])
        self._until = most, settings.batch, ranked, settings.tolerance
        of_runs, of_moves = rng.random((nodes, most)), rng.random((edges, most))

        @lru_cache(KEPT)
        def run(node: int, region: int) -> np.ndarray:
            return _drawn(inputs.executions[node][region], of_runs[node])

        @lru_cache(KEPT)
        def move(edge: int, one: int, to: int) -> np.ndarray:
            pair = inputs.regions[one], inputs.regions[to]
            return _drawn(inputs.transfers[edge][pair], of_moves[edge])

        self._run, self._move = run, move
        incoming = np.argsort(inputs.edges[:, 1], kind="stable")
        begin = np.searchsorted(inputs.edges[incoming, 1], np.arange(nodes + 1))
        ran = np.ones((nodes + 1, most))  # the last row is that of clients, which CLIENT indexes
        made = (rng.random((edges, most)) < inputs.probability[:, None]).astype(np.float64)
        for node in inputs.order:
            calls = incoming[begin[node] : begin[node + 1]]
            made[calls] *= ran[inputs.edges[calls, 0]]
            ran[node] = made[calls].max(axis=0)
        self._dag, self._calls = (inputs.order, incoming, begin, inputs.edges), (ran, made)
        self._all_calls = np.ones_like(ran), np.ones_like(made)
        self._ends, self._out = np.zeros((nodes + 1, most)), np.empty((len(METRICS), most))

    def turn_to(self, intensity: np.ndarray) -> None:
        """Goes to an hour in which the grid has an intensity (R,), gCO2e/kWh."""
        self.estimate = cache(lambda plan: self._estimate(plan, intensity))

    def is_valid(self, plan: Plan) -> bool:
        """Whether a plan keeps the hard constraints, in its tail."""
        return not self._violated(self._constraints.hard_resource_constraints, "tail", plan)

    def value(self, plan: Plan) -> tuple[float, ...]:
        """By which plans rank, the least first: soft constraints violated, then metrics."""
        soft, mean = self._constraints.soft_resource_constraints, self.estimate(plan)["average"]
        ranked = (mean[name] for name in self._constraints.priority_order)
        return self._violated(soft, "average", plan), *ranked

    def _violated(self, limits: Limits, kind: Literal["average", "tail"], plan: Plan) -> int:
        """How many limits a plan violates."""
        found, at_home = self.estimate(plan)[kind], self.estimate(self.home)[kind]
        each = ((limit, found[name], at_home[name]) for name, limit in limits.items())
        return sum(limit is not None and limit.fails(*metrics) for limit, *metrics in each)

    def _estimate(self, plan: Plan, intensity: np.ndarray) -> Estimate:
        """What a plan comes to.

        On average conditional calls are as drawn. In the tail, to which hard constraints are held,
        all are made; the published code has no such samples, and takes the tail of the others.
        """
        inputs, out, here, nodes = self._inputs, self._out, np.array(plan), range(len(plan))
        origin, target = np.append(here, inputs.home)[inputs.edges.T]
        egress = np.where(inputs.edges[:, 0] == CLIENT, 0.0, inputs.egress[origin, target])
        route = inputs.kwh_per_gb[origin, target] * (intensity[origin] + intensity[target]) / 2
        usd = inputs.request[here], inputs.usd_per_s[nodes, here]
        grams_per_s = inputs.kwh_per_s[nodes, here] * intensity[here]
        of_plan = (
            np.array([*map(self._run, nodes, plan)]),
            np.array([*map(self._move, range(len(origin)), origin.tolist(), target.tolist())]),
            np.stack([*usd, grams_per_s], axis=1),
            np.stack([inputs.gigabytes * egress, inputs.gigabytes * route], axis=1),
        )
        self.samples = play(self._dag, self._calls, *of_plan, self._until, self._ends, out)
        means = out[:, : self.samples].mean(axis=1)
        until = self.samples, self.samples, 0, 0.0
        play(self._dag, self._all_calls, *of_plan, until, self._ends, out)
        tails = np.percentile(out[:, : self.samples], TAIL, axis=1)
        mean, tail = (dict(zip(METRICS, each.tolist(), strict=True)) for each in (means, tails))
        return {"average": mean, "tail": tail}


def _drawn(samples: Sequence[float], draws: np.ndarray) -> np.ndarray:
    """A sample for each draw from [0, 1); the same draw has the same rank among any samples."""
    return np.sort(samples)[(draws * len(samples)).astype(np.int64)]


class Solver(Rule):
    """What plans are tried; another solver is another file in solvers/."""

    def plans(self, problem: Problem, rng: np.random.Generator) -> Iterable[Plan]:
        """Plans with permitted regions; the best of those that are valid is taken."""
        raise NotImplementedError


def best_plan(problem: Problem, solver: Solver, rng: np.random.Generator) -> Plan:
    """The best valid plan that a solver tries; of equal ones home, else the first.

    Raises:
        InputError: none is valid.
    """
    valid = filter(problem.is_valid, solver.plans(problem, rng))
    found = min(valid, key=lambda plan: (problem.value(plan), plan != problem.home), default=None)
    if found is None:
        raise InputError(f"{solver.name}: no plan it tries keeps all hard_resource_constraints")
    return found
