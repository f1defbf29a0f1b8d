"""Who decides what: config group `agents`, and the kinds of decision that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from env.base.jit import compiled, places
from env.base.schema import ASCENDING, Strict, distinct
from env.learn.kind import CHOICE, EPISODE, Agent, Environments, Kind, Turn
from env.learn.observation import (
    CONTEXT_FEATURES,
    CRITIC_FEATURES,
    LOG_50,
    NODE_FEATURES,
    REGION_FEATURES,
    log_of,
)
from env.learn.placing import at_once, by_bids, by_groups
from env.learn.queue_agent import QueueAgent
from env.learn.region import region_of
from env.learn.scaler import scaler_of
from env.learn.tenant_agents import TenantAgents
from env.learn.workflow_window import FUNCTION_FEATURES
from env.score.greedy_score import ScoreWeights, leased_cores
from env.score.reward import Objective
from env.sim.declared.aside import DecisionKind
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.rules import Placement as PlacementRule
from env.sim.events.choosing import FIRST
from env.sim.state.block import State
from env.sim.state.records import ASIDE, CANDIDATE

ASKED_CONTEXT: Final = (
    "active_workflows",  # log
    "leased_cores",  # share of all cores under a lease
)
ASKED: Final = places(ASKED_CONTEXT)
Ratio = Annotated[float, Field(gt=0, le=1)]


class AgentsConfig(Strict):
    """Config group `agents`: who decides what."""

    # Who places; by the last three none of the agents does.
    layout: Literal["placer", "hierarchical", "server_types", "queue", "tenants", "asked"]
    queue: QueueAgent | None = None  # chooses among functions that wait centrally
    tenants: TenantAgents | None = None  # split the currencies of tenants; layout tenants alone
    scaler: bool = False  # whether agents scale, one a server type (env/learn/scaler.py)
    region: bool = False  # whether an agent chooses the region of functions (env/learn/region.py)
    # Ratios of a function's memory_req that can be given, ascending to 1.
    memory_tiers: Annotated[
        tuple[Ratio, ...], Field(min_length=1), ASCENDING, AfterValidator(distinct)
    ]
    # How many bids a server type can choose from; layout server_types alone.
    bid_levels: Annotated[int, Field(ge=2, le=1000)] | None = None
    share_type_policy: bool = True  # of all server types, or of all tenants; else one each
    score: ScoreWeights  # of the greedy score among the node features
    workflow_window: Annotated[int, Field(ge=0, le=1000)] = 0  # functions seen around the current
    relative_reward: bool = False  # in units of the J of the greedy rule of `score`

    @model_validator(mode="after")
    def _parts_of_the_layout(self) -> Self:
        if self.memory_tiers[-1] != 1.0:
            raise ValueError(f"memory_tiers must end with 1.0, found {self.memory_tiers}")
        for part, layout in (("bid_levels", "server_types"), ("tenants", "tenants")):
            if (getattr(self, part) is None) == (self.layout == layout):
                raise ValueError(
                    f"{part} is needed in layout {layout} and in no other, layout is {self.layout}"
                )
        if self.layout == "tenants" and self.queue is not None:
            raise ValueError("layout tenants has no queue: tenants take turns by their tickets")
        placement = self.queue and self.queue.placement
        if (self.layout == "queue") == (placement is None):
            raise ValueError(
                "queue.placement is needed in layout queue, in which no agent places, and in no "
                f"other: layout is {self.layout}, found {placement}"
            )
        return self

    @property
    def order(self) -> QueueAgent | TenantAgents | None:
        """The order of the central queue; None: no agent has a part in it."""
        return self.queue or self.tenants

    @property
    def placement(self) -> PlacementRule:
        """Who names the node where functions wait centrally."""
        if self.order is None:
            return "worst_fit" if self.layout == "asked" else "asked"
        return self.order.placement or "asked"

    def asked(self, cluster: ClusterConfig) -> tuple[DecisionKind, ...]:
        """The kinds of decision beside the engine's own that these agents take in a cluster."""
        kinds = {scaler_of: self.scaler, region_of: self.region}
        return tuple(of(cluster) for of, decides in kinds.items() if decides)


