"""The views of the hardware: `Cluster`, `Server`, `NumaNode`, `Container`, and `Resources`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from env.resources.quantity import UNIT
from env.sim.declared.hardware import CPU, ClusterConfig
from env.sim.node.node_status import last_completion, tenants_of, thread_speeds
from env.sim.node.projection import container_speed, project
from env.sim.node.server_state import STATES, server_state
from env.sim.state.block import State
from env.sim.state.containers import memory_ratio
from env.sim.state.records import FINISHED, NONE, RUNNING
from env.sim.view.recorded import Recorded, View

SECONDS = itemgetter(0)
"""Of a completion: of several at once the first listed counts."""


class Cluster(View):
    """Reads the whole cluster: servers by type name, the first and last completion."""

    table, shows = "cluster", ("config",)

    memory_bandwidth = Recorded(float, "Bytes/s within one NUMA node.")
    numa_bandwidth = Recorded(float, "Bytes/s between NUMA nodes of one server.")
    network_bandwidth = Recorded(float, "Bytes/s between servers.")
    single_core_speed = Recorded(int, "Operations per second, unless a server type has its own.")

    def __init__(self, state: State, config: ClusterConfig) -> None:
        super().__init__(state, 0)
        self.config = config
        self.servers: dict[str, tuple[Server, ...]] = {}
        first = 0
        for kind in config.server_types:
            indices = range(first, first + kind.count)
            self.servers[kind.name] = tuple(Server(state, index, kind.name) for index in indices)
            first += kind.count

    @property
    def earliest_finished(self) -> tuple[float, str, int] | None:
        """(seconds, type, server) of the first projected completion; None if nothing runs."""
        return min(self._completions("earliest_finished"), key=SECONDS, default=None)

    @property
    def latest_finished(self) -> tuple[float, str, int] | None:
        """The same of the last projected completion."""
        return max(self._completions("latest_finished"), key=SECONDS, default=None)

    def _completions(self, which: str) -> Iterator[tuple[float, str, int]]:
        for servers in self.servers.values():
            for server in servers:
                if completion := getattr(server, which):
                    yield completion[0], server.name, server.server_id


class Server(View):
    """Reads one server: its lease, its rent and its NUMA nodes."""

    table = "servers"
    shows = "name", "server_id", "expiration_time", "container_count"

    server_id = Recorded(int, "Index within its type.")
    hourly_rate = Recorded(float, "USD per started hour.")
    cold_start_latency = Recorded(float, "Seconds.")
    expiration_time = Recorded(float, "Seconds: end of the lease, -inf before the first one.")
    container_count = Recorded(int, "Containers created and not completed, waiting ones included.")

    def __init__(self, state: State, index: int, name: str) -> None:
        super().__init__(state, index)
        self.name = name

    @property
    def numa_nodes(self) -> tuple[NumaNode, ...]:
        """Its NUMA nodes."""
        first, count = int(self._record["first_node"]), int(self._record["node_count"])
        return tuple(NumaNode(self.state, node) for node in range(first, first + count))

    @property
    def hours_rented(self) -> float:
        """Hours leased so far."""
        return float(self._ledger["lease_seconds"].sum() / 3600.0)

    @property
    def rent(self) -> float:
        """USD paid so far."""
        return float(self._ledger["rent"].sum())

    @property
    def earliest_finished(self) -> tuple[float, int] | None:
        """(seconds, NUMA node) of the first projected completion; None if nothing runs."""
        ends = [(node.next_completion_time, node.node_id) for node in self.numa_nodes]
        return min((end for end in ends if end[0] < math.inf), key=SECONDS, default=None)

    @property
    def latest_finished(self) -> tuple[float, int] | None:
        """The same of the last projected completion."""
        ends = [(node.last_completion_time, node.node_id) for node in self.numa_nodes]
        return max((end for end in ends if end[0] > -math.inf), key=SECONDS, default=None)

    @property
    def state_name(self) -> str:
        """One of `env.sim.node.server_state.STATES`: off, starting, up, draining, down."""
        return STATES[server_state(self.state, self.index)]

    @property
    def _ledger(self) -> np.ndarray:
        return self.state.ledger.reshape(len(self.state.servers), -1)[self.index]


class NodeStatus(NamedTuple):
    """Use of a NUMA node at one moment."""

    cpu: float  # speed of all running containers / computing capacity, 0 to 1
    memory: float  # memory given / memory of the node; above 1 when over-committed
    load: float  # total parallelism / cores
    total_parallelism: int  # threads of all running containers
    free_memory: int  # MB; negative when over-committed


RUN = [
    *("wf_id", "fn_id", "start_time", "completion_time", "parallelism"),
    *("memory_alloc", "memory_req"),
]
"""Fields that the records of a function that has run and of a container have in common."""


class NumaNode(View):
    """Reads one NUMA node of a cluster."""

    table = "nodes"
    shows = "node_id", "cpu", "memory", "running_containers", "waiting_containers"

    node_id = Recorded(int, "Index within its server.")
    cpu = Recorded(int, "Cores.")
    memory = Recorded(int, "MB.")
    single_core_speed = Recorded(int, "Operations per second of one core.")
    computing_capacity = Recorded(int, "Operations per second of all cores.")
    current_time = Recorded(float, "Its clock: moves at completions and cold starts.", "clock")
    next_completion_time = Recorded(float, "The first; inf if nothing runs.", "next_completion")

    @property
    def last_completion_time(self) -> float:
        """Time of the last projected completion, -inf if nothing runs."""
        return float(last_completion(self.state, self.index))

    @property
    def running_containers(self) -> list[Container]:
        """Admitted and not completed, in order of admission; future starts included."""
        return [read_container(self.state, index) for index in self._running()]

    @property
    def waiting_containers(self) -> list[Container]:
        """Waiting for memory, first come first."""
        return [read_container(self.state, index) for index in self._indices("first_waiting")]

    def status_at(self, time: float) -> NodeStatus:
        """Use of the node at a time (s): recorded before its clock, projected from there on."""
        runs = self._runs()
        active = runs[_active(runs, time)]
        parallelism, used = int(active["parallelism"].sum()), int(active["memory_alloc"].sum())
        return NodeStatus(
            cpu=sum(self._speeds(active)) / self.computing_capacity,
            memory=used / self.memory,
            load=parallelism / self.cpu,
            total_parallelism=parallelism,
            free_memory=self.memory - used,
        )

    def utilisation_records(self) -> list[tuple[float, NodeStatus]]:
        """`status_at` from each time (s) on, from 0 to the last projected completion."""
        runs = self._runs()
        times = np.unique([0.0, *runs["start_time"], *runs["completion_time"]])
        return [(time, self.status_at(time)) for time in times.tolist()]

    def speed_records(self, wf_id: int, fn_id: int) -> list[tuple[float, int]]:
        """A container's speed (operations/s) from each time (s) on; 0 from its end on."""
        runs = self._runs()
        its = (runs["wf_id"] == wf_id) & (runs["fn_id"] == fn_id)
        if not its.any():
            return []
        times = np.unique([*runs["start_time"], *runs["completion_time"]])
        begin, end = runs[its][0][["start_time", "completion_time"]].item()
        records = []
        for time in times[(begin <= times) & (times < end)].tolist():
            active = _active(runs, time)
            records.append((time, self._speeds(runs[active])[its[active].argmax()]))
        return [*records, (end, 0)]

    def _speeds(self, active: np.ndarray) -> list[int]:
        """Operations per second of what runs together."""
        tenants, threads = tenants_of(self.state, active["wf_id"]), active["parallelism"]
        shares = thread_speeds(self.state, tenants, threads, self.cpu, self.single_core_speed)
        ratios = [memory_ratio(run["memory_alloc"], run["memory_req"]) for run in active]
        return [container_speed(*each) for each in zip(ratios, shares, threads, strict=True)]

    def _runs(self) -> np.ndarray:
        """(R,) what the records still know to have run or to run here, past and projected."""
        functions = self.state.functions
        past = functions[(functions["node"] == self.index) & (functions["state"] == FINISHED)]
        return np.concatenate([past[RUN], self.state.containers[self._running()][RUN]])

    def _running(self) -> list[int]:
        """Indices of the running containers, whose ends are projected."""
        if not self._record["projected"]:
            project(self.state, self.index, True)
        return self._indices("first_running")

    def _indices(self, first: str) -> list[int]:
        indices = []
        index = int(self._record[first])
        while index != NONE:
            indices.append(index)
            index = int(self.state.containers[index]["next"])
        return indices


