"""A slow, obvious model of what a NUMA node does with its containers.

Written from the rules of tests/golden alone, in plain Python: every question about the future is
answered by projecting the node again from its clock. Shares no code with the simulator.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.keep_alive_policy import HybridHistogram
from env.sim.declared.regions import ANYWHERE, Regions


@dataclass(eq=False)
class Image:
    """What containers are started from; `memory` is the most that one of its functions needs."""

    cold_start: float
    memory: int
    window: tuple[float, float]
    frequency: int = 0
    last_end: float = math.nan
    idle_times: list[float] = field(default_factory=list)
    prewarming: int = -1


@dataclass(eq=False)
class Job:
    """A function of a workflow, and the container that runs it.

    Attributes:
        computation: operations, as drawn.
        expected: seconds that are declared.
        rank: its place in a fixed order.
        owner: tenant and tickets, where tenants share cores by tickets.
        regions: where it may run.
        predecessors: each with the bytes that come from it, and whether it calls the job.
        remaining: operations left at the node's clock; `begun` had it when it was last placed.
        served: seconds of its runs that have ended.
        start_time: nan while it lacks memory or a named resource.
    """

    wf_id: int
    fn_id: int
    image: Image
    computation: int
    parallelism: int
    memory_req: int
    resources: Mapping[str, Fraction]
    arrival: float
    expected: float = 0.0
    rank: float = 0.0
    owner: tuple[str, Fraction] | None = None
    regions: Regions = ANYWHERE
    predecessors: "list[tuple[Job, int, bool]]" = field(default_factory=list)
    submission: float = math.nan
    joined: float = math.nan
    number: int = -1
    remaining: int = 0
    served: float = 0.0
    begun: int = 0
    node: "Node | None" = None
    memory_alloc: int = 0
    creation_time: float = math.nan
    start_time: float = math.nan
    dispatched: float = math.nan
    warm: bool = False
    run: int = -1
    finished: bool = False
    skipped: bool = False
    startup: float = 0.0
    cold: float = 0.0
    transfer: float = 0.0
    units: dict[str, list[int]] = field(default_factory=dict)


@dataclass(eq=False)
class Idle:
    """A container that nobody uses, kept warm."""

    image: Image
    memory: int
    ready: float
    number: int
    clock: float


@dataclass(eq=False)
class Server:
    """`expiration` is the end of its last lease, `steps` are those that were paid in all."""

    kind: ServerType
    number: int
    nodes: "list[Node]" = field(default_factory=list)
    expiration: float = -math.inf
    steps: int = 0


class Moment(NamedTuple):
    """The projected state of a node from `time` up to the next moment."""

    time: float
    running: list[int]  # positions in `admitted`
    remaining: list[int]  # of every admitted container
    speeds: list[int]  # of those running


class Node:
    """A NUMA node: `admitted` jobs have a start time, `waiting` ones lack something.

    `idle` containers stand in the order in which they became so.
    """

    def __init__(self, server: Server, number: int, cluster: ClusterConfig) -> None:
        self.server, self.number, kind = server, number, server.kind
        self.cpu, self.memory, self.with_ids = kind.cpu, kind.memory, cluster.resources_with_ids
        self.single_core_speed = kind.single_core_speed or cluster.single_core_speed
        self.region = kind.region
        if kind.region is not None:
            performance = cluster.regions[kind.region].relative_performance
            self.single_core_speed = max(1, round(self.single_core_speed * performance))
        self.left = {name: self._units(name) for name in (*kind.resources, "CPU")}
        self.clock = self.cache_clock = 0.0
        self.admitted: list[Job] = []
        self.waiting: list[Job] = []
        self.idle: list[Idle] = []

    def speeds(self, running: Sequence[Job]) -> list[int]:
        """Rule 7: operations/s of each of those that run; by tickets, where they share by these."""
        total = max(self.cpu, sum(job.parallelism for job in running))
        share = self.cpu * self.single_core_speed // total
        of_tenant = self.thread_speeds(running)
        speeds = []
        for job in running:
            of_thread = share if job.owner is None else of_tenant[job.owner[0]]
            ratio = min(1.0, job.memory_alloc / job.memory_req)
            speeds.append(max(1, int(ratio * of_thread * job.parallelism)))
        return speeds

    def thread_speeds(self, running: Sequence[Job]) -> dict[str, int]:
        """Operations/s of each thread by tenant: cores go by tickets to who can use them."""
        tickets = dict(job.owner for job in running if job.owner is not None)
        threads = dict.fromkeys(tickets, 0)
        for job in running:
            if job.owner is not None:
                threads[job.owner[0]] += job.parallelism
        most = {tenant: count * self.single_core_speed for tenant, count in threads.items()}
        left, sated = Fraction(self.cpu * self.single_core_speed), set(threads)
        share = dict.fromkeys(threads, left)
        while sated:
            total = sum(tickets[tenant] for tenant in share)
            share = {tenant: left * tickets[tenant] / total for tenant in share}
            sated = {tenant for tenant in share if share[tenant] >= most[tenant]}
            left -= sum(most[tenant] for tenant in sated)
            share = {tenant: speed for tenant, speed in share.items() if tenant not in sated}
        speeds = most | {tenant: max(1, math.floor(speed)) for tenant, speed in share.items()}
        return {tenant: speed // threads[tenant] for tenant, speed in speeds.items()}

    def project(self) -> tuple[list[Moment], list[float]]:
        """Rule 7: every moment from the clock on, and the completion time of every container."""
        now = self.clock
        remaining = [job.remaining for job in self.admitted]
        completion: list[float | None] = [None] * len(self.admitted)
        moments = []
        while True:
            running = [
                position
                for position, job in enumerate(self.admitted)
                if job.start_time <= now and completion[position] is None
            ]
            speeds = self.speeds([self.admitted[position] for position in running])
            moments.append(Moment(now, running, list(remaining), speeds))
            # A start (0) before a completion (1), then in order of admission.
            events = [
                (job.start_time, 0, position)
                for position, job in enumerate(self.admitted)
                if job.start_time > now
            ] + [
                (now + remaining[position] / speed, 1, position)
                for position, speed in zip(running, speeds, strict=True)
            ]
            if not events:
                return moments, [time for time in completion if time is not None]
            time, kind, chosen = min(events)
            for position, speed in zip(running, speeds, strict=True):
                remaining[position] = max(0, remaining[position] - int(speed * (time - now)))
            if kind == 1:
                remaining[chosen] = 0
                completion[chosen] = time
            now = time

    def moment_at(self, time: float) -> Moment:
        """The projected state at `time`, starts and completions of that moment counted as done."""
        moments, _ = self.project()
        # A clock ahead of `time` is that of a server still starting: nothing runs yet.
        idle = Moment(-math.inf, [], [job.remaining for job in self.admitted], [])
        return [moment for moment in [idle, *moments] if moment.time <= time][-1]

    def completion_times(self) -> list[float]:
        """Projected completion time of every admitted container, in order of admission."""
        return self.project()[1]

    def free_memory_at(self, time: float) -> int:
        """MB projected to be free at `time`."""
        running = self.moment_at(time).running
        return self.memory - sum(self.admitted[position].memory_alloc for position in running)

    @property
    def available(self) -> int:
        """MB that no admitted container holds, whether it has started."""
        return self.memory - sum(job.memory_alloc for job in self.admitted)

    @property
    def free(self) -> int:
        """MB that no container holds at all."""
        return self.available - sum(container.memory for container in self.idle)

    def holds(self, job: Job, memory: int) -> bool:
        """Whether the empty node could hold the job, which may run there."""
        named, place = job.resources.items(), self.region
        if place and place not in (job.regions.allowed or (place,)):
            return False
        if place and not job.regions.allowed and place in (job.regions.disallowed or ()):
            return False
        return self.memory >= memory and all(need <= sum(self._units(name)) for name, need in named)

    def _units(self, name: str) -> list[Fraction]:
        """What an empty node has: 1 by id, or all in one where there are no ids."""
        has = Fraction(self.server.kind.offered(name), 10_000)
        ids = name in self.with_ids and has > 1
        return [Fraction(1)] * int(has) if ids else [has]

    def pick(self, name: str, need: Fraction) -> list[int] | None:
        """Units that serve a demand: a fraction the fullest that can, a whole one the first."""
        left = self.left.get(name, [Fraction(0)])
        if len(left) > 1 and need >= 1:
            whole = [place for place, units in enumerate(left) if units == 1]
            return whole[: int(need)] if len(whole) >= need else None
        fit = [(units, place) for place, units in enumerate(left) if units >= need]
        return [min(fit)[1]] if fit else None

    def has_left(self, job: Job) -> bool:
        """Whether all named resources that the job needs are there now."""
        return all(self.pick(*named) is not None for named in job.resources.items() if named[1])

    def hold(self, job: Job, sign: int) -> None:
        """A job takes its named resources, or gives them back (-1)."""
        for name, need in job.resources.items():
            if need and sign > 0:
                job.units[name] = self.pick(name, need) or []
            for place in job.units[name] if need else ():
                self.left[name][place] -= sign * need / len(job.units[name])

    def status_at(self, time: float) -> tuple[float, ...]:
        """The node's projected use at `time`, as in `NodeBefore` of a `StepLog`."""
        moment, ends = self.moment_at(time), self.completion_times()
        threads = sum(self.admitted[position].parallelism for position in moment.running)
        free = self.free_memory_at(time)
        return (
            sum(moment.speeds) / (self.cpu * self.single_core_speed),
            (self.memory - free) / self.memory,
            threads / self.cpu,
            threads,
            free,
            min(ends) - time if ends else 0.0,
            max(ends) - time if ends else 0.0,
        )

    def place(self, job: Job) -> None:
        """Rule 5: the container starts at its creation time if it fits then, or else waits."""
        if not self._try_to_admit(job, job.creation_time):
            self.waiting.append(job)

    def complete(self) -> Job:
        """Rules 8 and 6: the earliest container completes, those waiting are tried in order."""
        ends = self.completion_times()
        time, chosen = min((time, position) for position, time in enumerate(ends))
        # At equal times the moments differ only in who is still counted; the last one is settled.
        remaining = self.moment_at(time).remaining
        for position, job in enumerate(self.admitted):
            job.remaining = remaining[position]
        done = self.admitted.pop(chosen)
        self.hold(done, -1)
        self.clock = time
        while self.waiting:
            head = self.waiting[0]
            if not self._try_to_admit(head, max(time, head.creation_time)):
                break
            self.waiting.pop(0)
        return done

    def remove(self, job: Job, time: float) -> None:
        """Takes out a job in the midst of its work; `remaining` is what is left of it."""
        moment = self.moment_at(time)
        speeds = dict(zip(moment.running, moment.speeds, strict=True))
        for position, other in enumerate(self.admitted):
            done = int(speeds[position] * (time - moment.time)) if position in speeds else 0
            other.remaining = max(0, moment.remaining[position] - done)
        self.clock = time
        self.admitted.remove(job)
        self.hold(job, -1)

    def _try_to_admit(self, job: Job, time: float) -> bool:
        fits = self.free_memory_at(time) >= job.memory_alloc and self.has_left(job)
        if fits:
            job.start_time = time
            self.admitted.append(job)
            self.hold(job, 1)
        return fits


