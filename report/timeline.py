"""What every container and NUMA node of an episode did over time, replayed from its file.

The one source of the page, the Gantt picture and the trace, whatever the world of the episode.
"""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from env.base.errors import located
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from env.sim.node.node_status import tenants_of, thread_speeds
from env.sim.state.history import leases_of
from env.sim.view.numa_node import NumaNode
from env.sim.view.raw_env import RawEnv
from evaluation.shares import Shares, is_shared, shares_of

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
        ("submission_time", np.float64),  # s, as all that follow; or when it was preempted before
        ("dispatch_time", np.float64),  # it leaves the central queue
        ("ready_time", np.float64),  # its server is up
        ("container_time", np.float64),  # its container has started
        ("creation_time", np.float64),  # its data is there
        ("start_time", np.float64),  # its memory is free
        ("completion_time", np.float64),
    ]
)

WARM = np.dtype(
    [
        ("node", np.int64),  # as in CONTAINER, as is the next
        ("lane", np.int64),
        ("begin", np.float64),  # s
        ("end", np.float64),
    ]
)

LEASE = np.dtype(
    [
        ("node", np.int64),  # as in CONTAINER: the first of its server
        ("nodes", np.int64),  # how many the server has
        ("begin", np.float64),  # s
        ("end", np.float64),
        ("rent", np.float64),  # USD
    ]
)


class Phase(NamedTuple):
    """A part of a container's life, between two columns of `CONTAINER`."""

    name: str
    begin: str
    end: str


