"""Episode files of format 2: any world, said in the terms of env/sim.

All that happened is the list of runs: a function has several where it is preempted. Actions are
what others than the engine have decided.
"""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, short
from env.sim.bounds import LONGEST
from env.sim.cluster_file import Memory, Name, Seconds, Whole
from env.sim.episode.episode_parts import (
    ActionModel,
    Amount,
    EpisodeFile,
    FunctionModel,
    PlacedModel,
    Work,
    WorkflowModel,
    check_ids,
)
from env.sim.funding import Funding
from env.sim.keep_alive_policy import KeepAlivePolicy, NoKeepAlive
from env.sim.ordering import Sharing
from env.sim.rules import HOURLY, Lease, Placement
from env.sim.workflow_template import WorkflowTemplate
from env.tickets.amounts import Tickets

Moment = Annotated[float, Field(strict=True, ge=-LONGEST, le=LONGEST)]
Rank = Annotated[float, Field(strict=True)]
TurnsSeed = Annotated[int, Field(strict=True, ge=0, lt=2**64)]

PARTS: Final = {
    "queueing_time": "queueing_time",
    "server_start_time": "server_start_time",
    "container_cold_start_time": "cold_start_time",
    "data_transfer_time": "data_transfer_time",
    "execution_time": "execution_time",
}
"""Of the time of a run: fields of a `RunModel` and of a RUN record, which sums up all runs."""

OrderName = Literal["by_rank", "shortest_remaining", "funcsched", "chosen", "by_workflow"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)
"""In the order of their numbers in env/sim/central_queue.py."""
WITHIN: Final[tuple[OrderName, ...]] = ("by_rank", "funcsched", "by_workflow")
"""Orders within a tenant, where tenants take turns."""


