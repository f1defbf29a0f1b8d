"""The shape of episode files: a cluster, workflows, the rules, what was decided and its results.

Field names carry their units.
"""

import math
from itertools import chain
from typing import Annotated, Final, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from env.base.schema import Strict, TenantName
from env.resources.quantity import as_number
from env.sim.declared.bounds import (
    LARGEST_WHOLE,
    LARGEST_WORK,
    LONGEST,
    Cores,
    Memory,
    Name,
    NamedResources,
    Probability,
    Seconds,
    Whole,
)
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.keep_alive_policy import KeepAlivePolicy, NoKeepAlive
from env.sim.declared.ordering import Sharing
from env.sim.declared.regions import ANYWHERE, Regions
from env.sim.declared.rules import HOURLY, Lease, Placement
from env.sim.declared.server_changes import Recovery
from env.sim.declared.workflow_template import WorkflowTemplate
from env.tickets.rights import Tickets

# Results have no bounds: the bounds of the inputs keep them finite.
Amount = Annotated[float, Field(strict=True, ge=0)]
Work = Annotated[int, Field(strict=True, ge=1, le=LARGEST_WORK)]
Moment = Annotated[float, Field(strict=True, ge=-LONGEST, le=LONGEST)]
TimeSlice = Annotated[float, Field(strict=True, ge=1e-3, le=LONGEST)]
TurnsSeed = Annotated[int, Field(strict=True, ge=0, lt=2**64)]

MOMENTS: Final = ("submission_time", "joined_time", "dispatch_time", "start_time", "end_time")
"""Of a run, in their order."""

