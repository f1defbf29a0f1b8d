"""The rows of episode files: what was declared, what was decided, and what came of it.

Field names carry their units.
"""

import math
from typing import Annotated, Final, Literal, get_args

import numpy as np
from pydantic import Field

from env.base.schema import Strict, TenantName
from env.sim.declared.bounds import LARGEST_WORK, LONGEST, Cores, Memory, Name, Seconds, Whole
from env.sim.declared.workflow_template import WorkflowTemplate
from env.tickets.amounts import Tickets

# What came of an episode has no bound of its own: those of its inputs keep it finite.
Amount = Annotated[float, Field(strict=True, ge=0)]
Work = Annotated[int, Field(strict=True, ge=1, le=LARGEST_WORK)]
Moment = Annotated[float, Field(strict=True, ge=-LONGEST, le=LONGEST)]

PARTS: Final = {
    "queueing_time": "queueing_time",
    "server_start_time": "server_start_time",
    "container_cold_start_time": "cold_start_time",
    "data_transfer_time": "data_transfer_time",
    "execution_time": "execution_time",
}
"""Of the time of a run: fields of a `RunModel` and of a RUN record."""
MOMENTS: Final = ("submission_time", "joined_time", "dispatch_time", "start_time", "end_time")
"""Of a run, in their order."""


Outcome = Literal["completed", "preempted", "killed"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""Of a run, in the order of their numbers in env/sim/state/records.py."""


class FunctionModel(Strict):
    """A function: operations, MB, and the cores it can use; its name, if it has one.

    `image` where functions belong to images, `rank` where the order of the queue goes by it.
    """

    function_id: Whole
    name: Name | None = None
    computation: Work
    memory_required_mb: Memory
    parallelism: Cores
    image: Whole | None = None
    rank: Annotated[float, Field(strict=True)] | None = None


class EdgeModel(Strict):
    """`data_bytes` move from function `source` to function `target`."""

    source: Whole
    target: Whole
    data_bytes: Whole


class WorkflowModel(Strict):
    """A workflow, its name, when it arrives (s), and whose it is: all have a tenant, or none.

    `work` is what is drawn for its only function, in operations; `tickets` are those it has of its
    tenant's own currency, where these count.
    """

    workflow_id: Whole
    name: Name | None = None
    arrival_time: Seconds
    tenant: TenantName | None = None
    work: Work | None = None
    tickets: Tickets | None = None
    functions: Annotated[tuple[FunctionModel, ...], Field(min_length=1)]
    edges: tuple[EdgeModel, ...] = ()

    def template(self) -> WorkflowTemplate:
        """The same as the simulator takes it; function k has id k.

        Raises:
            InputError: an edge leads nowhere or is declared twice, or the graph has a cycle.
        """
        names = [function.name for function in self.functions]
        return WorkflowTemplate(
            name=self.name or unnamed(self.workflow_id),
            function_names=tuple(name or str(at) for at, name in enumerate(names))
            if any(names)
            else (),
            computation=np.array([function.computation for function in self.functions]),
            memory_req=np.array([function.memory_required_mb for function in self.functions]),
            parallelism=np.array([function.parallelism for function in self.functions]),
            edges=np.array(
                [(edge.source, edge.target) for edge in self.edges], dtype=np.int64
            ).reshape(-1, 2),
            data_bytes=np.array([edge.data_bytes for edge in self.edges], dtype=np.int64),
        )


def unnamed(workflow_id: int) -> str:
    """What a workflow without a name is called."""
    return f"workflow {workflow_id}"


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


class PlacedModel(Strict):
    """A function, and where and with how much memory (MB) it runs."""

    workflow_id: Whole
    function_id: Whole
    server_type: Name
    server_index: Whole
    numa_node_index: Whole
    memory_allocated_mb: Memory

    @property
    def function(self) -> tuple[int, int]:
        """(workflow, function)."""
        return self.workflow_id, self.function_id

    @property
    def place(self) -> tuple[str, int, int]:
        """(server type, server, NUMA node)."""
        return self.server_type, self.server_index, self.numa_node_index

    def __str__(self) -> str:
        return f"{named(self.function)} on {placed_at(*self.place)}"


class ActionModel(PlacedModel):
    """What is decided of a function; where the order is `chosen`, with the moment (s)."""

    dispatch_time: Seconds | None = None


Condition = Literal["in service", "draining", "down"]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
"""In the order of their numbers in env/sim/state/records.py."""


class ChangeModel(Strict):
    """A server has another condition from a moment (s) on, after so many events of the episode."""

    time: Seconds
    server_type: Name
    server_index: Whole
    condition: Condition
    events: Whole


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


class WarmModel(Strict):
    """A container that was warm and idle (s); without `end_time` it was so at the end."""

    server_type: Name
    server_index: Whole
    numa_node_index: Whole
    image: Whole
    memory_mb: Memory
    begin_time: Amount
    end_time: Amount | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """(server type, server, NUMA node)."""
        return self.server_type, self.server_index, self.numa_node_index

    @property
    def end(self) -> float:
        """Seconds; inf without `end_time`."""
        return math.inf if self.end_time is None else self.end_time


class ServerLeaseModel(Strict):
    """What a server was leased for (s), and its rent (USD); a lease without end is left out."""

    server_type: Name
    server_index: Whole
    lease_seconds: Amount
    lease_expiration_time: Amount | None = None
    rent: Amount


class Results(Strict):
    """Everything that comes of an episode; runs in the order of their dispatch."""

    runs: tuple[RunModel, ...]
    warm_containers: tuple[WarmModel, ...] = ()
    servers: tuple[ServerLeaseModel, ...]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: tuple[Amount, ...]


def named(function: tuple[int, int]) -> str:
    """What lines call a function."""
    return f"workflow {function[0]} function {function[1]}"


def placed_at(server_type: str, server_index: int, numa_node_index: int) -> str:
    """What lines call a NUMA node."""
    return f"{server_type} {server_index} node {numa_node_index}"
