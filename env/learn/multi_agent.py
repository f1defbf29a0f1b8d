"""The RLlib `MultiAgentEnv`: workflows arrive, agents decide on their functions and earn less J."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import InstanceOf
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.learn.actions import ATTEMPTS, Action, next_episode, no_choice, nothing_played
from env.learn.agent import Observation
from env.learn.batch import Batch
from env.learn.layouts import Choice, Placement, Share
from env.learn.world import World
from env.score.reward import cheapest_cost, ideal, potential
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.view.raw_env import RawEnv

ENV_NAME = "serverless-v8"
"""Its version rises whenever the same actions would give other observations or rewards, or
checkpoints hold what an earlier version cannot read."""


class ResetOptions(Strict):
    """Options of `reset`: what is played instead of what would be drawn."""

    workload: InstanceOf[EpisodeWorkload] | None = None


class ServerlessEnv(MultiAgentEnv):
    """One cluster under a stream of workflows.

    Every step is one turn: the agents that got an observation act. When the turns have decided what
    becomes of a function, or what tickets a workflow gets, the simulator plays on to the next
    choice, and every agent earns the fall of the potential (see env/score/reward.py): the return of
    each over an episode is -(J - ideal), with `agents.relative_reward` divided by the J of the
    reference in the same episode.
    Spaces are those of the members, see `Agent`.

    RLlib tells an environment the number of its runner, and not which one of the runner's it is.
    Still all play different episodes. Without a seed each draws a stream of its own from the
    system. With one, RLlib gives environment i of runner w the seed + w + i, and the number of the
    runner is part of what names the stream.

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
        self.objective = self.world.objective
        self.layout = self.world.layout()
        self._seed = self.world.seed
        worker = getattr(config, "worker_index", None)
        self._stream = (worker or 0, 0 if worker is None else secrets.randbits(64))
        self._episode = 0
        self.members = members = self.layout.agents
        self.possible_agents = list(members)
        self.agents = list(members)
        self.observation_spaces = {name: agent.observation_space for name, agent in members.items()}
        self.action_spaces = {name: agent.action_space for name, agent in members.items()}
        self.raw_env: RawEnv | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Starts the next episode of the stream; a seed starts the stream that it names.

        `options={"workload": EpisodeWorkload}` plays that workload instead of drawing one; the
        next drawn episode is the one that would have been drawn.

        Raises:
            InputError: the seed is none, there are other options, the workload cannot be played, or
                leaves the agents no choice. Then nothing has changed.
        """
        workload = validated(ResetOptions, options or {}, "options").workload
        seed, stream, number = next_episode(seed, (self._seed, self._stream, self._episode))
        if workload is not None:
            raw_env = self._begun(workload, self.world.cluster)
            if raw_env.done:
                raise InputError("options: workload: leaves the agents no choice")
        else:
            for _ in range(ATTEMPTS):
                raw_env = self._begun(*self.world.training_episode(seed, *stream, number))
                number += 1
                if not raw_env.done:
                    break
            else:
                raise no_choice()
        self.raw_env = raw_env
        self._seed, self._stream, self._episode = seed, stream, number
        self._cheapest = cheapest_cost(raw_env.state)
        self.layout.reset(raw_env)
        self._potential = float(ideal(self.layout.weights))
        self.agents = list(self.possible_agents)
        return self.layout.start(), {}

    def step(
        self, action_dict: dict[str, Action]
    ) -> tuple[dict, dict[str, float], dict[str, bool], dict[str, bool], dict]:
        """Plays one turn.

        Args:
            action_dict: an action of every agent that got an observation.

        Returns:
            observations of the agents that act next; rewards of all agents when it was decided what
            becomes of a function, that all wait, or what tickets a workflow gets; terminated and
            truncated flags; infos, which hold `episode_metrics` at the end.

        Raises:
            InputError: nothing is being played, agents are missing or not due, or an action is not
                allowed. Then nothing has changed, and the turn can be answered again.
        """
        if self.raw_env is None or self.raw_env.done:
            raise nothing_played("step", self.raw_env is not None)
        turn = self.layout.act(action_dict)
        if isinstance(turn, Choice):
            self.raw_env.choose(turn.declared)
            if turn.declared is not None and self.raw_env.current_function is not None:
                turn = self.layout.start()  # what was chosen is to be placed
        if isinstance(turn, Placement):
            self.raw_env.step(*self.raw_env.place_of(turn.node), turn.memory_alloc)
        if isinstance(turn, Share):
            self.raw_env.grant(turn.tickets)
        if isinstance(turn, dict):
            return turn, {}, {"__all__": False}, {"__all__": False}, {}
        self._play_on(self.raw_env)
        update_finish_bounds(self.raw_env.state)
        now = float(potential(self.raw_env.state, self.layout.weights, self._cheapest))
        rewards = dict.fromkeys(self.possible_agents, self._potential - now)
        self._potential = now
        if not self.raw_env.done:
            return self.layout.start(), rewards, {"__all__": False}, {"__all__": False}, {}
        metrics = self.world.metrics(self.raw_env.state)
        observations = {name: agent.blank_observation() for name, agent in self.members.items()}
        metrics["J_relative"] = self._potential / self.layout.reference
        infos = {name: {"episode_metrics": metrics} for name in self.possible_agents}
        terminateds = dict.fromkeys([*self.possible_agents, "__all__"], True)
        truncateds = dict.fromkeys([*self.possible_agents, "__all__"], False)
        self.agents = []
        return observations, rewards, terminateds, truncateds, infos

    def batch(self, environments: int, seed: int, worker: int, first: int) -> Batch:
        """Many of these side by side, see `Batch`."""
        return Batch(self.world, environments, seed, worker, first)

    def render(self) -> str:
        """The cluster at this moment, a line a NUMA node.

        Raises:
            InputError: no episode is being played.
        """
        if self.raw_env is None:
            raise nothing_played("render")
        env = self.raw_env
        following = str(env.current_function or "none, the episode is over")
        if env.choosing:
            following = f"one of {len(env.waiting)} functions that wait"
        lines = [
            f"time {env.time:.1f} s, rent {env.total_rent:.2f} USD, decisions {env.decisions}, "
            f"next {following}"
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
        self.raw_env = None

    def _begun(self, workload: EpisodeWorkload, cluster: ClusterConfig) -> RawEnv:
        """An episode at the first choice that agents have, or over."""
        raw_env = RawEnv.of(Episode(workload, cluster, self.world.rules))
        self._play_on(raw_env)
        return raw_env

    def _play_on(self, raw_env: RawEnv) -> None:
        """Up to where agents have a choice."""
        while (choice := self.layout.forced(raw_env)) is not None:
            raw_env.choose(choice.declared)


def register() -> None:
    """Tells RLlib, as importing this does: every Ray has a registry of its own."""
    register_env(ENV_NAME, ServerlessEnv)


register()