class Layout:
    """The kinds of decision that agents take part in.

    Attributes:
        kinds: in the order in which decisions of one moment follow each other.
        turns: of all kinds.
        kind_of: the kind of a turn.
        agents: by name, in the order in which they act.
    """

    def __init__(
        self,
        config: AgentsConfig,
        objective: Objective,
        cluster: ClusterConfig,
        tenants: Sequence[str] = (),
        asked: Sequence[DecisionKind] = (),
        see_future: bool = True,
    ) -> None:
        self._made_of = config, objective, cluster, tenants, asked, see_future
        self.config, self.objective, self.tiers = config, objective, config.memory_tiers
        self._nodes = {kind.name: kind.count * kind.numa_nodes for kind in cluster.server_types}
        self._features = NODE_FEATURES + REGION_FEATURES * cluster.carbon_differs
        self._see_future = see_future
        others = (_asked_kind(kind, place) for place, kind in enumerate(asked))
        self.kinds = (*self._kinds(tenants), *others)
        self.kind_of = {turn: kind for kind in self.kinds for turn in kind.turns}
        self.turns = tuple(self.kind_of)
        self.agents = {agent.name: agent for turn in self.turns for agent in turn.agents}

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, self._made_of

    def environments(self, handles: np.ndarray, functions: int) -> Environments:
        """Environments with empty buffers, and at most so many functions in an episode.

        Args:
            handles: HANDLE (E,), of the simulators' states.
            functions: of an episode, at most.
        """
        config, each, types = self.config, len(handles), len(self._nodes)
        seen = len(self.tiers) if config.layout == "hierarchical" else 1
        of_nodes = each, seen, sum(self._nodes.values())
        window = config.workflow_window
        return Environments(
            states=handles,
            episodes=np.zeros(each, EPISODE),
            choices=np.zeros(each, CHOICE),
            objective=np.tile(self.objective.weights, (each, 1)),
            first_node=np.zeros((each, types + 1), np.int64),
            candidates=np.zeros(of_nodes, CANDIDATE),
            scores=np.zeros(of_nodes),
            nodes=np.zeros((*of_nodes, len(self._features)), np.float32),
            context=np.zeros((each, len(CONTEXT_FEATURES)), np.float32),
            critic=np.zeros((each, len(CRITIC_FEATURES)), np.float32),
            able=np.zeros((each, types), np.int64),
            trace=np.zeros((each, functions + 1 if self._see_future else 0, 2)),
            window=np.zeros((each, window), np.int64),
            functions=np.zeros((each, window, len(FUNCTION_FEATURES)), np.float32),
            edges=np.zeros((each, window, window), np.float32),
            queue=np.zeros((each, config.queue.functions if config.queue else 0), FIRST),
            tiers=np.array(self.tiers),
            weights=config.score.by_objective(self.objective),
            levels=np.array(config.tenants.levels if config.tenants else ()),
        )

    def _kinds(self, tenants: Sequence[str]) -> Iterator[Kind]:
        config, types, most = self.config, tuple(self._nodes), max(self._nodes.values())
        tiers, seen = len(config.memory_tiers), (self._features, config.workflow_window)
        if config.queue is not None:
            yield config.queue.kind()
        if config.tenants is not None:
            yield config.tenants.kind(tenants)
        if config.layout == "placer":
            yield at_once(sum(self._nodes.values()), tiers, *seen)
        elif config.layout == "hierarchical":
            yield by_groups(types, most, tiers, *seen)
        elif config.layout == "server_types":
            yield by_bids(types, most, tiers, *seen, config.bid_levels or 0)


def _asked_kind(asked: DecisionKind, place: int) -> Kind:
    """A kind beside the engine's own, by its place among those of the world."""
    fill, carry_out = asked.fill, asked.apply

    @compiled
    def see(agent, state: State, envs, env, context, items, mask) -> None:
        active = state.cluster[0].arrived - state.cluster[0].finished_workflows
        context[ASKED.active_workflows] = log_of(active) / LOG_50
        context[ASKED.leased_cores] = leased_cores(state) / state.cluster[0].cores
        items[:] = 0.0
        fill(state, envs.choices[env].subject, items, mask)

    @compiled
    def apply(state: State, envs: Environments, env: int):
        carry_out(state, envs.choices[env].subject, envs.choices[env].row)
        return ASIDE

    alone = Agent(
        asked.name, asked.name, asked.features, asked.rows, context_features=ASKED_CONTEXT
    )
    turn = Turn([alone], see)
    if asked.subjects:
        turn = Turn(alone.of_each(asked.subjects), see, of_subject)
    return Kind(ASIDE + 1 + place, (turn,), apply, due=asked.due, ticks=asked.ticks)


@compiled
def of_subject(agent: int, envs: Environments, env: int):
    """`Turn.acting` where each subject has an agent."""
    return envs.choices[env].subject
