"""The `NumaNode` view: what runs and waits on a node, and its use and speeds over time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from env.base.errors import InputError
from env.sim.assembly.new_state import allocate, reset
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.node.node_status import last_completion, tenants_of, thread_speeds
from env.sim.node.projection import (
    container_speed,
    node_on_container_completion,
    node_on_container_creation,
    node_on_server_startup,
    project,
    reset_node,
)
from env.sim.state.block import State
from env.sim.state.containers import give_back_container, memory_ratio, take_container
from env.sim.state.records import FINISHED, NONE
from env.sim.state.tournament import update_tree
from env.sim.view.container import Container, read_container, write_container
from env.sim.view.recorded import Recorded


class NodeStatus(NamedTuple):
    """Use of a NUMA node at one moment.

    Attributes:
        cpu: speed of all running containers / computing capacity, 0 to 1.
        memory: memory given / memory of the node; above 1 when over-committed.
        load: total parallelism / cores.
        total_parallelism: threads of all running containers.
        free_memory: MB; negative when over-committed.
    """

    cpu: float
    memory: float
    load: float
    total_parallelism: int
    free_memory: int


class UtilisationRecord(NamedTuple):
    """Status of a node from `timestamp` until the next record."""

    timestamp: float
    status: NodeStatus


class SpeedRecord(NamedTuple):
    """Speed of a container in operations per second from `timestamp` until the next record."""

    timestamp: float
    speed: int


OF_RUN = (
    *("wf_id", "fn_id", "start_time", "completion_time", "parallelism"),
    *("memory_alloc", "memory_req"),
)
"""What is read of a function or of a `Container` alike."""


@dataclass(frozen=True)
class _Run:
    """A container's time on a node: [start, completion)."""

    wf_id: int
    fn_id: int
    start: float
    completion: float
    parallelism: int
    ratio: float
    memory: int
    tenant: int


