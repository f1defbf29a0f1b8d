"""A slow, obvious model of queued dispatch, to hold the engine to.

Plain Python lists: the queue is sorted whenever somebody goes first, W is counted whenever it is
asked for, and histograms are made anew from all idle times. The nodes are those of the reference
simulator. Shares no code with the engine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from env.sim.hardware import ClusterConfig
from tests.reference_simulator import ReferenceContainer, ReferenceNode

ARRIVAL, SLICE_END, EXPIRY, PREWARMING, STARVATION = range(5)


@dataclass(frozen=True)
class Function:
    """What is declared: `image` is an index into cold starts and memories, `rank` of its order."""

    image: int
    execution: float
    parallelism: int
    rank: float = 0.0


@dataclass(eq=False)
class Job:
    """A function of a workflow. `computation` is the draw; predecessors are (job, bytes)."""

    wf_id: int
    fn_id: int
    declared: int
    computation: int
    arrival: float
    predecessors: "list[tuple[Job, int]]" = field(default_factory=list)
    submission: float = math.nan
    joined: float = math.nan
    number: int = -1
    remaining: int = 0
    node: int = -1
    dispatched: float = math.nan
    warm: bool = False
    run: int = -1
    finished: bool = False
    queueing: float = 0.0
    cold: float = 0.0
    transfer: float = 0.0
    execution: float = 0.0


@dataclass(eq=False)
class Idle:
    """A warm container."""

    image: int
    ready: float
    expires: float
    number: int
    clock: float


@dataclass(frozen=True)
class Rules:
    """Options: `order` is rank, srtf or funcsched; the rest as in the configuration."""

    order: str
    time_slice: float
    starve_threshold: float
    placement: str
    keep_alive: str
    keep: float = 0.0
    bin: float = 1.0
    bins: int = 1
    prewarm_percentile: float = 5.0
    keep_percentile: float = 99.0
    margin: float = 0.1
    least_idle_times: int = 1
    least_variation: float = 0.0
    most_out_of_bounds: float = 0.5
    forecast_margin: float = 0.15


class ReferencePlatform:
    """Plays an episode when made; `runs` has (job, ...) rows in the order of their ends."""

    def __init__(
        self,
        cluster: ClusterConfig,
        functions: Sequence[Function],
        cold_starts: Sequence[float],
        memories: Sequence[int],
        jobs: Sequence[Job],
        rules: Rules,
        forecast: Callable[[Sequence[float]], float],
    ) -> None:
        self.cluster = cluster
        self.functions = functions
        self.cold_starts = cold_starts
        self.memories = memories
        self.rules = rules
        self.forecast = forecast
        self.nodes: list[ReferenceNode] = []
        self.server_of: list[int] = []
        server = 0
        for kind in cluster.server_types:
            for _ in range(kind.count):
                for _ in range(kind.numa_nodes):
                    speed = kind.single_core_speed or cluster.single_core_speed
                    self.nodes.append(ReferenceNode(kind.cpu, kind.memory, speed))
                    self.server_of.append(server)
                server += 1
        self.running: list[list[Job]] = [[] for _ in self.nodes]
        self.idle: list[list[Idle]] = [[] for _ in self.nodes]
        self.cache_clock = [0.0 for _ in self.nodes]
        self.queue: list[Job] = []
        self.jobs = jobs
        self.now = 0.0
        self.due = False
        self.counter = 0
        self.timers: list[tuple[float, int, int, Callable[[], None]]] = []
        images = range(len(cold_starts))
        self.frequency = [0 for _ in images]
        self.last_end: list[float | None] = [None for _ in images]
        self.idle_times: list[list[float]] = [[] for _ in images]
        self.windows = [(0.0, rules.keep) for _ in images]
        self.prewarming = [-1 for _ in images]
        self.watched = False
        self.runs: list[tuple[object, ...]] = []
        arriving = sorted({(job.arrival, job.wf_id) for job in jobs})
        self.arrivals = len(arriving)
        for time, wf_id in arriving:
            self.timers.append((time, ARRIVAL, wf_id, lambda wf_id=wf_id: self.arrive(wf_id)))
        while self.step():
            pass

    def next_number(self) -> int:
        self.counter += 1
        return self.counter

    def step(self) -> bool:
        """One event: completions before timers before dispatch."""
        ends = [
            (end, index, position)
            for index, node in enumerate(self.nodes)
            for position, end in enumerate(node.completion_times())
        ]
        if not ends and not self.queue and self.arrivals == 0:
            return False
        events = [(end, 0, index, position) for end, index, position in ends]
        events += [(time, 1 + kind, number, 0) for time, kind, number, _ in self.timers]
        if self.due:
            events.append((self.now, 99, 0, 0))
        time, kind, index, _ = min(events)
        if kind == 0:
            self.now = time
            self.complete(index)
        elif kind < 99:
            timer = min(self.timers, key=lambda timer: timer[:3])
            self.timers.remove(timer)
            self.now = time
            timer[3]()
        else:
            self.due = False
            self.dispatch()
        return True

    # Waiting

    def arrive(self, wf_id: int) -> None:
        self.arrivals -= 1
        for job in self.jobs:
            if job.wf_id == wf_id and not job.predecessors:
                self.submit(job)

    def submit(self, job: Job) -> None:
        job.submission = self.now
        job.remaining = job.computation
        image = self.functions[job.declared].image
        if not self.active(image) and self.last_end[image] is not None:
            self.note_idle_time(image, self.now - self.last_end[image])
        self.join(job)

    def join(self, job: Job) -> None:
        job.joined = self.now
        job.number = self.next_number()
        self.queue.append(job)
        self.due = True

    def active(self, image: int) -> bool:
        jobs = [*self.queue, *(job for node in self.running for job in node)]
        return any(self.functions[job.declared].image == image for job in jobs)

    def warm_count(self, image: int) -> int:
        return sum(one.image == image for idle in self.idle for one in idle)

    def left(self, job: Job) -> float:
        return max(0.0, self.functions[job.declared].execution - job.execution)

    def priority(self, job: Job) -> float:
        function = self.functions[job.declared]
        if self.rules.order == "srtf":
            return self.left(job)
        if self.rules.order == "funcsched":
            cold = 0.0 if self.warm_count(function.image) else self.cold_starts[function.image]
            return (function.execution + cold) * self.memories[function.image]
        return function.rank

    def first(self) -> Job:
        if self.rules.order == "funcsched":
            oldest = min(self.queue, key=lambda job: job.number)
            if self.now >= oldest.submission + self.rules.starve_threshold:
                return oldest
        return min(self.queue, key=lambda job: (self.priority(job), job.number))

    # Starting and ending

    def available(self, index: int) -> int:
        node = self.nodes[index]
        return node.memory - sum(one.memory_alloc for one in node.admitted)

    def free(self, index: int) -> int:
        return self.available(index) - sum(self.memories[one.image] for one in self.idle[index])

    def dispatch(self) -> None:
        while self.queue:
            job = self.first()
            image = self.functions[job.declared].image
            memory = self.memories[image]
            choices = []
            for index in range(len(self.nodes)):
                if self.available(index) < memory:
                    continue
                tier = 2
                if any(one.image == image for one in self.idle[index]):
                    tier = 0
                elif self.free(index) >= memory:
                    tier = 1
                sign = {"first_fit": 0, "best_fit": 1, "worst_fit": -1}[self.rules.placement]
                choices.append((tier, sign * self.available(index), index))
            if not choices:
                self.watch()
                return
            self.start(job, min(choices)[2])

    def watch(self) -> None:
        """Whoever starves may fit where the first of the others does not."""
        if self.rules.order != "funcsched" or self.watched:
            return
        oldest = min(self.queue, key=lambda job: job.number)
        starves = oldest.submission + self.rules.starve_threshold
        if self.now < starves < math.inf:
            self.watched = True
            self.timers.append((starves, STARVATION, 0, self.starvation))

    def starvation(self) -> None:
        self.watched = False
        self.due = True

    def start(self, job: Job, index: int) -> None:
        function = self.functions[job.declared]
        image, memory = function.image, self.memories[function.image]
        self.queue.remove(job)
        matching = [one for one in self.idle[index] if one.image == image]
        cold = self.cold_starts[image]
        if matching:
            cold = max(0.0, matching[-1].ready - self.now)
            self.idle[index].remove(matching[-1])
        while self.free(index) < memory:
            self.evict(index)
        self.frequency[image] += 1
        transfer = 0.0
        for before, data in job.predecessors:
            transfer += data / self.bandwidth(before.node, index)
        creation = self.now + cold + transfer
        container = ReferenceContainer(
            job.wf_id, job.fn_id, job.computation, function.parallelism, memory, memory, creation
        )
        container.remaining = job.remaining
        container.start_time = creation
        self.nodes[index].admitted.append(container)
        self.running[index].append(job)
        job.node, job.dispatched, job.warm = index, self.now, bool(matching)
        job.run = self.next_number()
        job.queueing += self.now - job.joined
        job.cold += cold
        job.transfer += transfer
        if self.rules.time_slice < math.inf:
            self.set_slice(job, creation + self.rules.time_slice)

    def set_slice(self, job: Job, time: float) -> None:
        run = job.run
        self.timers.append((time, SLICE_END, run, lambda: self.end_slice(job, run)))

    def bandwidth(self, source: int, target: int) -> float:
        if source == target:
            return self.cluster.memory_bandwidth
        if self.server_of[source] == self.server_of[target]:
            return self.cluster.numa_bandwidth
        return self.cluster.network_bandwidth

    def complete(self, index: int) -> None:
        done = self.nodes[index].complete()
        job = next(
            job for job in self.running[index] if (job.wf_id, job.fn_id) == (done.wf_id, done.fn_id)
        )
        self.end_run(job, done.start_time, True)
        image = self.functions[job.declared].image
        job.finished = True
        self.last_end[image] = self.now
        for other in self.jobs:
            ends = [before.finished for before, _ in other.predecessors]
            if job in [before for before, _ in other.predecessors] and all(ends):
                self.submit(other)
        self.release(index, image, unused=not self.active(image))
        self.due = True

    def end_slice(self, job: Job, run: int) -> None:
        if job.run != run:
            return
        index = job.node
        node = self.nodes[index]
        container = next(
            one for one in node.admitted if (one.wf_id, one.fn_id) == (job.wf_id, job.fn_id)
        )
        if self.rules.order == "srtf" and self.queue:
            served = job.execution + self.now - container.start_time
            left = max(0.0, self.functions[job.declared].execution - served)
            gives_way = self.left(self.first()) < left
        else:
            gives_way = bool(self.queue)
        if not gives_way:
            self.set_slice(job, self.now + self.rules.time_slice)
            return
        moment = node.moment_at(self.now)
        speeds = dict(zip(moment.running, moment.speeds, strict=True))
        for position, one in enumerate(node.admitted):
            done = (
                int(speeds.get(position, 0) * (self.now - moment.time)) if position in speeds else 0
            )
            one.remaining = max(0, moment.remaining[position] - done)
        node.clock = self.now
        node.admitted.remove(container)
        job.remaining = max(1, container.remaining)
        self.end_run(job, container.start_time, False)
        self.release(index, self.functions[job.declared].image, unused=False)
        self.join(job)

    def end_run(self, job: Job, start: float, finished: bool) -> None:
        self.running[job.node].remove(job)
        job.execution += self.now - start
        job.run = -1
        where = (job.wf_id, job.fn_id, job.node, job.warm, finished)
        when = (job.dispatched, start, self.now)
        self.runs.append((*where, *when, job.queueing, job.cold, job.transfer, job.execution))

    # Keeping warm

    def release(self, index: int, image: int, unused: bool) -> None:
        policy = self.rules.keep_alive
        after, until = self.windows[image]
        if policy == "hybrid_histogram" and unused and after > 0:
            number = self.prewarming[image] = self.next_number()
            fire = lambda: self.prewarm(image, number)  # noqa: E731
            self.timers.append((self.now + after, PREWARMING, number, fire))
        elif policy in ("fixed", "hybrid_histogram"):
            self.keep(index, image, self.now, self.now + until)
        elif policy != "none":
            self.keep(index, image, self.now, math.inf)
        self.forget(image)

    def keep(self, index: int, image: int, ready: float, expires: float) -> None:
        one = Idle(image, ready, expires, self.next_number(), self.cache_clock[index])
        self.idle[index].append(one)
        if expires < math.inf:
            self.timers.append((expires, EXPIRY, one.number, lambda: self.expire(index, one)))

    def expire(self, index: int, one: Idle) -> None:
        if one in self.idle[index]:
            self.idle[index].remove(one)
            self.forget(one.image)

    def forget(self, image: int) -> None:
        at_work = any(
            self.functions[job.declared].image == image for node in self.running for job in node
        )
        if not at_work and self.warm_count(image) == 0:
            self.frequency[image] = 0

    def value(self, one: Idle) -> float:
        benefit = self.frequency[one.image] * self.cold_starts[one.image]
        return one.clock + benefit / self.memories[one.image]

    def evict(self, index: int) -> None:
        victim = self.idle[index][0]
        if self.rules.keep_alive == "faascache":
            victim = min(self.idle[index], key=self.value)
            self.cache_clock[index] = max(self.cache_clock[index], self.value(victim))
        self.idle[index].remove(victim)
        self.forget(victim.image)

    def prewarm(self, image: int, number: int) -> None:
        if self.prewarming[image] != number:
            return
        if self.active(image) or self.warm_count(image):
            return
        most = max(range(len(self.nodes)), key=self.free)
        last_end = self.last_end[image]
        assert last_end is not None
        expires = last_end + self.windows[image][1]
        if self.free(most) >= self.memories[image] and expires > self.now:
            self.keep(most, image, self.now + self.cold_starts[image], expires)

    def note_idle_time(self, image: int, seconds: float) -> None:
        rules = self.rules
        times = self.idle_times[image]
        times.append(seconds)
        if rules.keep_alive != "hybrid_histogram":
            return
        counts = [0] * rules.bins
        for time in times:
            if int(time / rules.bin) < rules.bins:
                counts[int(time / rules.bin)] += 1
        inside = sum(counts)
        mean = inside / rules.bins
        deviation = math.sqrt(sum((count - mean) ** 2 for count in counts) / rules.bins)
        self.windows[image] = (0.0, rules.keep)
        if len(times) < rules.least_idle_times:
            return
        if len(times) - inside > rules.most_out_of_bounds * len(times):
            forecast = self.forecast(times)
            margin = rules.forecast_margin
            self.windows[image] = (forecast * (1 - margin), forecast * (1 + margin))
        elif deviation >= rules.least_variation * mean:
            self.windows[image] = (
                self.percentile_bin(counts, rules.prewarm_percentile)
                * rules.bin
                * (1 - rules.margin),
                (self.percentile_bin(counts, rules.keep_percentile) + 1)
                * rules.bin
                * (1 + rules.margin),
            )

    def percentile_bin(self, counts: Sequence[int], percentile: float) -> int:
        """The first bin up to which that share of all counts was reached."""
        rank = sum(counts) * percentile / 100
        reached = [
            place
            for place in range(len(counts))
            if sum(counts[: place + 1]) >= rank and sum(counts[: place + 1]) > 0
        ]
        return reached[0]
