"""RLlib trains the policies: on a toy with an obvious optimum, resumed, and on remote runners."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPO

from agents.learned.algorithms import run_seed, set_progress
from agents.learned.checkpoint import RunState, find_checkpoint, load_checkpoint, save_checkpoint
from agents.learned.run_log import episodes_of, measures_of
from env.base.errors import InputError
from run.settings import PPOSettings
from tests.agents.learned.conftest import Started, algo, ray_settings

PPO_SETTINGS = algo(
    "ppo",
    sampler="rllib",
    batch_size=640,
    minibatch_size=128,
    epochs=4,
    learning_rate=3e-3,
    gae_lambda=0.95,
)


def weights_of(algorithm: PPO) -> dict[str, dict[str, np.ndarray]]:
    return algorithm.learner_group.get_weights()


def same(first: Any, second: Any) -> bool:
    """Whether two nested states hold the same numbers."""
    if isinstance(first, torch.nn.Module):
        first, second = first.state_dict(), second.state_dict()
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(np.array_equal(np.asarray(first), np.asarray(second)))


@pytest.mark.parametrize("layout", ["placer", "server_types"])
def test_learning_improves_the_return_clearly(started: Started, layout: str) -> None:
    world = {"layout": layout, "items": 5, "steps": 10}
    algorithm = started(PPO_SETTINGS, world, envs_per_runner=16)
    means = []
    for iteration in range(15):
        set_progress(algorithm, iteration / 15)
        means.append(-np.mean(episodes_of(algorithm.train())["J"]))
    # The best of 4 numbers from -1 to 1 is 0.6 on average, a random one 0: 6 a 10 steps episode.
    assert abs(means[0]) < 1.5
    assert np.mean(means[-2:]) > 4.5


def test_a_resumed_run_goes_on_where_it_was(started: Started, tmp_path: Path) -> None:
    world = {"layout": "hierarchical", "steps": 9}
    algorithm = started(PPO_SETTINGS, world)
    for iteration in range(2):
        set_progress(algorithm, iteration / 4)
        algorithm.train()
    state = RunState(iteration=2, env_steps=1280, seconds=3.0, evaluated=1, best=1.5)
    save_checkpoint(algorithm, tmp_path, state, {"seed": 5}, keep=1)
    weights, learner = weights_of(algorithm), algorithm.learner_group.get_state()["learner"]

    checkpoint = find_checkpoint(tmp_path)
    stored = load_checkpoint(checkpoint)
    assert (stored.state, stored.config) == (state, {"seed": 5})
    resumed = started(PPO_SETTINGS, world, checkpoint=checkpoint)
    assert resumed.iteration == 2
    assert same(weights_of(resumed), weights)
    restored = resumed.learner_group.get_state()["learner"]["optimizer"]
    assert same(restored, learner["optimizer"])
    adam = [moment for each in restored.values() for moment in each["state"]["state"].values()]
    assert min(moment["step"] for moment in adam) > 0

    # Schedules stand where the budget says, not at their start.
    set_progress(resumed, 0.5)
    result = resumed.train()
    assert result["training_iteration"] == 3
    learned = result["learners"]["placer"]
    assert learned["default_optimizer_learning_rate"] == pytest.approx(1.5e-3)
    assert learned["curr_entropy_coeff"] == pytest.approx(0.5e-3)


@pytest.mark.long
def test_two_remote_runners_sample_different_episodes(started: Started) -> None:
    algorithm = started(PPO_SETTINGS, {"layout": "hierarchical", "steps": 8}, num_env_runners=2)
    before = weights_of(algorithm)
    result = algorithm.train()
    runners = algorithm.env_runner_group
    assert runners.num_healthy_remote_workers() == 2
    seeds = runners.foreach_env_runner(
        lambda runner: [env.unwrapped.seed for env in runner.env.envs], local_env_runner=False
    )
    assert len({seed for part in seeds for seed in part}) == 2 * 4
    assert len(episodes_of(result)["J"]) >= 2 * 4
    assert not same(before, weights_of(algorithm))


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
    ppo = PPOSettings.model_validate(PPO_SETTINGS)
    ray = ray_settings()
    seeds = {run_seed(ppo, ray, seed, part) for seed in range(3) for part in (0, 1, 20)}
    assert len(seeds) == 9
    assert run_seed(ppo, ray, 1, 0) == run_seed(ppo, ray, 1, 0)
    fast = PPOSettings.model_validate(PPO_SETTINGS | {"sampler": "fast"})
    assert run_seed(fast, ray, 5, 20) == 5
    assert run_seed(fast, ray_settings(num_env_runners=2), 5, 20) != 5


def test_torch_stays_on_one_thread(toy: str) -> None:
    assert torch.get_num_threads() == 1
