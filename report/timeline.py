"""What every container and NUMA node of an episode did over time, replayed from its file.

The one source of the page, the Gantt picture and the trace.
"""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from env.base.errors import located
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from env.sim.records import FUNCTION
from env.sim.view.raw_env import RawEnv

CONTAINER = np.dtype(
    [
        ("wf_id", np.int64),
        ("fn_id", np.int64),
        ("node", np.int64),  # index into `Timeline.nodes`
        ("lane", np.int64),  # row within its node, so that containers of a row never overlap
        ("computation", np.int64),  # operations
        ("memory_req", np.int64),  # MB
        ("memory_alloc", np.int64),  # MB
        ("parallelism", np.int64),
        ("submission_time", np.float64),  # s, as all that follow
        ("ready_time", np.float64),  # its server is up
        ("creation_time", np.float64),  # its data is there
        ("start_time", np.float64),  # its memory is free
        ("completion_time", np.float64),
    ]
)


_OF_FUNCTIONS = sorted(set(CONTAINER.fields or ()) & set(FUNCTION.fields or ()))
"""Columns that are fields of a function's record."""


class Phase(NamedTuple):
    """A part of a container's life, between two columns of `CONTAINER`."""

    name: str
    begin: str
    end: str


PHASES = (
    Phase("cold start", "submission_time", "ready_time"),
    Phase("transfer", "ready_time", "creation_time"),
    Phase("waiting", "creation_time", "start_time"),
    Phase("running", "start_time", "completion_time"),
)


@dataclass(frozen=True)
class NodeUse:
    """A NUMA node over time: value k of an array holds from time k to time k + 1.

    Attributes:
        server_name, server_id, node_id: where it is.
        lanes: rows that its containers need, 0 if none ran there.
        computing_capacity: operations per second of all its cores.
        times: (K,) seconds, from 0 to its last completion.
        cpu: (K,) speed of all running containers / computing capacity.
        memory: (K,) memory given / memory of the node; above 1 when over-committed.
        queue_times: (Q,) seconds, from 0.
        queue: (Q,) containers that wait for memory.
    """

    server_name: str
    server_id: int
    node_id: int
    lanes: int
    computing_capacity: int
    times: np.ndarray
    cpu: np.ndarray
    memory: np.ndarray
    queue_times: np.ndarray
    queue: np.ndarray

    @property
    def server(self) -> str:
        """What people call its server."""
        return f"{self.server_name} {self.server_id}"


@dataclass(frozen=True)
class Timeline:
    """A finished episode.

    Attributes:
        name: of the episode file.
        containers: CONTAINER (C,), in the order of the decisions.
        nodes: every NUMA node of the cluster.
        flow_times: (W,) seconds from arrival to completion of every workflow.
        tenants: whose each workflow is; empty where nobody is told apart.
    """

    name: str
    containers: np.ndarray
    nodes: tuple[NodeUse, ...]
    flow_times: np.ndarray
    tenants: tuple[str, ...]

    @property
    def end(self) -> float:
        """Seconds: the last completion."""
        return float(self.containers["completion_time"].max())

    def queue(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, containers that wait for memory in the whole cluster)."""
        return _queue(self.containers)


def read_timeline(path: str | os.PathLike[str]) -> Timeline:
    """Replays an episode file.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    episode = read_episode(path)
    with located(str(path)):
        return timeline_of(played(episode), episode.name)


def timeline_of(env: RawEnv, name: str) -> Timeline:
    """What happened in a finished `RawEnv(..., record=True)`.

    Args:
        env: with no workflow recycled.
        name: of the episode.
    """
    containers = _containers(env)
    nodes = []
    views = [
        (server.name, server.server_id, node)
        for servers in env.cluster.servers.values()
        for server in servers
        for node in server.numa_nodes
    ]
    for index, (server_name, server_id, node) in enumerate(views):
        mine = containers["node"] == index
        lanes, count = _lanes(containers[mine])
        containers["lane"][mine] = lanes
        records = node.utilisation_records()
        queue_times, queue = _queue(containers[mine])
        nodes.append(
            NodeUse(
                server_name,
                server_id,
                node.node_id,
                count,
                node.computing_capacity,
                times=np.array([record.timestamp for record in records]),
                cpu=np.array([record.status.cpu for record in records]),
                memory=np.array([record.status.memory for record in records]),
                queue_times=queue_times,
                queue=queue,
            )
        )
    ends = np.zeros(len(env.arrival_times))
    np.maximum.at(ends, containers["wf_id"], containers["completion_time"])
    flow_times = ends - np.array(env.arrival_times)
    return Timeline(name, containers, tuple(nodes), flow_times, env.tenants)


def mean_over(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(B,) means over the bins between `edges` of what is `values[k]` from `times[k]` on.

    Args:
        times: (K,) seconds.
        values: (K,), the last one 0.
        edges: (B + 1,) seconds.
    """
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    # Between two changes the area grows linearly; after the last one the node is idle.
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)


def _containers(env: RawEnv) -> np.ndarray:
    containers = np.zeros(len(env.logs), CONTAINER)
    up: dict[tuple[str, int], float] = {}
    for row, log in zip(containers, env.logs, strict=True):
        server = (log.server_name, log.server_id)
        if log.cold_start_time > 0:
            up[server] = log.submission_time + log.cold_start_time
        function = env.state.functions[env.function_index(log.wf_id, log.fn_id)]
        for field in _OF_FUNCTIONS:
            row[field] = function[field]
        # Whoever comes while a server starts waits for it too, without paying for it.
        row["ready_time"] = max(log.submission_time, up.get(server, 0.0))
    return containers


def _lanes(containers: np.ndarray) -> tuple[np.ndarray, int]:
    """The lowest free row for each container, from its submission to its completion; the rows."""
    lanes = np.zeros(len(containers), np.int64)
    busy: list[tuple[float, int]] = []  # (until, lane)
    free: list[int] = []
    count = 0
    for index, container in enumerate(containers):
        while busy and busy[0][0] <= container["submission_time"]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            free.append(count)
            count += 1
        lanes[index] = heapq.heappop(free)
        heapq.heappush(busy, (float(container["completion_time"]), int(lanes[index])))
    return lanes, count


def _queue(containers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times, containers that wait for memory from then on), from 0."""
    waiting = containers[containers["creation_time"] < containers["start_time"]]
    changes = np.concatenate([[0.0], waiting["creation_time"], waiting["start_time"]])
    steps = np.repeat([0, 1, -1], [1, len(waiting), len(waiting)])
    times, which = np.unique(changes, return_inverse=True)
    return times, np.bincount(which, weights=steps).cumsum().astype(np.int64)