class QueueModel(Strict):
    """The central queue: who goes next, and where.

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


class WorldOptions(Strict):
    """How the world works; without `queue` each function is placed once it is ready."""

    queue: QueueModel | None = None
    lease: Lease = HOURLY
    keep_alive: KeepAlivePolicy = NoKeepAlive()


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


class WorldFunction(FunctionModel):
    """A function with its image, and its rank where the order of the queue goes by it."""

    image: Whole | None = None
    rank: Rank | None = None


class WorldWorkflow(WorkflowModel):
    """A workflow; `work` is what is drawn for its only function, in operations.

    `tickets` are those it has of its tenant's own currency, where these count.
    """

    work: Work | None = None
    tickets: Tickets | None = None
    functions: Annotated[tuple[WorldFunction, ...], Field(min_length=1)]


class WorldAction(ActionModel):
    """An action; where the order is `chosen`, with the moment (s) at which it is taken."""

    dispatch_time: Seconds | None = None


class RunModel(PlacedModel):
    """A function's time in one container: its moments and the parts of its time (s).

    `joined` and `dispatched` count events of the central queue: the smaller one came first.
    """

    warm: Annotated[bool, Field(strict=True)]
    outcome: Literal["completed", "preempted"]
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


class ServerLeaseModel(Strict):
    """What a server was leased for (s), and its rent (USD); a lease without end is left out."""

    server_type: Name
    server_index: Whole
    lease_seconds: Amount
    lease_expiration_time: Amount | None = None
    rent: Amount


class RunResults(Strict):
    """Everything that comes of an episode; runs in the order of their dispatch."""

    runs: tuple[RunModel, ...]
    warm_containers: tuple[WarmModel, ...] = ()
    servers: tuple[ServerLeaseModel, ...]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: tuple[Amount, ...]


class WorldEpisode(EpisodeFile):
    """A whole episode of any world; `funding`: the tickets of those whose workflows arrive."""

    format: Literal[2] = 2
    options: WorldOptions
    images: tuple[ImageModel, ...] = ()
    earlier: tuple[EarlierModel, ...] = ()
    funding: Funding | None = None
    workflows: Annotated[tuple[WorldWorkflow, ...], Field(min_length=1)]
    actions: tuple[WorldAction, ...] = ()
    expected: RunResults | None = None

    def templates(self) -> list[WorkflowTemplate]:
        """One a workflow; the same object for workflows of which the same is declared."""
        declared = [(workflow.functions, workflow.edges) for workflow in self.workflows]
        made = {
            key: workflow.template() for key, workflow in zip(declared, self.workflows, strict=True)
        }
        return [made[key] for key in declared]

    def check_references(self) -> None:
        """See `EpisodeFile`; images and ranks are there where they are needed, and there alone."""
        super().check_references()
        options = self.options
        check_ids("images", [image.image_id for image in self.images])
        if not self.images and (options.queue or options.keep_alive.policy != "none"):
            raise InputError("images: none found, a queue or a keep-alive policy needs them")
        for index, execution in enumerate(self.earlier):
            self._check_image(f"earlier.{index}", execution.image)
        if self.earlier and options.keep_alive.history[1] == 0:
            raise InputError(
                f"earlier: {len(self.earlier)} found, keep_alive "
                f"'{options.keep_alive.policy}' knows of none"
            )
        drawn = sum(workflow.work is not None for workflow in self.workflows)
        if 0 < drawn < len(self.workflows):
            raise InputError(
                f"workflows: {drawn} of {len(self.workflows)} have work, all or none are needed"
            )
        for workflow in self.workflows:
            where = f"workflows.{workflow.workflow_id}"
            if workflow.work and len(workflow.functions) > 1:
                raise InputError(
                    f"{where}.work: {len(workflow.functions)} functions, work is drawn of 1"
                )
            for function in workflow.functions:
                self._check_function(f"{where}.functions.{function.function_id}", function)
        self._check_funding()
        self._check_turns()
        self._check_actions()

    def _check_function(self, where: str, function: WorldFunction) -> None:
        self._check_image(where, function.image)
        queue = self.options.queue
        by_rank = queue is not None and queue.order == "by_rank"
        if by_rank != (function.rank is not None):
            needed = "needed with" if by_rank else "allowed only with"
            raise InputError(f"{where}.rank: {function.rank} found, it is {needed} order 'by_rank'")

    def _check_image(self, where: str, image: int | None) -> None:
        count = len(self.images)
        if (image is None) != (count == 0) or (image is not None and image >= count):
            allowed = f"allowed are 0 to {count - 1}" if count else "there are no images"
            raise InputError(f"{where}.image: {image} found, {allowed}")
        if image is not None and self.images[image].memory_mb < 1:
            raise InputError(
                f"images.{image}.memory_mb: 0 found, a function of it needs at least 1"
            )

    def _check_funding(self) -> None:
        if self.funding is None:
            if self.cluster.cpu_share == "tickets":
                raise InputError("funding: missing, cluster.cpu_share needs it")
            return
        if self.options.queue is None and self.cluster.cpu_share != "tickets":
            raise InputError(
                "funding: found, it is allowed only with options.queue or cluster.cpu_share"
            )
        for workflow in self.workflows:
            if workflow.tenant not in self.funding.tenants:
                raise InputError(
                    f"workflows.{workflow.workflow_id}.tenant: {short(workflow.tenant)} found, "
                    "one of funding.tenants is needed"
                )

    def _check_turns(self) -> None:
        queue, where = self.options.queue, "options.queue"
        counts = queue is not None and queue.order == "by_workflow"
        for workflow in self.workflows:
            if counts != (workflow.tickets is not None):
                needed = "needed with" if counts else "allowed only with"
                raise InputError(
                    f"workflows.{workflow.workflow_id}.tickets: {workflow.tickets} found, it is "
                    f"{needed} order 'by_workflow'"
                )
        if queue is None:
            return
        if (queue.sharing is None) != (queue.turns_seed is None):
            needed = "allowed only" if queue.sharing is None else "needed"
            raise InputError(
                f"{where}.turns_seed: {queue.turns_seed} found, it is {needed} with {where}.sharing"
            )
        if counts != (queue.lends is not None):
            needed = "needed with" if counts else "allowed only with"
            raise InputError(
                f"{where}.lends: {queue.lends} found, it is {needed} order 'by_workflow'"
            )
        if queue.sharing is None:
            if counts:
                raise InputError(f"{where}.sharing: missing, order 'by_workflow' needs it")
            return
        if self.funding is None:
            raise InputError(f"funding: missing, {where}.sharing needs it")
        if queue.order not in WITHIN:
            raise InputError(
                f"{where}.order: '{queue.order}' found, with sharing {' and '.join(WITHIN)} are "
                "allowed"
            )
        if queue.time_slice is not None:
            raise InputError(
                f"{where}.time_slice: {queue.time_slice} found, none is allowed with sharing"
            )

    def _check_actions(self) -> None:
        queue = self.options.queue
        if queue is None:
            self.check_placed_once()
        chosen = queue is not None and queue.order == "chosen"
        if queue is not None and not chosen and queue.placement != "asked" and self.actions:
            raise InputError(
                f"actions: {len(self.actions)} found, order '{queue.order}' and placement "
                f"'{queue.placement}' need none"
            )
        for index, action in enumerate(self.actions):
            if chosen != (action.dispatch_time is not None):
                needed = "needed with" if chosen else "allowed only with"
                raise InputError(
                    f"actions.{index}.dispatch_time: {action.dispatch_time} found, it is {needed} "
                    "order 'chosen'"
                )
