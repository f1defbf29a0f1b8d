"""Who decides what: the agent layouts, from observations to what becomes of one function.

A layout asks its agents in turns. `start` gives the observations of the first turn of a decision,
`act` takes the actions of a turn and gives either the observations of the next turn or what was
decided: who goes next, where the current function goes, or what tickets a workflow gets. The
environment and the learned scheduler both decide through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from env.base.errors import InputError
from env.base.schema import Strict
from env.learn.actions import NO_PLACE, Action, taken
from env.learn.agent import Agent, Observation
from env.learn.observation import (
    NODE_FEATURES,
    TIER_FEATURES,
    TYPE_FEATURES,
)
from env.learn.queue_agent import QUEUE_CONTEXT, QUEUE_ITEM, QueueAgent
from env.learn.tenant_agents import LEVEL_FEATURES, TENANT_CONTEXT, TenantAgents
from env.learn.turns import (
    BID_TURN,
    CHOICE,
    NODE_TURN,
    PLACE_TURN,
    QUEUE_TURN,
    SHARE_TURN,
    TIER_TURN,
    TYPE_TURN,
    Sight,
    decide,
    new_sight,
    see,
    start_decision,
    tier_memory,
    turn_to_episode,
)
from env.score.greedy_play import Buffers, trace_greedy
from env.score.greedy_score import ScoreWeights
from env.score.reward import Objective, cheapest_cost
from env.sim.assembly.new_state import copy_state
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.rules import Placement as PlacementRule
from env.sim.events.choosing import FIRST, UNDECIDED, forced_choice
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.records import NONE
from env.sim.view.raw_env import RawEnv

WINDOW_PARTS = {"functions", "edges"}
"""Of an observation, with a window of the workflow; all agents see the same in a decision."""


class AgentsConfig(Strict):
    """Config group `agents`: who decides what.

    Attributes:
        layout: who places: `placer`, `hierarchical` or `server_types`; `queue` or `tenants`: none
            of the agents.
        queue: of the agent that chooses who goes next in the central queue; None: there is none.
        tenants: of those that split the currencies of tenants; layout tenants alone.
        memory_tiers: ratios of a function's memory_req that can be given, ascending.
        bid_levels: how many bids a server type can choose from; layout server_types alone.
        share_type_policy: one policy for all server types, or for all tenants, or one each.
        score: weights of the greedy score among the node features.
        workflow_window: functions seen of the workflow around the current one, 0 for none.
        relative_reward: rewards count in the J that the greedy rule of `score` comes to in the same
            episode, see `trace_greedy`.
    """

    layout: Literal["placer", "hierarchical", "server_types", "queue", "tenants"]
    queue: QueueAgent | None = None
    tenants: TenantAgents | None = None
    memory_tiers: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    bid_levels: Annotated[int, Field(ge=2, le=1000)] | None = None
    share_type_policy: bool = True
    score: ScoreWeights
    workflow_window: Annotated[int, Field(ge=0, le=1000)] = 0
    relative_reward: bool = False

    @field_validator("memory_tiers")
    @classmethod
    def _ascending(cls, tiers: tuple[float, ...]) -> tuple[float, ...]:
        if list(tiers) != sorted(set(tiers)) or tiers[-1] != 1.0:
            raise ValueError(f"tiers must ascend without repeats and end with 1.0, found {tiers}")
        return tiers

    @model_validator(mode="after")
    def _parts_of_the_layout(self) -> Self:
        for part, layout in (("bid_levels", "server_types"), ("tenants", "tenants")):
            if (getattr(self, part) is None) == (self.layout == layout):
                raise ValueError(
                    f"{part} is needed in layout {layout} and in no other, layout is {self.layout}"
                )
        if self.layout == "tenants" and self.queue is not None:
            raise ValueError("layout tenants has no queue: tenants take turns by their tickets")
        alone, placement = self.layout == "queue", self.queue and self.queue.placement
        if alone and placement is None:
            raise ValueError("layout queue needs queue with a placement, as no agent places")
        if not alone and placement is not None:
            raise ValueError(
                f"queue.placement is {placement}, but the agents of layout {self.layout} place: "
                "null is needed"
            )
        return self

    @property
    def order(self) -> QueueAgent | TenantAgents | None:
        """Who goes next where functions wait centrally; None: no agent has a part in that."""
        return self.queue or self.tenants

    @property
    def placement(self) -> PlacementRule:
        """Who names the node where functions wait centrally."""
        return "asked" if self.order is None else self.order.placement or "asked"


class Choice(NamedTuple):
    """A decision: the declared function that goes next, an index into `State.waiting`, or None."""

    declared: int | None


class Placement(NamedTuple):
    """A decision: NUMA node (index into the records) and MB."""

    node: int
    memory_alloc: int


class Share(NamedTuple):
    """A decision: tickets of its tenant's own currency for the workflow that has arrived."""

    tickets: float