def _active(runs: np.ndarray, time: float) -> np.ndarray:
    """(R,) which of some runs go on at a time."""
    return (runs["start_time"] <= time) & (time < runs["completion_time"])


class Container(NamedTuple):
    """A container as it was when it was read. Times are seconds, memory is MB."""

    wf_id: int  # of the function it runs, as is the next
    fn_id: int
    memory_req: int
    memory_alloc: int
    computation: int  # operations in all
    parallelism: int  # threads of execution
    submission_time: float  # of its function
    creation_time: float  # when it can first start
    data_transfer_time: float  # to fetch what the predecessors wrote
    remaining_computation: int  # operations left at its node's clock
    start_time: float | None  # None while it waits on its node; may lie in the future
    completion_time: float | None  # projected until it has completed; None while it waits


def read_container(state: State, index: int) -> Container:
    """Snapshot of a container record; `completion_time` as last projected."""
    container = Container._make(state.containers[index][list(Container._fields)].item())
    waits = math.isnan(state.containers[index]["start_time"])
    return container._replace(start_time=None, completion_time=None) if waits else container


class Resources(NamedTuple):
    """What every NUMA node has of each resource, what is left of it, and what waits for it.

    Amounts are int64 in 1/10,000, of memory in 1/10,000 MB. A container uses of CPU what its
    function declares; where nobody declares any, each of its threads uses 1, and all together no
    more than there is.

    Attributes:
        labels: L of them, CPU and memory first, then the others that functions declare.
        total: (N, L), what each node has.
        available: (N, L), what no container that was admitted holds.
        load: (N, L), what the containers need that wait on the node and have not started.
        left: (N, ids) what is left of each id, of what functions declare; one where there are none.
    """

    labels: tuple[str, ...]
    total: np.ndarray
    available: np.ndarray
    load: np.ndarray
    left: dict[str, np.ndarray]


