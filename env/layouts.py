"""Who decides what: the three agent layouts, from observations to the placement of one function.

A layout asks its agents in turns. `start` gives the observations of the first turn of a decision,
`act` takes the actions of a turn and gives either the observations of the next turn or the
placement. The environment and the learned scheduler both decide through it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from pydantic import Field, field_validator, model_validator

from env.observation import (
    CONTEXT_FEATURES,
    CRITIC_FEATURES,
    LIMIT,
    NODE_FEATURES,
    TIER_FEATURES,
    TYPE_FEATURES,
    Observer,
    ScoreWeights,
)
from env.reward import Objective
from env.schema import Strict
from env.sim.cluster import ClusterConfig
from env.sim.raw_env import RawEnv

Observation = dict[str, np.ndarray]
Action = Any


class AgentsConfig(Strict):
    """Config group `agents`: who decides what.

    Attributes:
        layout: `placer`, `hierarchical` or `server_types`.
        memory_tiers: ratios of a function's memory_req that can be given, ascending.
        bid_levels: how many bids a server type can choose from; layout server_types alone.
        share_type_policy: one policy for all server types, or one each.
        score: weights of the greedy score among the node features.
    """

    layout: Literal["placer", "hierarchical", "server_types"]
    memory_tiers: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    bid_levels: Annotated[int, Field(ge=2, le=1000)] | None = None
    share_type_policy: bool = True
    score: ScoreWeights

    @field_validator("memory_tiers")
    @classmethod
    def _ascending(cls, tiers: tuple[float, ...]) -> tuple[float, ...]:
        if list(tiers) != sorted(set(tiers)) or tiers[-1] != 1.0:
            raise ValueError(f"tiers must ascend without repeats and end with 1.0, found {tiers}")
        return tiers

    @model_validator(mode="after")
    def _bids(self) -> Self:
        if self.layout == "server_types" and self.bid_levels is None:
            raise ValueError("layout server_types needs bid_levels")
        if self.layout != "server_types" and self.bid_levels is not None:
            raise ValueError(f"bid_levels is for layout server_types, layout is {self.layout}")
        return self


class Placement(NamedTuple):
    """A decision: NUMA node (index into the records) and MB."""

    node: int
    memory_alloc: int


class Agent(NamedTuple):
    """One agent of a layout.

    Attributes:
        name: its id in the environment.
        kind: agents of one kind can share a policy: `placer`, `memory` or `server`.
        item_features: names of the columns of its `items`.
        items: M, number of rows.
        choices: K, choices per item.
        bids: B, number of bids, 0 for none.
    """

    name: str
    kind: str
    item_features: tuple[str, ...]
    items: int
    choices: int = 1
    bids: int = 0

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """Parts: context (C,), items (M, I), mask (A,) and critic (V,), all float32."""
        return gym.spaces.Dict(
            {
                "context": _box(len(CONTEXT_FEATURES)),
                "items": _box(self.items, len(self.item_features)),
                "mask": Box(0.0, 1.0, (self.bids + self.items * self.choices,), np.float32),
                "critic": _box(len(CRITIC_FEATURES)),
            }
        )

    @property
    def action_space(self) -> gym.Space:
        """Discrete(M * K), action = item * K + choice; with bids MultiDiscrete([B, M * K])."""
        if self.bids:
            return MultiDiscrete([self.bids, self.items * self.choices])
        return Discrete(self.items * self.choices)

    def blank_observation(self) -> Observation:
        """What it sees when there is nothing to decide: zeros, the first choice allowed."""
        blank: Observation = {
            key: np.zeros(space.shape, np.float32)
            for key, space in self.observation_space.spaces.items()
            if space.shape is not None
        }
        blank["mask"][0] = 1.0
        if self.bids:
            blank["mask"][self.bids] = 1.0
        return blank


def _box(*shape: int) -> Box:
    return Box(-LIMIT, LIMIT, shape, np.float32)


class Layout:
    """Base of the layouts: the cluster's shape, and the observer of one episode.

    Attributes:
        agents: by name, in the order in which they act.
    """

    def __init__(
        self, config: AgentsConfig, objective: Objective, cluster: ClusterConfig, see_future: bool
    ) -> None:
        self.config = config
        self.objective = objective
        self.tiers = config.memory_tiers
        self.type_names = tuple(kind.name for kind in cluster.server_types)
        counts = [kind.count * kind.numa_nodes for kind in cluster.server_types]
        ends = np.cumsum(counts)
        self.nodes_of_type = [
            slice(int(end - count), int(end)) for end, count in zip(ends, counts, strict=True)
        ]
        self.node_count = int(ends[-1])
        self.most_nodes = max(counts)
        self._see_future = see_future
        self.agents = {agent.name: agent for agent in self._agents()}

    def reset(self, env: RawEnv) -> None:
        """Turns to a new episode."""
        self._observer = Observer(env.state, self.tiers, self.objective, self.config.score)

    def start(self) -> dict[str, Observation]:
        """Observations of the first turn of a decision."""
        self._observer.observe_workload()
        self._critic = (
            self._observer.critic()
            if self._see_future
            else np.zeros(len(CRITIC_FEATURES), np.float32)
        )
        return self._first_turn()

    def act(self, actions: dict[str, Action]) -> dict[str, Observation] | Placement:
        """Takes the actions of a turn; returns the next turn's observations or the placement."""
        raise NotImplementedError

    def _agents(self) -> list[Agent]:
        raise NotImplementedError

    def _first_turn(self) -> dict[str, Observation]:
        raise NotImplementedError

    def _observation(self, items: np.ndarray, mask: Any, ratio: float = 1.0) -> Observation:
        context = self._observer.context.copy()
        context[CONTEXT_FEATURES.index("memory_ratio")] = ratio
        return {
            "context": context,
            "items": np.ascontiguousarray(items, np.float32),
            "mask": np.ascontiguousarray(mask, np.float32).reshape(-1),
            "critic": self._critic,
        }

    def _fits(self, nodes: slice) -> np.ndarray:
        """(n, K) whether a memory tier fits each of the nodes at all."""
        memory = self._observer.state.nodes["memory"][nodes]
        tiers = range(len(self.tiers))
        given = np.array([self._observer.memory_alloc(tier) for tier in tiers])
        return given[None, :] <= memory[:, None]

    def _placement(self, node: int, tier: int) -> Placement:
        return Placement(node, self._observer.memory_alloc(tier))

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """Rows of a server type's nodes, filled up with zeros to those of the largest type."""
        padded = np.zeros((self.most_nodes, rows.shape[1]), np.float32)
        padded[: len(rows)] = rows
        return padded


