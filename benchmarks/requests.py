"""How many requests of a trace are simulated a second: `python -m benchmarks.requests [--json]`.

A day of 500 functions on 8 servers of 8 cores and 16 GB, order fcfs, keep-alive lru, one thread.
The peer is an event loop in plain Python with the same rules, on the first of the same requests.
Rates are per second of this thread's processor time, so other work on the machine blurs them less.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.tickets import ByUse
from benchmarks.figures import print_figures
from benchmarks.trace_player import CHUNK, Simulation
from env.base.jit import compiled
from env.base.pipes import until_reader_leaves
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.ordering import Order
from env.sim.declared.rules import Lease, Rules
from env.sim.queue.central_queue import update_image
from env.workloads.traces.trace import REQUEST, FunctionProfiles
from env.workloads.traces.trace_samples import TraceSample

SECONDS_PER_DAY = 86_400.0
FUNCTIONS = 500
TENANTS = 1_000
REQUESTS = 400_000
MOST_REQUESTS = 100_000_000
PLAIN_REQUESTS = 20_000
WAITING = 100_000
W_CHANGES = 100_000
REPEATS = 3

CLUSTER = ClusterConfig(1_000_000, 1e11, 3e10, 1.25e9, (ServerType("s", 8, 0, 0, 1, 8, 16384),))
UNPAID = Lease(kind="always", charged=False)

UNITS = {
    "requests_per_s": "compiled engine, fcfs and lru",
    "plain_python_requests_per_s": "the plain event loop, on the first of these requests",
    "ratio": "compiled / plain",
    "fcfs_of_tenants_per_s": f"{TENANTS:,} functions, each of another tenant, fcfs",
    "stride_of_tenants_per_s": "the same, tenants in turn by tickets: stride",
    "stride_over_fcfs": "stride / fcfs, both of tenants",
    "slots": "requests that it held at once at most, in records of their own",
    "w_change_ns": f"a change of W under funcsched while {WAITING:,} requests wait, nanoseconds",
    "w_change_few_ns": f"the same while {FUNCTIONS} wait, one of each function",
}


def day(requests: int, seed: int = 0, functions: int = FUNCTIONS) -> TraceSample:
    """A day whose functions are as different as those of Azure Functions 2019.

    Rates follow a power law, executions and memory are lognormal around that trace's medians
    (Shahrad et al., USENIX ATC 2020, figures 5, 7 and 8); arrivals are Poisson.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    profiles = FunctionProfiles(
        names=tuple(f"function_{index}" for index in range(functions)),
        execution=rng.lognormal(np.log(0.7), 1.5, functions).clip(0.001, 60.0),
        cold_start=rng.uniform(0.3, 3.0, functions),
        memory=rng.lognormal(np.log(170.0), 0.6, functions).clip(32, 1536).astype(np.int64),
    )
    rates = 1.0 / np.arange(1, functions + 1) ** 1.2
    chunk = np.zeros(requests, REQUEST)
    chunk["time"] = np.sort(rng.uniform(0.0, SECONDS_PER_DAY, requests))
    chunk["function"] = rng.choice(functions, requests, p=rates / rates.sum())
    chunk["duration"] = profiles.execution[chunk["function"]] * rng.lognormal(0.0, 0.4, requests)
    return TraceSample(profiles, lambda: chunks_of(chunk))


def chunks_of(requests: np.ndarray) -> Iterator[np.ndarray]:
    """As a loader gives them."""
    for first in range(0, len(requests), CHUNK):
        yield requests[first : first + CHUNK]


@dataclass
class PlainNode:
    """A NUMA node of the plain loop; `running` has [operations left, request, function]."""

    cores: int
    speed: int
    available: int
    clock: float = 0.0
    version: int = 0
    idle_memory: int = 0
    running: list[list[int]] = field(default_factory=list)
    idle: OrderedDict[int, int] = field(default_factory=OrderedDict)
    warm: dict[int, list[int]] = field(default_factory=dict)

    @property
    def share(self) -> int:
        """Operations per second of each of its containers."""
        if len(self.running) <= self.cores:
            return self.speed
        return self.cores * self.speed // len(self.running)

    def move_to(self, now: float) -> None:
        """Does the work up to `now`."""
        done = int(self.share * (now - self.clock))
        for container in self.running:
            container[0] = max(0, container[0] - done)
        self.clock = now

    def next_end(self) -> float:
        """When the next of its containers ends."""
        left = min((container[0] for container in self.running), default=None)
        return np.inf if left is None else self.clock + left / self.share


