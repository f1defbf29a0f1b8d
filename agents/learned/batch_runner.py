"""The fast sampler: an RLlib environment runner that steps a compiled batch of environments.

It stands where RLlib's multi-agent runner would and returns a `Chunk` of columns in place of
episodes, whose bookkeeping is what costs RLlib its time.
"""

from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.utils.metrics import (
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    NUM_EPISODES_LIFETIME,
    NUM_MODULE_STEPS_SAMPLED,
    NUM_MODULE_STEPS_SAMPLED_LIFETIME,
)
from torch import Tensor

from agents.learned.callbacks import log_episode
from agents.learned.chunk import OPEN, Chunk, Steps
from agents.learned.env_runner import reseeded
from agents.learned.network import MASKED_LOGIT
from agents.learned.recorder import Recorder
from env.batch import Ended
from env.layouts import TURN_KINDS, Observation
from env.multi_agent import ServerlessEnv
from env.queue_env import QueueEnv
from env.sim.jit import compiled
from env.turns import BID_TURN

BATCH = "batch"
"""The part of the runner's state that makes sampling go on exactly."""
EVALUATION_WORKERS = 1_000_000
"""Numbers of evaluating workers start here: they never play the episodes of training."""
FRAGMENT = 64
"""Decisions of every environment between looks at how many episodes have ended."""


@compiled
def choose(logits, begin, end, part, explore, chances, actions, logp):
    """Chooses a part of every row's action by the logits in columns `begin` to `end`.

    Args:
        logits: (rows, A) float32.
        begin, end: columns.
        part: column of `chances` and `actions`.
        explore: draw from the probabilities; else the likeliest.
        chances: (rows, parts) between 0 and 1, to draw with.
        actions: out, (rows, parts) int64.
        logp: out, (rows,) float32, the logarithm of the probability is added.
    """
    for row in range(len(logits)):
        chosen = begin
        for column in range(begin + 1, end):
            if logits[row, column] > logits[row, chosen]:
                chosen = column
        highest = logits[row, chosen]
        total = 0.0
        for column in range(begin, end):
            if logits[row, column] > MASKED_LOGIT:
                total += np.exp(logits[row, column] - highest)
        if explore:
            left = chances[row, part] * total
            for column in range(begin, end):
                if logits[row, column] > MASKED_LOGIT:
                    chosen = column
                    left -= np.exp(logits[row, column] - highest)
                    if left < 0.0:
                        break
        actions[row, part] = chosen - begin
        logp[row] += logits[row, chosen] - highest - np.log(total)


