"""From settings to an RLlib algorithm: which agent has which policy, and every configuration."""

import math
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from ray.rllib.algorithms import Algorithm, APPOConfig, DQNConfig, IMPALAConfig, PPOConfig
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.learner import Learner
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from agents.learned import env_runner
from agents.learned.advantages import ChunksToBatch
from agents.learned.cloning import Cloning, Lesson
from agents.learned.learner import (
    PROGRESS_STEPS,
    BudgetAPPOLearner,
    BudgetIMPALALearner,
    BudgetPPOLearner,
    OverBudget,
)
from agents.learned.network import SetPolicyNetwork
from agents.learned.policy_file import features_of, policy_of, save_policy
from agents.learned.set_policy import SetPolicy, SetQNetwork, TargetSetPolicy
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from run.settings import (
    AlgoSettings,
    APPOSettings,
    BCSettings,
    DQNSettings,
    IMPALASettings,
    PPOSettings,
    RaySettings,
    TrainSettings,
)

PolicySpaces = Mapping[str, tuple[gym.spaces.Dict, gym.Space[Any]]]


def policy_spaces(environment: MultiAgentEnv, share_type_policy: bool) -> PolicySpaces:
    """Observation and action space of every policy, from those of the agents."""
    observed, acted = environment.observation_spaces, environment.action_spaces
    return {
        policy_of(agent, share_type_policy): (observed[agent], acted[agent])
        for agent in environment.possible_agents
    }


def run_config(
    settings: TrainSettings, world: Mapping[str, Any], spaces: PolicySpaces, iteration: int = 0
) -> AlgorithmConfig:
    """RLlib's configuration of the part of a run that starts after so many iterations.

    It is of the new API stack. The world is in plain containers.
    """
    algo, ray, share_type_policy = settings.algo, settings.ray, settings.agents.share_type_policy
    seed = run_seed(algo, ray, settings.seed, iteration)
    makers: dict[str, Callable[[Any, RaySettings], AlgorithmConfig]] = {
        "ppo": _ppo,
        "appo": _asynchronous,
        "impala": _asynchronous,
        "dqn": _dqn,
        "bc": _bc,
    }
    config = makers[algo.name](algo, ray)
    model = algo.model_dump(include={"hidden", "network", "message_rounds"})
    if isinstance(algo, DQNSettings):
        model["epsilon"] = [[0, algo.exploration], [algo.exploration_steps, algo.final_exploration]]
    elif isinstance(algo, BCSettings):
        config.lesson = partial(Lesson, algo.teacher, algo.cloning, world, seed)
    with_copies = {"appo": TargetSetPolicy, "dqn": SetQNetwork}
    modules = {
        policy: RLModuleSpec(
            module_class=with_copies.get(algo.name, SetPolicy),
            observation_space=observations,
            action_space=actions,
            model_config=model,
        )
        for policy, (observations, actions) in spaces.items()
    }
    config.environment(ENV_NAME, env_config=dict(world), disable_env_checking=True)
    config.env_runners(
        env_runner_cls=config.env_runner_cls or env_runner.SeededEnvRunner,
        num_env_runners=ray.num_env_runners,
        num_envs_per_env_runner=ray.envs_per_runner,
        # Seconds until a remote runner counts as lost: its first sample compiles the simulator.
        sample_timeout_s=600.0,
    )
    config.fault_tolerance(
        restart_failed_env_runners=ray.restart_failed_runners,
        env_runner_restore_timeout_s=60 * ray.wait_for_runners,
        # Seconds that an iteration waits for lost runners to come back, while others are there.
        env_runner_health_probe_timeout_s=1.0,
    )
    # A learner in this process has a core of its own when runners sample elsewhere.
    config.learners(num_learners=ray.num_learners)
    config.multi_agent(
        policies=set(modules),
        policy_mapping_fn=lambda agent, *_, **__: policy_of(agent, share_type_policy),
    )
    config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=modules))
    config.callbacks(on_episode_end=env_runner.log_infos)
    config.debugging(seed=seed, log_level="ERROR")
    return config


def _ppo(ppo: PPOSettings, ray: RaySettings) -> env_runner.FastPPOConfig:
    """PPO; the sampler brings its runner, and what makes batches of its samples."""
    config = env_runner.FastPPOConfig(env_runner.FaultTolerantPPO)
    learners = max(1, ray.num_learners)
    config.threads_per_learner = ray.threads_per_learner
    config.learners(learner_class=BudgetPPOLearner).training(
        gamma=ppo.gamma,
        lambda_=ppo.gae_lambda,
        lr=cosine_schedule(ppo.learning_rate),
        entropy_coeff=falling_schedule(ppo.entropy),
        clip_param=ppo.clip,
        # Values are sums of rewards of any size; RLlib's default would cut their gradient.
        vf_clip_param=math.inf,
        kl_coeff=0.0,
        kl_target=ppo.kl_stop,
        num_epochs=ppo.epochs,
        # Of each learner: the gradient steps are those of one, whatever their number.
        minibatch_size=math.ceil(ppo.minibatch_size / learners),
        train_batch_size_per_learner=math.ceil(ppo.batch_size / learners),
    )
    if ppo.sampler == "fast":
        config.env_runners(env_runner_cls=env_runner.BatchEnvRunner)
        config.threads_per_runner = ray.threads_per_runner
        config.learners(
            add_default_connectors_to_learner_pipeline=False,
            learner_connector=partial(ChunksToBatch, gamma=ppo.gamma, gae_lambda=ppo.gae_lambda),
        )
    return config