class PlacerLayout(Layout):
    """One agent sees every NUMA node and chooses the node and the memory."""

    def _agents(self) -> list[Agent]:
        return [Agent("placer", "placer", NODE_FEATURES, self.node_count, len(self.tiers))]

    def _first_turn(self) -> dict[str, Observation]:
        top = len(self.tiers) - 1
        self._observer.observe_nodes(top)
        everywhere = slice(0, self.node_count)
        items = self._observer.nodes[top].copy()
        return {"placer": self._observation(items, self._fits(everywhere))}

    def act(self, actions: dict[str, Action]) -> Placement:
        """The only turn."""
        node, tier = divmod(int(actions["placer"]), len(self.tiers))
        return self._placement(node, tier)


class HierarchicalLayout(Layout):
    """`memory` chooses the tier, `placer` the server type, that type's agent the NUMA node."""

    def _agents(self) -> list[Agent]:
        return [
            Agent("memory", "memory", TIER_FEATURES + NODE_FEATURES, len(self.tiers)),
            Agent("placer", "placer", TYPE_FEATURES + NODE_FEATURES, len(self.type_names)),
            *(
                Agent(f"server_{name}", "server", NODE_FEATURES, self.most_nodes)
                for name in self.type_names
            ),
        ]

    def _first_turn(self) -> dict[str, Observation]:
        fits = self._fits(slice(0, self.node_count))
        items = np.zeros((len(self.tiers), len(TIER_FEATURES) + len(NODE_FEATURES)))
        for tier, ratio in enumerate(self.tiers):
            if fits[:, tier].any():
                self._observer.observe_nodes(tier)
                best = int(np.argmin(self._observer.scores[tier]))
                items[tier, len(TIER_FEATURES) :] = self._observer.nodes[tier, best]
            items[tier, : len(TIER_FEATURES)] = ratio, fits[:, tier].mean()
        return {"memory": self._observation(items, np.any(fits, axis=0))}

    def act(self, actions: dict[str, Action]) -> dict[str, Observation] | Placement:
        """Tier, then type, then NUMA node."""
        (name, action), *_ = actions.items()
        if name == "memory":
            self._tier = int(action)
            return {"placer": self._see_types()}
        if name == "placer":
            self._type = int(action)
            return {f"server_{self.type_names[self._type]}": self._see_nodes()}
        return self._placement(self.nodes_of_type[self._type].start + int(action), self._tier)

    def _see_types(self) -> Observation:
        observer, tier = self._observer, self._tier
        items = np.zeros((len(self.type_names), len(TYPE_FEATURES) + len(NODE_FEATURES)))
        mask = np.zeros(len(self.type_names))
        for index, nodes in enumerate(self.nodes_of_type):
            candidates = observer.candidates[tier, nodes]
            best = nodes.start + int(np.argmin(observer.scores[tier, nodes]))
            leased = candidates["lease_left"] > 0
            idle = leased & (candidates["parallelism"] == 0)
            items[index, : len(TYPE_FEATURES)] = (
                np.log1p(len(candidates)),
                leased.mean(),
                idle.mean(),
            )
            items[index, len(TYPE_FEATURES) :] = observer.nodes[tier, best]
            mask[index] = float(candidates["feasible"].any())
        return self._observation(items, mask, self.tiers[tier])

    def _see_nodes(self) -> Observation:
        nodes = self.nodes_of_type[self._type]
        rows = self._observer.nodes[self._tier, nodes]
        feasible = self._observer.candidates[self._tier, nodes]["feasible"]
        return self._observation(
            self._padded(rows), self._padded(feasible[:, None]), self.tiers[self._tier]
        )