def play_plain(trace: TraceSample, cluster: ClusterConfig, limit: int) -> list[float]:
    """An event loop with heaps and dictionaries: fcfs and lru, functions of one thread.

    Returns:
        the completion times (seconds after arrival) of the first `limit` requests.
    """
    kind = cluster.server_types[0]
    nodes = [
        PlainNode(kind.cpu, cluster.single_core_speed, kind.memory)
        for _ in range(kind.count * kind.numa_nodes)
    ]
    memory, cold_start = trace.profiles.memory.tolist(), trace.profiles.cold_start.tolist()
    requests = [row for chunk in trace.requests() for row in chunk.tolist()][:limit]
    completions = [0.0] * len(requests)
    queue: deque[int] = deque()
    events: list[tuple[float, int, int, int]] = []  # (time, end 0 or start 1, node, version)
    starting: dict[int, list[int]] = {}
    arrived = containers = 0

    def schedule(index: int) -> None:
        node = nodes[index]
        node.version += 1
        if node.running:
            heapq.heappush(events, (node.next_end(), 0, index, node.version))

    def begin(index: int, container: list[int], now: float) -> None:
        nodes[index].move_to(now)
        nodes[index].running.append(container)
        schedule(index)

    def dispatch(now: float) -> None:
        nonlocal containers
        while queue:
            request = queue[0]
            function = requests[request][1]
            needed = memory[function]
            best = None
            for index, node in enumerate(nodes):
                if node.available < needed:
                    continue
                tier = 2
                if node.warm.get(function):
                    tier = 0
                elif node.available - node.idle_memory >= needed:
                    tier = 1
                if best is None or (tier, -node.available) < best[:2]:
                    best = (tier, -node.available, index)
            if best is None:
                return
            queue.popleft()
            index = best[2]
            node = nodes[index]
            if best[0] == 0:
                del node.idle[node.warm[function].pop()]
                node.idle_memory -= needed
            while node.available - node.idle_memory < needed:
                oldest, victim = node.idle.popitem(last=False)
                node.warm[victim].remove(oldest)
                node.idle_memory -= memory[victim]
            node.available -= needed
            work = max(1, round(requests[request][2] * node.speed))
            container = [work, request, function]
            if best[0] == 0:
                begin(index, container, now)
            else:
                containers += 1
                starting[containers] = container
                heapq.heappush(events, (now + cold_start[function], 1, index, containers))

    while arrived < len(requests) or events:
        now = requests[arrived][0] if arrived < len(requests) else np.inf
        if events and events[0][0] <= now:
            now, is_start, index, version = heapq.heappop(events)
            node = nodes[index]
            if is_start:
                begin(index, starting.pop(version), now)
                continue
            if version != node.version:
                continue
            ended = min(range(len(node.running)), key=lambda at: node.running[at][0])
            node.move_to(now)
            _, request, function = node.running.pop(ended)
            completions[request] = now - requests[request][0]
            containers += 1
            node.idle[containers] = function
            node.warm.setdefault(function, []).append(containers)
            node.idle_memory += memory[function]
            node.available += memory[function]
            schedule(index)
        else:
            queue.append(arrived)
            arrived += 1
        dispatch(now)
    return completions


@compiled
def change_w(state, changes):
    """Takes every image in turn from no warm container to one and back."""
    images = state.images
    for change in range(changes):
        image = (change // 2) % len(images)
        images[image].warm = 1 - change % 2
        update_image(state, image)


def w_change_ns(waiting: int) -> float:
    """Nanoseconds of a change of W while that many requests wait, all come at the same moment."""
    profiles = day(1).profiles
    requests = np.zeros(waiting, REQUEST)
    requests["function"] = np.arange(waiting) % FUNCTIONS
    rules = Rules(FuncSched(starve_threshold=1e9), lease=UNPAID, keep_alive=Lru())
    simulation = Simulation(profiles, CLUSTER, rules)
    given = simulation.play(lambda: chunks_of(requests))
    for _ in chunks_of(requests):
        next(given)
    seconds = best_of(lambda: change_w(simulation.state, W_CHANGES))
    return seconds / W_CHANGES * 1e9


def best_of(play: Callable[[], object]) -> float:
    """Seconds: the shortest of some repeats, after one to warm up."""
    play()
    shortest = np.inf
    for _ in range(REPEATS):
        begin = time.thread_time()
        play()
        shortest = min(shortest, time.thread_time() - begin)
    return float(shortest)


def played(trace: TraceSample, order: Order) -> int:
    """Plays a trace in which each function is of another tenant; returns its requests."""
    names = trace.profiles.names
    held = {name: Grant(tickets=1.0 + place % 9) for place, name in enumerate(names)}
    rules, funding = Rules(order, lease=UNPAID, keep_alive=Lru()), Funding(tenants=held)
    simulation = Simulation(trace.profiles, CLUSTER, rules, names, funding, listens=False)
    return play_all(simulation, trace)


def play_all(simulation: Simulation, trace: TraceSample) -> int:
    """Plays a trace; returns its requests."""
    for _ in simulation.play(trace.requests):
        pass
    return int(simulation.state.cluster[0]["finished_workflows"])


def measure(requests: int) -> dict[str, float]:
    """All figures, by the names in `UNITS`."""
    trace = day(requests)
    queueing = Rules(Fcfs(), lease=UNPAID, keep_alive=Lru())

    def simulation() -> Simulation:
        return Simulation(trace.profiles, CLUSTER, queueing, listens=False)

    seconds = best_of(lambda: play_all(simulation(), trace))
    ended = simulation()
    play_all(ended, trace)
    of_tenants = day(requests, functions=TENANTS)
    stride = ByUse(
        name="stride", within=Fcfs(), half_life=None, resource="core_seconds", quantum=1.0
    )
    fcfs_seconds = best_of(lambda: played(of_tenants, Fcfs()))
    stride_seconds = best_of(lambda: played(of_tenants, stride))
    plain = min(requests, PLAIN_REQUESTS)
    plain_seconds = best_of(lambda: play_plain(trace, CLUSTER, plain))
    return {
        "requests_per_s": requests / seconds,
        "plain_python_requests_per_s": plain / plain_seconds,
        "ratio": requests / seconds / (plain / plain_seconds),
        "fcfs_of_tenants_per_s": requests / fcfs_seconds,
        "stride_of_tenants_per_s": requests / stride_seconds,
        "stride_over_fcfs": fcfs_seconds / stride_seconds,
        "slots": len(ended.state.workflows),
        "w_change_ns": w_change_ns(WAITING),
        "w_change_few_ns": w_change_ns(FUNCTIONS),
    }


@until_reader_leaves()
def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of the day")
    options = parser.parse_args(arguments)
    if not 1 <= options.requests <= MOST_REQUESTS:
        parser.error(f"--requests is {options.requests}, 1 to {MOST_REQUESTS} are allowed")
    figures = measure(options.requests)
    print_figures(figures, UNITS, options.json)


if __name__ == "__main__":
    main()
