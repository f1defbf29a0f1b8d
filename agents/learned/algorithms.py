"""From settings to an RLlib algorithm: which agent has which policy, and PPO's configuration."""

import math
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from agents.learned.advantages import ChunksToBatch
from agents.learned.batch_runner import BatchEnvRunner
from agents.learned.callbacks import EpisodeMetrics
from agents.learned.env_runner import SeededEnvRunner
from agents.learned.learner import PROGRESS_STEPS, BudgetPPOLearner
from agents.learned.set_policy import SetPolicy
from agents.settings import PPOSettings, RaySettings

SERVER_AGENT = "server_"
# Seconds after which a remote runner that has not sampled its part counts as lost.
SAMPLE_TIMEOUT = 600.0

PolicySpaces = Mapping[str, tuple[gym.spaces.Dict, gym.Space[Any]]]


def policy_of(agent: str, share_type_policy: bool) -> str:
    """The policy (RLlib: module) an agent acts by: its own, or the one of all server types."""
    return "server" if share_type_policy and agent.startswith(SERVER_AGENT) else agent


def policy_spaces(environment: MultiAgentEnv, share_type_policy: bool) -> PolicySpaces:
    """Observation and action space of every policy, from those of the agents."""
    return {
        policy_of(agent, share_type_policy): (
            environment.observation_spaces[agent],
            environment.action_spaces[agent],
        )
        for agent in environment.possible_agents
    }


def ppo_config(
    ppo: PPOSettings,
    ray: RaySettings,
    *,
    environment: str,
    world: Mapping[str, Any],
    spaces: PolicySpaces,
    share_type_policy: bool,
    seed: int,
) -> PPOConfig:
    """PPO on the new API stack.

    Args:
        ppo: what to learn with.
        ray: where to sample.
        environment: registered name.
        world: what the environment is built from; plain containers.
        spaces: of every policy.
        share_type_policy: one policy for all server types.
        seed: of weights, sampled actions and episodes.
    """
    modules = {
        policy: RLModuleSpec(
            module_class=SetPolicy,
            observation_space=observations,
            action_space=actions,
            model_config={"hidden": list(ppo.hidden)},
        )
        for policy, (observations, actions) in spaces.items()
    }
    config = (
        PPOConfig()
        .environment(environment, env_config=dict(world), disable_env_checking=True)
        .env_runners(
            env_runner_cls=SeededEnvRunner,
            num_env_runners=ray.num_env_runners,
            num_envs_per_env_runner=ray.envs_per_runner,
            # A runner's first sample compiles the simulator, which RLlib's 60 s may be short for.
            sample_timeout_s=SAMPLE_TIMEOUT,
        )
        .fault_tolerance(restart_failed_env_runners=ray.restart_failed_runners)
        .learners(learner_class=BudgetPPOLearner)
        .multi_agent(
            policies=set(modules),
            policy_mapping_fn=partial(_policy_of_agent, share_type_policy=share_type_policy),
        )
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
        .training(
            gamma=ppo.gamma,
            lambda_=ppo.gae_lambda,
            lr=cosine_schedule(ppo.learning_rate),
            entropy_coeff=[[0, ppo.entropy], [PROGRESS_STEPS, 0.0]],
            clip_param=ppo.clip,
            # Values are sums of rewards of any size; RLlib's default would cut their gradient.
            vf_clip_param=math.inf,
            use_kl_loss=True,
            kl_coeff=0.0,
            kl_target=ppo.kl_stop,
            num_epochs=ppo.epochs,
            minibatch_size=ppo.minibatch_size,
            train_batch_size_per_learner=ppo.batch_size,
        )
        .callbacks(EpisodeMetrics)
        .debugging(seed=seed, log_level="ERROR")
    )
    if ppo.sampler == "fast":
        config.env_runners(env_runner_cls=BatchEnvRunner)
        config.learners(
            add_default_connectors_to_learner_pipeline=False,
            learner_connector=lambda *spaces: ChunksToBatch(ppo.gamma, ppo.gae_lambda),
        )
    return config


def build(config: PPOConfig, checkpoint: Path | None) -> PPO:
    """The algorithm, with the weights, optimiser state and counters of a checkpoint if given."""
    algorithm = config.build_algo()
    # Ray made this empty folder in the home directory; a run's files belong to its own.
    shutil.rmtree(algorithm.logdir)
    if checkpoint is not None:
        algorithm.restore_from_path(str(checkpoint))
    return algorithm


def set_progress(algorithm: PPO, progress: float) -> None:
    """Tells every learner which share (0 to 1) of the run's budget is used."""
    algorithm.learner_group.foreach_learner(
        partial(BudgetPPOLearner.set_progress, progress=min(1.0, progress))
    )


def policy_weights(algorithm: PPO) -> dict[str, dict[str, np.ndarray]]:
    """The weights of each policy's `SetPolicyNetwork`: what acting needs, no critic."""
    return {
        policy: {
            key.removeprefix("policy."): np.asarray(array)
            for key, array in weights.items()
            if key.startswith("policy.")
        }
        for policy, weights in algorithm.learner_group.get_weights().items()
    }


def run_seed(seed: int, iteration: int) -> int:
    """The seed of the part of a run that starts at an iteration.

    A resumed run goes on with the next draws of its seed instead of repeating its first episodes.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(iteration,))
    return int(sequence.generate_state(1)[0] >> 1)


def cosine_schedule(start: float, pieces: int = 32) -> list[list[float]]:
    """Half a cosine from `start` to 0 over the budget, as the straight pieces RLlib takes."""
    return [
        [
            round(piece / pieces * PROGRESS_STEPS),
            start * 0.5 * (1.0 + math.cos(math.pi * piece / pieces)),
        ]
        for piece in range(pieces + 1)
    ]


def _policy_of_agent(agent: str, episode: Any, share_type_policy: bool, **kwargs: Any) -> str:
    return policy_of(agent, share_type_policy)
