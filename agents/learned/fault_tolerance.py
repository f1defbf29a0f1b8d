"""What training does when runners are lost: it goes on with those left, or waits for others."""

import time

import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo import APPO
from ray.rllib.algorithms.dqn import DQN
from ray.rllib.algorithms.impala import IMPALA
from ray.rllib.algorithms.ppo import PPO
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME


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
        key = ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME
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