def _asynchronous(algo: IMPALASettings | APPOSettings, ray: RaySettings) -> IMPALAConfig:
    """Runners sample while the learner learns; V-trace makes up for their older policy.

    APPO is IMPALA with PPO's clipped loss, towards a target network.
    """
    config = IMPALAConfig(env_runner.FaultTolerantIMPALA)
    config.learners(learner_class=BudgetIMPALALearner)
    if isinstance(algo, APPOSettings):
        config = APPOConfig(env_runner.FaultTolerantAPPO).learners(learner_class=BudgetAPPOLearner)
        config.training(
            clip_param=algo.clip,
            num_epochs=algo.epochs,
            # A plain queue: RLlib's circular buffer replays batches in the background, by a thread
            # that polls 10,000 times a second, and no run repeats. `num_epochs` repeats them, too.
            use_circular_buffer=False,
            # RLlib counts in rounds of that buffer; these two make it batches.
            circular_buffer_num_batches=1,
            circular_buffer_iterations_per_batch=1,
            target_network_update_freq=algo.target_update * algo.epochs,
        )
    config.env_runners(rollout_fragment_length="auto")
    config.reporting(
        min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=algo.iteration_steps
    )
    # Seconds to wait for runners before looking again; RLlib's 0 would keep a core busy.
    config.timeout_s_sampler_manager = 0.1
    return config.training(
        gamma=algo.gamma,
        lr=cosine_schedule(algo.learning_rate),
        entropy_coeff=falling_schedule(algo.entropy),
        # Adam is used to any scale; a clip would mix that of the values with the policy's.
        grad_clip=None,
        train_batch_size_per_learner=algo.batch_size,
    )


def _dqn(dqn: DQNSettings, ray: RaySettings) -> DQNConfig:
    """Double dueling DQN with a replay of every policy's own steps."""
    buffer, runners = "MultiAgentEpisodeReplayBuffer", ray.num_env_runners
    # Turns of each environment between two rounds of updates: few, but not so few that cutting
    # episodes into pieces costs more than playing them.
    config = DQNConfig(env_runner.FaultTolerantDQN).env_runners(rollout_fragment_length=8)
    return config.reporting(min_sample_timesteps_per_iteration=dqn.iteration_steps).training(
        gamma=dqn.gamma,
        lr=dqn.learning_rate,
        replay_buffer_config={"type": buffer, "capacity": dqn.replay_steps},
        num_steps_sampled_before_learning_starts=dqn.warmup_steps,
        target_network_update_freq=dqn.target_update_steps,
        train_batch_size_per_learner=dqn.batch_size,
        # RLlib counts steps replayed for each one sampled, and one runner more than there are.
        training_intensity=dqn.updates_per_step * dqn.batch_size * (runners or 1) / (runners + 1),
    )


def _bc(bc: BCSettings, ray: RaySettings) -> PPOConfig:
    """Behaviour cloning; runners only play what was learned, and take the likeliest actions."""
    config = PPOConfig(Cloning).env_runners(explore=False)
    return config.training(
        lr=bc.cloning.learning_rate,
        train_batch_size_per_learner=bc.iteration_steps,
        minibatch_size=bc.iteration_steps,
    )


def build(config: AlgorithmConfig, checkpoint: Path | None) -> Algorithm:
    """The algorithm, with the weights, optimiser state and counters of a checkpoint if given."""
    algorithm = config.build_algo()
    # Ray made this empty folder in the home directory; a run's files belong to its own.
    shutil.rmtree(algorithm.logdir)
    if checkpoint is not None:
        algorithm.restore_from_path(str(checkpoint))
    return algorithm


def set_progress(algorithm: Algorithm, progress: float) -> None:
    """Tells the learners with schedules over the budget which share (0 to 1) of it is used."""

    def move(learner: Learner) -> None:
        if isinstance(learner, OverBudget):
            learner.set_progress(min(1.0, progress))

    algorithm.learner_group.foreach_learner(move)


def policy_networks(algorithm: Algorithm) -> dict[str, SetPolicyNetwork]:
    """Copies of the policies as they are now: what acting needs, no critic."""

    def copied(learner: Learner) -> dict[str, SetPolicyNetwork]:
        modules = learner.module.items()
        return {policy: deepcopy(module.unwrapped().policy) for policy, module in modules}

    return next(iter(algorithm.learner_group.foreach_learner(copied))).get()


def write_policy(
    folder: Path, algorithm: Algorithm, environment: ServerlessEnv, config: dict[str, Any]
) -> None:
    """Writes the policy as it is now, in the form that evaluation and sharing use."""
    save_policy(
        folder,
        networks=policy_networks(algorithm),
        features=features_of(environment.members),
        layout=environment.layout.config.layout,
        memory_tiers=environment.layout.tiers,
        objective=environment.objective.model_dump(),
        config=config,
    )


def run_seed(algo: AlgoSettings, ray: RaySettings, seed: int, iteration: int) -> int:
    """The seed of the part of a run that starts at an iteration.

    A run that samples fast, in its own process, keeps its seed, as its checkpoints have the state
    of its sampler. Other resumed runs would repeat their first episodes with it.
    """
    if isinstance(algo, PPOSettings) and algo.sampler == "fast" and ray.num_env_runners == 0:
        return seed
    return env_runner.part_seed(seed, iteration)


def falling_schedule(start: float) -> list[list[float]]:
    """A straight line from `start` to 0 over the budget."""
    return [[0, start], [PROGRESS_STEPS, 0.0]]


def cosine_schedule(start: float) -> list[list[float]]:
    """Half a cosine from `start` to 0 over the budget, as the straight pieces RLlib takes."""
    shares = [piece / 32 for piece in range(33)]
    return [
        [round(share * PROGRESS_STEPS), start * 0.5 * (1.0 + math.cos(math.pi * share))]
        for share in shares
    ]
