"""A slow, obvious model of the world, with every choice of dispatch, lease and keep-alive.

Plain Python lists: the queue is sorted whenever somebody goes first, nodes are projected again for
every event, and histograms are made anew from all idle times. What a node does with its containers
is `ReferenceNode`; what joins them into a world is here. Shares no code with the engine.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from env.sim.declared.hardware import ClusterConfig
from tests.reference_node import ReferenceContainer
from tests.reference_records import Idle, Image, Job, Node, Rules, Run, Server

COMPLETION, ARRIVAL, SLICE_END, EXPIRY, PREWARMING, STARVATION, LEASE_END, PATIENCE, DECISION = (
    range(9)
)
Event = tuple[float, int, int, Callable[[], None]]
"""Time, kind, number, and what happens; the first three say what goes first."""


class ReferenceWorld:
    """Plays an episode when made; `runs` are in the order of their ends.

    `decide` is given the world, the job and the nodes to choose from, and answers with a node and
    MB: of every job where dispatch is immediate, else where the placement is asked. `forecast` is
    the next idle time after those given.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        jobs: Sequence[Job],
        rules: Rules,
        forecast: Callable[[Sequence[float]], float],
        decide: "Callable[[ReferenceWorld, Job, list[int]], tuple[int, int]] | None" = None,
    ) -> None:
        self.cluster, self.jobs, self.rules = cluster, jobs, rules
        self.forecast, self.decide = forecast, decide
        self.servers: list[Server] = []
        self.nodes: list[Node] = []
        self.queue: list[Job] = []
        self.timers: list[Event] = []
        self.runs: list[Run] = []
        self.now = 0.0
        self.due = False
        self.counter = 0
        self.container_cold_starts = 0
        for kind in cluster.server_types:
            speed = kind.single_core_speed or cluster.single_core_speed
            for _ in range(kind.count):
                server = Server(kind, len(self.servers))
                self.servers.append(server)
                for _ in range(kind.numa_nodes):
                    server.nodes.append(Node(server, len(self.nodes), speed, rules.owners))
                    self.nodes.append(server.nodes[-1])
                if rules.lease == "always" and rules.charged:
                    self.pay(server, 0.0, 1)
                elif rules.lease == "always":
                    server.leases.append((0.0, math.inf, 0))
        for job in jobs:
            image = job.function.image
            image.memory = max(image.memory, job.function.memory)
            image.window = (0.0, rules.keep)
        arriving = {(job.arrival, job.wf_id) for job in jobs}
        self.arrivals = len(arriving)
        for time, wf_id in arriving:
            self.set_timer(time, ARRIVAL, wf_id, partial(self.arrive, wf_id))
        while self.step():
            pass

    @property
    def starts(self) -> int:
        """How often a server without a lease was started."""
        return sum(server.starts for server in self.servers)

    @property
    def total_rent(self) -> float:
        return sum(self.rent(server) for server in self.servers)

    def rent(self, server: Server) -> float:
        """USD."""
        price = server.kind.hourly_rate * (self.rules.step / 3600)
        return sum(steps * price for _, _, steps in server.leases)

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
        image = job.function.image
        if not self.active(image) and not math.isnan(image.last_end):
            image.idle_times.append(self.now - image.last_end)
            image.window = self.window(image.idle_times)
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
        return max(0.0, job.function.execution - job.execution)

    def priority(self, job: Job) -> float:
        image = job.function.image
        if self.rules.order == "srtf":
            return self.left(job)
        if self.rules.order == "funcsched":
            cold = 0.0 if self.warm(image) else image.cold_start
            return (job.function.execution + cold) * image.memory
        return job.function.rank

    def oldest(self) -> Job:
        return min(self.queue, key=lambda job: job.number)

    def first(self) -> Job:
        if self.rules.dispatch == "immediate":
            return min(self.queue, key=lambda job: (job.submission, job.wf_id, job.fn_id))
        if self.rules.order == "funcsched":
            oldest = self.oldest()
            if self.now >= oldest.submission + self.rules.starve_threshold:
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
        if self.rules.dispatch == "immediate" or self.rules.placement == "asked":
            assert self.decide is not None
            number, memory = self.decide(self, job, candidates)
            self.start(job, self.nodes[number], memory)
        else:
            number = min(candidates, key=lambda number: self.preference(job, self.nodes[number]))
            self.start(job, self.nodes[number], job.function.image.memory)
        self.due = True

    def leased(self, node: Node) -> bool:
        return self.rules.lease == "always" or node.server.expiration > self.now

    def candidates(self, job: Job) -> list[int]:
        if self.rules.dispatch == "immediate":
            memory = job.function.memory
            return [node.number for node in self.nodes if node.holds(job.function, memory)]
        need, named = job.function.image.memory, job.function.resources
        large = [node for node in self.nodes if node.holds(job.function, need)]
        leased = [node for node in large if self.leased(node)]
        may_start = self.now >= job.joined + self.rules.patience or not leased
        return [
            node.number
            for node in large
            if ((node.available >= need and node.has_left(named)) if node in leased else may_start)
        ]

    def preference(self, job: Job, node: Node) -> tuple[int, int, int]:
        """What a compiled rule compares: the smallest is the best."""
        if not self.leased(node):
            tier = 3
        elif any(one.image is job.function.image for one in node.idle):
            tier = 0
        else:
            tier = 1 if node.free >= job.function.image.memory else 2
        sign = {"first_fit": 0, "best_fit": 1, "worst_fit": -1}[self.rules.placement]
        return tier, sign * node.available, node.number

    def watch(self, job: Job) -> None:
        """Time alone may help: the oldest may starve and go first, the first may start a server."""
        need, patience_ends = job.function.image.memory, job.joined + self.rules.patience
        off = any(node.holds(job.function, need) and not self.leased(node) for node in self.nodes)
        if off and self.now < patience_ends < math.inf:
            self.set_timer(patience_ends, PATIENCE, 0, self.look)
        starves = self.oldest().submission + self.rules.starve_threshold
        if self.rules.order == "funcsched" and self.now < starves < math.inf:
            self.set_timer(starves, STARVATION, 0, self.look)

    def start(self, job: Job, node: Node, memory: int) -> None:
        function, image = job.function, job.function.image
        self.queue.remove(job)
        startup, starts = 0.0, not self.leased(node)
        if starts:
            startup = node.server.kind.cold_start_latency
            node.server.starts += 1
            for other in node.server.nodes:
                other.clock = self.now + startup
        matching = [one for one in node.idle if one.image is image]
        cold = image.cold_start
        if matching:
            cold = max(0.0, matching[-1].ready - self.now)
            node.idle.remove(matching[-1])
        elif cold > 0:
            self.container_cold_starts += 1
        transfer = 0.0
        for before, data in job.predecessors:
            transfer += data / self.bandwidth(before.node, node)
        job.container = ReferenceContainer(
            job.wf_id,
            job.fn_id,
            job.computation,
            function.parallelism,
            function.memory,
            memory,
            creation_time=max(node.clock, self.now) + cold + transfer,
            resources=function.resources,
        )
        job.container.remaining = job.remaining
        job.node, job.dispatched, job.warm = node, self.now, bool(matching)
        job.run = self.next_number()
        job.queueing = self.now - job.joined
        job.startup = startup
        job.cold = cold
        job.transfer = transfer
        image.frequency += 1
        node.jobs.append(job)
        node.place(job.container)
        self.make_room(node)
        self.extend(node.server, starts)
        if self.rules.time_slice < math.inf:
            self.set_slice(job, job.container.creation_time + self.rules.time_slice)

    def bandwidth(self, source: Node | None, target: Node) -> float:
        assert source is not None
        if source is target:
            return self.cluster.memory_bandwidth
        if source.server is target.server:
            return self.cluster.numa_bandwidth
        return self.cluster.network_bandwidth

    # Ending

    def complete(self, node: Node) -> None:
        done = node.complete()
        self.make_room(node)
        job = next(job for job in node.jobs if job.container is done)
        image = job.function.image
        self.end_run(job, node, done.start_time, True)
        job.finished = True
        image.last_end = self.now
        for other in self.jobs:
            before = [one for one, _ in other.predecessors]
            if job in before and all(one.finished for one in before):
                self.submit(other)
        self.release(node, image, done.memory_alloc, unused=not self.active(image))
        self.extend(node.server)
        self.due = True

    def set_slice(self, job: Job, time: float) -> None:
        self.set_timer(time, SLICE_END, job.run, partial(self.end_slice, job, job.run))

    def end_slice(self, job: Job, run: int) -> None:
        if job.run != run:
            return
        node, container = job.node, job.container
        assert node is not None and container is not None
        gives_way = bool(self.queue)
        if gives_way and self.rules.order == "srtf":
            served = job.execution + self.now - container.start_time
            left = max(0.0, job.function.execution - served)
            gives_way = self.left(self.first()) < left
        if not gives_way:
            self.set_slice(job, self.now + self.rules.time_slice)
            return
        node.remove(container, self.now)
        job.remaining = max(1, container.remaining)
        self.end_run(job, node, container.start_time, False)
        self.release(node, job.function.image, container.memory_alloc, unused=False)
        self.extend(node.server)
        self.join(job)

    def end_run(self, job: Job, node: Node, start: float, finished: bool) -> None:
        node.jobs.remove(job)
        job.execution += self.now - start
        job.run = -1
        where = (job.wf_id, job.fn_id, node.number, job.warm, finished)
        parts = (job.queueing, job.cold, job.transfer, self.now - start, job.startup)
        self.runs.append(Run(*where, job.dispatched, start, self.now, *parts))

    # Leases

    def extend(self, server: Server, starts: bool = False) -> None:
        """Rule 9: pays for whole steps up to the last projected completion, at a start for one."""
        ends = [end for node in server.nodes for end in node.completion_times()]
        if starts or max(ends, default=-math.inf) > server.expiration:
            begin = max(self.now, server.expiration)
            steps = math.ceil((max(ends) - begin) / self.rules.step)
            self.pay(server, begin, max(1, steps))

    def pay(self, server: Server, begin: float, steps: int) -> None:
        end = begin + steps * self.rules.step
        server.leases.append((begin, end, steps))
        self.set_timer(end, LEASE_END, server.number, partial(self.end_lease, server, end))

    def end_lease(self, server: Server, end: float) -> None:
        if server.expiration != end:
            return
        if self.rules.lease == "always":
            self.pay(server, end, 1)
            return
        for node in server.nodes:
            while node.idle:
                self.forget(node.idle.pop().image)
        self.due = True

    # Keeping warm

    def active(self, image: Image) -> bool:
        """Whether a request of it waits or runs."""
        return self.at_work(image) or any(job.function.image is image for job in self.queue)

    def at_work(self, image: Image) -> bool:
        return any(job.function.image is image for node in self.nodes for job in node.jobs)

    def warm(self, image: Image) -> bool:
        return any(one.image is image for node in self.nodes for one in node.idle)

    def release(self, node: Node, image: Image, memory: int, unused: bool) -> None:
        policy = self.rules.keep_alive
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
            if self.rules.keep_alive == "faascache":
                victim = min(node.idle, key=self.value)
                node.cache_clock = max(node.cache_clock, self.value(victim))
            node.idle.remove(victim)
            self.forget(victim.image)

    def prewarm(self, image: Image, number: int) -> None:
        if image.prewarming != number or self.active(image) or self.warm(image):
            return
        room = {
            node: node.free - sum(one.memory_alloc for one in node.waiting)
            for node in self.nodes
            if self.leased(node)
        }
        most = max(room, key=lambda node: room[node], default=None)
        expires = image.last_end + image.window[1]
        if most is not None and room[most] >= image.memory and expires > self.now:
            self.keep(most, image, image.memory, self.now + image.cold_start, expires)

    def window(self, times: Sequence[float]) -> tuple[float, float]:
        """Seconds from the last end to a start ahead, and to the end of keeping."""
        rules = self.rules
        if rules.keep_alive != "hybrid_histogram" or len(times) < rules.least_idle_times:
            return 0.0, rules.keep
        places = [int(time / rules.bin) for time in times]
        counts = [places.count(place) for place in range(rules.bins)]
        inside = sum(counts)
        if len(times) - inside > rules.most_out_of_bounds * len(times):
            forecast = self.forecast(times)
            return forecast * (1 - rules.forecast_margin), forecast * (1 + rules.forecast_margin)
        mean = inside / rules.bins
        deviation = math.sqrt(sum((count - mean) ** 2 for count in counts) / rules.bins)
        if deviation < rules.least_variation * mean:
            return 0.0, rules.keep
        head = self.percentile_bin(counts, rules.prewarm_percentile)
        tail = self.percentile_bin(counts, rules.keep_percentile)
        return (
            head * rules.bin * (1 - rules.margin),
            (tail + 1) * rules.bin * (1 + rules.margin),
        )

    def percentile_bin(self, counts: Sequence[int], percentile: float) -> int:
        """The first bin up to which that share of all counts was reached."""
        rank = sum(counts) * percentile / 100
        sums = [sum(counts[: place + 1]) for place in range(len(counts))]
        return next(place for place, total in enumerate(sums) if total >= rank and total > 0)
