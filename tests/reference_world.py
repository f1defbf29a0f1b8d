"""A slow, obvious model of the world, with every choice of dispatch, lease and keep-alive.

Plain Python lists: the queue is sorted whenever somebody goes first, nodes are projected again for
every event, and histograms are made anew from all idle times. What a node does with its containers
is `Node`; what joins them into a world is here. Shares no code with the engine.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from env.sim.assembly.build import build
from env.sim.declared.episode import Episode
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import HybridHistogram
from env.sim.declared.ordering import FIRST_COME, declared_functions
from tests.reference_node import Idle, Image, Job, Node, Server

COMPLETION, ARRIVAL, SLICE_END, EXPIRY, PREWARMING, STARVATION, LEASE_END, PATIENCE, DECISION = (
    range(9)
)
Event = tuple[float, int, int, Callable[[], None]]
"""Time, kind, number, and what happens; the first three say what goes first."""


class Run(NamedTuple):
    """A job in a container, from dispatch to end; the last five are the parts of its seconds."""

    wf_id: int
    fn_id: int
    node: int
    warm: bool
    finished: bool
    dispatch_time: float
    start_time: float
    end_time: float
    queueing_time: float
    cold_start_time: float
    data_transfer_time: float
    execution_time: float
    server_start_time: float


class ReferenceWorld:
    """Plays an episode when made; `runs` are in the order of their ends.

    `forecast` is the next idle time after those given.
    """

    def __init__(self, episode: Episode, forecast: Callable[[Sequence[float]], float]) -> None:
        self.cluster, self.rules, self.lease = episode.cluster, episode.rules, episode.rules.lease
        patience = self.rules.patience
        self.patience = math.inf if patience is None else patience
        self.jobs, self.forecast, order = jobs_of(episode), forecast, episode.rules.order
        self.order = getattr(order, "name", None)
        self.keep_alive = getattr(episode.rules.keep_alive, "policy", None)
        self.time_slice = getattr(order, "time_slice", getattr(order, "check_interval", math.inf))
        self.starve_threshold = getattr(order, "starve_threshold", math.inf)
        self.servers: list[Server] = []
        self.nodes: list[Node] = []
        self.queue: list[Job] = []
        self.timers: list[Event] = []
        self.runs: list[Run] = []
        self.now = 0.0
        self.due = False
        self.counter = 0
        self.container_cold_starts = 0
        with_ids = self.cluster.resources_with_ids
        for kind in self.cluster.server_types:
            speed = kind.single_core_speed or self.cluster.single_core_speed
            for _ in range(kind.count):
                server = Server(kind, len(self.servers))
                self.servers.append(server)
                for _ in range(kind.numa_nodes):
                    server.nodes.append(Node(server, len(self.nodes), speed, with_ids))
                    self.nodes.append(server.nodes[-1])
                if self.lease.kind == "always" and self.lease.charged:
                    self.pay(server, 0.0, 1)
                elif self.lease.kind == "always":
                    server.leases.append((0.0, math.inf, 0))
        arriving = {(job.arrival, job.wf_id) for job in self.jobs}
        self.arrivals = len(arriving)
        for time, wf_id in arriving:
            self.set_timer(time, ARRIVAL, wf_id, partial(self.arrive, wf_id))
        while self.step():
            pass

    def decide(self, job: Job, candidates: list[int]) -> tuple[int, int]:
        """A node and MB, where a job is placed at once or the placement is asked."""
        return candidates[0], job.memory_req

    @property
    def starts(self) -> int:
        """How often a server without a lease was started."""
        return sum(server.starts for server in self.servers)

    @property
    def total_rent(self) -> float:
        """USD."""
        prices = [server.kind.hourly_rate * (self.lease.step / 3600) for server in self.servers]
        return sum(server.steps * price for server, price in zip(self.servers, prices, strict=True))

    def next_number(self) -> int:
        self.counter += 1
        return self.counter

    def set_timer(self, time: float, kind: int, number: int, fire: Callable[[], None]) -> None:
        if (time, kind, number, fire) not in self.timers:
            self.timers.append((time, kind, number, fire))

    def step(self) -> bool:
        """One event: completions before timers before a decision."""
        events: list[Event] = [
            (end, COMPLETION, node.number, partial(self.complete, node))
            for node in self.nodes
            for end in node.completion_times()
        ]
        if not events and not self.queue and self.arrivals == 0:
            return False
        events += self.timers
        if self.due:
            events.append((self.now, DECISION, 0, self.place))
        event = min(events, key=lambda event: event[:3])
        if event in self.timers:
            self.timers.remove(event)
        self.now = event[0]
        event[3]()
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
        image = job.image
        if not self.active(image) and not math.isnan(image.last_end):
            image.idle_times.append(self.now - image.last_end)
            if isinstance(self.rules.keep_alive, HybridHistogram):
                image.window = self.window(self.rules.keep_alive, image.idle_times)
        self.join(job)

    def join(self, job: Job) -> None:
        job.joined = self.now
        job.number = self.next_number()
        self.queue.append(job)
        self.due = True

    def look(self) -> None:
        """Something has changed: whoever waits may be placed."""
        self.due = True

    def left(self, job: Job) -> float:
        return max(0.0, job.expected - job.served)

    def priority(self, job: Job) -> float:
        image = job.image
        if self.order == "srtf":
            return self.left(job)
        if self.order == "funcsched":
            cold = 0.0 if self.warm(image) else image.cold_start
            return (job.expected + cold) * image.memory
        return job.rank

    def oldest(self) -> Job:
        return min(self.queue, key=lambda job: job.number)

    def first(self) -> Job:
        if self.rules.order is None:
            return min(self.queue, key=lambda job: (job.submission, job.wf_id, job.fn_id))
        if self.order == "funcsched":
            oldest = self.oldest()
            if self.now >= oldest.submission + self.starve_threshold:
                return oldest
        return min(self.queue, key=lambda job: (self.priority(job), job.number))

    # Placing

    def place(self) -> None:
        """The first that waits is placed, and the next one looked at, or all wait on."""
        self.due = False
        if not self.queue:
            return
        job = self.first()
        candidates = self.candidates(job)
        if not candidates:
            self.watch(job)
            return
        if self.rules.order is None or self.rules.placement == "asked":
            number, memory = self.decide(job, candidates)
            self.start(job, self.nodes[number], memory)
        else:
            number = min(candidates, key=lambda number: self.preference(job, self.nodes[number]))
            self.start(job, self.nodes[number], job.image.memory)
        self.due = True

    def leased(self, node: Node) -> bool:
        return self.lease.kind == "always" or node.server.expiration > self.now

    def candidates(self, job: Job) -> list[int]:
        if self.rules.order is None:
            return [node.number for node in self.nodes if node.holds(job, job.memory_req)]
        need = job.image.memory
        large = [node for node in self.nodes if node.holds(job, need)]
        leased = [node for node in large if self.leased(node)]
        may_start = self.now >= job.joined + self.patience or not leased
        return [
            node.number
            for node in large
            if ((node.available >= need and node.has_left(job)) if node in leased else may_start)
        ]

    def preference(self, job: Job, node: Node) -> tuple[int, int, int]:
        """What a compiled rule compares: the smallest is the best."""
        if not self.leased(node):
            tier = 3
        elif any(one.image is job.image for one in node.idle):
            tier = 0
        else:
            tier = 1 if node.free >= job.image.memory else 2
        sign = {"first_fit": 0, "best_fit": 1, "worst_fit": -1}[self.rules.placement]
        return tier, sign * node.available, node.number

    def watch(self, job: Job) -> None:
        """Time alone may help: the oldest may starve and go first, the first may start a server."""
        need, patience_ends = job.image.memory, job.joined + self.patience
        off = any(node.holds(job, need) and not self.leased(node) for node in self.nodes)
        if off and self.now < patience_ends < math.inf:
            self.set_timer(patience_ends, PATIENCE, 0, self.look)
        starves = self.oldest().submission + self.starve_threshold
        if self.order == "funcsched" and self.now < starves < math.inf:
            self.set_timer(starves, STARVATION, 0, self.look)

    def start(self, job: Job, node: Node, memory: int) -> None:
        image = job.image
        self.queue.remove(job)
        job.startup, starts = 0.0, not self.leased(node)
        if starts:
            job.startup = node.server.kind.cold_start_latency
            node.server.starts += 1
            for other in node.server.nodes:
                other.clock = self.now + job.startup
        matching = [one for one in node.idle if one.image is image]
        job.cold, job.warm = image.cold_start, bool(matching)
        if matching:
            job.cold = max(0.0, matching[-1].ready - self.now)
            node.idle.remove(matching[-1])
        elif job.cold > 0:
            self.container_cold_starts += 1
        job.transfer = 0.0
        for before, data in job.predecessors:
            job.transfer += data / self.bandwidth(before.node, node)
        job.creation_time = max(node.clock, self.now) + job.cold + job.transfer
        job.node, job.dispatched, job.memory_alloc = node, self.now, memory
        job.run = self.next_number()
        image.frequency += 1
        node.place(job)
        self.make_room(node)
        self.extend(node.server, starts)
        if self.time_slice < math.inf:
            self.set_slice(job, job.creation_time + self.time_slice)

    def bandwidth(self, source: Node | None, target: Node) -> float:
        assert source is not None
        if source is target:
            return self.cluster.memory_bandwidth
        if source.server is target.server:
            return self.cluster.numa_bandwidth
        return self.cluster.network_bandwidth

    # Ending

    def complete(self, node: Node) -> None:
        job = node.complete()
        self.make_room(node)
        self.end_run(job, node, True)
        job.finished = True
        job.image.last_end = self.now
        for other in self.jobs:
            before = [one for one, _ in other.predecessors]
            if job in before and all(one.finished for one in before):
                self.submit(other)
        self.release(node, job, unused=not self.active(job.image))
        self.extend(node.server)
        self.due = True

    def set_slice(self, job: Job, time: float) -> None:
        self.set_timer(time, SLICE_END, job.run, partial(self.end_slice, job, job.run))

    def end_slice(self, job: Job, run: int) -> None:
        if job.run != run:
            return
        node = job.node
        assert node is not None
        gives_way = bool(self.queue)
        if gives_way and self.order == "srtf":
            left = max(0.0, job.expected - (job.served + self.now - job.start_time))
            gives_way = self.left(self.first()) < left
        if not gives_way:
            self.set_slice(job, self.now + self.time_slice)
            return
        node.remove(job, self.now)
        job.remaining = max(1, job.remaining)
        self.end_run(job, node, False)
        self.release(node, job, unused=False)
        self.extend(node.server)
        self.join(job)

    def end_run(self, job: Job, node: Node, finished: bool) -> None:
        seconds = self.now - job.start_time
        job.served += seconds
        job.run = -1
        where = (job.wf_id, job.fn_id, node.number, job.warm, finished)
        parts = (job.dispatched - job.joined, job.cold, job.transfer, seconds, job.startup)
        self.runs.append(Run(*where, job.dispatched, job.start_time, self.now, *parts))

    # Leases

    def extend(self, server: Server, starts: bool = False) -> None:
        """Rule 9: pays for whole steps up to the last projected completion, at a start for one."""
        ends = [end for node in server.nodes for end in node.completion_times()]
        if starts or max(ends, default=-math.inf) > server.expiration:
            begin = max(self.now, server.expiration)
            steps = math.ceil((max(ends) - begin) / self.lease.step)
            self.pay(server, begin, max(1, steps))

    def pay(self, server: Server, begin: float, steps: int) -> None:
        end = begin + steps * self.lease.step
        server.leases.append((begin, end, steps))
        self.set_timer(end, LEASE_END, server.number, partial(self.end_lease, server, end))

    def end_lease(self, server: Server, end: float) -> None:
        if server.expiration != end:
            return
        if self.lease.kind == "always":
            self.pay(server, end, 1)
            return
        for node in server.nodes:
            while node.idle:
                self.forget(node.idle.pop().image)
        self.due = True

    # Keeping warm

    def active(self, image: Image) -> bool:
        """Whether a request of it waits or runs."""
        return self.at_work(image) or any(job.image is image for job in self.queue)

    def at_work(self, image: Image) -> bool:
        return any(job.image is image and job.run >= 0 for job in self.jobs)

    def warm(self, image: Image) -> bool:
        return any(one.image is image for node in self.nodes for one in node.idle)

    def release(self, node: Node, job: Job, unused: bool) -> None:
        policy, image, memory = self.keep_alive, job.image, job.memory_alloc
        after, until = image.window
        if policy == "hybrid_histogram" and unused and after > 0:
            number = image.prewarming = self.next_number()
            fire = partial(self.prewarm, image, number)
            self.set_timer(self.now + after, PREWARMING, number, fire)
        elif policy in ("fixed", "hybrid_histogram"):
            self.keep(node, image, memory, self.now, self.now + until)
        elif policy != "none":
            self.keep(node, image, memory, self.now, math.inf)
        self.forget(image)

    def keep(self, node: Node, image: Image, memory: int, ready: float, expires: float) -> None:
        one = Idle(image, memory, ready, self.next_number(), node.cache_clock)
        node.idle.append(one)
        if expires < math.inf:
            self.set_timer(expires, EXPIRY, one.number, partial(self.expire, node, one))
        self.make_room(node)

    def expire(self, node: Node, one: Idle) -> None:
        if one in node.idle:
            node.idle.remove(one)
            self.forget(one.image)

    def forget(self, image: Image) -> None:
        if not self.at_work(image) and not self.warm(image):
            image.frequency = 0

    def value(self, one: Idle) -> float:
        return one.clock + one.image.frequency * one.image.cold_start / one.memory

    def make_room(self, node: Node) -> None:
        """Idle containers go while the node holds more than its memory."""
        while node.free < 0 and node.idle:
            victim = node.idle[0]
            if self.keep_alive == "faascache":
                victim = min(node.idle, key=self.value)
                node.cache_clock = max(node.cache_clock, self.value(victim))
            node.idle.remove(victim)
            self.forget(victim.image)

    def prewarm(self, image: Image, number: int) -> None:
        if image.prewarming != number or self.active(image) or self.warm(image):
            return
        room = {
            node: node.free - sum(job.memory_alloc for job in node.waiting)
            for node in self.nodes
            if self.leased(node)
        }
        most = max(room, key=lambda node: room[node], default=None)
        expires = image.last_end + image.window[1]
        if most is not None and room[most] >= image.memory and expires > self.now:
            self.keep(most, image, image.memory, self.now + image.cold_start, expires)

    def window(self, policy: HybridHistogram, times: Sequence[float]) -> tuple[float, float]:
        """Seconds from the last end to a start ahead, and to the end of keeping."""
        if len(times) < policy.least_idle_times:
            return 0.0, policy.fixed_keep
        places = [int(time / policy.bin) for time in times]
        counts = [places.count(place) for place in range(policy.bins)]
        inside = sum(counts)
        if len(times) - inside > policy.most_out_of_bounds * len(times):
            forecast, margin = self.forecast(times), policy.forecast_margin
            return forecast * (1 - margin), forecast * (1 + margin)
        mean = inside / policy.bins
        deviation = math.sqrt(sum((count - mean) ** 2 for count in counts) / policy.bins)
        if deviation < policy.least_variation * mean:
            return 0.0, policy.fixed_keep
        head = self.percentile_bin(counts, policy.prewarm_percentile)
        tail = self.percentile_bin(counts, policy.keep_percentile)
        return (
            head * policy.bin * (1 - policy.margin),
            (tail + 1) * policy.bin * (1 + policy.margin),
        )

    def percentile_bin(self, counts: Sequence[int], percentile: float) -> int:
        """The first bin up to which that share of all counts was reached."""
        rank = sum(counts) * percentile / 100
        sums = [sum(counts[: place + 1]) for place in range(len(counts))]
        return next(place for place, total in enumerate(sums) if total >= rank and total > 0)


def jobs_of(episode: Episode) -> list[Job]:
    """The functions of the workflows, ranked by the order; tickets are those of the base."""
    workload, templates, rules = episode.workload, list(episode.declared), episode.rules
    images = episode.images or Images.by_name(templates, 0.0)
    image_of = images.of_all(templates)
    of_images = np.zeros(len(images.cold_start), [("cold_start", float), ("memory", int)])
    of_images["cold_start"], of_images["memory"] = images.cold_start, images.memory
    known = declared_functions(build(episode), templates, image_of, of_images, episode.cluster)
    ranks = (rules.order or FIRST_COME).rank(known)
    keep = getattr(rules.keep_alive, "keep", getattr(rules.keep_alive, "fixed_keep", 0.0))
    made = [Image(float(seconds), (0.0, keep)) for seconds in images.cold_start]
    for image, size in zip(made, images.memory.tolist(), strict=True):
        image.memory = size
    rows = iter(zip(image_of, known.execution, ranks, strict=True))
    declared = {each: [next(rows) for _ in range(each.function_count)] for each in templates}
    jobs = []
    for wf_id, template in enumerate(workload.templates):
        owner = None
        if episode.cluster.cpu_share == "tickets":
            assert episode.funding is not None
            tenant = workload.tenants[wf_id]
            owner = tenant, Fraction(episode.funding.tenants[tenant].tickets)
        own = []
        for fn_id, (number, expected, rank) in enumerate(declared[template]):
            image, memory = made[number], int(template.memory_req[fn_id])
            job = Job(
                wf_id,
                fn_id,
                image,
                int(workload.work[wf_id] if workload.work else template.computation[fn_id]),
                int(template.parallelism[fn_id]),
                memory,
                {
                    name: Fraction(str(amounts[fn_id]))
                    for name, amounts in template.resources.items()
                },
                workload.arrival_times[wf_id],
                float(expected),
                float(rank),
                owner,
            )
            own.append(job)
        for (source, target), size in zip(template.edges, template.data_bytes, strict=True):
            own[target].predecessors.append((own[source], int(size)))
        jobs += own
    return jobs
