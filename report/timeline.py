"""What every container and NUMA node of an episode did over time, replayed from its file.

The one source of the page, the Gantt picture and the trace, whatever the world of the episode.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from env.base.errors import located
from env.sim.episode.episode_file import read_episode
from env.sim.episode.model import CONDITIONS
from env.sim.episode.replay import played
from env.sim.node.node_status import tenants_of, thread_speeds
from env.sim.state.history import CONDITION, leases_of, warm_periods_of
from env.sim.state.records import IN_SERVICE, KILLED
from env.sim.view.hardware import NumaNode
from env.sim.view.raw_env import RawEnv
from evaluation.shares import shares_of


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


class NodeUse(NamedTuple):
    """A NUMA node over time: value k of an array holds from time k to time k + 1."""

    server: str  # what people call its server
    node_id: int  # which node of that it is
    lanes: int  # rows that its containers need, 0 if none ran there
    computing_capacity: int  # operations per second of all its cores
    times: np.ndarray  # (K,) seconds, from 0 to its last completion
    cpu: np.ndarray  # (K,) speed of all running containers / computing capacity
    memory: np.ndarray  # (K,) memory given / memory of the node; above 1 when over-committed
    cpu_of: Mapping[str, np.ndarray]  # (K,) part of `cpu` by the label of tenants


class Timeline:
    """A finished episode. Nodes have the numbers of `nodes`, times are seconds.

    Args:
        env: a finished `RawEnv(..., record=True)`, with no workflow recycled.
        name: of the episode.
        label_of: what charts call tenants, whose use of CPU is told apart by these labels.

    Attributes:
        end: when the last workflow ends.
        containers: from `containers_of`, with their lanes.
        warm: idle containers: node, lane, begin, end.
        leases: each time that a server was up, server by server: node (its first one), nodes (how
            many it has), begin, end, rent (USD).
        outages: each time that a server was out of service: node, nodes, begin, end, condition.
        nodes: every NUMA node of the cluster.
        flow_times: (W,) seconds from arrival to completion of every workflow.
        tenants: whose each workflow is; empty where nobody is told apart.
        templates: (W,) of every workflow.
        shares: what tenants with tickets got; None where nobody waits centrally or holds tickets.
    """

    def __init__(self, env: RawEnv, name: str, label_of: Mapping[str, str] | None = None) -> None:
        self.name, self.end, self.tenants = name, env.time, env.tenants
        self.templates = tuple(workflow.template for workflow in env.workload.workflows)
        self.shares = shares_of(env)
        ends = env.state.workflows["completion_time"][env.state.slot_of]
        self.flow_times = ends - np.array(env.arrival_times)
        self.leases, self.outages = _leases(env), _outages(env)
        self.containers, self.warm = containers_of(env), _warm(env)
        label_of = label_of or {}
        labels = list(dict.fromkeys(label_of.values())) if env.tenants else []
        owners = np.array([labels.index(label_of[tenant]) for tenant in env.tenants if labels], int)
        nodes = range(len(env.state.nodes))
        self.nodes = tuple(self._node(env, index, owners, labels) for index in nodes)

    def function_label(self, wf_id: int, fn_id: int) -> str:
        """What people call a function of a workflow: its number, and its name if it has one."""
        names = self.templates[wf_id].function_names
        return f"{fn_id} ({names[fn_id]})" if names else str(fn_id)

    def workflow_label(self, wf_id: int) -> str:
        """What people call a workflow: its number and its name."""
        name = self.templates[wf_id].name
        return str(wf_id) if name in ("", f"workflow {wf_id}") else f"{wf_id} ({name})"

    def in_phase(self, name: str, node: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(times, containers in a phase from then on), of a node or of the whole cluster."""
        begin, end = next(phase[1:] for phase in PHASES if phase.name == name)
        runs = self.containers[self.containers[begin] < self.containers[end]]
        if node is not None:
            runs = runs[runs["node"] == node]
        steps = pd.Series(0, [0.0]), pd.Series(1, runs[begin]), pd.Series(-1, runs[end])
        count = pd.concat(steps).groupby(level=0).sum().cumsum()
        return count.index.to_numpy(), count.to_numpy()

    def _node(self, env: RawEnv, index: int, owners: np.ndarray, labels: Sequence[str]) -> NodeUse:
        """One of `nodes`; what ran and was warm there gets its lanes.

        Args:
            env, index: where it is.
            owners: by workflow, the index of its tenant's label, where there are `labels`.
        """
        server, server_id, node_id = env.place_of(index)
        node = env.cluster.servers[server][server_id].numa_nodes[node_id]
        containers, warm = self.containers, self.warm
        mine, idle = containers["node"] == index, warm["node"] == index
        lanes, count = _lanes(
            np.concatenate([containers.loc[mine, "submission_time"], warm.loc[idle, "begin"]]),
            np.concatenate([containers.loc[mine, "completion_time"], warm.loc[idle, "end"]]),
        )
        containers.loc[mine, "lane"], warm.loc[idle, "lane"] = np.split(lanes, [mine.sum()])
        use = _use(node, containers[mine].to_records(), owners, labels)
        return NodeUse(f"{server} {server_id}", node_id, count, node.computing_capacity, *use)


