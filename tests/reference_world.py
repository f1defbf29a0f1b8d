"""A slow, obvious model of the world, with every choice of dispatch, lease and keep-alive.

Plain Python lists: the queue is sorted whenever somebody goes first, nodes are projected again for
every event, and histograms are made anew from all idle times. What a node does with its containers
is `Node`; what joins them into a world is here. Shares no code with the engine, but for what is
drawn of conditional calls.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from env.sim.assembly.build import build
from env.sim.declared.episode import Episode
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import HybridHistogram
from env.sim.declared.ordering import FIRST_COME, declared_functions
from env.sim.declared.power import Power
from env.sim.declared.regions import ANYWHERE, Link
from env.sim.declared.rules import PerUse
from env.sim.state.draws import calls
from tests.reference_node import Idle, Image, Job, Node, Server, window

NO_POWER = Power(
    idle_core_w=0, busy_core_w=0, memory_w_per_gb=0, pue=1, carbon_intensity_g_per_kwh=0
)
COMPLETION, ARRIVAL, SLICE_END, EXPIRY, PREWARMING = range(5)
STARVATION, LEASE_END, PATIENCE, DECISION = range(5, 9)
Event = tuple[float, int, int, Callable[..., None], tuple[object, ...]]
"""Time, kind, number, and what happens to what; the first three say what goes first."""


class Run(NamedTuple):
    """A job in a container, from dispatch to end; the last five are the parts of its seconds.

    Fields and numbers are those of the engine's runs: `outcome` is 1 if it was preempted.
    """

    wf_id: int
    fn_id: int
    node: int
    warm: bool
    outcome: int
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

    `forecast` is the next idle time after those given. Where a job is placed at once, or the
    placement is asked, a subclass's `decide(job, candidates)` gives a node and MB.
    """

    decide: Callable[[Job, list[int]], tuple[int, int]]

    def __init__(self, episode: Episode, forecast: Callable[[Sequence[float]], float]) -> None:
        self.cluster, self.rules, self.lease = episode.cluster, episode.rules, episode.rules.lease
        patience, self.begin = self.rules.patience, 3600.0 * episode.workload.begin_hour
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
        self.now = self.total_rent = self.carbon = 0.0  # s, USD and gCO2e
        self.due, self.gb_seconds = False, 0.0
        self.numbers = count()
        self.server_cold_starts = self.container_cold_starts = 0
        for kind in self.cluster.server_types:
            for _ in range(kind.count):
                server = Server(kind, len(self.servers))
                self.servers.append(server)
                for _ in range(kind.numa_nodes):
                    server.nodes.append(Node(server, len(self.nodes), self.cluster))
                    self.nodes.append(server.nodes[-1])
                if self.lease.kind == "always" and self.lease.charged:
                    self.pay(server, 0.0, 1)
                elif self.lease.kind == "always":
                    server.expiration = math.inf
        for time, wf_id in {(job.arrival, job.wf_id) for job in self.jobs}:
            self.set_timer(time, ARRIVAL, wf_id, self.arrive, wf_id)
        self.play()

    def set_timer(
        self, time: float, kind: int, number: int, fire: Callable[..., None], *what: object
    ) -> None:
        if (time, kind, number, fire, what) not in self.timers:
            self.timers.append((time, kind, number, fire, what))

    def play(self) -> None:
        """Event by event: completions before timers before a decision."""
        while True:
            events: list[Event] = [
                (end, COMPLETION, node.number, self.complete, (node,))
                for node in self.nodes
                for end in node.completion_times()
            ]
            if not (events or self.queue or any(kind == ARRIVAL for _, kind, *_ in self.timers)):
                for server in self.servers:
                    if server.expiration == math.inf:
                        self.emit_lease(server, 0.0, self.now)
                return
            events += self.timers
            if self.due:
                events.append((self.now, DECISION, 0, self.place, ()))
            event = min(events, key=lambda event: event[:3])
            if event in self.timers:
                self.timers.remove(event)
            self.now, _, _, fire, what = event
            fire(*what)

    # Waiting

    def arrive(self, wf_id: int) -> None:
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
                policy = self.rules.keep_alive
                image.window = window(policy, image.idle_times, self.forecast)
        self.join(job)

    def join(self, job: Job) -> None:
        job.joined = self.now
        job.number = next(self.numbers)
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

    def starves(self) -> tuple[float, Job]:
        """When the oldest that waits does."""
        oldest = min(self.queue, key=lambda job: job.number)
        return oldest.submission + self.starve_threshold, oldest

    def first(self) -> Job:
        if self.rules.order is None:
            return min(self.queue, key=lambda job: (job.submission, job.wf_id, job.fn_id))
        since, oldest = self.starves()
        if self.now >= since:
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
        else:
            number = min(candidates, key=lambda number: self.preference(job, self.nodes[number]))
            memory = job.image.memory
        self.start(job, self.nodes[number], memory)
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
        starves, _ = self.starves()
        if self.now < starves < math.inf:
            self.set_timer(starves, STARVATION, 0, self.look)

    def start(self, job: Job, node: Node, memory: int) -> None:
        image = job.image
        self.queue.remove(job)
        job.startup, starts = 0.0, not self.leased(node)
        if starts:
            job.startup = node.server.kind.cold_start_latency
            self.server_cold_starts += 1
            for other in node.server.nodes:
                other.clock = self.now + job.startup
        matching = [one for one in node.idle if one.image is image]
        job.cold, job.warm = image.cold_start, bool(matching)
        if matching:
            job.cold = max(0.0, matching[-1].ready - self.now)
            node.idle.remove(matching[-1])
        elif job.cold > 0:
            self.container_cold_starts += 1
        job.begun = job.remaining
        job.transfer = self.start_hop(job, node)
        for before, data, called in job.predecessors:
            if called and before.finished:
                assert before.node is not None
                begin = self.now + job.transfer
                job.transfer += self.round_trip(before.node, node)
                job.transfer += data / self.bandwidth(before.node, node)
                self.cross(data, before.node, node, begin, self.now + job.transfer)
        job.creation_time = max(node.clock, self.now) + job.cold + job.transfer
        job.node, job.dispatched, job.memory_alloc = node, self.now, memory
        job.run = next(self.numbers)
        image.frequency += 1
        node.place(job)
        self.make_room(node)
        self.extend(node.server, starts)
        if self.time_slice < math.inf:
            self.set_slice(job, job.creation_time + self.time_slice)

    def bandwidth(self, source: Node, target: Node) -> float:
        if source is target:
            return self.cluster.memory_bandwidth
        if source.server is target.server:
            return self.cluster.numa_bandwidth
        link = self.link(source.region, target.region)
        return link.bandwidth if link else self.cluster.network_bandwidth

    # Regions

    def link(self, source: str | None, target: str | None) -> Link | None:
        if source is None or target is None or source == target:
            return None
        of_source = self.cluster.regions[source].links
        return (
            of_source[target] if target in of_source else self.cluster.regions[target].links[source]
        )

    def start_hop(self, job: Job, node: Node) -> float:
        """Seconds until a client has called a function."""
        home = self.cluster.home or next(iter(self.cluster.regions), None)
        link = None if job.predecessors else self.link(home, node.region)
        return link.round_trip if link else 0.0

    def round_trip(self, source: Node, node: Node) -> float:
        link = self.link(source.region, node.region)
        return 0.0 if link is None else link.round_trip

    def cross(self, data: int, source: Node, node: Node, begin: float, end: float) -> None:
        """Pays for bytes from another region, which emit evenly at both ends on their way."""
        link = self.link(source.region, node.region)
        if link is None:
            return
        self.total_rent += data / 1e9 * link.egress
        kwh = data / 1e9 * self.cluster.transfer_kwh_per_gb
        first, last = int(begin // 3600) + 1, int(end // 3600)
        times = [begin, *(3600.0 * hour for hour in range(first, last + 1)), end]
        for one in (source, node):
            for start, stop in pairwise(times):
                share = (stop - start) / (end - begin) if end > begin else 1.0
                self.carbon += kwh / 2 * share * self.intensity(one, start)

    def power(self, region: str | None) -> dict[str, Any]:
        changed = self.cluster.regions[region].power if region else {}
        return {**(self.cluster.power or NO_POWER).model_dump(), **changed}

    def hours(self, region: str | None) -> Sequence[float]:
        given = self.power(region)["carbon_intensity_g_per_kwh"]
        return given if isinstance(given, Sequence) else [given]

    def intensity(self, node: Node, time: float) -> float:
        hours = self.hours(node.region)
        return hours[int((self.begin + time) // 3600) % len(hours)]

    def emit(self, region: str | None, watts: float, begin: float, end: float) -> None:
        """Counts a constant power over time, hour by hour."""
        grams_times_seconds = 0.0
        for sign, time in ((1, end), (-1, begin)):
            hours = self.hours(region)
            cycles, left = divmod(self.begin + time, 3600 * len(hours))
            grams_times_seconds += sign * cycles * 3600 * sum(hours)
            for grams in hours:
                grams_times_seconds += sign * min(left, 3600) * grams
                left = max(0.0, left - 3600)
        self.carbon += watts * self.power(region)["pue"] * grams_times_seconds / 3.6e6

    def emit_lease(self, server: Server, begin: float, end: float) -> None:
        power, kind = self.power(server.kind.region), server.kind
        cores, memory = kind.numa_nodes * kind.cpu, kind.numa_nodes * kind.memory / 1024
        watts = cores * power["idle_core_w"] + memory * power["memory_w_per_gb"]
        self.emit(kind.region, watts, begin, end)

    # Ending

    def complete(self, node: Node) -> None:
        job = node.complete()
        self.make_room(node)
        self.end_run(job, node, 0)
        job.finished = True
        job.image.last_end = self.now
        for other in sorted(self.called_after(job), key=lambda other: other.fn_id):
            self.submit(other)
        self.release(node, job, unused=not self.active(job.image))
        self.extend(node.server)
        self.due = True

    def called_after(self, job: Job) -> set[Job]:
        """Who runs as a job has ended; whoever nobody calls is skipped and ends, too."""
        called = set()
        for other in self.jobs:
            before = [one for one, _, _ in other.predecessors]
            if job not in before or not all(one.finished or one.skipped for one in before):
                continue
            if any(one.finished and calls for one, _, calls in other.predecessors):
                called.add(other)
            else:
                other.skipped = True
                called |= self.called_after(other)
        return called

    def set_slice(self, job: Job, time: float) -> None:
        self.set_timer(time, SLICE_END, job.run, self.end_slice, job, job.run)

    def end_slice(self, job: Job, run: int) -> None:
        node = job.node
        if job.run != run or node is None:
            return
        gives_way = bool(self.queue)
        if gives_way and self.order == "srtf":
            left = max(0.0, job.expected - (job.served + self.now - job.start_time))
            gives_way = self.left(self.first()) < left
        if not gives_way:
            self.set_slice(job, self.now + self.time_slice)
            return
        node.remove(job, self.now)
        self.end_run(job, node, 1)
        job.remaining = max(1, job.remaining)
        self.release(node, job, unused=False)
        self.extend(node.server)
        self.join(job)

    def end_run(self, job: Job, node: Node, outcome: int) -> None:
        seconds = self.now - job.start_time
        done = job.begun - (job.remaining if outcome == 1 else 0)
        power = self.power(node.region)
        joules = (power["busy_core_w"] - power["idle_core_w"]) * done / node.single_core_speed
        if seconds > 0:
            self.emit(node.region, joules / seconds, job.start_time, self.now)
        if self.lease.use is not None:
            self.pay_use(self.lease.use, node.server, job.memory_alloc / 1024 * seconds)
        job.served += seconds
        job.run = -1
        where = (job.wf_id, job.fn_id, node.number, job.warm, outcome)
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
        server.expiration = end = begin + steps * self.lease.step
        server.steps += steps
        region = server.kind.region
        price = self.cluster.regions[region].price if region else 1.0
        self.total_rent += steps * server.kind.hourly_rate * price * (self.lease.step / 3600)
        self.emit_lease(server, begin, end)
        self.set_timer(end, LEASE_END, server.number, self.end_lease, server, end)

    def pay_use(self, use: PerUse, server: Server, gb_seconds: float) -> None:
        """Runs are paid in the order of their ends, behind what is free."""
        free = max(0.0, use.free_gb_seconds - self.gb_seconds)
        price = max(0.0, gb_seconds - free) * dict(use.gb_second)[server.kind.architecture]
        price += use.request if len(self.runs) >= use.free_requests else 0.0
        self.gb_seconds += gb_seconds
        region = server.kind.region
        self.total_rent += price * (self.cluster.regions[region].price if region else 1.0)

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
            number = image.prewarming = next(self.numbers)
            self.set_timer(self.now + after, PREWARMING, number, self.prewarm, image, number)
        elif policy != "none":
            self.keep(node, image, memory, self.now, self.now + until)
        self.forget(image)

    def keep(self, node: Node, image: Image, memory: int, ready: float, expires: float) -> None:
        one = Idle(image, memory, ready, next(self.numbers), node.cache_clock)
        node.idle.append(one)
        if expires < math.inf:
            self.set_timer(expires, EXPIRY, one.number, self.expire, node, one)
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


def jobs_of(episode: Episode) -> list[Job]:
    """The functions of the workflows, ranked by the order; tickets are those of the base."""
    workload, templates, rules = episode.workload, list(episode.declared), episode.rules
    images = episode.images or Images.by_name(templates, 0.0)
    image_of = images.of_all(templates)
    sizes = np.zeros(len(images.memory), [("cold_start", float), ("memory", int)])
    sizes["cold_start"], sizes["memory"] = images.cold_start, images.memory
    known = declared_functions(build(episode), templates, image_of, sizes, episode.cluster)
    ranks = (rules.order or FIRST_COME).rank(known)
    keep = getattr(rules.keep_alive, "keep", getattr(rules.keep_alive, "fixed_keep", math.inf))
    made = [Image(cold_start, memory, (0.0, keep)) for cold_start, memory in sizes.tolist()]
    rows = iter(zip(image_of, known.execution.tolist(), ranks.tolist(), strict=True))
    declared = {each: [next(rows) for _ in range(each.function_count)] for each in templates}
    jobs = []
    for wf_id, template in enumerate(workload.templates):
        arrival, tickets = workload.arrival_times[wf_id], None
        if episode.cluster.cpu_share == "tickets":
            assert episode.funding is not None
            tenant = workload.tenants[wf_id]
            tickets = tenant, Fraction(episode.funding.tenants[tenant].tickets)
        own = []
        for fn_id, (image, expected, rank) in enumerate(declared[template]):
            named = {name: Fraction(str(row[fn_id])) for name, row in template.resources.items()}
            work = workload.work[wf_id] if workload.work else template.computation[fn_id]
            threads, memory = int(template.parallelism[fn_id]), int(template.memory_req[fn_id])
            job = Job(wf_id, fn_id, made[image], int(work), threads, memory, named, arrival)
            job.expected, job.rank, job.owner = expected, rank, tickets
            job.regions = template.regions[fn_id] if template.regions else ANYWHERE
            own.append(job)
        seed, edges = np.uint64(workload.turns_seed), template.edges.tolist()
        rows_of_edges = zip(edges, template.data_bytes, template.probability, strict=True)
        for (source, target), size, chance in rows_of_edges:
            called = bool(calls(seed, wf_id, source, target, chance))
            own[target].predecessors.append((own[source], int(size), called))
        jobs += own
    return jobs
