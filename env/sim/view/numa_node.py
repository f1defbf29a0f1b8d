"""The `NumaNode` view: what runs and waits on a node, and its use and speeds over time."""

from __future__ import annotations

from dataclasses import dataclass
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
        for container in self.running_containers:
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