def read_timeline(
    path: str | os.PathLike[str], label_of: Mapping[str, str] | None = None
) -> Timeline:
    """Replays an episode file, see `Timeline`.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    episode = read_episode(path)
    with located(str(path)):
        return Timeline(played(episode), episode.name, label_of)


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


def containers_of(env: RawEnv) -> pd.DataFrame:
    """A row a run of a function, in the order of their dispatch.

    Args:
        env: a finished `RawEnv(..., record=True)`.

    Returns:
        wf_id, fn_id, node (index into `Timeline.nodes`), lane (row within its node, so that
        containers of a row never overlap; 0 here), computation (operations), memory_req (MB),
        memory_alloc (MB), parallelism; and seconds: submission_time, or when it was preempted
        before; dispatch_time, as it leaves the central queue; ready_time, its server is up;
        container_time, its container has started; creation_time, its data is there; start_time,
        its memory is free; completion_time. And whether it was killed then.
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
        "killed": runs["outcome"] == KILLED,
    }
    return pd.DataFrame(columns)


def _warm(env: RawEnv) -> pd.DataFrame:
    """See `Timeline.warm`."""
    warm = pd.DataFrame(warm_periods_of(env.history)).assign(lane=0)
    warm = warm.assign(begin=warm["time"], end=warm["end_time"].clip(upper=env.time))
    return warm.loc[warm["begin"] < warm["end"], ["node", "lane", "begin", "end"]]


def _leases(env: RawEnv) -> pd.DataFrame:
    """See `Timeline`; where no lease ends, servers are up until the end of the episode."""
    columns = ("server", "begin", "end", "rent")
    leases = pd.DataFrame(leases_of(env.history), columns=columns)
    if env.rules.lease.kind == "always":
        leases["end"] = leases["end"].clip(upper=env.time)
    servers = env.state.servers[leases.pop("server").astype(int)]
    return leases.assign(node=servers["first_node"], nodes=servers["node_count"])


def _outages(env: RawEnv) -> pd.DataFrame:
    """See `Timeline`; the last one of a server may last until the end of the episode."""
    rows = env.history[env.history["kind"] == CONDITION]
    changes = pd.DataFrame({"server": rows["node"], "begin": rows["time"]})
    changes["condition"] = [CONDITIONS[condition] for condition in rows["flag"]]
    changes["end"] = changes.groupby("server")["begin"].shift(-1).fillna(env.time)
    servers = env.state.servers[changes.pop("server").astype(int)]
    changes = changes.assign(node=servers["first_node"], nodes=servers["node_count"])
    return changes[changes["condition"] != CONDITIONS[IN_SERVICE]]


def _use(
    node: NumaNode, containers: np.recarray, owners: np.ndarray, labels: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """times, CPU, memory and CPU by label of a node, see `NodeUse`; containers that ran there."""
    starts, ends = containers["start_time"], containers["completion_time"]
    times = np.unique(np.concatenate([[0.0], starts, ends]))
    cpu, memory = np.zeros(len(times)), np.zeros(len(times))
    cpu_of = np.zeros((len(labels), len(times)))
    for index, time in enumerate(times):
        active = containers[(starts <= time) & (time < ends)]
        threads, wf_ids = active["parallelism"], active["wf_id"]
        tenants = tenants_of(node.state, wf_ids)
        share = thread_speeds(node.state, tenants, threads, node.cpu, node.single_core_speed)
        ratio = np.minimum(1.0, active["memory_alloc"] / active["memory_req"])
        speeds = np.maximum(1, (ratio * share * threads).astype(np.int64))
        cpu[index] = speeds.sum() / node.computing_capacity
        memory[index] = active["memory_alloc"].sum() / node.memory
        if labels:
            cpu_of[:, index] = np.bincount(owners[wf_ids], speeds, len(labels))
    parts = cpu_of / node.computing_capacity
    return times, cpu, memory, dict(zip(labels, parts, strict=True))


def _lanes(begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """The lowest free row for whatever lasts from a begin to an end; and how many rows."""
    lanes, count = np.zeros(len(begins), np.int64), 0
    free_from = np.full(len(begins) + 1, -np.inf)
    for index in np.argsort(begins, kind="stable"):
        lane = int(np.argmax(free_from[: count + 1] <= begins[index]))
        lanes[index], free_from[lane] = lane, ends[index]
        count = max(count, lane + 1)
    return lanes, count
