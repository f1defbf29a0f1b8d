"""NUMA nodes: the speed model, the projection of a node, admission and completion of containers.

Compiled functions first; the `NumaNode` view, which can also stand alone, last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from env.sim.container import (
    Container,
    give_back_container,
    read_container,
    take_container,
    write_container,
)
from env.sim.errors import InputError
from env.sim.jit import compiled
from env.sim.records import FINISHED, NONE, State
from env.sim.tournament import update_tree

INF = np.inf


@compiled
def speed_share(total_parallelism, cpu, core_speed):
    """Operations per second of one thread when `total_parallelism` threads share `cpu` cores."""
    if total_parallelism <= cpu:
        return core_speed
    return (cpu * core_speed) // total_parallelism


@compiled
def container_speed(memory_ratio, share, parallelism):
    """Operations per second of a container; memory_ratio = min(1, memory given / required)."""
    return max(1, int(memory_ratio * share * parallelism))


@compiled
def gather(state, node):
    """Copies the running list of a node into the scratch; returns the number of entries."""
    scratch, containers = state.scratch, state.containers
    count = 0
    index = state.nodes[node].first_running
    while index != NONE:
        alloc, req = containers[index].memory_alloc, containers[index].memory_req
        scratch[count].container = index
        scratch[count].start = containers[index].start_time
        scratch[count].completion = INF
        scratch[count].remaining = containers[index].remaining_computation
        scratch[count].parallelism = containers[index].parallelism
        scratch[count].ratio = min(1.0, alloc / req)
        scratch[count].speed = 0
        count += 1
        index = containers[index].next
    return count


@compiled
def run_projection(scratch, count, clock, cpu, core_speed, only_first):
    """Plays a node forward from its clock (rule 7) until all `count` entries have completed.

    Returns:
        (entry that completes first, its time, time of the last completion); with `only_first` the
        projection ends with the first completion.
    """
    now = clock
    active = 0
    parallelism = 0
    next_start = INF
    for i in range(count):
        if scratch[i].start <= now:
            scratch[active].active = i
            active += 1
            parallelism += scratch[i].parallelism
        elif scratch[i].start < next_start:
            next_start = scratch[i].start
    elapsed = 0.0
    unfinished = count
    first = NONE
    first_time = INF
    while unfinished > 0:
        # One pass an event: what was done since the last one, then the speed from here on.
        share = speed_share(parallelism, cpu, core_speed)
        completing = NONE
        event = INF
        for j in range(active):
            i = scratch[j].active
            left = max(0, scratch[i].remaining - int(scratch[i].speed * elapsed))
            speed = container_speed(scratch[i].ratio, share, scratch[i].parallelism)
            scratch[i].remaining = left
            scratch[i].speed = speed
            completion = now + left / speed
            if completion < event:
                event = completion
                completing = j
        if next_start <= event:
            elapsed = next_start - now
            now = next_start
            next_start = INF
            for i in range(count):
                if scratch[i].start == now:
                    active = activate(scratch, active, i)
                    parallelism += scratch[i].parallelism
                elif now < scratch[i].start < next_start:
                    next_start = scratch[i].start
            continue
        elapsed = event - now
        now = event
        done = scratch[completing].active
        scratch[done].completion = now
        parallelism -= scratch[done].parallelism
        active -= 1
        for j in range(completing, active):
            scratch[j].active = scratch[j + 1].active
        unfinished -= 1
        if first == NONE:
            first = done
            first_time = now
            for i in range(count):
                scratch[i].remaining_at_first = scratch[i].remaining
            for j in range(active):
                i = scratch[j].active
                step = int(scratch[i].speed * elapsed)
                scratch[i].remaining_at_first = max(0, scratch[i].remaining - step)
            if only_first:
                break
    return first, first_time, now


@compiled
def activate(scratch, active, entry):
    """Inserts an entry among the `active` running ones, which stand in order of admission."""
    j = active
    while j > 0 and scratch[j - 1].active > entry:
        scratch[j].active = scratch[j - 1].active
        j -= 1
    scratch[j].active = entry
    return active + 1


@compiled
def project(state, node, full):
    """Brings the next completion of a node up to date; with `full`, all completion times too."""
    nodes = state.nodes
    count = gather(state, node)
    first, first_time, last_time = run_projection(
        state.scratch,
        count,
        nodes[node].clock,
        nodes[node].cpu,
        nodes[node].single_core_speed,
        not full,
    )
    nodes[node].next_completion = first_time
    nodes[node].next_container = NONE if first == NONE else state.scratch[first].container
    for i in range(count):
        index = state.scratch[i].container
        state.containers[index].remaining_at_next = state.scratch[i].remaining_at_first
        if full:
            state.containers[index].completion_time = state.scratch[i].completion
    if full:
        nodes[node].last_completion = last_time if count > 0 else -INF
        nodes[node].projected = 1


@compiled
def used_memory_at(state, node, time):
    """MB in projected use at a time: completions and starts at that moment count as done."""
    if state.nodes[node].projected == 0:
        project(state, node, True)
    used = 0
    index = state.nodes[node].first_running
    while index != NONE:
        if state.containers[index].start_time <= time < state.containers[index].completion_time:
            used += state.containers[index].memory_alloc
        index = state.containers[index].next
    return used


@compiled
def fits_at(state, node, memory, time):
    """Whether `memory` MB are free at `time`, according to the projection (rule 5)."""
    if state.nodes[node].allocated_memory + memory <= state.nodes[node].memory:
        return True
    return used_memory_at(state, node, time) + memory <= state.nodes[node].memory


@compiled
def admit(state, node, index, start_time):
    """Appends a container to the running list; counts it if the node is now over-committed."""
    nodes, containers = state.nodes, state.containers
    containers[index].start_time = start_time
    containers[index].next = NONE
    if nodes[node].last_running == NONE:
        nodes[node].first_running = index
    else:
        containers[nodes[node].last_running].next = index
    nodes[node].last_running = index
    nodes[node].running_count += 1
    nodes[node].allocated_memory += containers[index].memory_alloc
    nodes[node].projected = 0
    nodes[node].forecast = 0
    if containers[index].function != NONE:
        state.functions[containers[index].function].start_time = start_time
    if nodes[node].allocated_memory > nodes[node].memory:
        moment = nodes[node].first_running
        while moment != NONE:
            at = containers[moment].start_time
            if used_memory_at(state, node, at) > nodes[node].memory:
                state.cluster[0].overcommits += 1
                break
            moment = containers[moment].next


@compiled
def node_on_server_startup(state, node, time):
    """A cold start moves the clock of the (empty) node."""
    state.nodes[node].clock = time


@compiled
def node_on_container_creation(state, node, index):
    """A container starts at its creation time if its memory is free then; else it waits."""
    nodes, containers = state.nodes, state.containers
    nodes[node].parallelism += containers[index].parallelism
    creation = containers[index].creation_time
    if fits_at(state, node, containers[index].memory_alloc, creation):
        admit(state, node, index, creation)
        if nodes[node].projected == 0:
            project(state, node, False)
        update_tree(state, node)
        return
    containers[index].start_time = np.nan
    containers[index].next = NONE
    if nodes[node].last_waiting == NONE:
        nodes[node].first_waiting = index
    else:
        containers[nodes[node].last_waiting].next = index
    nodes[node].last_waiting = index
    nodes[node].waiting_count += 1
    nodes[node].waiting_memory += containers[index].memory_alloc
    nodes[node].forecast = 0


@compiled
def node_on_container_completion(state, node):
    """Completes the container that ends first, starts waiting ones that fit (rules 6 and 8).

    Returns:
        the completed container; its record still belongs to it.
    """
    nodes, containers = state.nodes, state.containers
    done = nodes[node].next_container
    time = nodes[node].next_completion
    previous = NONE
    index = nodes[node].first_running
    while index != NONE:
        following = containers[index].next
        if index == done:
            if previous == NONE:
                nodes[node].first_running = following
            else:
                containers[previous].next = following
            if following == NONE:
                nodes[node].last_running = previous
        else:
            containers[index].remaining_computation = containers[index].remaining_at_next
            previous = index
        index = following
    containers[done].completion_time = time
    containers[done].remaining_computation = 0
    nodes[node].clock = time
    nodes[node].forecast = 0
    nodes[node].running_count -= 1
    nodes[node].allocated_memory -= containers[done].memory_alloc
    nodes[node].parallelism -= containers[done].parallelism
    while nodes[node].first_waiting != NONE:
        head = nodes[node].first_waiting
        start = max(time, containers[head].creation_time)
        if not fits_at(state, node, containers[head].memory_alloc, start):
            break
        nodes[node].first_waiting = containers[head].next
        if containers[head].next == NONE:
            nodes[node].last_waiting = NONE
        nodes[node].waiting_count -= 1
        nodes[node].waiting_memory -= containers[head].memory_alloc
        admit(state, node, head, start)
    project(state, node, False)
    update_tree(state, node)
    return done


@compiled
def completion_bound(state, node):
    """A time that no running container of the node can outlast.

    Every container at the speed it has when all share the node at once, and one operation lost
    to rounding at each event.
    """
    nodes, containers = state.nodes, state.containers
    parallelism = nodes[node].parallelism
    share = speed_share(parallelism, nodes[node].cpu, nodes[node].single_core_speed)
    lost = 2 * nodes[node].running_count + 1
    bound = -INF
    index = nodes[node].first_running
    while index != NONE:
        ratio = min(1.0, containers[index].memory_alloc / containers[index].memory_req)
        speed = container_speed(ratio, share, containers[index].parallelism)
        start = max(nodes[node].clock, containers[index].start_time)
        bound = max(bound, start + (containers[index].remaining_computation + lost) / speed)
        index = containers[index].next
    return bound


@compiled
def last_completion(state, node):
    """Time of the last projected completion, -inf if nothing runs."""
    if state.nodes[node].projected == 0:
        project(state, node, True)
    return state.nodes[node].last_completion if state.nodes[node].running_count > 0 else -INF


@compiled
def status_at(state, node, time):
    """Projected use of a node at a time that is not before its clock.

    Returns:
        (cpu utilisation, memory utilisation, load, total parallelism, free memory in MB).
    """
    nodes, containers = state.nodes, state.containers
    used = used_memory_at(state, node, time)
    parallelism = 0
    index = nodes[node].first_running
    while index != NONE:
        if containers[index].start_time <= time < containers[index].completion_time:
            parallelism += containers[index].parallelism
        index = containers[index].next
    share = speed_share(parallelism, nodes[node].cpu, nodes[node].single_core_speed)
    speed = 0
    index = nodes[node].first_running
    while index != NONE:
        if containers[index].start_time <= time < containers[index].completion_time:
            ratio = min(1.0, containers[index].memory_alloc / containers[index].memory_req)
            speed += container_speed(ratio, share, containers[index].parallelism)
        index = containers[index].next
    return (
        speed / nodes[node].computing_capacity,
        used / nodes[node].memory,
        parallelism / nodes[node].cpu,
        parallelism,
        nodes[node].memory - used,
    )


@compiled
def reset_node(state, node):
    """An empty node at time 0."""
    nodes = state.nodes
    nodes[node].clock = 0.0
    nodes[node].first_running = nodes[node].last_running = NONE
    nodes[node].first_waiting = nodes[node].last_waiting = NONE
    nodes[node].running_count = nodes[node].waiting_count = 0
    nodes[node].allocated_memory = nodes[node].waiting_memory = nodes[node].parallelism = 0
    nodes[node].next_completion = INF
    nodes[node].next_container = NONE
    nodes[node].last_completion = -INF
    nodes[node].projected = nodes[node].forecast = 1


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


class NumaNode:
    """Reads one NUMA node of a cluster, or is a node of its own.

    `NumaNode.alone(cpu=4, memory=8192, single_core_speed=1000)` makes a node to play with:
    `reset`, `on_server_startup`, `on_container_creation`, `on_container_completion`.
    """

    def __init__(self, state: State, index: int) -> None:
        self.state = state
        self.index = index
        self._completed: deque[Container] = deque()

    @classmethod
    def alone(cls, cpu: int, memory: int, single_core_speed: int, capacity: int = 256) -> NumaNode:
        """A node outside any cluster, able to hold `capacity` containers at once."""
        from env.sim.state import (
            state_of_one_node,
        )  # the builder of states knows the views' records

        return cls(state_of_one_node(cpu, memory, single_core_speed, capacity), 0)

    def __repr__(self) -> str:
        return (
            f"NumaNode(node_id={self.node_id}, cpu={self.cpu}, memory={self.memory}, "
            f"running={len(self.running_containers)}, waiting={len(self.waiting_containers)})"
        )

    @property
    def node_id(self) -> int:
        """Index within its server."""
        return int(self._record["node_id"])

    @property
    def cpu(self) -> int:
        """Cores."""
        return int(self._record["cpu"])

    @property
    def memory(self) -> int:
        """MB."""
        return int(self._record["memory"])

    @property
    def single_core_speed(self) -> int:
        """Operations per second of one core."""
        return int(self._record["single_core_speed"])

    @property
    def computing_capacity(self) -> int:
        """Operations per second of all cores."""
        return int(self._record["computing_capacity"])

    @property
    def current_time(self) -> float:
        """The node's clock: moves at completions on it and at cold starts."""
        return float(self._record["clock"])

    @property
    def next_completion_time(self) -> float:
        """Time of the first projected completion, inf if nothing runs."""
        return float(self._record["next_completion"])

    @property
    def last_completion_time(self) -> float:
        """Time of the last projected completion, -inf if nothing runs."""
        return float(last_completion(self.state, self.index))

    @property
    def running_containers(self) -> list[Container]:
        """Admitted and not completed, in order of admission; future starts included."""
        if not self._record["projected"]:
            project(self.state, self.index, True)
        return self._list(int(self._record["first_running"]))

    @property
    def waiting_containers(self) -> list[Container]:
        """Waiting for memory, first come first."""
        return self._list(int(self._record["first_waiting"]))

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
        active = [run for run in self._runs() if run.start <= time < run.completion]
        share = self._share(active)
        speed = sum(container_speed(run.ratio, share, run.parallelism) for run in active)
        parallelism = sum(run.parallelism for run in active)
        used = sum(run.memory for run in active)
        return NodeStatus(
            cpu=speed / self.computing_capacity,
            memory=used / self.memory,
            load=parallelism / self.cpu,
            total_parallelism=parallelism,
            free_memory=self.memory - used,
        )

    def utilisation_records(self) -> list[UtilisationRecord]:
        """The node's use over time, from 0 to its last projected completion."""
        times = {0.0} | {time for run in self._runs() for time in (run.start, run.completion)}
        return [UtilisationRecord(time, self.status_at(time)) for time in sorted(times)]

    def speed_records(self, wf_id: int, fn_id: int) -> list[SpeedRecord]:
        """A container's speed over time; the last record, of speed 0, is its end."""
        runs = self._runs()
        own = next((run for run in runs if (run.wf_id, run.fn_id) == (wf_id, fn_id)), None)
        if own is None:
            return []
        times = {time for run in runs for time in (run.start, run.completion)}
        records = []
        for time in sorted(time for time in times if own.start <= time < own.completion):
            share = self._share([run for run in runs if run.start <= time < run.completion])
            records.append(SpeedRecord(time, container_speed(own.ratio, share, own.parallelism)))
        return [*records, SpeedRecord(own.completion, 0)]

    def completed_computation(self, wf_id: int, fn_id: int, time: float) -> int:
        """Operations a container has done by `time`: rounded down in every piece of its record."""
        done = 0
        records = self.speed_records(wf_id, fn_id)
        for record, following in pairwise(records):
            if record.timestamp < time:
                done += int(record.speed * (min(time, following.timestamp) - record.timestamp))
        return done

    def _share(self, active: list[_Run]) -> int:
        parallelism = sum(run.parallelism for run in active)
        return int(speed_share(parallelism, self.cpu, self.single_core_speed))

    def _runs(self) -> list[_Run]:
        """Every run on this node that the records still know, past and projected."""
        functions = self.state.functions
        past = functions[(functions["node"] == self.index) & (functions["state"] == FINISHED)]
        runs = [
            _Run(
                int(record["wf_id"]),
                int(record["fn_id"]),
                float(record["start_time"]),
                float(record["completion_time"]),
                int(record["parallelism"]),
                min(1.0, record["memory_alloc"] / record["memory_req"]),
                int(record["memory_alloc"]),
            )
            for record in past
        ]
        for container in (*self._completed, *self.running_containers):
            assert container.start_time is not None and container.completion_time is not None
            runs.append(
                _Run(
                    container.wf_id,
                    container.fn_id,
                    container.start_time,
                    container.completion_time,
                    container.parallelism,
                    min(1.0, container.memory_alloc / container.memory_req),
                    container.memory_alloc,
                )
            )
        return runs

    def _indices(self, first: str) -> list[int]:
        indices = []
        index = int(self._record[first])
        while index != NONE:
            indices.append(index)
            index = int(self.state.containers[index]["next"])
        return indices

    def _list(self, first: int) -> list[Container]:
        containers = []
        while first != NONE:
            containers.append(read_container(self.state, first))
            first = int(self.state.containers[first]["next"])
        return containers

    @property
    def _record(self) -> np.void:
        return self.state.nodes[self.index]