Outcome = Literal["completed", "preempted", "killed"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""Of a run, in the order of their numbers in env/sim/state/records.py."""

Condition = Literal["in service", "draining", "down"]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
"""Of a server, in the order of their numbers in env/sim/state/records.py."""

Reason = Literal["predecessor", "retries", "no server", "not called"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
"""Why functions do not finish: those of failures in the order of their numbers from 1 in
env/sim/state/change_records.py, then that of conditional calls."""

OrderName = Literal["by_rank", "shortest_remaining", "funcsched", "chosen", "by_workflow"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)
"""In the order of their numbers in env/sim/queue/central_queue.py."""
WITHIN: Final[tuple[OrderName, ...]] = ("by_rank", "funcsched", "by_workflow")
"""Orders within a tenant, where tenants take turns."""


class FunctionModel(Strict):
    """A function: operations, MB, and the cores it can use; its name, if it has one.

    `resources` is what it needs of named ones, `regions` where it may run, `image` where functions
    belong to images, `rank` where the order of the queue goes by it.
    """

    function_id: Whole
    name: Name | None = None
    computation: Work
    memory_required_mb: Memory
    parallelism: Cores
    resources: NamedResources | None = None
    regions: Regions | None = None
    image: Whole | None = None
    rank: Annotated[float, Field(strict=True)] | None = None


class EdgeModel(Strict):
    """`data_bytes` move from function `source` to function `target`, which it may call or not."""

    source: Whole
    target: Whole
    data_bytes: Whole
    probability: Probability | None = None  # of the call; without one it is certain


class WorkflowModel(Strict):
    """A workflow, its name, when it arrives (s), and whose it is: all have a tenant, or none.

    `work` is what is drawn for its only function, in operations; `tickets` are in the currency of
    its tenant, where these count; `chosen_regions` are those that somebody chose for its functions.
    """

    workflow_id: Whole
    name: Name | None = None
    arrival_time: Seconds
    tenant: TenantName | None = None
    work: Work | None = None
    tickets: Tickets | None = None
    chosen_regions: tuple[Name | None, ...] | None = None
    functions: Annotated[tuple[FunctionModel, ...], Field(min_length=1)]
    edges: tuple[EdgeModel, ...] = ()

    def template(self) -> WorkflowTemplate:
        """The same as the simulator takes it; function k has id k.

        Raises:
            InputError: an edge leads nowhere or is declared twice, or the graph has a cycle.
        """
        units = [each.resources or {} for each in self.functions]
        names = tuple(each.name or str(at) for at, each in enumerate(self.functions))
        return WorkflowTemplate(
            name=self.name or "",
            computation=np.array([function.computation for function in self.functions]),
            memory_req=np.array([function.memory_required_mb for function in self.functions]),
            parallelism=np.array([function.parallelism for function in self.functions]),
            edges=np.array([(edge.source, edge.target) for edge in self.edges]),
            data_bytes=np.array([edge.data_bytes for edge in self.edges], np.int64),
            function_names=names if any(each.name for each in self.functions) else (),
            where=f"workflow {self.workflow_id}",
            resources={
                name: np.array([as_number(each.get(name, 0)) for each in units])
                for name in dict.fromkeys(chain.from_iterable(units))
            },
            probability=np.array([edge.probability or 1.0 for edge in self.edges]),
            regions=tuple(each.regions or ANYWHERE for each in self.functions)
            if any(each.regions for each in self.functions)
            else (),
        )


class ImageModel(Strict):
    """What containers are started from: seconds until one has started, and MB, 0 if none is."""

    image_id: Whole
    container_cold_start: Seconds
    memory_mb: Whole


class EarlierModel(Strict):
    """An execution of an image before time 0, of which the keep-alive policy knows (s)."""

    image: Whole
    begin: Moment
    end: Moment


class OfFunction(Strict):
    """What is said of a function of a workflow."""

    workflow_id: Whole
    function_id: Whole

    @property
    def function(self) -> tuple[int, int]:
        """(workflow, function)."""
        return self.workflow_id, self.function_id


class OfServer(Strict):
    """What is said of a server."""

    server_type: Name
    server_index: Whole

    @property
    def server(self) -> tuple[str, int]:
        """(server type, server)."""
        return self.server_type, self.server_index


class OfNode(OfServer):
    """What is said of a NUMA node, which lines call as it prints itself."""

    numa_node_index: Whole

    @property
    def place(self) -> tuple[str, int, int]:
        """(server type, server, NUMA node)."""
        return *self.server, self.numa_node_index

    def __str__(self) -> str:
        return f"{self.server_type} {self.server_index} node {self.numa_node_index}"


class PlacedModel(OfNode, OfFunction):
    """A function, and where and with how much memory (MB) it runs."""

    memory_allocated_mb: Memory

    def __str__(self) -> str:
        return f"{named(self.function)} on {super().__str__()}"


class ActionModel(PlacedModel):
    """What is decided of a function; where the order is `chosen`, with the moment (s)."""

    dispatch_time: Seconds | None = None


class ChangeModel(OfServer):
    """A server has another condition from a moment (s) on, after so many events of the episode.

    Without `events` it has it from the start.
    """

    time: Seconds
    condition: Condition
    events: Whole | None = None


class RunModel(PlacedModel):
    """A function's time in one container: its moments and the parts of its time (s).

    `joined` and `dispatched` count events of the central queue: the smaller one came first.
    """

    warm: Annotated[bool, Field(strict=True)]
    outcome: Outcome
    submission_time: Amount
    joined_time: Amount
    dispatch_time: Amount
    start_time: Amount
    end_time: Amount
    queueing_time: Amount
    server_start_time: Amount
    container_cold_start_time: Amount
    data_transfer_time: Amount
    execution_time: Amount
    joined: Whole | None = None
    dispatched: Whole | None = None


class WarmModel(OfNode):
    """A container that was warm and idle (s); without `end_time` it was so at the end."""

    image: Whole
    memory_mb: Memory
    begin_time: Amount
    end_time: Amount | None = None

    @property
    def end(self) -> float:
        """Seconds; inf without `end_time`."""
        return math.inf if self.end_time is None else self.end_time


class ServerLeaseModel(OfServer):
    """What a server was leased for (s), and its rent (USD); a lease without end is left out.

    `egress` is what was paid (USD) for data that it read from other regions.
    """

    lease_seconds: Amount
    lease_expiration_time: Amount | None = None
    rent: Amount
    egress: Amount | None = None


class UnfinishedModel(OfFunction):
    """A function that has failed or that nobody has called, when (s) and why."""

    time: Amount
    reason: Reason


class Results(Strict):
    """Everything that comes of an episode; runs in the order of their dispatch."""

    runs: tuple[RunModel, ...]
    unfinished: tuple[UnfinishedModel, ...] = ()
    warm_containers: tuple[WarmModel, ...] = ()
    servers: tuple[ServerLeaseModel, ...]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: tuple[Amount, ...]


class QueueModel(Strict):
    """The central queue: which function is scheduled next, and where. Left-out times are never."""

    order: OrderName  # `by_rank`: the smallest `rank` first; `chosen`: as the actions say
    time_slice: TimeSlice | None = None  # seconds after which a run can be preempted
    starve_threshold: Seconds | None = None  # of waiting, after which the oldest goes first
    placement: Placement  # who names the node; `asked`: the actions do
    patience: Seconds | None = None  # of waiting, after which a server may be started
    sharing: Sharing | None = None  # how tenants take turns; then `order` is that within a tenant
    turns_seed: TurnsSeed | None = None  # of what is drawn for these turns
    lends: bool | None = None  # `by_workflow`: waiting functions lend their tickets

    @model_validator(mode="after")
    def _order_is_one_within_tenants(self) -> Self:
        if self.sharing is None:
            if self.order == "by_workflow":
                raise ValueError("sharing: missing, order 'by_workflow' needs it")
        elif self.order not in WITHIN or self.time_slice is not None:
            raise ValueError(
                f"order '{self.order}' and time_slice {self.time_slice} found, with sharing "
                f"{' and '.join(WITHIN)} are allowed, without a time_slice"
            )
        return self


class RecoveryModel(Recovery):
    """What becomes of killed functions, and the seed of what is drawn for it."""

    seed: TurnsSeed


class Options(Strict):
    """How the world works; without `queue` each function is placed once it is ready.

    Without `recovery` no function ever fails. `calls_seed` is there where calls are conditional: a
    function that ends calls another if `calls` of env/sim/state/draws.py says so. `begin_hour` is
    time 0 in hours of the carbon intensities, where it is not 0.
    """

    queue: QueueModel | None = None
    lease: Lease = HOURLY
    keep_alive: KeepAlivePolicy = NoKeepAlive()
    recovery: RecoveryModel | None = None
    calls_seed: TurnsSeed | None = None  # of what is drawn of conditional calls
    begin_hour: Annotated[int, Field(ge=1, le=LARGEST_WHOLE)] | None = None

    @property
    def seed(self) -> int:
        """Of the episode, wherever it is stated; 0 where nothing is drawn."""
        stated = [self.calls_seed]
        stated += [part.seed for part in (self.recovery,) if part is not None]
        stated += [part.turns_seed for part in (self.queue,) if part is not None]
        return next((each for each in stated if each is not None), 0)


class EpisodeFile(Strict):
    """A whole episode."""

    format: Literal[2] = 2
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()  # what it is an example of
    options: Options = Options()
    cluster: ClusterConfig
    images: tuple[ImageModel, ...] = ()
    earlier: tuple[EarlierModel, ...] = ()
    funding: Funding | None = None  # the tickets of the tenants whose workflows arrive
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...] = ()  # decisions that the engine did not take, in their order
    changes: tuple[ChangeModel, ...] = ()  # of servers, in their order
    expected: Results | None = None  # what came of it

    @property
    def functions(self) -> dict[tuple[int, int], FunctionModel]:
        """All that is declared, by (workflow, function)."""
        return {
            (workflow.workflow_id, function.function_id): function
            for workflow in self.workflows
            for function in workflow.functions
        }

    def templates(self) -> list[WorkflowTemplate]:
        """One a workflow; the same object for workflows of which the same is declared."""
        fields = {"name", "functions", "edges"}
        declared = [each.model_dump_json(include=fields) for each in self.workflows]
        made = {key: each.template() for key, each in zip(declared, self.workflows, strict=True)}
        return [made[key] for key in declared]


def named(function: tuple[int, int]) -> str:
    """What lines call a function."""
    return f"workflow {function[0]} function {function[1]}"