class NumaNode:
    """Reads one NUMA node of a cluster, or is a node of its own.

    `numa_node_alone(cpu=4, memory=8192, single_core_speed=1000)` makes a node to
    play with: `reset`, `on_server_startup`, `on_container_creation`, `on_container_completion`.
    """

    node_id = Recorded(int, "Index within its server.")
    cpu = Recorded(int, "Cores.")
    memory = Recorded(int, "MB.")
    single_core_speed = Recorded(int, "Operations per second of one core.")
    computing_capacity = Recorded(int, "Operations per second of all cores.")
    current_time = Recorded(float, "Its clock: moves at completions and cold starts.", "clock")
    next_completion_time = Recorded(float, "The first; inf if nothing runs.", "next_completion")

    def __init__(self, state: State, index: int) -> None:
        self.state = state
        self.index = index
        self._completed: deque[Container] = deque()

    def __repr__(self) -> str:
        return (
            f"NumaNode(node_id={self.node_id}, cpu={self.cpu}, memory={self.memory}, "
            f"running={len(self.running_containers)}, waiting={len(self.waiting_containers)})"
        )

    @property
    def last_completion_time(self) -> float:
        """Time of the last projected completion, -inf if nothing runs."""
        return float(last_completion(self.state, self.index))

    @property
    def running_containers(self) -> list[Container]:
        """Admitted and not completed, in order of admission; future starts included."""
        if not self._record["projected"]:
            project(self.state, self.index, True)
        return [read_container(self.state, index) for index in self._indices("first_running")]

    @property
    def waiting_containers(self) -> list[Container]:
        """Waiting for memory, first come first."""
        return [read_container(self.state, index) for index in self._indices("first_waiting")]

    def reset(self) -> None:
        """Empties a node that stands alone."""
        self.state.cluster[0]["overcommits"] = 0
        for container in (*self._indices("first_running"), *self._indices("first_waiting")):
            give_back_container(self.state, container)
        self._completed.clear()
        reset_node(self.state, self.index)
        update_tree(self.state, self.index)

    def on_server_startup(self, time: float) -> None:
        """Sets the clock to the moment from which the node can be used."""
        node_on_server_startup(self.state, self.index, float(time))

    def on_container_creation(self, container: Container) -> None:
        """Starts a container at its creation time, or queues it until its memory is free.

        Raises:
            InputError: the memory given is not within 1 and the node's memory, or the node already
                holds as many containers as it has records for.
        """
        if not 1 <= container.memory_alloc <= self.memory:
            raise InputError(
                f"function ({container.wf_id}, {container.fn_id}): memory_alloc is "
                f"{container.memory_alloc} MB, NUMA node {self.node_id} takes 1 to {self.memory}"
            )
        index = take_container(self.state)
        if index == NONE:
            raise InputError(f"NUMA node {self.node_id}: no room for another container")
        write_container(self.state, index, container)
        node_on_container_creation(self.state, self.index, index)

    def on_container_completion(self) -> Container:
        """Completes the container that ends first and returns it.

        Raises:
            InputError: nothing runs.
        """
        if self._record["next_container"] == NONE:
            raise InputError(f"NUMA node {self.node_id}: no running container to complete")
        index = node_on_container_completion(self.state, self.index)
        container = read_container(self.state, index)
        give_back_container(self.state, index)
        self._completed.append(container)
        return container

    def status_at(self, time: float) -> NodeStatus:
        """Use of the node at a time: recorded before its clock, projected from there on."""
        return self._status(self._runs(), time)

    def utilisation_records(self) -> list[UtilisationRecord]:
        """The node's use over time, from 0 to its last projected completion."""
        runs = self._runs()
        times = {0.0} | {time for run in runs for time in (run.start, run.completion)}
        return [UtilisationRecord(time, self._status(runs, time)) for time in sorted(times)]

    def speed_records(self, wf_id: int, fn_id: int) -> list[SpeedRecord]:
        """A container's speed over time; the last record, of speed 0, is its end."""
        runs = self._runs()
        own = next((run for run in runs if (run.wf_id, run.fn_id) == (wf_id, fn_id)), None)
        if own is None:
            return []
        times = {time for run in runs for time in (run.start, run.completion)}
        records = []
        for time in sorted(time for time in times if own.start <= time < own.completion):
            active = [run for run in runs if run.start <= time < run.completion]
            share = self._shares(active)[active.index(own)]
            records.append(SpeedRecord(time, container_speed(own.ratio, share, own.parallelism)))
        return [*records, SpeedRecord(own.completion, 0)]

    def _status(self, runs: list[_Run], time: float) -> NodeStatus:
        active = [run for run in runs if run.start <= time < run.completion]
        speed = sum(
            container_speed(run.ratio, share, run.parallelism)
            for run, share in zip(active, self._shares(active), strict=True)
        )
        parallelism = sum(run.parallelism for run in active)
        used = sum(run.memory for run in active)
        return NodeStatus(
            cpu=speed / self.computing_capacity,
            memory=used / self.memory,
            load=parallelism / self.cpu,
            total_parallelism=parallelism,
            free_memory=self.memory - used,
        )

    def _shares(self, active: list[_Run]) -> list[int]:
        """Operations per second of each thread of every run."""
        threads = np.array([run.parallelism for run in active], np.int64)
        tenants = np.array([run.tenant for run in active], np.int64)
        speeds = thread_speeds(self.state, tenants, threads, self.cpu, self.single_core_speed)
        return [int(speed) for speed in speeds]

    def _runs(self) -> list[_Run]:
        """Every run on this node that the records still know, past and projected."""
        functions = self.state.functions
        past = functions[(functions["node"] == self.index) & (functions["state"] == FINISHED)]
        rows = past[list(OF_RUN)].tolist()
        for container in (*self._completed, *self.running_containers):
            rows.append(tuple(getattr(container, name) for name in OF_RUN))
        return [
            _Run(wf, fn, start, end, threads, memory_ratio(given, req), given, self._tenant(wf))
            for wf, fn, start, end, threads, given, req in rows
        ]

    def _tenant(self, wf_id: int) -> int:
        """Whose a workflow is; of no matter where tenants do not share cores by tickets."""
        by_tickets = self.state.options[0]["cpu_by_tickets"]
        return int(tenants_of(self.state, np.array([wf_id]))[0]) if by_tickets else 0

    def _indices(self, first: str) -> list[int]:
        indices = []
        index = int(self._record[first])
        while index != NONE:
            indices.append(index)
            index = int(self.state.containers[index]["next"])
        return indices

    @property
    def _record(self) -> np.void:
        return self.state.nodes[self.index]


def numa_node_alone(cpu: int, memory: int, single_core_speed: int, capacity: int = 256) -> NumaNode:
    """A NUMA node outside any cluster, able to hold `capacity` containers at once."""
    server_type = ServerType("alone", 1, 0.0, 0.0, 1, cpu, memory)
    config = ClusterConfig(single_core_speed, 1.0, 1.0, 1.0, (server_type,))
    state = allocate(config, 1, capacity, 0, [])
    reset(state)
    return NumaNode(state, 0)