class ServerTypesLayout(Layout):
    """Every server type bids for the function; the highest bid takes it to the node it names."""

    def _agents(self) -> list[Agent]:
        assert self.config.bid_levels is not None
        return [
            Agent(
                f"server_{name}",
                "server",
                NODE_FEATURES,
                self.most_nodes,
                len(self.tiers),
                self.config.bid_levels,
            )
            for name in self.type_names
        ]

    def _first_turn(self) -> dict[str, Observation]:
        top = len(self.tiers) - 1
        self._observer.observe_nodes(top)
        self._able = []
        observations = {}
        for agent, nodes in zip(self.agents.values(), self.nodes_of_type, strict=True):
            fits = self._fits(nodes)
            able = bool(fits.any())
            self._able.append(able)
            bids = np.full(agent.bids, float(able))
            places = self._padded(fits.astype(np.float32)).reshape(-1)
            bids[0] = 1.0
            if not able:
                places[0] = 1.0  # it bids 0 and is not asked for a place
            rows = self._padded(self._observer.nodes[top, nodes])
            observations[agent.name] = self._observation(rows, np.concatenate([bids, places]))
        return observations

    def act(self, actions: dict[str, Action]) -> Placement:
        """The only turn: bids and places of all."""
        bids = [int(actions[name][0]) if able else -1 for name, able in self._takers()]
        winner = int(np.argmax(bids))  # the first of equal bids
        place = int(actions[list(self.agents)[winner]][1])
        node, tier = divmod(place, len(self.tiers))
        return self._placement(self.nodes_of_type[winner].start + node, tier)

    def _takers(self) -> list[tuple[str, bool]]:
        return list(zip(self.agents, self._able, strict=True))


LAYOUTS: dict[str, type[Layout]] = {
    "placer": PlacerLayout,
    "hierarchical": HierarchicalLayout,
    "server_types": ServerTypesLayout,
}


def make_layout(
    config: AgentsConfig, objective: Objective, cluster: ClusterConfig, see_future: bool
) -> Layout:
    """The layout that a config names.

    Args:
        config: group `agents`.
        objective: group `objective`; the features weigh by it.
        cluster: the hardware.
        see_future: whether `critic` features are filled (training) or zero (evaluation).
    """
    return LAYOUTS[config.layout](config, objective, cluster, see_future)
