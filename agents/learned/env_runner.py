"""RLlib's environment runner with seeds of its own, and the fast one, of compiled environments.

When runners are lost, training goes on with those left, or waits for others.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms import APPO, DQN, IMPALA, PPO, Algorithm, AlgorithmConfig, PPOConfig
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils import metrics
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from agents.learned.sampler import Chunk, Sampler
from env.learn.batch import Batch
from env.learn.multi_agent import ServerlessEnv

EPISODE_METRICS = "episode_metrics"
BATCH = "batch"
"""The part of a fast runner's state with which sampling continues exactly."""


class SeededEnvRunner(MultiAgentEnvRunner):
    """Samples with environments that never repeat those of another runner.

    RLlib seeds environment i of runner w with seed + w + i: the second of runner 1 and the first
    of runner 2 would play the same episodes.
    """

    config: AlgorithmConfig

    def start_part(self, part: int) -> None:
        """Plays other episodes from here on: a part of the run has a seed of its own.

        A runner started in place of a lost one would otherwise play its first episodes again.
        """
        seed = part_seed(self.config.seed, part)
        self.config = self.config.copy(copy_frozen=False).debugging(seed=seed)
        self._needs_initial_reset = True

    def _try_env_reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seeds = None
        if seed is not None:
            sequence = np.random.SeedSequence(self.config.seed, spawn_key=(self.worker_index or 0,))
            seeds = [int(word) for word in sequence.generate_state(self.num_envs, np.uint64)]
        return super()._try_env_reset(seed=seeds, options=options)


def part_seed(seed: int | None, part: int) -> int:
    """The seed of a part of a run."""
    sequence = np.random.SeedSequence(seed, spawn_key=(part,))
    return int(sequence.generate_state(1)[0] >> 1)


def log_infos(episode: MultiAgentEpisode, metrics_logger: MetricsLogger, **kwargs: Any) -> None:
    """Logs the `episode_metrics` that the environment puts in the last infos of an episode."""
    infos = episode.get_infos(-1).values()
    measured = next(info[EPISODE_METRICS] for info in infos if EPISODE_METRICS in info)
    metrics_logger.log_dict(measured, key=EPISODE_METRICS, reduce="item_series")


class FastPPOConfig(PPOConfig):
    """RLlib's configuration of PPO, and of `BatchEnvRunner` and `BudgetPPOLearner`.

    Attributes:
        threads_per_runner: that share the environments of a runner, at most one for each.
        threads_per_learner: that share the rows of every minibatch.
    """

    threads_per_runner = 1
    threads_per_learner = 1