class BatchEnvRunner(MultiAgentEnvRunner):
    """Samples with `env.batch.Batch`; everything else is as in RLlib's runner.

    A step of an environment is a turn. As environments are in step, what is sampled is a whole
    number of decisions of all of them.
    """

    config: AlgorithmConfig

    def make_env(self) -> None:
        """The batch, and one environment of RLlib's kind for spaces and names."""
        configured = self.config
        self.config = configured.copy(copy_frozen=False).env_runners(num_envs_per_env_runner=1)
        super().make_env()
        self.config = configured
        self.num_envs = configured.num_envs_per_env_runner
        self._start_batch()

    def _start_batch(self) -> None:
        environment: ServerlessEnv | QueueEnv = self.env.envs[0].unwrapped
        worker = self._worker()
        self.batch = environment.batch(self.num_envs, self.config.seed or 0, worker)
        self._recorders = {
            TURN_KINDS[turn]: Recorder(self.batch.agents_of(turn), self.num_envs)
            for turn in self.batch.turns
        }
        self._policies = {
            kind: [self.config.policy_mapping_fn(agent.name, None) for agent in recorder.agents]
            for kind, recorder in self._recorders.items()
        }
        sequence = np.random.SeedSequence(self.config.seed, spawn_key=(worker,))
        self._random = np.random.default_rng(sequence)
        self._needs_initial_reset = False

    def start_part(self, part: int) -> None:
        """Plays other episodes from here on, see `reseeded`."""
        self.config = reseeded(self.config, part)
        self._start_batch()

    def _worker(self) -> int:
        first = EVALUATION_WORKERS if self.config.in_evaluation else 0
        return first + (self.worker_index or 0)

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[Chunk]:
        """A chunk of at least `num_timesteps` turns, or chunks with `num_episodes` episodes.

        Episodes are shared out among the environments beforehand, as stopping at the first
        `num_episodes` that end would favour short ones.
        """
        if num_episodes is None:
            if force_reset or self._needs_initial_reset:
                self._restart()
            assert num_timesteps is not None
            per_decision = self.num_envs * len(self.batch.turns)
            chunk = self._play(-(-num_timesteps // per_decision), explore, random_actions)
            self._log_episodes(self.batch.ended)
            self.batch.ended.clear()
            return [chunk]
        self._restart()
        wanted = self.batch.numbers + num_episodes // self.num_envs
        wanted[: num_episodes % self.num_envs] += 1
        counted: list[Ended] = []
        chunks = []
        while len(counted) < num_episodes:
            chunks.append(self._play(FRAGMENT, explore, random_actions))
            counted += [
                ended for ended in self.batch.ended if ended.number < wanted[ended.environment]
            ]
            self.batch.ended.clear()
        self._log_episodes(counted)
        self._needs_initial_reset = True
        return chunks

    def _restart(self) -> None:
        self.batch.restart()
        for recorder in self._recorders.values():
            recorder.forget()
        self._needs_initial_reset = False

    @torch.inference_mode()
    def _play(self, decisions: int, explore: bool, random_actions: bool) -> Chunk:
        """So many decisions of every environment."""
        batch = self.batch
        for turn in batch.turns:
            self._recorder(turn).begin(decisions * self._rows(turn))
        for _ in range(decisions):
            for turn in batch.turns:
                recorder, rows = self._recorder(turn), self._rows(turn)
                seen = recorder.room(rows)
                batch.observe(turn, seen)
                acting = batch.acting(turn)
                logits = self._logits(turn, acting, seen, random_actions).numpy()
                actions, logp = self._choose(logits, recorder.agents[0].bids, explore)
                batch.act(turn, actions)
                recorder.record(acting, actions, logp, logits)
            earned, done = batch.step()
            for recorder in self._recorders.values():
                recorder.earn(earned, done)
        modules: dict[str, Steps] = {}
        for kind, recorder in self._recorders.items():
            modules |= self._by_policy(recorder, self._policies[kind])
        chunk = Chunk(modules, decisions * len(batch.turns) * len(batch))
        self._log_steps(chunk)
        return chunk

    def _recorder(self, turn: int) -> Recorder:
        return self._recorders[TURN_KINDS[turn]]

    def _rows(self, turn: int) -> int:
        """Rows of a turn: an agent in every environment, or all bidders."""
        agents = len(self.batch.agents_of(turn)) if turn == BID_TURN else 1
        return agents * len(self.batch)

    def _logits(
        self,
        turn: int,
        acting: np.ndarray,
        seen: Observation,
        random_actions: bool,
    ) -> Tensor:
        """(rows, A) of each row's own policy."""
        observations = {part: torch.from_numpy(column) for part, column in seen.items()}
        if random_actions:
            mask = observations["mask"]
            return torch.zeros_like(mask).masked_fill_(mask < 0.5, MASKED_LOGIT)
        policies = self._policies[TURN_KINDS[turn]]
        if len(set(policies)) == 1:
            return self.module[policies[0]].logits(observations)
        logits = torch.zeros_like(observations["mask"])  # of rows that are nobody's
        for index, policy in enumerate(policies):
            rows = torch.from_numpy(np.flatnonzero(acting == index))
            if len(rows):
                own = {part: column[rows] for part, column in observations.items()}
                logits[rows] = self.module[policy].logits(own)
        return logits

    def _choose(
        self, logits: np.ndarray, bids: int, explore: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Actions (rows,) or (rows, 2), and the logarithms of their probabilities (rows,)."""
        rows, choices = logits.shape
        columns = [0, bids, choices] if bids else [0, choices]
        actions = np.empty((rows, len(columns) - 1), np.int64)
        logp = np.zeros(rows, np.float32)
        chances = self._random.random(actions.shape)
        for part, (begin, end) in enumerate(pairwise(columns)):
            choose(logits, begin, end, part, explore, chances, actions, logp)
        return (actions if bids else actions[:, 0]), logp

    def _by_policy(self, recorder: Recorder, policies: list[str]) -> dict[str, Steps]:
        """The steps that each policy of a recorder's agents made."""
        steps, agents = recorder.finish()
        if len(set(policies)) == 1:
            return {policies[0]: steps}
        made = np.array(policies)[agents]
        return {policy: steps.select(made == policy) for policy in set(policies)}

    def _log_steps(self, chunk: Chunk) -> None:
        """The counters that RLlib reads."""
        for key in (NUM_ENV_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED_LIFETIME):
            self._count(key, chunk.steps)
        self.num_env_steps_sampled_lifetime += chunk.steps
        for policy, steps in chunk.modules.items():
            trained = int((steps.following != OPEN).sum())
            for key in (NUM_MODULE_STEPS_SAMPLED, NUM_MODULE_STEPS_SAMPLED_LIFETIME):
                self._count((key, policy), trained)

    def _count(self, key: Any, steps: int) -> None:
        lifetime = str(key).find("lifetime") >= 0
        self.metrics.log_value(key, steps, reduce="lifetime_sum" if lifetime else "sum")

    def _log_episodes(self, episodes: list[Ended]) -> None:
        for ended in episodes:
            log_episode(ended.metrics, self.metrics)
            length = int(ended.metrics["decisions"]) * len(self.batch.turns)
            self._log_episode_metrics(length, ended.earned, 0.0)
        for key in (NUM_EPISODES, NUM_EPISODES_LIFETIME):
            self._count(key, len(episodes))

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """RLlib's, and everything that sampling goes on from."""
        state: dict[str, Any] = super().get_state(
            components, not_components=not_components, **kwargs
        )
        if self.env is not None and self._check_component(BATCH, components, not_components):
            state[BATCH] = {
                "worker": self._worker(),
                "batch": self.batch.get_state(),
                "random": self._random.bit_generator.state,
                "open": {kind: each.get_state() for kind, each in self._recorders.items()},
            }
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from `get_state`; what another runner was sampling is left to that one."""
        super().set_state(state)
        own = state.get(BATCH)
        if own is not None and self.env is not None and own["worker"] == self._worker():
            self.batch.set_state(own["batch"])
            self._random.bit_generator.state = own["random"]
            for kind, recorder in self._recorders.items():
                recorder.set_state(own["open"][kind])
            self._needs_initial_reset = False
