"""The RLlib `MultiAgentEnv`: workflows arrive, agents decide on their functions and earn less J."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import InstanceOf
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.learn.actions import Action, actions_of, nothing_played
from env.learn.batch import Batch
from env.learn.kind import Observation
from env.learn.world import World
from env.sim.declared.episode import EpisodeWorkload
from env.sim.state.records import DONE
from env.sim.view.raw_env import RawEnv

ENV_NAME = "serverless-v11"
"""Its version rises whenever the same actions would give other observations or rewards, or
checkpoints hold what an earlier version cannot read."""


class ResetOptions(Strict):
    """Options of `reset`: what is played instead of what would be drawn."""

    workload: InstanceOf[EpisodeWorkload] | None = None


class ServerlessEnv(MultiAgentEnv):
    """One cluster under a stream of workflows.

    Every step is one turn: the agents that got an observation act. When the turns of a decision are
    complete, the simulator plays on to the next one, and every agent earns the fall of the
    potential (see env/score/reward.py): the return of each over an episode is -(J - ideal), with
    `agents.relative_reward` divided by the J of the reference in the same episode.

    RLlib does not say which environment of a runner this is. Still all play different episodes:
    without a seed each draws a stream of its own from the system; with one, RLlib gives environment
    i of runner w the seed + w + i, and the number of the runner is part of what names the stream.

    Args:
        config: what a `World` is made of. RLlib's `EnvContext` adds the number of the worker.

    Raises:
        InputError: a group does not validate.
    """

    metadata: ClassVar = {"render_modes": ["ansi"], "name": ENV_NAME}
    render_mode = "ansi"
    __copy__ = copy.deepcopy  # a copy never moves the original

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.world = World(config)
        self.objective, self.layout = self.world.objective, self.world.layout
        worker = getattr(config, "worker_index", None)
        self._stream = (worker or 0, 0 if worker is None else secrets.randbits(64))
        self._batch: Batch | None = None
        self._turn = 0
        self.members = members = self.layout.agents
        self.possible_agents = list(members)
        self.agents = list(members)
        self.observation_spaces = {name: agent.observation_space for name, agent in members.items()}
        self.action_spaces = {name: agent.action_space for name, agent in members.items()}

    @property
    def raw_env(self) -> RawEnv | None:
        """The simulator, to be read or forked; None before the first `reset`."""
        return None if self._batch is None else self._batch.raw_env

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Starts the next episode of the stream; a seed starts the stream that it names.

        `options={"workload": EpisodeWorkload}` plays that workload; the stream stays where it is.

        Raises:
            InputError: the seed is none, there are other options, the workload cannot be played, or
                leaves the agents no choice. Then nothing has changed.
        """
        workload = validated(ResetOptions, options or {}, "options").workload
        if workload and self.world.undecided_end(workload) is not None:
            raise InputError("options: workload: leaves the agents no choice")
        batch = self._batch or Batch(self.world, 1, self.world.seed, *self._stream, apart=True)
        batch.restart([seed], workload)
        self._batch, self._turn = batch, 0
        self.agents = list(self.possible_agents)
        return self._observed(), {}

    def step(
        self, action_dict: dict[str, Action]
    ) -> tuple[dict, dict[str, float], dict[str, bool], dict[str, bool], dict]:
        """Plays one turn by an action of every agent that got an observation.

        Returns:
            observations of the agents that act next; rewards of all agents when a decision is
            complete; terminated and truncated flags; infos, `episode_metrics` at the end.

        Raises:
            InputError: nothing is being played, agents are missing or not due, or an action is not
                allowed. Then nothing has changed, and the turn can be answered again.
        """
        batch = self._batch
        if batch is None or batch.kind(0) == DONE:
            raise nothing_played("step", batch is not None)
        turn = batch.turns[self._turn]
        acting = [turn.agents[agent] for agent in batch.acting[turn]]
        batch.act(turn, actions_of(acting, action_dict))
        self._turn += 1
        running, names = {"__all__": False}, self.possible_agents
        if seen := self._observed():
            return seen, {}, running, dict(running), {}
        (earned,), (ended,) = batch.step(rest=True)
        rewards = dict.fromkeys(names, float(earned))
        self._turn = 0
        if not ended:
            return self._observed(), rewards, running, dict(running), {}
        over = batch.ended.pop()
        self.agents = []
        return (
            {name: agent.blank_observation() for name, agent in self.members.items()},
            rewards,
            dict.fromkeys([*names, "__all__"], True),
            dict.fromkeys([*names, "__all__"], False),
            {name: {"episode_metrics": over.metrics} for name in names},
        )

    def actions_for(self, row: int) -> list[np.ndarray]:
        """Actions by which agents choose a row of the decision that is due, see `Kind.actions`."""
        assert self._batch is not None
        kind = self._batch.layout.kind_of[self._batch.turns[self._turn]]
        return self._batch.actions_for(kind, row)

    def render(self) -> str:
        """The cluster at this moment, a line a NUMA node.

        Raises:
            InputError: no episode is being played.
        """
        if self.raw_env is None:
            raise nothing_played("render")
        env = self.raw_env
        lines = [
            f"time {env.time:.1f} s, rent {env.total_rent:.2f} USD, decisions {env.decisions}, "
            f"next {env.current_function or 'no function is to be placed'}"
        ]
        for name, servers in env.cluster.servers.items():
            for server in servers:
                lease = max(0.0, server.expiration_time - env.time)
                for node in server.numa_nodes:
                    status = node.status_at(env.time)
                    lines.append(
                        f"{name:>12} {server.server_id:>4} node {node.node_id}: "
                        f"load {status.load:5.2f}, free {status.free_memory:>7} MB, "
                        f"running {len(node.running_containers):>3}, "
                        f"waiting {len(node.waiting_containers):>3}, lease left {lease:7.1f} s"
                    )
        return "\n".join(lines)

    def close(self) -> None:
        """The episode is no longer played."""
        self._batch = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._batch is not None:
            self._observed()  # a copied batch knows no masks

    def _observed(self) -> dict[str, Observation]:
        """What the agents of the next turn that is somebody's see; none if the decision is over."""
        batch = self._batch
        assert batch is not None
        batch.raw_env.played_to(batch.kind(0))
        while self._turn < len(batch.turns):
            turn = batch.turns[self._turn]
            if batch.layout.kind_of[turn].code == batch.kind(0):
                return batch.seen(turn)
            self._turn += 1
        return {}


def register() -> None:
    """Tells RLlib, as importing this does: every Ray has a registry of its own."""
    register_env(ENV_NAME, ServerlessEnv)


register()
