"""An episode file as a whole: a cluster, workflows, the rules, what was decided and its results."""

from dataclasses import replace
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from env.base.schema import Strict
from env.sim.declared.bounds import LONGEST, Seconds
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.keep_alive_policy import KeepAlivePolicy, NoKeepAlive
from env.sim.declared.ordering import Sharing
from env.sim.declared.rules import HOURLY, Lease, Placement
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.rows import (
    ActionModel,
    ChangeModel,
    EarlierModel,
    FunctionModel,
    ImageModel,
    Results,
    WorkflowModel,
)

TurnsSeed = Annotated[int, Field(strict=True, ge=0, lt=2**64)]

OrderName = Literal["by_rank", "shortest_remaining", "funcsched", "chosen", "by_workflow"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)
"""In the order of their numbers in env/sim/queue/central_queue.py."""
WITHIN: Final[tuple[OrderName, ...]] = ("by_rank", "funcsched", "by_workflow")
"""Orders within a tenant, where tenants take turns."""


class QueueModel(Strict):
    """The central queue: which function is scheduled next, and where.

    Attributes:
        order: `by_rank`: the smallest `rank` of a function first. `chosen`: as the actions say.
        time_slice: seconds after which a run can be preempted; left out: none is.
        starve_threshold: seconds of waiting after which the oldest goes first; left out: never.
        placement: who names the node; `asked`: the actions do.
        patience: seconds of waiting after which a server may be started; left out: never.
        sharing: how tenants take turns by their tickets, so that `order` is that within a tenant;
            left out: they do not.
        turns_seed: of what is drawn for that.
        lends: of the order `by_workflow`, whether functions that wait for others lend these their
            tickets.
    """

    order: OrderName
    time_slice: Annotated[float, Field(strict=True, ge=1e-3, le=LONGEST)] | None = None
    starve_threshold: Seconds | None = None
    placement: Placement
    patience: Seconds | None = None
    sharing: Sharing | None = None
    turns_seed: TurnsSeed | None = None
    lends: bool | None = None

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


class Options(Strict):
    """How the world works; without `queue` each function is placed once it is ready."""

    queue: QueueModel | None = None
    lease: Lease = HOURLY
    keep_alive: KeepAlivePolicy = NoKeepAlive()


class EpisodeFile(Strict):
    """A whole episode.

    Attributes:
        exercises: what it is an example of.
        earlier: executions before time 0.
        funding: the tickets of the tenants whose workflows arrive.
        actions: one a decision that the engine did not take, in the order of the decisions.
        changes: of servers, in their order.
        expected: what came of it.
    """

    format: Literal[2] = 2
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: Options = Options()
    cluster: ClusterConfig
    images: tuple[ImageModel, ...] = ()
    earlier: tuple[EarlierModel, ...] = ()
    funding: Funding | None = None
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...] = ()
    changes: tuple[ChangeModel, ...] = ()
    expected: Results | None = None

    @property
    def arrival_times(self) -> list[float]:
        """Seconds, one a workflow."""
        return [workflow.arrival_time for workflow in self.workflows]

    @property
    def tenants(self) -> list[str]:
        """One a workflow; empty where nobody is told apart."""
        return [workflow.tenant for workflow in self.workflows if workflow.tenant is not None]

    @property
    def functions(self) -> dict[tuple[int, int], FunctionModel]:
        """All that is declared, by (workflow, function)."""
        return {
            (workflow.workflow_id, function.function_id): function
            for workflow in self.workflows
            for function in workflow.functions
        }

    @property
    def node_memory(self) -> dict[tuple[str, int, int], int]:
        """MB of every NUMA node, by (server type, server, NUMA node)."""
        return {
            (declared.name, server, node): declared.memory
            for declared in self.cluster.server_types
            for server in range(declared.count)
            for node in range(declared.numa_nodes)
        }

    def templates(self) -> list[WorkflowTemplate]:
        """One a workflow; the same object for workflows of which the same is declared.

        Those without a name are called "".
        """
        declared = [(each.name, each.functions, each.edges) for each in self.workflows]
        made = {key: each.template() for key, each in zip(declared, self.workflows, strict=True)}
        made |= {key: replace(each, name="") for key, each in made.items() if key[0] is None}
        return [made[key] for key in declared]
