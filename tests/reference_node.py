"""A slow, obvious model of what a NUMA node does with its containers.

Written from the rules of tests/golden alone, in plain Python: every question about the future is
answered by projecting the node again from its clock. Shares no code with the simulator.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

NO_RESOURCES: Mapping[str, int] = {}
NOBODY: Mapping[int, tuple[str, int]] = {}
"""Where tenants share cores by tickets: of each workflow the tenant, and its tickets."""


@dataclass
class ReferenceContainer:
    """A function placed on a node. `remaining` operations are those left at the node's clock."""

    wf_id: int
    fn_id: int
    computation: int
    parallelism: int
    memory_req: int
    memory_alloc: int
    creation_time: float
    start_time: float = math.nan
    completion_time: float = math.nan
    remaining: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.remaining = self.computation


@dataclass
class Moment:
    """The projected state of a node from `time` up to the next moment."""

    time: float
    running: list[int]  # positions in `admitted`
    remaining: list[int]  # of every admitted container
    speeds: list[int]  # of those running


@dataclass
class Status:
    """A node's projected use at a moment."""

    cpu: float
    memory: float
    load: float
    total_parallelism: int
    free_memory: int
    time_to_first_completion: float
    time_to_last_completion: float


class ReferenceNode:
    """A NUMA node: `admitted` containers have a start time, `waiting` ones lack something."""

    def __init__(
        self,
        cpu: int,
        memory: int,
        single_core_speed: int,
        resources: Mapping[str, int] = NO_RESOURCES,
        owners: Mapping[int, tuple[str, int]] = NOBODY,
    ) -> None:
        self.owners = owners
        self.cpu = cpu
        self.memory = memory
        self.single_core_speed = single_core_speed
        self.resources = resources
        self.clock = 0.0
        self.admitted: list[ReferenceContainer] = []
        self.waiting: list[ReferenceContainer] = []

    def speeds(self, running: Sequence[ReferenceContainer]) -> list[int]:
        """Rule 7: operations/s of each of those that run; by tickets, where they share by these."""
        total = sum(container.parallelism for container in running)
        share = self.single_core_speed
        if total > self.cpu:
            share = (self.cpu * self.single_core_speed) // total
        of_thread = self.thread_speeds(running) if self.owners else {}
        found = []
        for container in running:
            if self.owners:
                share = of_thread[self.owners[container.wf_id][0]]
            ratio = min(1.0, container.memory_alloc / container.memory_req)
            found.append(max(1, int(ratio * share * container.parallelism)))
        return found

    def thread_speeds(self, running: Sequence[ReferenceContainer]) -> dict[str, int]:
        """Operations/s of each thread by tenant: cores go by tickets to who can use them."""
        threads: dict[str, int] = {}
        tickets = {}
        for container in running:
            tenant, held = self.owners[container.wf_id]
            threads[tenant] = threads.get(tenant, 0) + container.parallelism
            tickets[tenant] = held
        found: dict[str, int] = {}
        left = Fraction(self.cpu * self.single_core_speed)
        open_ones = set(threads)
        while open_ones:
            total = sum(tickets[tenant] for tenant in open_ones)
            sated = {
                tenant
                for tenant in open_ones
                if left * tickets[tenant] / total >= threads[tenant] * self.single_core_speed
            }
            for tenant in sated:
                found[tenant] = threads[tenant] * self.single_core_speed
            left -= sum(found[tenant] for tenant in sated)
            open_ones -= sated
            if not sated:
                for tenant in open_ones:
                    found[tenant] = max(1, math.floor(left * tickets[tenant] / total))
                break
        return {tenant: speed // threads[tenant] for tenant, speed in found.items()}

    def project(self) -> tuple[list[Moment], list[float]]:
        """Rule 7: every moment from the clock on, and the completion time of every container."""
        now = self.clock
        remaining = [container.remaining for container in self.admitted]
        completion: list[float | None] = [None] * len(self.admitted)
        moments = []
        while True:
            running = [
                position
                for position, container in enumerate(self.admitted)
                if container.start_time <= now and completion[position] is None
            ]
            speeds = self.speeds([self.admitted[position] for position in running])
            moments.append(Moment(now, running, list(remaining), speeds))
            # A start (0) before a completion (1), then in order of admission.
            events = [
                (container.start_time, 0, position)
                for position, container in enumerate(self.admitted)
                if container.start_time > now
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
        idle = Moment(-math.inf, [], [container.remaining for container in self.admitted], [])
        return [moment for moment in [idle, *moments] if moment.time <= time][-1]

    def free_memory_at(self, time: float) -> int:
        """MB projected to be free at `time`."""
        running = self.moment_at(time).running
        return self.memory - sum(self.admitted[position].memory_alloc for position in running)

    def left(self, name: str) -> int:
        """Units of a named resource that no admitted container holds, whether it has started."""
        held = sum(container.resources.get(name, 0) for container in self.admitted)
        return self.resources.get(name, 0) - held

    def has_left(self, resources: Mapping[str, int]) -> bool:
        """Whether all of these named resources are there now."""
        return all(units <= self.left(name) for name, units in resources.items())

    def completion_times(self) -> list[float]:
        """Projected completion time of every admitted container, in order of admission."""
        return self.project()[1]

    def status_at(self, time: float) -> Status:
        """The node's projected use at `time`."""
        moment = self.moment_at(time)
        ends = self.completion_times()
        total = sum(self.admitted[position].parallelism for position in moment.running)
        free = self.free_memory_at(time)
        return Status(
            cpu=sum(moment.speeds) / (self.cpu * self.single_core_speed),
            memory=(self.memory - free) / self.memory,
            load=total / self.cpu,
            total_parallelism=total,
            free_memory=free,
            time_to_first_completion=min(ends) - time if ends else 0.0,
            time_to_last_completion=max(ends) - time if ends else 0.0,
        )

    def place(self, container: ReferenceContainer) -> None:
        """Rule 5: the container starts at its creation time if it fits then, or else waits."""
        if not self._try_to_admit(container, container.creation_time):
            self.waiting.append(container)

    def complete(self) -> ReferenceContainer:
        """Rules 8 and 6: the earliest container completes, those waiting are tried in order."""
        ends = self.completion_times()
        time, chosen = min((time, position) for position, time in enumerate(ends))
        # At equal times the moments differ only in who is still counted; the last one is settled.
        remaining = self.moment_at(time).remaining
        for position, container in enumerate(self.admitted):
            container.remaining = remaining[position]
        done = self.admitted.pop(chosen)
        done.completion_time = time
        self.clock = time
        while self.waiting:
            head = self.waiting[0]
            if not self._try_to_admit(head, max(time, head.creation_time)):
                break
            self.waiting.pop(0)
        return done

    def _try_to_admit(self, container: ReferenceContainer, time: float) -> bool:
        fits = self.free_memory_at(time) >= container.memory_alloc
        fits = fits and self.has_left(container.resources)
        if fits:
            container.start_time = time
            self.admitted.append(container)
        return fits
