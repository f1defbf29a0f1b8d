"""What every container and NUMA node of an episode did over time, replayed from its file.

The one source of the page, the Gantt picture and the trace, whatever the world of the episode.
"""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from env.base.errors import located
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from env.sim.state.history import leases_of, warm_periods_of
from env.sim.view.raw_env import RawEnv
from evaluation.shares import Shares, is_shared, shares_of

WARM = np.dtype(
    [
        ("node", np.int64),  # as of containers, as is the next
        ("lane", np.int64),
        ("begin", np.float64),  # s
        ("end", np.float64),
    ]
)

LEASE = np.dtype(
    [
        ("node", np.int64),  # as of containers: the first of its server
        ("nodes", np.int64),  # how many the server has
        ("begin", np.float64),  # s
        ("end", np.float64),
        ("rent", np.float64),  # USD
    ]
)


class Phase(NamedTuple):
    """A part of a container's life, between two columns of `containers_of`."""

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
        server, node_id: what people call its server, and which node of that it is.
        lanes: rows that its containers need, 0 if none ran there.
        computing_capacity: operations per second of all its cores.
        times: (K,) seconds, from 0 to its last completion.
        cpu: (K,) speed of all running containers / computing capacity.
        memory: (K,) memory given / memory of the node; above 1 when over-committed.
    """

    server: str
    node_id: int
    lanes: int
    computing_capacity: int
    times: np.ndarray
    cpu: np.ndarray
    memory: np.ndarray


@dataclass(frozen=True)
class Timeline:
    """A finished episode.

    Attributes:
        name: of the episode file.
        containers: (C,) from `containers_of`, with their lanes.
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

    def queue(self, node: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(times, containers that wait for memory), of a node or of the whole cluster."""
        there = self.containers["node"] == node if node is not None else slice(None)
        return _waiting(self.containers[there], "creation_time", "start_time")

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
    for index in range(len(env.state.nodes)):
        server, server_id, node_id = env.place_of(index)
        node = env.cluster.servers[server][server_id].numa_nodes[node_id]
        mine, idle = containers["node"] == index, warm["node"] == index
        lanes, count = _lanes(
            np.concatenate([containers["submission_time"][mine], warm["begin"][idle]]),
            np.concatenate([containers["completion_time"][mine], warm["end"][idle]]),
        )
        containers["lane"][mine], warm["lane"][idle] = np.split(lanes, [int(mine.sum())])
        times, use = zip(*node.utilisation_records(containers[mine]), strict=True)
        cpu, memory, *_ = np.array(use).T
        where = f"{server} {server_id}", node_id
        nodes.append(NodeUse(*where, count, node.computing_capacity, np.array(times), cpu, memory))
    ends = np.zeros(len(env.arrival_times))
    np.maximum.at(ends, containers["wf_id"], containers["completion_time"])
    return Timeline(
        name,
        containers,
        warm,
        leases=_leases(env, end),
        nodes=tuple(nodes),
        flow_times=ends - np.array(env.arrival_times),
        tenants=env.tenants,
        templates=tuple(workflow.template for workflow in env.workload.workflows),
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


def containers_of(env: RawEnv) -> np.recarray:
    """A record a run of a function, in the order of their dispatch.

    Args:
        env: a finished `RawEnv(..., record=True)`.

    Returns:
        (C,): wf_id, fn_id, node (index into `Timeline.nodes`), lane (row within its node, so that
        containers of a row never overlap; 0 here), computation (operations), memory_req (MB),
        memory_alloc (MB), parallelism; and seconds: submission_time, or when it was preempted
        before; dispatch_time, as it leaves the central queue; ready_time, its server is up;
        container_time, its container has started; creation_time, its data is there; start_time,
        its memory is free; completion_time.
    """
    runs = pd.DataFrame(env.runs).sort_values("dispatched", ignore_index=True)
    places = map(env.function_index, runs["wf_id"], runs["fn_id"])
    functions = pd.DataFrame(env.state.functions[list(places)])
    dispatched, started = runs["dispatch_time"], runs["start_time"]
    starts = (dispatched + runs["server_start_time"]).where(runs["server_start_time"] > 0)
    # Whoever comes while a server starts waits for it too, without paying for it.
    up = starts.groupby(env.state.nodes["server"][runs["node"]]).ffill().fillna(0.0)
    ready = np.maximum(dispatched, up)
    # Added up, these moments may come after the start by a rounding.
    container = ready + runs["cold_start_time"]
    columns = {
        **runs[["wf_id", "fn_id", "node"]],
        "lane": 0,
        **functions[["computation", "memory_req"]],
        "memory_alloc": runs["memory_alloc"],
        "parallelism": functions["parallelism"],
        "submission_time": runs["joined_time"],
        "dispatch_time": dispatched,
        "ready_time": ready,
        "container_time": np.minimum(container, started),
        "creation_time": np.minimum(container + runs["data_transfer_time"], started),
        "start_time": started,
        "completion_time": runs["end_time"],
    }
    return pd.DataFrame(columns).to_records(index=False)


def _warm(env: RawEnv, end: float) -> np.ndarray:
    """Idle containers up to the end of the episode."""
    found = [
        (period.node, 0, period.begin, min(period.end, end))
        for period in warm_periods_of(env.history)
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
