"""J of the best schedule of a small episode, of all: what other schedulers are held to."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from env.base.schema import Strict, distinct
from env.score.metrics import FinishedEpisode
from env.score.reward import Objective, cheapest_cost, cost_ratio
from env.sim.node.fit import suits
from env.sim.state.containers import memory_tier
from env.sim.state.records import NONE
from env.sim.view.raw_env import RawEnv

Ratio = Annotated[float, Field(gt=0, le=1)]


class OptimumSettings(Strict):
    """Which episodes are small enough, and what is tried (conf/evaluate.yaml explains each)."""

    functions: Annotated[int, Field(ge=1, le=12)]
    nodes: Annotated[int, Field(ge=1, le=16)]
    memory_tiers: Annotated[tuple[Ratio, ...], Field(min_length=1), AfterValidator(distinct)]

    def allows(self, env: RawEnv) -> bool:
        """Whether the episode is small enough."""
        functions = sum(template.function_count for template in env.workflow_templates)
        return functions <= self.functions and len(env.state.nodes) <= self.nodes


def optimum(env: RawEnv, objective: Objective, memory_tiers: Sequence[float]) -> float:
    """The lowest J of all schedules that can be reached from where `env` is, which stays there.

    Depth-first over every NUMA node and memory tier of every function; tiers are shares of its
    memory_req, rounded up to MB. A branch is left when what it has paid and waited for already
    comes to the lowest J so far (branch and bound: Land, Doig, Econometrica 1960).
    """
    lowest = np.inf
    tiers = sorted(memory_tiers, reverse=True)
    branches: list[tuple[float, RawEnv]] = [(0.0, env)]
    while branches:
        bound, at = branches.pop()
        function = at.current_function
        if function is None:
            lowest = min(lowest, FinishedEpisode(at.state, objective, power=None).J)
        if function is None or bound >= lowest:
            continue
        forks = []
        for memory_alloc in dict.fromkeys(memory_tier(function.memory_req, tier) for tier in tiers):
            for node in range(len(at.state.nodes)):
                if suits(at.state, node, memory_alloc):
                    fork = at.fork()
                    fork.step(*fork.place_of(node), memory_alloc)
                    forks.append((_bound(fork, objective), fork))
        # The most promising branch is the next one: the sooner a good schedule is known, the more
        # branches are left.
        forks.sort(key=lambda branch: -branch[0])
        branches += [branch for branch in forks if branch[0] < lowest]
    return lowest


def _bound(env: RawEnv, objective: Objective) -> float:
    """J that every way on from here reaches: what is paid is paid, and chains have to be run.

    A workflow that has not ended still needs the longest chain behind each of its functions that
    wait for a decision, at the speed of the fastest core (see env/score/lower_bound.py). Where
    calls are conditional nothing behind these functions is certain.
    """
    state = env.state
    cluster = state.cluster[0]
    queue = state.submitted[: cluster["queue_size"]]
    workflows = state.workflows[state.slot_of[state.slot_of != NONE]]
    templates = state.templates[workflows["template"]]
    fastest = state.nodes["single_core_speed"].max() / cluster["single_core_speed"]
    ends = np.where(np.isnan(workflows["completion_time"]), env.time, workflows["completion_time"])
    waiting = np.argmax(workflows["wf_id"] == queue["major"][:, None], axis=1)
    kinds = state.template_functions[templates["first_function"][waiting] + queue["minor"]]
    left = np.where(kinds["conditional"], kinds["best_time"], kinds["upward_rank"]) / fastest
    np.maximum.at(ends, waiting, env.time + left)
    flow_times = ends - workflows["arrival_time"]
    slowdown = flow_times / templates["critical_path"]
    time = objective.time_weight * slowdown.sum() / len(state.slot_of)
    time += objective.completion_weight * flow_times.sum() / cluster["declared_path"]
    return float(time + cost_ratio(objective.cost_weight * env.total_rent, cheapest_cost(state)))
