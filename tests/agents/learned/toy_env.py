"""An environment with the observation contract of the real one and an obvious optimum."""

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.env.multi_agent_env import MultiAgentEnv

CONTEXT, ITEM, CRITIC, FUNCTION = 3, 4, 2, 5
TYPES = ("a", "b")


class ToyEnv(MultiAgentEnv):
    """Choose the item whose first feature is highest; the reward is that feature.

    Config: `layout` (as the real one's), `items` M, `choices` K, `steps` per episode. Of the items,
    one is padding: always forbidden, with absurd features. With several choices only the last pays.
    With a `window` F observations have a random DAG of F functions.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.layout = config.get("layout", "placer")
        self.count = config.get("items", 6)
        self.choices = config.get("choices", 1)
        self.window = config.get("window", 0)
        self.steps = config.get("steps", 20)
        self.crash = config.get("crash", False)
        self.bids = 8 if self.layout == "server_types" else 0
        servers = [f"server_{name}" for name in TYPES]
        self.possible_agents = {
            "placer": ["placer"],
            "hierarchical": ["memory", "placer", *servers],
            "server_types": servers,
        }[self.layout]
        self.agents = list(self.possible_agents)
        options = self.count * self.choices
        dag: dict[str, Any] = {
            "functions": _box(self.window, FUNCTION),
            "edges": _box(self.window, self.window),
        }
        self.observation_spaces = {
            agent: gym.spaces.Dict(
                context=_box(CONTEXT),
                items=_box(self.count, ITEM),
                mask=_box(self.bids + options),
                critic=_box(CRITIC),
                **(dag if self.window else {}),
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: gym.spaces.MultiDiscrete([self.bids, options])
            if self.bids
            else gym.spaces.Discrete(options)
            for agent in self.possible_agents
        }

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        if seed is not None:
            self.seed = seed
            self.random = np.random.default_rng(seed)
        self.time, self.total = 0, 0.0
        return self._observe(), {}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        if self.crash:
            raise RuntimeError("told to crash")
        gained = 0.0
        for agent, action in actions.items():
            seen = self.seen[agent]
            option = int(action[1]) if self.bids else int(action)
            assert seen["mask"][self.bids + option] == 1, "a masked action was taken"
            item, choice = divmod(option, self.choices)
            gained += float(seen["items"][item, 0]) * (choice == self.choices - 1) / len(actions)
        self.total += gained
        self.time += 1
        done = self.time == self.steps
        observations = self._observe(everyone=done)
        metrics = {"J": -self.total, "slowdown": 1.0, "nobody_has": np.nan}
        info = {"episode_metrics": metrics} if done else {}
        return (
            observations,
            {agent: gained for agent in self.possible_agents},
            {"__all__": done},
            {"__all__": False},
            {agent: info for agent in observations},
        )

    def _observe(self, everyone: bool = False) -> dict[str, dict[str, np.ndarray]]:
        """Turns: memory, placer, a server type; or everyone at once."""
        acting = self.possible_agents
        if self.layout == "hierarchical" and not everyone:
            phase = self.time % 3
            server = f"server_{TYPES[self.random.integers(2)]}"
            acting = [["memory"], ["placer"], [server]][phase]
        self.seen = {agent: self._one() for agent in acting}
        return self.seen

    def _one(self) -> dict[str, np.ndarray]:
        items = self.random.uniform(-1, 1, (self.count, ITEM)).astype(np.float32)
        items[-1] = 99.0
        allowed = np.ones((self.count, self.choices), np.float32)
        allowed[-1] = 0
        return {
            "context": self.random.uniform(-1, 1, CONTEXT).astype(np.float32),
            "items": items,
            "mask": np.concatenate([np.ones(self.bids, np.float32), allowed.ravel()]),
            "critic": np.full(CRITIC, (self.steps - self.time) / self.steps, np.float32),
            **(self._dag() if self.window else {}),
        }

    def _dag(self) -> dict[str, np.ndarray]:
        linked = self.random.random((self.window, self.window)) < 0.5
        return {
            "functions": self.random.uniform(-1, 1, (self.window, FUNCTION)).astype(np.float32),
            "edges": np.triu(linked, k=1).astype(np.float32),
        }


def _box(*shape: int) -> gym.spaces.Box:
    return gym.spaces.Box(-100.0, 100.0, shape, np.float32)


def make(config: dict[str, Any]) -> ToyEnv:
    """What RLlib registers."""
    return ToyEnv(dict(config))
