"""The objective J and the shaped reward that adds up to it; metrics.py has what is reported.

J = time_weight * mean slowdown + cost_weight * cost ratio + completion_weight * completion +
fairness_weight * share error + carbon_weight * carbon ratio. The slowdown of a workflow is its flow
time / its critical path at full speed; the cost ratio is what is paid / all work at the cheapest
core-second of the cluster that is not free; completion is the mean flow time / the mean critical
path, in which long workflows count for more; the share error is that of env/sim/queue/sharing.py, 0
where no tenant holds tickets; the carbon ratio is carbon / that of all work on the cores that emit
least on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Self

import numpy as np
from pydantic import Field, model_validator

from env.base.errors import InputError
from env.base.jit import compiled, compiled_apart
from env.base.schema import Strict, nothing_or
from env.sim.assembly.build import check_workflows, drawn_shares
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.carbon import carbon_of_servers
from env.sim.queue.sharing import share_error
from env.sim.state.block import State

TIME, COST, COMPLETION, FAIRNESS, CARBON = range(5)
"""Positions of weights."""

# Less, and what is divided by J overflows.
LEAST_WEIGHT: Final = 1e-6
ObjectiveWeight = Annotated[float, Field(ge=0, le=1e6), nothing_or(LEAST_WEIGHT)]


class Objective(Strict):
    """Config group `objective`: what a second of slowdown is worth against a dollar."""

    time_weight: ObjectiveWeight
    cost_weight: ObjectiveWeight
    completion_weight: ObjectiveWeight = 0.0
    fairness_weight: ObjectiveWeight = 0.0
    carbon_weight: ObjectiveWeight = 0.0

    @property
    def weights(self) -> np.ndarray:
        """All of them in the order of their positions, as compiled functions take them."""
        return np.array(list(self.model_dump().values()))

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        if not self.weights[:FAIRNESS].any():
            raise ValueError(
                "time_weight, cost_weight and completion_weight are all 0, one must be above"
            )
        return self


@compiled
def ideal(weights: np.ndarray):
    """What of J nothing can avoid: every workflow at full speed, nothing paid."""
    return weights[TIME] + weights[COMPLETION]


LEAST_HOURLY_RATE = 1e-6
"""USD, of a server that rent can be compared to."""


def cheapest_cost(state: State) -> float:
    """USD of all work of the episode at the cheapest core-second that is not free.

    Work is what is declared, also that of functions that are not called in the end.
    """
    work = (state.templates["work"][state.arrivals["template"]] * drawn_shares(state)).sum()
    return float(work * state.cluster[0]["core_second_price"])


def check_world(templates: Sequence[WorkflowTemplate], cluster: ClusterConfig) -> None:
    """Refuses by an `InputError` what a cluster cannot run, whether or not an episode draws it."""
    check_workflows(templates, cluster)
    check_rates(cluster)


def check_rates(cluster: ClusterConfig) -> None:
    """Refuses by an `InputError` servers that cost next to nothing: rent is compared to them."""
    for kind in cluster.server_types:
        if cluster.rate_of(kind) < LEAST_HOURLY_RATE:
            raise InputError(
                f"cluster: server_types.{kind.name}.hourly_rate: found {kind.hourly_rate:g}, at "
                f"least {LEAST_HOURLY_RATE:g} is needed: rent is compared to the cheapest possible"
            )


@compiled
def cost_ratio(cost: float, cheapest: float):
    """A cost over the cheapest possible; 0 where all servers are free: then there is none."""
    return cost / cheapest if cheapest > 0.0 else 0.0


@compiled_apart
def carbon_ratio(state: State, workflows: int, whole: bool):
    """Carbon over that of the work of the first workflows, as drawn, where it emits least.

    Args:
        state: of an episode.
        workflows: how many of those that arrive.
        whole: whether leases count up to the end that is paid.
    """
    work = 0.0
    for position in range(min(workflows, len(state.arrivals))):
        drawn = state.arrivals[position].computation / state.cluster[0].single_core_speed
        declared = state.templates[state.arrivals[position].template].work
        work += drawn if drawn > 0.0 else declared
    least = work * state.cluster[0].core_second_carbon
    return cost_ratio(carbon_of_servers(state, whole), least)


@compiled
def emissions(state: State, weights: np.ndarray, workflows: int, whole: bool):
    """What carbon adds to J so far; arguments as for `carbon_ratio`."""
    if weights[CARBON] == 0.0:
        return 0.0
    return weights[CARBON] * carbon_ratio(state, workflows, whole)


@compiled
def lease_value(state: State):
    """USD paid for lease time that is still to come; 0 once all workflows have finished."""
    cluster = state.cluster[0]
    value = 0.0
    if cluster.finished_workflows < len(state.arrivals):
        for server in range(len(state.servers)):
            record = state.servers[server]
            left = record.expiration_time - cluster.time
            if 0.0 < left < np.inf:
                value += left / record.lease_step * record.step_price
    return value


@compiled
def potential(state: State, weights: np.ndarray, cheapest):
    """J as far as it is known now: finish bounds stand in for what has not finished.

    Finish bounds have to be up to date. A workflow that has not arrived counts as if it took its
    critical path, and rent counts as its hours pass, so the potential is `ideal` at the start and J
    at the end; the reward of a step is the fall of the potential, and an episode's undiscounted
    return is -(J - ideal). If the whole rent counted at once, a server that is rented for what is
    to come would look like a loss until then; the carbon of leases counts likewise.
    """
    cluster = state.cluster[0]
    count = len(state.arrivals)
    slowdown = cluster.finished_slowdown + cluster.active_slowdown + (count - cluster.arrived)
    spent = cluster.total_rent - lease_value(state)
    to_come = cluster.declared_path - cluster.arrived_path
    flow_time = cluster.finished_flow_time + cluster.active_flow_time + to_come
    return (
        weights[TIME] * slowdown / count
        + cost_ratio(weights[COST] * spent, cheapest)
        + weights[COMPLETION] * flow_time / cluster.declared_path
        + unfairness(state, weights)
        + emissions(state, weights, count, cluster.finished_workflows == count)
    )


@compiled
def unfairness(state: State, weights: np.ndarray):
    """What unequal shares add to J so far."""
    return weights[FAIRNESS] * share_error(state) if weights[FAIRNESS] > 0.0 else 0.0


@compiled
def arrived_objective(state: State, weights: np.ndarray):
    """J of the workflows that have arrived, all of which have to have finished.

    Knows nothing of later ones; after the last one it is the J of the episode.
    """
    cluster = state.cluster[0]
    cheapest = cluster.arrived_work * cluster.core_second_price
    time = weights[TIME] * cluster.finished_slowdown / cluster.arrived
    completion = weights[COMPLETION] * cluster.finished_flow_time / cluster.arrived_path
    cost = cost_ratio(weights[COST] * cluster.total_rent, cheapest)
    carbon = emissions(state, weights, cluster.arrived, True)
    return time + cost + completion + unfairness(state, weights) + carbon
