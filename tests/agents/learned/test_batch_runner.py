"""The fast runner: what RLlib expects of a runner, and columns that tell what happened."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig

from agents.learned.compiled_policy import WIDEST
from agents.learned.env_runner import EPISODE_METRICS, BatchEnvRunner
from agents.learned.run_log import episodes_of as series_of
from agents.learned.sampler import ENDED, OPEN
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from tests.agents.learned import conftest
from tests.agents.learned.conftest import PPO_SETTINGS
from tests.env.worlds import LAYOUTS, TINY, TRACE, with_queue, world

ENVIRONMENTS = 4


def config_of(
    layout: str,
    *overrides: str,
    shared: bool = True,
    seed: int = 3,
    ppo: dict[str, Any] | None = None,
    **ray: Any,
) -> PPOConfig:
    config = world(*TINY, f"agents={layout}", *overrides, seed=seed)
    if layout != "placer":
        config["agents"] = {**config["agents"], "share_type_policy": shared}
    return config_in(config, ppo, shared=shared, seed=seed, **ray)


def config_in(
    config: dict[str, Any], ppo: dict[str, Any] | None = None, seed: int = 3, **given: Any
) -> PPOConfig:
    settings = PPO_SETTINGS | {"sampler": "fast", "batch_size": 480} | (ppo or {})
    given = {"envs_per_runner": ENVIRONMENTS, **given}
    return conftest.config_of(settings, config, ENV_NAME, ServerlessEnv, seed=seed, **given)


def runner_of(layout: str, *overrides: str, worker: int = 0, **given: Any) -> BatchEnvRunner:
    return BatchEnvRunner(config=config_of(layout, *overrides, **given), worker_index=worker)


def arrival_times(runner: BatchEnvRunner) -> list[Any]:
    """Of the episodes that are played, by environment."""
    return [
        sampler.batch.states[env].arrivals["time"].tolist()
        for sampler in runner.samplers
        for env in range(len(sampler.batch))
    ]


def episodes_of(runner: BatchEnvRunner) -> dict[str, list[float]]:
    metrics = runner.get_metrics()[EPISODE_METRICS]
    return {name: list(stats.peek()) for name, stats in metrics.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rewards_of_whole_episodes_add_up_to_j(layout: str) -> None:
    runner = runner_of(layout)
    (*_, chunk) = runner.sample(num_timesteps=3000)
    costs = sorted(episodes_of(runner)["J"])
    found = defaultdict(list)
    for policy, steps in chunk.modules.items():
        earned = steps.rewards.copy()
        for row in range(len(steps) - 1, -1, -1):
            if steps.following[row] >= 0:
                earned[row] += earned[steps.following[row]]
        ends = np.zeros(len(steps), bool)  # rows whose life ends within the chunk
        for row in range(len(steps) - 1, -1, -1):
            follower = steps.following[row]
            ends[row] = follower == ENDED or (follower >= 0 and ends[follower])
        first = np.ones(len(steps), bool)
        first[steps.following[steps.following >= 0]] = False
        found[policy] = sorted(1.0 - earned[first & ends])
    assert len(costs) > ENVIRONMENTS
    for policy in ("placer", "memory"):
        if policy in found:  # they act at the first decision and so earn all of it
            assert found[policy] == pytest.approx(costs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_open_comes_again_with_all_it_earned(layout: str) -> None:
    """Cut into small chunks, the same steps have the same rewards as in one large chunk."""
    whole = runner_of(layout).sample(num_timesteps=1200)[0]
    runner = runner_of(layout)
    parts = [runner.sample(num_timesteps=120)[0] for _ in range(10)]
    assert whole.steps == sum(part.steps for part in parts)
    for policy, steps in whole.modules.items():
        trained = [part.modules[policy] for part in parts]
        found = np.concatenate([part.rewards[part.following != OPEN] for part in trained])
        wanted = steps.rewards[steps.following != OPEN]
        assert sorted(found) == pytest.approx(sorted(wanted))
        last = trained[-1]
        assert sorted(last.rewards[last.following == OPEN]) == pytest.approx(
            sorted(steps.rewards[steps.following == OPEN])
        )


def test_only_memory_that_nobody_holds_is_written_again() -> None:
    runner = runner_of("placer")
    held = runner.sample(num_timesteps=400)[0].modules["placer"].obs["items"]
    seen = held.copy()
    second = runner.sample(num_timesteps=400)[0].modules["placer"].obs["items"]
    assert not np.shares_memory(held, second)
    assert (held == seen).all()
    address = second.ctypes.data
    del second
    third = runner.sample(num_timesteps=400)[0].modules["placer"].obs["items"]
    assert third.ctypes.data == address


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("layout", ["hierarchical", "server_types"])
def test_every_policy_gets_the_steps_of_its_own_agents(layout: str, shared: bool) -> None:
    runner = runner_of(layout, shared=shared)
    chunk = runner.sample(num_timesteps=240)[0]
    servers = {"server"} if shared else {"server_small", "server_large"}
    others = {"memory", "placer"} if layout == "hierarchical" else set()
    assert set(chunk.modules) == servers | others
    decisions = 240 // (3 if layout == "hierarchical" else 1)
    acting = 1 if layout == "hierarchical" else 2
    assert sum(len(chunk.modules[policy]) for policy in servers) == decisions * acting
    for steps in chunk.modules.values():
        assert (steps.action_logp <= 0).all()
        assert np.isfinite(steps.action_logp).all()


def test_episodes_without_a_choice_are_not_waited_for() -> None:
    """One workflow in an episode, or a few: alone it leaves the agent `queue` nothing to choose."""
    told = ("dispatch=queued", "workload.arrivals.workflows=[1,4]", "workload.arrivals.mean_gap=20")
    config = world(*TINY, *with_queue("queue"), *told)
    config["cluster"]["server_types"]["small"]["server_count"] = 0
    runner = BatchEnvRunner(config=config_in(config), worker_index=0)
    runner.sample(num_timesteps=400)
    assert len(episodes_of(runner)["J"]) > 10


def test_turns_that_are_nobodys_do_not_count_as_steps() -> None:
    config = world(*TRACE, *with_queue("placer"), "workload.sampling.ratio=0.3")
    runner = BatchEnvRunner(config=config_in(config), worker_index=0)
    chunks = runner.sample(num_timesteps=400)
    steps = sum(chunk.env_steps() for chunk in chunks)
    rows = sum(len(own) for chunk in chunks for own in chunk.modules.values())
    assert 400 <= steps < 500
    # What is open at the end of a chunk opens the next one, too.
    assert steps <= rows <= steps + 2 * ENVIRONMENTS * (len(chunks) - 1)
    assert runner.get_metrics()["num_env_steps_sampled"].peek() == steps


def test_without_exploring_the_likeliest_action_is_taken() -> None:
    runner = runner_of("placer")
    steps = runner.sample(num_timesteps=200, explore=False)[0].modules["placer"]
    chosen = np.take_along_axis(steps.action_dist_inputs, steps.actions[:, None], axis=1)
    assert (chosen[:, 0] == steps.action_dist_inputs.max(axis=1)).all()
    explored = runner.sample(num_timesteps=200, explore=True)[0].modules["placer"]
    chosen = np.take_along_axis(explored.action_dist_inputs, explored.actions[:, None], axis=1)
    assert (chosen[:, 0] < explored.action_dist_inputs.max(axis=1)).any()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_sampling_goes_on_exactly_from_the_state(layout: str, threads: int) -> None:
    runner, other = (runner_of(layout, threads_per_runner=threads) for _ in range(2))
    runner.sample(num_timesteps=300)
    state = runner.get_state()
    wanted = runner.sample(num_timesteps=300)
    other.set_state(state)
    for ours, theirs in zip(wanted, other.sample(num_timesteps=300), strict=True):
        for policy, steps in ours.modules.items():
            for name in ("actions", "action_logp", "rewards", "following"):
                found = getattr(theirs.modules[policy], name)
                assert np.array_equal(getattr(steps, name), found)


def test_another_runners_state_leaves_the_own_episodes_alone() -> None:
    first, second = runner_of("placer", worker=1), runner_of("placer", worker=2)
    before = arrival_times(second)
    second.set_state(first.get_state())
    assert arrival_times(second) == before != arrival_times(first)


@pytest.mark.parametrize(
    "changes",
    [{}, {"network": "attention"}, {"hidden": [WIDEST + 1]}, {"window": 3}],
    ids=["compiled", "attention", "wide", "window"],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_logits_are_those_of_the_policies_as_they_are_now(
    layout: str, changes: dict[str, Any]
) -> None:
    ppo = dict(changes)
    window = ppo.pop("window", 0)
    runner = runner_of(layout, f"agents.workflow_window={window}", shared=False, ppo=ppo)
    runner.sample(num_timesteps=120)
    with torch.no_grad():
        for module in runner.module.values():
            module.policy.soften(0.01)
    for name, steps in runner.sample(num_timesteps=240)[0].modules.items():
        seen = {part: torch.from_numpy(column) for part, column in steps.obs.items()}
        with torch.no_grad():
            wanted = runner.module[name].policy(seen).numpy()
        now = slice(ENVIRONMENTS, None)  # open steps of before come first, one an environment
        assert len(steps) > ENVIRONMENTS
        assert steps.action_dist_inputs[now] == pytest.approx(wanted[now], abs=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_share_the_environments_of_one(layout: str) -> None:
    """Greedy play leaves nothing to chance: every environment does what it did in one thread."""

    def played(threads: int) -> tuple[list[Any], dict[str, list[float]]]:
        runner = runner_of(layout, threads_per_runner=threads)
        before = arrival_times(runner)
        chunks = runner.sample(num_timesteps=1200, explore=False)
        assert len(chunks) == threads
        assert sum(chunk.steps for chunk in chunks) == 1200
        return before, episodes_of(runner)

    alone, shared = played(1), played(3)
    assert shared[0] == alone[0]
    assert len(alone[1]["J"]) > ENVIRONMENTS
    for name, values in alone[1].items():
        assert sorted(shared[1][name]) == pytest.approx(sorted(values), nan_ok=True)


def test_with_other_threads_other_episodes_are_played() -> None:
    """Not the first ones of the run once more."""
    runner, single = (runner_of("placer", threads_per_runner=threads) for threads in (2, 1))
    begun = arrival_times(runner)
    runner.sample(num_timesteps=600)
    assert arrival_times(single) == begun
    single.set_state(runner.get_state())
    assert not any(times in begun for times in arrival_times(single))


def test_another_part_of_the_run_has_other_episodes() -> None:
    def first_arrivals(part: int | None) -> list[Any]:
        runner = runner_of("placer")
        if part is not None:
            runner.start_part(part)
        runner.sample(num_timesteps=100)
        return arrival_times(runner)

    assert first_arrivals(3) == first_arrivals(3)
    assert first_arrivals(3) != first_arrivals(4) != first_arrivals(None)


def learned_on_tiny(sampler: str, seed: int) -> np.ndarray:
    """(18,) mean J of the episodes of every iteration of PPO, of 1,024 decisions each."""
    ppo = {"sampler": sampler, "batch_size": 1024}
    algorithm = config_of(
        "placer", "agents.relative_reward=true", seed=seed, ppo=ppo, envs_per_runner=16
    ).build_algo()
    means = [np.mean(series_of(algorithm.train())["J"]) for _ in range(18)]
    algorithm.stop()
    return np.array(means)


@pytest.mark.long
def test_as_much_is_learned_as_with_rllibs_own_runner(toy: str) -> None:
    """Random placements come to a J of some 720, the best rules to 184."""
    means = {
        sampler: np.mean([learned_on_tiny(sampler, seed) for seed in (0, 1)], axis=0)
        for sampler in ("fast", "rllib")
    }
    ends = {sampler: curve[-4:].mean() for sampler, curve in means.items()}
    assert all(curve[:3].mean() > 600 for curve in means.values())
    assert all(end < 230 for end in ends.values())
    assert ends["fast"] == pytest.approx(ends["rllib"], rel=0.1)
    # The iteration in which half of the way is done; seeds differ by three.
    halfway = {sampler: int((curve < 450).argmax()) for sampler, curve in means.items()}
    assert abs(halfway["fast"] - halfway["rllib"]) <= 4