class Layout:
    """The turns of a decision, and what one simulator shows the agents in them.

    Attributes:
        agents: by name, in the order in which they act.
        agents_of: who can act at a turn.
        turns: that there can be in a decision, as env/learn/turns.py numbers them: first that of
            `queue`, if functions are to be chosen, or that of tenants, then those of a placement.
        placing: turns of a placement.
        type_names: of the server types.
        weights: float64 (4,), those of the objective as the rewards of the episode count them.
    """

    def __init__(
        self,
        config: AgentsConfig,
        objective: Objective,
        cluster: ClusterConfig,
        see_future: bool,
        tenants: Sequence[str] = (),
    ) -> None:
        self.config = config
        self.objective = objective
        self.tiers = config.memory_tiers
        self.type_names = tuple(kind.name for kind in cluster.server_types)
        counts = [kind.count * kind.numa_nodes for kind in cluster.server_types]
        self.node_count = sum(counts)
        self.agents_of = _agents_of(config, self.type_names, counts, tenants)
        self.turns = tuple(self.agents_of)
        self.placing = tuple(turn for turn in self.turns if turn not in (QUEUE_TURN, SHARE_TURN))
        self.agents = {agent.name: agent for each in self.agents_of.values() for agent in each}
        self.score_weights = config.score.by_objective(objective)
        self._blank = {name: agent.blank_observation() for name, agent in self.agents.items()}
        self._see_future = see_future
        self.weights = objective.weights
        self._choice = np.zeros(1, CHOICE)
        self._first = np.zeros(0 if config.queue is None else config.queue.functions, FIRST)

    def reset(self, env: RawEnv) -> None:
        """Turns to a new episode."""
        self._env, self._state = env, env.state
        self._cheapest = cheapest_cost(env.state)
        self._sight = self.new_sight(len(env.state.functions))
        if self._see_future:
            buffers = Buffers.of(env.state)
            self.weights[:] = self.objective.weights
            trace_greedy(
                copy_state(env.state),
                self.score_weights,
                self.weights,
                self._cheapest,
                self.config.relative_reward,
                *buffers,
                self._sight.trace,
            )
        turn_to_episode(self._state, self._sight)

    @property
    def reference(self) -> float:
        """J of the reference in this episode (`trace_greedy`), counted with `weights`."""
        return float(self._sight.trace[-1, 1])

    def new_sight(self, functions: int) -> Sight:
        """Buffers for episodes of so many functions at most."""
        return new_sight(
            self.tiers,
            self.score_weights,
            len(self.type_names),
            self.node_count,
            functions,
            self.config.workflow_window,
            len(self._first),
            () if self.config.tenants is None else self.config.tenants.levels,
        )

    def forced(self, env: RawEnv) -> Choice | None:
        """What is chosen where agents would have no choice; None where they have one, or place."""
        if not env.choosing:
            return None
        declared = int(forced_choice(env.state, self._first))
        if declared == UNDECIDED:
            return None
        return Choice(None if declared == NONE else declared)

    def start(self) -> dict[str, Observation]:
        """Observations of the first turn of a decision."""
        update_finish_bounds(self._state)
        self._due = list(self.placing)
        if self._env.choosing:
            self._due = [QUEUE_TURN]
            forced_choice(self._state, self._sight.queue)  # fills it
        elif self._env.newcomer is not None:
            self._due = [SHARE_TURN]
        start_decision(
            self._due[0],
            self._state,
            self._sight,
            self.weights,
            self._cheapest,
            self._see_future,
        )
        return self._observe()

    def act(
        self, actions: dict[str, Action]
    ) -> dict[str, Observation] | Choice | Placement | Share:
        """Takes the actions of a turn; returns the next turn's observations or what was decided.

        Raises:
            InputError: agents are missing or not due, or an action is not allowed. The turn can be
                answered again.
        """
        turn, acting = self._due[0], [self.agents[name] for name in self._masks]
        found = taken(acting, list(self._masks.values()), actions).tolist()
        for index, action in enumerate(found):
            bid, place = action if turn == BID_TURN else (0, action)
            decide(turn, index, self._sight, self._choice, place, bid)
        del self._due[0]
        if self._due:
            return self._observe()
        node, tier, declared = (int(self._choice[0][key]) for key in ("node", "tier", "declared"))
        if turn == QUEUE_TURN:
            return Choice(None if declared == NONE else declared)
        if turn == SHARE_TURN:
            return Share(float(self._sight.levels[self._choice[0]["level"]]))
        return Placement(node, int(tier_memory(self._state, self._sight, tier)))

    def actions_of(self, placement: Placement) -> list[dict[str, Action]]:
        """The actions that come to a placement, turn by turn: the inverse of `act`.

        To be asked between `start` and the first `act`. Where server types bid, the one that is to
        win bids the highest and the others 0, with the place `NO_PLACE`.

        Raises:
            InputError: its memory is that of no tier.
        """
        tier = self._tier_of(placement.memory_alloc)
        first_node = self._sight.first_node
        kind = int(np.searchsorted(first_node, placement.node, side="right")) - 1
        row = placement.node - int(first_node[kind])
        winner = f"server_{self.type_names[kind]}"
        turns: dict[int, dict[str, Action]] = {
            PLACE_TURN: {"placer": placement.node * len(self.tiers) + tier},
            TIER_TURN: {"memory": tier},
            TYPE_TURN: {"placer": kind},
            NODE_TURN: {winner: row},
            BID_TURN: {
                name: np.array(
                    [agent.bids - 1, row * len(self.tiers) + tier]
                    if name == winner
                    else [0, NO_PLACE]
                )
                for name, agent in self.agents.items()
                if agent.kind == "server"
            },
        }
        return [turns[turn] for turn in self.placing]

    def _tier_of(self, memory_alloc: int) -> int:
        """The highest tier with that memory; small functions can have several."""
        given = [
            int(tier_memory(self._state, self._sight, tier)) for tier in range(len(self.tiers))
        ]
        if memory_alloc not in given:
            raise InputError(
                f"{memory_alloc} MB is no tier of agents.memory_tiers, which are "
                f"{', '.join(str(memory) for memory in given)} MB for this function"
            )
        return len(given) - 1 - given[::-1].index(memory_alloc)

    def _acting(self) -> list[str]:
        """Who acts at this turn."""
        turn = self._due[0]
        if turn == NODE_TURN:
            return [f"server_{self.type_names[self._choice[0]['type']]}"]
        if turn == SHARE_TURN:
            assert self._env.newcomer is not None
            return [f"tenant_{self._env.tenants[self._env.newcomer]}"]
        return [agent.name for agent in self.agents_of[turn]]

    def _observe(self) -> dict[str, Observation]:
        observations, self._masks = {}, {}
        for index, name in enumerate(self._acting()):
            seen = {part: np.empty_like(blank) for part, blank in self._blank[name].items()}
            see(
                self._due[0],
                index,
                self._state,
                self._sight,
                self._choice,
                seen["context"],
                seen["items"],
                seen["mask"],
                seen["critic"],
            )
            for part in WINDOW_PARTS & seen.keys():
                seen[part][:] = getattr(self._sight, part)
            observations[name] = seen
            self._masks[name] = seen["mask"].copy()  # the observation is the caller's
        return observations