def window(
    policy: HybridHistogram, times: Sequence[float], forecast: Callable[[Sequence[float]], float]
) -> tuple[float, float]:
    """Seconds from the last end to a start ahead, and to the end of keeping."""
    if len(times) < policy.least_idle_times:
        return 0.0, policy.fixed_keep
    places = [int(time / policy.bin) for time in times]
    counts = [places.count(place) for place in range(policy.bins)]
    inside = sum(counts)
    if len(times) - inside > policy.most_out_of_bounds * len(times):
        middle, margin = forecast(times), policy.forecast_margin
        return middle * (1 - margin), middle * (1 + margin)
    mean = inside / policy.bins
    deviation = math.sqrt(sum((count - mean) ** 2 for count in counts) / policy.bins)
    if deviation < policy.least_variation * mean:
        return 0.0, policy.fixed_keep
    head = percentile_bin(counts, policy.prewarm_percentile)
    tail = percentile_bin(counts, policy.keep_percentile)
    begin, end = head * policy.bin, (tail + 1) * policy.bin
    return begin * (1 - policy.margin), end * (1 + policy.margin)


def percentile_bin(counts: Sequence[int], percentile: float) -> int:
    """The first bin up to which that share of all counts was reached."""
    rank = sum(counts) * percentile / 100
    return next(
        place for place, total in enumerate(accumulate(counts)) if total >= rank and total > 0
    )
