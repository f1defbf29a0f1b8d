"""The `NumaNode` view: what runs and waits on a node, and its use and speeds over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from env.sim.node.node_status import last_completion, tenants_of, thread_speeds
from env.sim.node.projection import container_speed, project
from env.sim.state.block import State
from env.sim.state.containers import memory_ratio
from env.sim.state.records import FINISHED, NONE
from env.sim.view.container import Container, read_container
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


RUN = [
    *("wf_id", "fn_id", "start_time", "completion_time", "parallelism"),
    *("memory_alloc", "memory_req"),
]
"""Fields that the records of a function that has run and of a container have in common."""


class NumaNode:
    """Reads one NUMA node of a cluster."""

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

    def status_at(self, time: float) -> NodeStatus:
        """Use of the node at a time: recorded before its clock, projected from there on."""
        return self._status(self._runs(), time)

    def utilisation_records(self) -> list[UtilisationRecord]:
        """The node's use over time, from 0 to its last projected completion."""
        runs = self._runs()
        times = np.unique([0.0, *runs["start_time"], *runs["completion_time"]])
        return [UtilisationRecord(time, self._status(runs, time)) for time in times.tolist()]

    def speed_records(self, wf_id: int, fn_id: int) -> list[SpeedRecord]:
        """A container's speed over time; the last record, of speed 0, is its end."""
        runs = self._runs()
        own = (runs["wf_id"] == wf_id) & (runs["fn_id"] == fn_id)
        if not own.any():
            return []
        times = np.unique([*runs["start_time"], *runs["completion_time"]])
        begin, end = runs[own][0][["start_time", "completion_time"]].item()
        records = []
        for time in times[(begin <= times) & (times < end)].tolist():
            active = _active(runs, time)
            speed = self._speeds(runs[active])[own[active].argmax()]
            records.append(SpeedRecord(time, speed))
        return [*records, SpeedRecord(end, 0)]

    def _status(self, runs: np.ndarray, time: float) -> NodeStatus:
        active = runs[_active(runs, time)]
        parallelism, used = int(active["parallelism"].sum()), int(active["memory_alloc"].sum())
        return NodeStatus(
            cpu=sum(self._speeds(active)) / self.computing_capacity,
            memory=used / self.memory,
            load=parallelism / self.cpu,
            total_parallelism=parallelism,
            free_memory=self.memory - used,
        )

    def _speeds(self, active: np.ndarray) -> list[int]:
        """Operations per second of what runs together."""
        tenants = np.zeros(len(active), np.int64)
        if self.state.options[0]["cpu_by_tickets"]:
            tenants = tenants_of(self.state, active["wf_id"])
        threads = active["parallelism"]
        shares = thread_speeds(self.state, tenants, threads, self.cpu, self.single_core_speed)
        ratios = [memory_ratio(run["memory_alloc"], run["memory_req"]) for run in active]
        return [container_speed(*each) for each in zip(ratios, shares, threads, strict=True)]

    def _runs(self) -> np.ndarray:
        """(R,) what the records still know to have run or to run here, past and projected."""
        if not self._record["projected"]:
            project(self.state, self.index, True)
        functions, running = self.state.functions, self._indices("first_running")
        past = functions[(functions["node"] == self.index) & (functions["state"] == FINISHED)]
        return np.concatenate([past[RUN], self.state.containers[running][RUN]])

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


def _active(runs: np.ndarray, time: float) -> np.ndarray:
    """(R,) which of some runs go on at a time."""
    return (runs["start_time"] <= time) & (time < runs["completion_time"])
