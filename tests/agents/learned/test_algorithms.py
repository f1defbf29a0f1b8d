"""All algorithms on a toy with an obvious optimum: they learn, resume, and fail out loud."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import torch
from ray.rllib.algorithms.dqn.default_dqn_rl_module import QF_PREDS
from ray.rllib.core.columns import Columns
from ray.tune.registry import register_env

from agents.learned.algorithms import policy_networks, run_seed, set_progress
from agents.learned.checkpoint import RunState, find_checkpoint, load_checkpoint, save_checkpoint
from agents.learned.env_runner import RunnersLost
from agents.learned.network import MASKED_LOGIT
from agents.learned.run_log import env_steps_of, episodes_of, measures_of
from agents.learned.set_policy import SetQNetwork
from env.base.errors import InputError
from run.settings import PPOSettings
from tests.agents.learned.conftest import PPO_SETTINGS, Started, algo, ray_settings, same
from tests.agents.learned.test_set_policy import build as make_module
from tests.agents.learned.test_set_policy import observe
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


@pytest.mark.parametrize(
    ("name", "layout", "iterations", "least"),
    [
        ("ppo", "placer", 15, 4.5),
        ("ppo", "server_types", 15, 4.5),
        *(
            pytest.param(*told, 3.0, marks=pytest.mark.long)
            for told in (
                ("impala", "placer", 9),
                ("impala", "server_types", 9),
                ("appo", "hierarchical", 9),
                ("dqn", "hierarchical", 7),
            )
        ),
    ],
)
def test_learning_improves_the_return_clearly(
    started: Started, name: str, layout: str, iterations: int, least: float
) -> None:
    world = {"layout": layout, "items": 5, "steps": 10}
    algorithm = started(SETTINGS[name], world, envs_per_runner=16)
    before = policy_networks(algorithm)
    means = []
    for iteration in range(iterations):
        set_progress(algorithm, iteration / iterations)
        result = algorithm.train()
        means.append(-np.mean(episodes_of(result)["J"]))
    # The best of 4 numbers from -1 to 1 is 0.6 on average, a random one 0: 6 a 10 steps episode.
    # An action that is masked ends the toy.
    assert abs(means[0]) < (1.5 if name == "ppo" else 2.0)
    assert np.mean(means[-2:]) > least
    measures = measures_of(result, seconds=1.0)
    loss = "q" if name == "dqn" else "policy"
    for policy, weights in policy_networks(algorithm).items():
        assert not same(before[policy], weights)
        assert np.isfinite(measures[f"loss/{policy}/{loss}"])


@pytest.mark.parametrize("name", SETTINGS)
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


def test_a_resumed_run_has_its_optimizers_and_schedules(started: Started, tmp_path: Path) -> None:
    world = {"layout": "hierarchical", "steps": 9}
    algorithm = started(PPO_SETTINGS, world)
    for iteration in range(2):
        set_progress(algorithm, iteration / 4)
        algorithm.train()
    state = RunState(iteration=2, env_steps=1280, seconds=3.0, evaluated=1, best=1.5)
    save_checkpoint(algorithm, tmp_path, state, {"seed": 5}, keep=1)
    optimizers = algorithm.learner_group.get_state()["learner"]["optimizer"]

    checkpoint = find_checkpoint(tmp_path)
    stored = load_checkpoint(checkpoint)
    assert (stored.state, stored.config) == (state, {"seed": 5})
    resumed = started(PPO_SETTINGS, world, checkpoint=checkpoint)
    restored = resumed.learner_group.get_state()["learner"]["optimizer"]
    assert same(restored, optimizers)
    adam = [moment for each in restored.values() for moment in each["state"]["state"].values()]
    assert min(moment["step"] for moment in adam) > 0

    # Schedules stand where the budget says, not at their start.
    set_progress(resumed, 0.5)
    learned = resumed.train()["learners"]["placer"]
    assert learned["default_optimizer_learning_rate"] == pytest.approx(1.5e-3)
    assert learned["curr_entropy_coeff"] == pytest.approx(0.5e-3)


@pytest.mark.long
def test_two_remote_runners_sample_different_episodes(started: Started) -> None:
    algorithm = started(PPO_SETTINGS, {"layout": "hierarchical", "steps": 8}, num_env_runners=2)
    before = algorithm.learner_group.get_weights()
    result = algorithm.train()
    runners = algorithm.env_runner_group
    assert runners.num_healthy_remote_workers() == 2
    seeds = runners.foreach_env_runner(
        lambda runner: [env.unwrapped.seed for env in runner.env.envs], local_env_runner=False
    )
    assert len({seed for part in seeds for seed in part}) == 2 * 4
    assert len(episodes_of(result)["J"]) >= 2 * 4
    assert not same(before, algorithm.learner_group.get_weights())


def test_an_iteration_may_end_before_any_episode(started: Started) -> None:
    algorithm = started(PPO_SETTINGS, {"layout": "placer", "steps": 200})
    assert "slowdown" not in measures_of(algorithm.train(), seconds=2.0)
    measures = measures_of(algorithm.train(), seconds=2.0)
    assert measures["env_steps_per_s"] == 320
    assert "slowdown" in measures and "nobody_has" not in measures


def test_a_policy_stops_at_the_kl_limit(started: Started) -> None:
    world = {"layout": "hierarchical", "steps": 9}
    taken = []
    for limit in (1e-12, 10.0):
        settings = PPO_SETTINGS | {"kl_stop": limit, "learning_rate": 1e-2}
        algorithm = started(settings, world)
        algorithm.train()
        optimizers = algorithm.learner_group.get_state()["learner"]["optimizer"].values()
        taken.append([int(each["state"]["state"][0]["step"]) for each in optimizers])
    # The first step moves no policy that samples, the second is one too many.
    assert all(steps <= 3 for steps in taken[0])
    assert all(few < many for few, many in zip(*taken, strict=True))


def test_the_newest_and_the_best_checkpoints_stay(started: Started, tmp_path: Path) -> None:
    algorithm = started(PPO_SETTINGS, {"layout": "placer"})
    for iteration, score in enumerate([3.0, 1.0, 2.0, 2.5, 4.0], start=1):
        state = RunState(iteration=iteration, difference=score)
        save_checkpoint(algorithm, tmp_path, state, {}, keep=2)
    saved = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert saved == ["iteration_000002", "iteration_000004", "iteration_000005"]
    assert find_checkpoint(tmp_path).name == "iteration_000005"
    assert find_checkpoint(tmp_path / "checkpoints").name == "iteration_000005"
    best = tmp_path / "checkpoints" / "iteration_000002"
    assert find_checkpoint(best) == best


def test_a_path_without_checkpoint_is_refused(tmp_path: Path) -> None:
    unfinished = tmp_path / "checkpoints" / "iteration_000007"
    unfinished.mkdir(parents=True)
    with pytest.raises(InputError, match="neither a checkpoint nor a run folder"):
        find_checkpoint(tmp_path)
    (unfinished / "run.json").write_text("{")
    with pytest.raises(InputError, match="run.json.: not valid JSON"):
        load_checkpoint(find_checkpoint(tmp_path))


def test_every_part_of_a_run_has_its_own_seed() -> None:
    ppo, here = PPOSettings.model_validate(PPO_SETTINGS), ray_settings()
    seeds = {run_seed(ppo, here, seed, part) for seed in range(3) for part in (0, 1, 20)}
    assert len(seeds) == 9
    fast = PPOSettings.model_validate(PPO_SETTINGS | {"sampler": "fast"})
    assert run_seed(fast, here, 5, 20) == 5
    assert run_seed(fast, ray_settings(num_env_runners=2), 5, 20) != 5


def test_torch_stays_on_one_thread(toy: str) -> None:
    assert torch.get_num_threads() == 1


@pytest.mark.long
def test_a_run_goes_on_with_the_runners_left_and_ends_without_any(
    started: Started, tmp_path: Path
) -> None:
    given = {"num_env_runners": 2, "restart_failed_runners": True, "wait_for_runners": 0.03}
    algorithm = started(PPO_SETTINGS, {"layout": "placer"}, **given)
    first, second = algorithm.env_runner_group._worker_manager._actors.values()
    # As when the machine is gone: Ray has nowhere to start another.
    ray.kill(first, no_restart=True)
    result = algorithm.train()
    assert result["fault_tolerance"]["num_healthy_workers"] == 1
    assert env_steps_of(result) >= 640
    ray.kill(second, no_restart=True)
    assert env_steps_of(algorithm.train()) == 0
    with pytest.raises(RunnersLost, match="all 2 runners are lost"):
        algorithm.train()
    # What was learned can still be saved.
    save_checkpoint(algorithm, tmp_path, RunState(), {}, keep=1)
