"""What the reference world is made of: options, what is declared, and what is where.

What a node does with its containers is tests/reference_node.py.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from env.sim.declared.hardware import ServerType
from tests.reference_node import ReferenceContainer, ReferenceNode


@dataclass(frozen=True)
class Rules:
    """Options.

    `dispatch` is immediate or queued; `lease` hourly or always, in steps of `step` seconds, and
    `charged` says whether the latter is paid for; `order` is rank, srtf or funcsched; `placement`
    first_fit, best_fit, worst_fit or asked. Where tenants share cores by tickets, `owners` has the
    tenant and the tickets of each workflow. The rest as in the configuration.
    """

    dispatch: str = "queued"
    patience: float = math.inf
    lease: str = "always"
    step: float = 3600.0
    charged: bool = False
    order: str = "rank"
    time_slice: float = math.inf
    starve_threshold: float = math.inf
    placement: str = "first_fit"
    keep_alive: str = "none"
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
    owners: Mapping[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(eq=False)
class Image:
    """What containers are started from; `memory` is the most that one of its functions needs."""

    cold_start: float
    memory: int = 0
    frequency: int = 0
    last_end: float = math.nan
    idle_times: list[float] = field(default_factory=list)
    window: tuple[float, float] = (0.0, 0.0)
    prewarming: int = -1


@dataclass(frozen=True)
class Function:
    """What is declared: `execution` is E, `rank` the place in a fixed order, `memory` in MB."""

    image: Image
    execution: float
    parallelism: int
    memory: int
    rank: float = 0.0
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Job:
    """A function of a workflow. `computation` is the draw; predecessors are (job, bytes)."""

    wf_id: int
    fn_id: int
    function: Function
    computation: int
    arrival: float
    predecessors: "list[tuple[Job, int]]" = field(default_factory=list)
    submission: float = math.nan
    joined: float = math.nan
    number: int = -1
    remaining: int = 0
    node: "Node | None" = None
    container: ReferenceContainer | None = None
    dispatched: float = math.nan
    warm: bool = False
    run: int = -1
    finished: bool = False
    queueing: float = 0.0
    startup: float = 0.0
    cold: float = 0.0
    transfer: float = 0.0
    execution: float = 0.0


class Run(NamedTuple):
    """A job in a container, from dispatch to end; the last five are the parts of its seconds."""

    wf_id: int
    fn_id: int
    node: int
    warm: bool
    finished: bool
    dispatched: float
    start: float
    end: float
    queueing: float
    cold: float
    transfer: float
    execution: float
    startup: float


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
    """`leases` has (begin, end, steps paid) of every lease and of every extension of one."""

    kind: ServerType
    number: int
    nodes: "list[Node]" = field(default_factory=list)
    leases: list[tuple[float, float, int]] = field(default_factory=list)
    starts: int = 0

    @property
    def expiration(self) -> float:
        return self.leases[-1][1] if self.leases else -math.inf

    @property
    def steps(self) -> int:
        return sum(steps for _, _, steps in self.leases)


class Node(ReferenceNode):
    """`jobs` are those whose containers run or wait on it; `idle` the oldest first."""

    def __init__(
        self,
        server: Server,
        number: int,
        single_core_speed: int,
        owners: Mapping[int, tuple[str, int]],
    ) -> None:
        kind = server.kind
        super().__init__(kind.cpu, kind.memory, single_core_speed, kind.resources, owners)
        self.server = server
        self.number = number
        self.jobs: list[Job] = []
        self.idle: list[Idle] = []
        self.cache_clock = 0.0

    def holds(self, function: Function, memory: int) -> bool:
        """Whether the empty node could hold a container of the function."""
        named = function.resources.items()
        enough = all(units <= self.resources.get(name, 0) for name, units in named)
        return self.memory >= memory and enough

    @property
    def available(self) -> int:
        return self.memory - sum(one.memory_alloc for one in self.admitted)

    @property
    def free(self) -> int:
        return self.available - sum(one.memory for one in self.idle)

    def remove(self, container: ReferenceContainer, time: float) -> None:
        """Takes out a container in the midst of its work; `remaining` is what is left of it."""
        moment = self.moment_at(time)
        speeds = dict(zip(moment.running, moment.speeds, strict=True))
        for position, one in enumerate(self.admitted):
            done = int(speeds[position] * (time - moment.time)) if position in speeds else 0
            one.remaining = max(0, moment.remaining[position] - done)
        self.clock = time
        self.admitted.remove(container)