class BatchEnvRunner(SeededEnvRunner):
    """Samples with a compiled `Batch`, and returns a `Chunk` of columns in place of episodes.

    The bookkeeping of episodes is what costs RLlib's runner its time. A step of an environment is a
    turn. Threads share the environments. Those of a thread are in step, so what is sampled is a
    whole number of decisions of all of them. Compiled calls of different threads run side by side,
    most networks among them (`writer_of`); what Python and torch do does not. Each thread has one
    of the `samplers`.
    """

    config: FastPPOConfig

    def make_env(self) -> None:
        """The samplers, and one environment of RLlib's kind for spaces and names."""
        configured = self.config
        self.config = configured.copy(copy_frozen=False).env_runners(num_envs_per_env_runner=1)
        super().make_env()
        self.config = configured
        self.num_envs = configured.num_envs_per_env_runner
        # Networks shall not ask for more cores: this holds for all threads started from here on.
        self._threads = ThreadPoolExecutor(
            configured.threads_per_runner, "sampler", torch.set_num_threads, (1,)
        )
        self._start_samplers()
        for sampler in self.samplers:
            sampler.batch.restart()  # a seed has always meant the second episodes

    def _start_samplers(self) -> None:
        environment: ServerlessEnv = self.env.envs[0].unwrapped
        world, seed, worker = environment.world, self.config.seed or 0, self.worker_index or 0
        threads = min(self.config.threads_per_runner, self.num_envs)
        parts = np.array_split(np.arange(self.num_envs), threads)
        sequence = np.random.SeedSequence(self.config.seed, spawn_key=(worker,))
        self.samplers = [
            Sampler(
                Batch(world, len(part), seed, worker, int(part[0])),
                lambda agent: self.config.policy_mapping_fn(agent, None),
                np.random.default_rng(seeds),
            )
            for part, seeds in zip(parts, sequence.spawn(threads), strict=True)
        ]

    def start_part(self, part: int) -> None:
        """See `SeededEnvRunner`."""
        super().start_part(part)
        self._start_samplers()

    def _sample(
        self, *, num_timesteps: int, explore: bool, random_actions: bool, force_reset: bool
    ) -> list[Chunk]:
        """Chunks of at least `num_timesteps` turns of agents, one of every thread in each round."""
        assert not random_actions and not force_reset  # PPO asks for neither
        networks = {policy: module.policy for policy, module in self.module.items()}
        chunks: list[Chunk] = []
        taken, played = 0, 0
        most = self.num_envs * len(self.samplers[0].batch.turns)
        while taken < num_timesteps:
            # Turns can be nobody's: how many are is known from what has been played.
            per_decision = taken / played if played else most
            decisions = math.ceil((num_timesteps - taken) / per_decision)
            results = [
                self._threads.submit(sampler.play, networks, decisions, explore)
                for sampler in self.samplers
            ]
            wait(results)  # also for the others when one fails
            chunks += [result.result() for result in results]
            taken, played = sum(map(len, chunks)), played + decisions
        self.num_env_steps_sampled_lifetime += taken
        self.metrics.log_value(metrics.NUM_ENV_STEPS_SAMPLED, taken, reduce="sum")
        self.metrics.log_value(metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME, taken, reduce="lifetime_sum")
        for sampler in self.samplers:
            for ended in sampler.batch.ended:
                self.metrics.log_dict(ended.metrics, key=EPISODE_METRICS, reduce="item_series")
            sampler.batch.ended.clear()
        return chunks

    def get_state(
        self, components: Any = None, *, not_components: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """RLlib's, and everything with which sampling continues."""
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self.env is not None and self._check_component(BATCH, components, not_components):
            samplers = [sampler.get_state() for sampler in self.samplers]
            state[BATCH] = {"worker": self.worker_index, "samplers": samplers}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Continues from `get_state`; the samplers of another runner's state are left alone.

        With other threads or environments than before it plays other episodes from here on.
        """
        super().set_state(state)
        given = state.get(BATCH)
        if given is None or self.env is None or given["worker"] != self.worker_index:
            return
        environments = [len(sampler.batch) for sampler in self.samplers]
        if environments != [len(each["batch"]["blocks"]) for each in given["samplers"]]:
            # It would play the first episodes of the run again.
            self.start_part(self.num_env_steps_sampled_lifetime)
            return
        for sampler, its_state in zip(self.samplers, given["samplers"], strict=True):
            sampler.set_state(its_state)


class RunnersLost(RuntimeError):
    """There are no runners, and nothing was sampled for longer than a run waits."""


class FaultTolerant(Algorithm):
    """What all algorithms get here.

    RLlib leaves out lost runners and has Ray start others in their place, where there are cores.
    With none left, RLlib's training steps would do nothing, for ever. Here they wait, and end the
    run when nothing was sampled for `env_runner_restore_timeout_s`; so do crashes that repeat.
    """

    _env_steps = -1
    _last_sampled = 0.0

    def restore_env_runners(self, env_runner_group: EnvRunnerGroup) -> list[int]:
        """What RLlib does before every training step.

        Raises:
            RunnersLost: see above.
        """
        key = metrics.ENV_RUNNER_RESULTS, metrics.NUM_ENV_STEPS_SAMPLED_LIFETIME
        sampled = self.metrics.peek(key, default=0)
        if sampled != self._env_steps:
            self._env_steps, self._last_sampled = sampled, time.monotonic()
        remote = env_runner_group.num_remote_env_runners()
        while True:
            idle = time.monotonic() - self._last_sampled
            none_left = remote and not env_runner_group.num_healthy_remote_env_runners()
            if none_left and idle > self.config.env_runner_restore_timeout_s:
                raise RunnersLost(
                    f"all {remote} runners are lost and nothing was sampled for {idle / 60:.1f} "
                    "minutes (ray.wait_for_runners)"
                )
            restored: list[int] = super().restore_env_runners(env_runner_group)
            if restored:
                # A new runner would play the first episodes of the lost one again.
                env_runner_group.foreach_env_runner(
                    "start_part",
                    kwargs={"part": self.iteration},
                    remote_worker_ids=restored,
                    local_env_runner=False,
                )
            if not remote or env_runner_group.num_healthy_remote_env_runners():
                return restored
            time.sleep(1.0)  # until the next look at whether a runner has come back


class FaultTolerantPPO(FaultTolerant, PPO):
    """PPO."""


class FaultTolerantIMPALA(FaultTolerant, IMPALA):
    """IMPALA."""


class FaultTolerantAPPO(FaultTolerant, APPO):
    """APPO."""


class FaultTolerantDQN(FaultTolerant, DQN):
    """DQN, whose replay draws by the seed of the run: RLlib's own never repeats."""

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds all, and seeds the replay."""
        super().setup(config)
        self.local_replay_buffer.rng = np.random.default_rng(self.config.seed)