PHASES = (
    Phase("central queue", "submission_time", "dispatch_time"),
    Phase("server cold start", "dispatch_time", "ready_time"),
    Phase("container cold start", "ready_time", "container_time"),
    Phase("transfer", "container_time", "creation_time"),
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
        containers: CONTAINER (C,), in the order of their dispatch; one a run of a function.
        warm: WARM (I,), idle containers.
        leases: LEASE (L,), server by server; one for each time that a server was up.
        nodes: every NUMA node of the cluster.
        flow_times: (W,) seconds from arrival to completion of every workflow.
        tenants: whose each workflow is; empty where nobody is told apart.
        templates: (W,) of every workflow.
        shares: what tenants with tickets got; None where nobody waits centrally or holds tickets.
    """

    name: str
    containers: np.ndarray
    warm: np.ndarray
    leases: np.ndarray
    nodes: tuple[NodeUse, ...]
    flow_times: np.ndarray
    tenants: tuple[str, ...]
    templates: tuple[WorkflowTemplate, ...]
    shares: Shares | None

    def function_label(self, wf_id: int, fn_id: int) -> str:
        """What people call a function of a workflow: its number, and its name if it has one."""
        names = self.templates[wf_id].function_names
        return f"{fn_id} ({names[fn_id]})" if names else str(fn_id)

    def workflow_label(self, wf_id: int) -> str:
        """What people call a workflow: its number and its name."""
        name = self.templates[wf_id].name
        return str(wf_id) if name in ("", f"workflow {wf_id}") else f"{wf_id} ({name})"

    @property
    def end(self) -> float:
        """Seconds: the last completion."""
        return float(self.containers["completion_time"].max())

    def queue(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, containers that wait for memory in the whole cluster)."""
        return _waiting(self.containers, "creation_time", "start_time")

    def central_queue(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, functions that wait centrally)."""
        return _waiting(self.containers, "submission_time", "dispatch_time")


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
    containers = containers_of(env)
    end = float(containers["completion_time"].max())
    warm = _warm(env, end)
    nodes = []
    views = [
        (server.name, server.server_id, node)
        for servers in env.cluster.servers.values()
        for server in servers
        for node in server.numa_nodes
    ]
    for index, (server_name, server_id, node) in enumerate(views):
        mine, idle = containers["node"] == index, warm["node"] == index
        lanes, count = _lanes(
            np.concatenate([containers["submission_time"][mine], warm["begin"][idle]]),
            np.concatenate([containers["completion_time"][mine], warm["end"][idle]]),
        )
        containers["lane"][mine], warm["lane"][idle] = np.split(lanes, [int(mine.sum())])
        times, cpu, memory = _use(node, containers[mine])
        queue_times, queue = _waiting(containers[mine], "creation_time", "start_time")
        nodes.append(
            NodeUse(
                server_name,
                server_id,
                node.node_id,
                count,
                node.computing_capacity,
                times=times,
                cpu=cpu,
                memory=memory,
                queue_times=queue_times,
                queue=queue,
            )
        )
    templates = tuple(workflow.template for workflow in env.workload.workflows)
    ends = np.zeros(len(env.arrival_times))
    np.maximum.at(ends, containers["wf_id"], containers["completion_time"])
    flow_times = ends - np.array(env.arrival_times)
    return Timeline(
        name,
        containers,
        warm,
        leases=_leases(env, end),
        nodes=tuple(nodes),
        flow_times=flow_times,
        tenants=env.tenants,
        templates=templates,
        shares=shares_of(env) if is_shared(env) else None,
    )


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


def containers_of(env: RawEnv) -> np.ndarray:
    """CONTAINER (C,) of a finished `RawEnv(..., record=True)`, without their lanes."""
    runs = np.sort(env.runs, order="dispatched")
    containers = np.zeros(len(runs), CONTAINER)
    for field in ("wf_id", "fn_id", "node", "memory_alloc", "dispatch_time", "start_time"):
        containers[field] = runs[field]
    containers["submission_time"] = runs["joined_time"]
    containers["completion_time"] = runs["end_time"]
    up = np.zeros(len(env.state.servers))
    for row, run in zip(containers, runs, strict=True):
        function = env.state.functions[env.function_index(int(run["wf_id"]), int(run["fn_id"]))]
        for field in ("computation", "memory_req", "parallelism"):
            row[field] = function[field]
        server = env.state.nodes["server"][run["node"]]
        if run["server_start_time"] > 0:
            up[server] = run["dispatch_time"] + run["server_start_time"]
        # Whoever comes while a server starts waits for it too, without paying for it.
        row["ready_time"] = max(run["dispatch_time"], up[server])
        # Added up, these moments may come after the start by a rounding.
        started = row["ready_time"] + run["cold_start_time"]
        row["container_time"] = min(started, run["start_time"])
        row["creation_time"] = min(started + run["data_transfer_time"], run["start_time"])
    return containers


def _warm(env: RawEnv, end: float) -> np.ndarray:
    """Idle containers up to the end of the episode."""
    found = [
        (period.node, 0, period.begin, min(period.end, end))
        for period in env.warm_periods
        if period.begin < min(period.end, end)
    ]
    return np.array(found, WARM)


def _leases(env: RawEnv, end: float) -> np.ndarray:
    """Each time that a server was up, until the end of the episode where that is no lease's."""
    servers, found = env.state.servers, []
    for server, begin, until, rent in leases_of(env.history):
        if env.rules.lease.kind == "always":
            until = end
        node, nodes = int(servers[server]["first_node"]), int(servers[server]["node_count"])
        found.append((node, nodes, begin, until, rent))
    return np.array(found, LEASE)


def _use(node: NumaNode, containers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, CPU, memory) of a node over time: see `NodeUse`."""
    starts, ends = containers["start_time"], containers["completion_time"]
    times = np.unique(np.concatenate([[0.0], starts, ends]))
    cpu, memory = np.zeros(len(times)), np.zeros(len(times))
    for index, time in enumerate(times):
        active = containers[(starts <= time) & (time < ends)]
        threads = active["parallelism"]
        owners = tenants_of(node.state, active["wf_id"])
        share = thread_speeds(node.state, owners, threads, node.cpu, node.single_core_speed)
        ratio = np.minimum(1.0, active["memory_alloc"] / active["memory_req"])
        speeds = np.maximum(1, (ratio * share * threads).astype(np.int64))
        cpu[index] = speeds.sum() / node.computing_capacity
        memory[index] = active["memory_alloc"].sum() / node.memory
    return times, cpu, memory


def _lanes(begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """The lowest free row for whatever lasts from a begin to an end; and how many rows."""
    lanes = np.zeros(len(begins), np.int64)
    busy: list[tuple[float, int]] = []  # (until, lane)
    free: list[int] = []
    count = 0
    for index in np.argsort(begins, kind="stable"):
        while busy and busy[0][0] <= begins[index]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            free.append(count)
            count += 1
        lanes[index] = heapq.heappop(free)
        heapq.heappush(busy, (float(ends[index]), int(lanes[index])))
    return lanes, count


def _waiting(containers: np.ndarray, begin: str, end: str) -> tuple[np.ndarray, np.ndarray]:
    """(times, containers that are between two of their moments from then on), from 0."""
    waiting = containers[containers[begin] < containers[end]]
    changes = np.concatenate([[0.0], waiting[begin], waiting[end]])
    steps = np.repeat([0, 1, -1], [1, len(waiting), len(waiting)])
    times, which = np.unique(changes, return_inverse=True)
    return times, np.bincount(which, weights=steps).cumsum().astype(np.int64)