def left_of(state: State, named: int, empty: bool) -> np.ndarray:
    """(N, places) what nodes have left of a named resource; with `empty` what they have."""
    places = len(state.named_kept)
    rows = state.named_left[: len(state.nodes) * places].reshape(-1, places)
    if empty:
        kinds = state.servers["type"][state.nodes["server"]]
        rows = state.named_capacity.reshape(-1, places)[kinds]
    first, end = state.named_first[named : named + 2]
    return np.array(rows[:, first:end])


def waits_on_node(functions: np.ndarray) -> np.ndarray:
    """Which FUNCTION records have been placed, and wait for memory or named resources: bool."""
    waits: np.ndarray = (functions["state"] == RUNNING) & np.isnan(functions["start_time"])
    return waits


def resources_of(state: State, names: Sequence[str]) -> Resources:
    """Of all nodes at this moment; `names` are those of the named resources."""
    nodes, waiting = state.nodes, state.functions[waits_on_node(state.functions)]
    threads = nodes["parallelism"].copy()  # of what waits, too
    np.subtract.at(threads, waiting["node"], waiting["parallelism"])
    left = {name: left_of(state, named, False) for named, name in enumerate(names)}
    has = [left_of(state, named, True).sum(axis=1) for named in range(len(names))]
    total = np.column_stack([nodes["cpu"] * UNIT, nodes["memory"] * UNIT, *has])
    free = [each.sum(axis=1) for each in left.values()]
    used = np.column_stack([threads, nodes["allocated_memory"]]) * UNIT
    available = np.column_stack([np.maximum(total[:, :2] - used, 0), *free])
    load = np.zeros_like(total)
    named = _named_needs(state, names)[waiting["declared"]]
    basis = np.column_stack([waiting["parallelism"], waiting["memory_alloc"]]) * UNIT
    np.add.at(load, waiting["node"], np.concatenate([basis, named], axis=1))
    labels = (CPU, "memory", *(name for name in names if name != CPU))
    total, available, load = (_with_cpu(names, each) for each in (total, available, load))
    return Resources(labels, total, available, load, left)


def demands_of(state: State, names: Sequence[str]) -> np.ndarray:
    """(D, L) what declared functions need of each resource."""
    own = state.template_functions
    basis = np.column_stack([own["parallelism"], own["memory_req"]]) * UNIT
    return _with_cpu(names, np.concatenate([basis, _named_needs(state, names)], axis=1))


def _named_needs(state: State, names: Sequence[str]) -> np.ndarray:
    """(D, X) what declared functions need of named resources."""
    return state.named_needs.reshape(len(state.template_functions), len(names))


def _with_cpu(names: Sequence[str], amounts: np.ndarray) -> np.ndarray:
    """Amounts of cores, memory and named resources; CPU takes the place of cores if it is named."""
    if CPU in names:
        amounts[:, 0] = amounts[:, 2]
        amounts = np.delete(amounts, 2, axis=1)
    return amounts
