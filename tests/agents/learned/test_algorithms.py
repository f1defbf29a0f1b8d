"""APPO, IMPALA and DQN on the toy: they learn, keep to the masks, resume, and fail out loud."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.dqn.default_dqn_rl_module import QF_PREDS
from ray.rllib.core.columns import Columns
from ray.tune.registry import register_env

from agents.learned.algorithms import policy_networks, set_progress
from agents.learned.checkpoint import RunState, find_checkpoint, save_checkpoint
from agents.learned.network import MASKED_LOGIT
from agents.learned.run_log import env_steps_of, episodes_of, measures_of
from agents.learned.set_policy import SetQNetwork
from tests.agents.learned.conftest import Started, algo
from tests.agents.learned.test_set_policy import build as make_module
from tests.agents.learned.test_set_policy import observe
from tests.agents.learned.test_training import PPO_SETTINGS, same
from tests.agents.learned.toy_env import ToyEnv

ASYNCHRONOUS = {"batch_size": 80, "iteration_steps": 640, "learning_rate": 5e-3}
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": PPO_SETTINGS,
    "impala": algo("impala", **ASYNCHRONOUS),
    "appo": algo("appo", **ASYNCHRONOUS),
    "dqn": algo(
        "dqn",
        batch_size=64,
        iteration_steps=512,
        replay_steps=10_000,
        warmup_steps=200,
        updates_per_step=0.0625,
        target_update_steps=300,
        learning_rate=5e-3,
        gamma=0.5,
        final_exploration=0.02,
        exploration_steps=1500,
    ),
}
# Far above what any of these tests takes, far below what a user would call hanging.
PATIENCE = 60.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "layout", "iterations"),
    [
        ("impala", "placer", 9),
        ("impala", "server_types", 9),
        ("appo", "hierarchical", 9),
        ("dqn", "hierarchical", 7),
    ],
)
def test_learning_improves_the_return_clearly(
    started: Started, name: str, layout: str, iterations: int
) -> None:
    world = {"layout": layout, "items": 5, "steps": 10}
    algorithm = started(SETTINGS[name], world, envs_per_runner=16)
    before = policy_networks(algorithm)
    means = []
    for iteration in range(iterations):
        set_progress(algorithm, iteration / iterations)
        result = algorithm.train()
        means.append(-np.mean(episodes_of(result)["J"]))
    # As in test_training.py: 6 at best, 0 at random. An action that is masked ends the toy.
    assert abs(means[0]) < 2.0
    assert np.mean(means[-2:]) > 3.0
    measures = measures_of(result, seconds=1.0)
    loss = "q" if name == "dqn" else "policy"
    for policy, weights in policy_networks(algorithm).items():
        assert not same(before[policy], weights)
        assert np.isfinite(measures[f"loss/{policy}/{loss}"])


@pytest.mark.parametrize("name", ["impala", "appo", "dqn"])
def test_a_resumed_run_goes_on_with_weights_and_counters(
    started: Started, tmp_path: Path, name: str
) -> None:
    world = {"layout": "hierarchical", "steps": 9}
    algorithm = started(SETTINGS[name], world)
    result = algorithm.train()
    save_checkpoint(algorithm, tmp_path, RunState(iteration=1), {}, keep=1)
    weights = algorithm.learner_group.get_weights()
    sampled = result["env_runners"]["num_env_steps_sampled_lifetime"]

    resumed = started(SETTINGS[name], world, checkpoint=find_checkpoint(tmp_path))
    assert resumed.iteration == 1
    assert same(resumed.learner_group.get_weights(), weights)
    acting = resumed.env_runner.module["memory"].policy
    assert same(acting, policy_networks(algorithm)["memory"])
    result = resumed.train()
    assert result["training_iteration"] == 2
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] > sampled
    assert not same(resumed.learner_group.get_weights(), weights)


def test_a_runner_samples_while_the_learner_learns(started: Started) -> None:
    world = {"layout": "hierarchical", "steps": 8}
    algorithm = started(SETTINGS["impala"], world, num_env_runners=1)
    before = algorithm.learner_group.get_weights()
    result = algorithm.train()
    assert env_steps_of(result) >= 640
    assert not same(before, algorithm.learner_group.get_weights())


def error_of(call: Callable[[], Any]) -> BaseException:
    """What a call raises; a call that hangs is a failed test, not a hanging one."""
    caught: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"no answer within {PATIENCE} s"
    assert caught, "nothing was raised"
    return caught[0]


def broken(*args: Any, **kwargs: Any) -> Any:
    raise ArithmeticError("told to break")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_learner_that_throws_ends_the_run(started: Started, name: str) -> None:
    algorithm = started(SETTINGS[name], {"layout": "hierarchical"})
    algorithm.learner_group._learner._update = broken
    error = error_of(algorithm.train)
    assert "told to break" in f"{error} {error.__cause__}"


@pytest.mark.long
def test_a_runner_that_dies_ends_the_run(started: Started) -> None:
    world = {"layout": "placer", "crash": True}
    algorithm = started(SETTINGS["appo"], world, num_env_runners=1)
    # RLlib's runners leave the reason in their log and exit.
    assert "SeededEnvRunner" in str(error_of(algorithm.train))


class Worthless(ToyEnv):
    """Nothing is ever earned."""

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        observations, rewards, ended, cut, infos = super().step(actions)
        return observations, dict.fromkeys(rewards, 0.0), ended, cut, infos


def test_what_follows_a_cut_has_the_value_that_the_critic_gives(started: Started) -> None:
    """V-trace with rewards of 0 and a critic that says 1 everywhere: its targets are 1."""
    register_env("Worthless-v0", lambda config: Worthless(dict(config)))
    algorithm = started(SETTINGS["impala"], {"steps": 10_000}, "Worthless-v0")
    learner = algorithm.learner_group._learner
    for parameter in learner.module["placer"].unwrapped().value.head.parameters():
        parameter.data.fill_(float(parameter.ndim == 1))
    learner._optimizer_lr_schedules.clear()
    for optimizer in learner._named_optimizers.values():
        learner._set_optimizer_lr(optimizer, lr=0.0)
    assert algorithm.train()["learners"]["placer"]["mean_vf_loss"] == pytest.approx(0.0, abs=1e-9)


def q_network(epsilon: float) -> tuple[SetQNetwork, dict[str, Any]]:
    module = make_module("placer", kind=SetQNetwork, epsilon=[[0, epsilon], [1, epsilon]])
    with torch.no_grad():
        for parameter in module.policy.parameters():
            parameter.normal_()
    return module, {Columns.OBS: observe("placer", 64)}


def test_exploration_draws_from_what_the_mask_allows() -> None:
    module, batch = q_network(epsilon=1.0)
    mask = batch[Columns.OBS]["mask"]
    drawn = torch.zeros_like(mask)
    for _ in range(200):
        actions = module.forward_exploration(batch, t=5)[Columns.ACTIONS]
        drawn[torch.arange(64), actions] += 1
    assert (drawn[mask == 0] == 0).all()
    assert (drawn[mask == 1] > 0).float().mean() > 0.99


def test_without_exploration_the_best_allowed_value_is_taken() -> None:
    module, batch = q_network(epsilon=0.0)
    mask = batch[Columns.OBS]["mask"]
    values = module.compute_q_values(batch)[QF_PREDS]
    assert (values[mask == 0] == MASKED_LOGIT).all()
    assert (values[mask == 1] > MASKED_LOGIT / 2).all()
    best, logits = values.argmax(dim=-1), module.forward_inference(batch)
    assert torch.equal(module.forward_exploration(batch)[Columns.ACTIONS], best)
    assert torch.equal(logits[Columns.ACTION_DIST_INPUTS].argmax(dim=-1), best)


@pytest.mark.parametrize("name", ["ppo", "impala"])
def test_a_crashing_environment_ends_the_run(started: Started, name: str) -> None:
    algorithm = started(SETTINGS[name], {"layout": "placer", "crash": True})
    error = error_of(algorithm.train)
    assert "told to crash" in f"{error} {error.__cause__}"
