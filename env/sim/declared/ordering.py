"""Which waiting function goes next: what an order is, and what it may know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate, upward_ranks
from env.sim.queue.central_queue import BY_RANK, BY_WORKFLOW, CHOSEN
from env.sim.state.block import State
from env.tickets.records import MOST_QUANTA, MOST_WINNERS, Shares, new_shares


@dataclass(frozen=True)
class DeclaredFunctions:
    """D declared functions before they run: means and declarations, no draws.

    Attributes:
        execution: (D,) E, seconds at full speed.
        cold_start: (D,) D of its image, seconds.
        memory: (D,) R of its image, MB.
        upward_rank: (D,) seconds from its start to the end of its workflow along the longest path
            of executions and mean transfers (Topcuoglu et al., IEEE TPDS 13(3), 2002, equation 8).
        downward_rank: (D,) the same from the start of its workflow to its start (equation 10).
    """

    execution: np.ndarray
    cold_start: np.ndarray
    memory: np.ndarray
    upward_rank: np.ndarray
    downward_rank: np.ndarray


class Order(Protocol):
    """Which waiting function goes next; `agents/order` has them."""

    def write(self, options: np.void) -> None:
        """Fills in `order` and, where they differ from the default, the fields that go with it."""

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) the smallest goes first; of no matter for an order that changes with time."""


Resource = Literal["core_seconds", "mb_seconds", "dominant"]
Amount = Annotated[float, Field(gt=0, le=1e9)]
Winners = Annotated[int, Field(ge=1, le=MOST_WINNERS)]


class Sharing(Strict):
    """How tenants take turns by their tickets; see env/sim/queue/sharing.py.

    Attributes:
        mechanism: which; env/tickets has them.
        resource: of which each is charged what its functions really used: core-seconds of work,
            MB-seconds of containers, or seconds of the whole cluster, of the one used most. Of no
            matter for `drf`.
        quantum: how much a function is taken to use until it has ended, in units of the resource;
            None: the mean of what the declared functions need of it.
        half_life: seconds after which use counts half; None: it is not remembered.
        winners: quanta of a superquantum of `multi_lottery`.
    """

    mechanism: Literal["lottery", "multi_lottery", "stride", "hierarchical_stride", "drf"]
    resource: Resource = "core_seconds"
    quantum: Amount | None = None
    half_life: Amount | None = None
    winners: Winners = 1

    def shares(self, state: State, seed: int) -> Shares:
        """Records of the mechanism.

        Args:
            state: of the episode, with its tenants.
            seed: of the draws.

        Raises:
            InputError: functions need too many quanta.
        """
        needs = self._needs(state)
        quantum = float(needs.mean()) if self.quantum is None else self.quantum
        least = float(needs.max()) / MOST_QUANTA
        if quantum < least:
            raise InputError(
                f"quantum of {self.mechanism}: {quantum:g}, a function needs up to "
                f"{needs.max():g} {self.resource}; numbers from {least:g} on are allowed"
            )
        half_life, seeds = self.half_life or np.inf, np.random.SeedSequence(seed)
        settings = {"quantum": quantum, "half_life": half_life, "winners": self.winners}
        return new_shares(self.mechanism, len(state.tenants), seeds, **settings)

    def _needs(self, state: State) -> np.ndarray:
        """(D,) of the resource, at the mean speed of a node, by what is declared."""
        functions, nodes = state.template_functions, state.nodes
        core_seconds = functions["computation"] / nodes["single_core_speed"].mean()
        mb_seconds = functions["memory_req"] * functions["best_time"]
        if self.resource == "core_seconds":
            return np.asarray(core_seconds)
        if self.resource == "mb_seconds":
            return np.asarray(mb_seconds)
        cores, memory = state.cluster["cores"][0], nodes["memory"].sum()
        return np.maximum(core_seconds / cores, mb_seconds / memory)


@runtime_checkable
class SharedOrder(Order, Protocol):
    """An order in which tenants take turns; it says whose function of a tenant goes next."""

    sharing: Sharing


class WithoutRank:
    """What orders have in common in which no function stands before others for what it is."""

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) all the same."""
        return np.zeros(len(functions.execution))


class FirstCome(WithoutRank):
    """First come, first served."""

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_RANK


FIRST_COME = FirstCome()


class ByChoice(Strict, WithoutRank):
    """Whoever plays chooses, whenever a waiting function could start.

    Attributes:
        starve_threshold: seconds of waiting from which on the oldest stands first in the order of
            `funcsched`, in which the waiting functions are shown; None: nobody starves.
    """

    starve_threshold: Annotated[float, Field(ge=0, le=1e9)] | None = None

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = CHOSEN
        if self.starve_threshold is not None:
            options["starve_threshold"] = self.starve_threshold


class ByWorkflow(Strict, WithoutRank):
    """By virtual finish times of a tenant's workflows; see env/sim/queue/workflow_tickets.py.

    Attributes:
        lends: whether functions that wait for others lend these their part of the tickets.
    """

    lends: bool = True

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        options["order"] = BY_WORKFLOW
        options["lends"] = self.lends


def declared_functions(
    state: State,
    templates: Sequence[WorkflowTemplate],
    image_of: np.ndarray,
    images: np.ndarray,
    config: ClusterConfig,
) -> DeclaredFunctions:
    """All functions of the templates, in their order."""
    execution = state.template_functions["best_time"].astype(np.float64)
    seconds_per_byte = mean_seconds_per_byte(state, config)
    upward, downward = [], []
    for head, template in zip(state.templates, templates, strict=True):
        first = int(head["first_function"])
        times = execution[first : first + template.function_count]
        transfers = template.data_bytes * seconds_per_byte
        upward.append(upward_ranks(template, times, transfers))
        downward.append(downward_ranks(template, times, transfers))
    return DeclaredFunctions(
        execution=execution,
        cold_start=images["cold_start"][image_of],
        memory=images["memory"][image_of],
        upward_rank=np.concatenate(upward),
        downward_rank=np.concatenate(downward),
    )


def mean_seconds_per_byte(state: State, config: ClusterConfig) -> float:
    """Mean over all ordered pairs of NUMA nodes, a node with itself included, but for delays."""
    server = state.nodes["server"]
    same_server = server[:, None] == server[None, :]
    bandwidth = np.full(same_server.shape, config.network_bandwidth)
    if len(state.links):
        region = state.servers["region"][server]
        links = region[:, None] * len(state.regions) + region[None, :]
        bandwidth = state.links["bandwidth"][links]
    seconds = np.where(same_server, 1 / config.numa_bandwidth, 1 / bandwidth)
    np.fill_diagonal(seconds, 1 / config.memory_bandwidth)
    return float(seconds.mean())


def downward_ranks(
    template: WorkflowTemplate, times: np.ndarray, transfers: np.ndarray
) -> np.ndarray:
    """Longest sum of times and transfers from a source to each function, itself left out."""
    ranks = np.zeros(template.function_count)
    if len(template.edges) == 0:
        return ranks
    for fn_id in template.topological_order():
        edges = np.flatnonzero(template.edges[:, 1] == fn_id)
        if len(edges):
            sources = template.edges[edges, 0]
            ranks[fn_id] = (ranks[sources] + times[sources] + transfers[edges]).max()
    return ranks