NOBODY: Final = -1
"""Of a row of a batch at a turn that is nobody's in its environment."""

TURN_KINDS = {
    PLACE_TURN: "placer",
    TIER_TURN: "memory",
    TYPE_TURN: "placer",
    NODE_TURN: "server",
    BID_TURN: "server",
    QUEUE_TURN: "queue",
    SHARE_TURN: "tenant",
}
"""The kind of the agents that act at a turn."""


def _agents_of(
    config: AgentsConfig,
    type_names: Sequence[str],
    node_counts: Sequence[int],
    tenants: Sequence[str],
) -> dict[int, list[Agent]]:
    """Who can act at each turn that there can be in a decision, in the order of the turns.

    Nobody is asked for the memory tier where there is but one.
    """
    tiers, most_nodes, window = len(config.memory_tiers), max(node_counts), config.workflow_window
    servers = [
        Agent(f"server_{name}", "server", NODE_FEATURES, most_nodes, window=window)
        for name in type_names
    ]
    turns: dict[int, list[Agent]] = {}
    if config.queue is not None:
        rows = config.queue.functions + 1  # the last one is that of holding back
        queue = Agent("queue", "queue", QUEUE_ITEM, rows, context_features=QUEUE_CONTEXT)
        turns[QUEUE_TURN] = [queue]
    if config.tenants is not None:
        rows = len(config.tenants.levels)
        turns[SHARE_TURN] = [
            Agent(f"tenant_{name}", "tenant", LEVEL_FEATURES, rows, context_features=TENANT_CONTEXT)
            for name in tenants
        ]
    if config.layout == "placer":
        nodes = sum(node_counts)
        turns[PLACE_TURN] = [Agent("placer", "placer", NODE_FEATURES, nodes, tiers, window=window)]
    elif config.layout == "hierarchical":
        of_tiers, of_types = TIER_FEATURES + NODE_FEATURES, TYPE_FEATURES + NODE_FEATURES
        if tiers > 1:
            turns[TIER_TURN] = [Agent("memory", "memory", of_tiers, tiers, window=window)]
        turns[TYPE_TURN] = [Agent("placer", "placer", of_types, len(type_names), window=window)]
        turns[NODE_TURN] = servers
    elif config.layout == "server_types":
        bids = config.bid_levels or 0
        turns[BID_TURN] = [server._replace(choices=tiers, bids=bids) for server in servers]
    return turns
