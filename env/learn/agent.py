"""One agent: what it sees and what it can do, as spaces."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from env.learn.observation import CONTEXT_FEATURES, CRITIC_FEATURES, LIMIT
from env.learn.workflow_window import FUNCTION_FEATURES

Observation = dict[str, np.ndarray]


class Agent(NamedTuple):
    """One agent of a layout.

    Attributes:
        name: its id in the environment.
        kind: agents of one kind can share a policy: `placer`, `memory`, `server`, `queue` or
            `tenant`.
        item_features: names of the columns of its `items`.
        items: M, number of rows.
        choices: K, choices per item.
        bids: B, number of bids, 0 for none.
        window: F, functions seen of the workflow.
        context_features: names of its `context`.
        critic_features: names of what its critic alone sees.
    """

    name: str
    kind: str
    item_features: tuple[str, ...]
    items: int
    choices: int = 1
    bids: int = 0
    window: int = 0
    context_features: tuple[str, ...] = CONTEXT_FEATURES
    critic_features: tuple[str, ...] = CRITIC_FEATURES

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what it observes: context (C,), items (M, I), mask (A,) and critic (V,).

        With a window of the workflow also functions (F, G) and edges (F, F).
        """
        parts: dict[str, tuple[int, ...]] = {
            "context": (len(self.context_features),),
            "items": (self.items, len(self.item_features)),
            "mask": (self.bids + self.items * self.choices,),
            "critic": (len(self.critic_features),),
        }
        if self.window:
            parts["functions"] = (self.window, len(FUNCTION_FEATURES))
            parts["edges"] = (self.window, self.window)
        return parts

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """The parts, all float32."""
        limits = {"mask": (0.0, 1.0), "edges": (0.0, 1.0)}
        spaces: dict[str, gym.Space[Any]] = {
            part: Box(*limits.get(part, (-LIMIT, LIMIT)), shape, np.float32)
            for part, shape in self.parts.items()
        }
        return gym.spaces.Dict(spaces)

    @property
    def action_space(self) -> gym.Space:
        """Discrete(M * K), action = item * K + choice; with bids MultiDiscrete([B, M * K])."""
        if self.bids:
            return MultiDiscrete([self.bids, self.items * self.choices])
        return Discrete(self.items * self.choices)

    def blank_observation(self) -> Observation:
        """What it sees when there is nothing to decide: zeros, the first choice allowed."""
        blank = {part: np.zeros(shape, np.float32) for part, shape in self.parts.items()}
        blank["mask"][[0, self.bids]] = 1.0
        return blank
