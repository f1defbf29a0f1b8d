"""The worlds of one agent, alone and side by side, as Gymnasium and its libraries meet them."""

import copy
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor

import run.worlds  # noqa: F401  registers them
from env.learn.aec import ServerlessAEC
from env.learn.gym import SingleAgentEnv, SingleAgentVectorEnv
from env.learn.multi_agent import ServerlessEnv
from env.learn.sb3 import BatchVecEnv
from tests.env.learn.test_actions import refused
from tests.env.learn.test_batch import QUEUED, VARIATION
from tests.env.worlds import STUDY, TINY, TRACE, with_gpu, with_queue, world

ID = "Serverless-v0"
PLACER = world(*TINY, "agents=placer")
VARIED = world(*STUDY, "agents=placer", "agents.relative_reward=true", "agents.workflow_window=3")
OF_ONE_AGENT: dict[str, dict[str, Any]] = {
    "placer": PLACER,
    "masks": with_gpu(PLACER),
    "varied": VARIED | {"variation": VARIATION},
    "waiting": PLACER | QUEUED,
    "queue": world(*TRACE),
}


def drawn(masks: np.ndarray, rng: np.random.Generator) -> Any:
    """Actions, of all that masks (..., A) allow."""
    return (masks * rng.random(masks.shape)).argmax(-1)


def one_by_one(config: dict[str, Any], count: int, mode: AutoresetMode) -> SyncVectorEnv:
    """Gymnasium's own way to have several."""
    return SyncVectorEnv([lambda: SingleAgentEnv(config)] * count, autoreset_mode=mode)


@pytest.mark.parametrize("size", [TINY, STUDY], ids=["tiny", "study"])
@pytest.mark.parametrize("window", [0, 3])
def test_gymnasiums_own_check(size: tuple[str, ...], window: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, overrides=[*size, f"agents.workflow_window={window}"])
        check_env(env.unwrapped)


@pytest.mark.parametrize("name", OF_ONE_AGENT)
def test_side_by_side_they_are_what_they_are_alone(name: str) -> None:
    envs = SingleAgentVectorEnv(OF_ONE_AGENT[name], 3)
    alone = one_by_one(OF_ONE_AGENT[name], 3, AutoresetMode.NEXT_STEP)
    assert envs.observation_space == alone.observation_space
    assert envs.action_space == alone.action_space
    assert envs.metadata["autoreset_mode"] == alone.autoreset_mode
    rng, ended, masked = np.random.default_rng(0), 0, 0
    for seed in (5, None, [7, None, 7]):
        np.testing.assert_equal(envs.reset(seed=seed), alone.reset(seed=seed))
        until = ended + 2
        while ended < until:
            masks = envs.action_masks()
            np.testing.assert_array_equal(masks, alone.call("action_masks"))
            masked += (masks == 0).sum()
            actions = drawn(masks, rng)
            *found, infos = envs.step(actions)
            *expected, other_infos = alone.step(actions)
            assert envs.observation_space.contains(found[0])
            np.testing.assert_equal(found, expected)
            np.testing.assert_equal(infos, other_infos)
            ended += found[2].sum()
    assert masked > 0 or name not in ("masks", "queue")


def test_it_is_the_environment_of_many_agents_less_what_only_a_critic_sees() -> None:
    one, many = SingleAgentEnv(VARIED), ServerlessEnv(VARIED)
    observation, _ = one.reset(seed=2)
    seen = many.reset(seed=2)[0]["placer"]
    rng, earned, ended = np.random.default_rng(0), 0.0, False
    while not ended:
        parts = {"context", "item_features", "functions", "edges"}
        assert observation.keys() == parts == one.observation_space.keys()
        for part, array in observation.items():
            same = seen["items" if part == "item_features" else part]
            np.testing.assert_array_equal(array, same)
        np.testing.assert_array_equal(one.action_masks(), seen["mask"])
        action = drawn(one.action_masks(), rng)
        observation, reward, ended, cut, info = one.step(action)
        others, rewards, *_, infos = many.step({"placer": action})
        seen = others["placer"]
        assert (reward, cut) == (rewards["placer"], False)
        assert info == infos.get("placer", {})
        earned += reward
    reference = VARIED["objective"]["time_weight"] - info["episode_metrics"]["J"]
    assert earned < 0 and reference < earned  # relative to a J above 1


def test_without_a_seed_the_episodes_are_those_of_the_worlds_seed() -> None:
    one, other = SingleAgentEnv(world(*TINY, "agents=placer", seed=4)), SingleAgentEnv(PLACER)
    np.testing.assert_equal(one.reset(), other.reset(seed=4))
    envs = SingleAgentVectorEnv(world(*TINY, "agents=placer", seed=4), 2)
    seen, _ = envs.reset()
    assert not np.array_equal(seen["context"][0], seen["context"][1])
    first, _ = other.reset(seed=4)
    np.testing.assert_array_equal(seen["context"][0], first["context"])


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", ["varied", "queue"])
@pytest.mark.parametrize(
    "kind",
    [
        SingleAgentEnv,
        partial(SingleAgentVectorEnv, num_envs=3),
        lambda config: BatchVecEnv(SingleAgentVectorEnv(config, 3)),
    ],
    ids=["alone", "side by side", "of Stable-Baselines3"],
)
def test_copies_are_independent(
    kind: Callable[[Any], Any], name: str, copied: Callable[[Any], Any]
) -> None:
    """Each of three goes on as the original would have, which it outlives."""

    def played(env: Any) -> list[Any]:
        rng, found = np.random.default_rng(1), []
        for _ in range(60):
            if isinstance(env, BatchVecEnv):
                masks = np.array(env.env_method("action_masks"))
            else:
                masks = env.action_masks()
            found.append(env.step(drawn(masks, rng)))
            if isinstance(env, SingleAgentEnv) and found[-1][2]:
                found.append(env.reset())
        return found

    env, plain = kind(OF_ONE_AGENT[name]), kind(OF_ONE_AGENT[name])
    for each in (env, plain):
        each.reset()
        played(each)
    first = copied(env)
    wanted = played(plain)
    np.testing.assert_equal(played(first), wanted)
    second = copied(env)
    np.testing.assert_equal(played(env), wanted)
    del env, first
    np.testing.assert_equal(played(second), wanted)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["agents=hierarchical"], "memory, placer, server_small, server_large decide together"),
        ([*with_queue("placer"), "dispatch=queued"], "queue, placer decide together"),
    ],
)
def test_worlds_of_several_agents_are_refused(overrides: list[str], says: str) -> None:
    config = world(*TINY, *overrides)
    refused(SingleAgentEnv, config, f"agents: {says}")
    refused(partial(SingleAgentVectorEnv, num_envs=2), config, f"agents: {says}")


def test_render_modes() -> None:
    for mode in (None, "ansi"):
        env = gymnasium.make(ID, overrides=TINY, render_mode=mode)
        env.reset(seed=0)
        assert str(env.render()).startswith("time 0.0 s")
    assert env.metadata["render_modes"] == ["ansi"]
    gymnasium.make_vec(ID, num_envs=1, overrides=TINY, render_mode=None)
    says = "render_mode: 'human' is unknown, allowed: None"
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(TypeError, match=f"^{says}"):
            make(ID, overrides=TINY, render_mode="human")


def test_nothing_is_played_after_close() -> None:
    for env, action in (
        (ServerlessEnv(PLACER), {"placer": 0}),
        (ServerlessAEC(PLACER), 0),
        (SingleAgentEnv(PLACER), 0),
        (SingleAgentVectorEnv(PLACER, 2), np.zeros(2, int)),
        (BatchVecEnv(SingleAgentVectorEnv(PLACER, 2)), np.zeros(2, int)),
    ):
        env.reset()
        env.close()
        refused(env.step, action, "step: no episode is being played, call reset() first")
        env.reset()
        env.step(action)


def test_gymnasiums_wrappers_count_what_episodes_earn() -> None:
    flat = wrappers.FlattenObservation(SingleAgentVectorEnv(PLACER, 2))
    noted = wrappers.RecordEpisodeStatistics(flat)
    envs = wrappers.NormalizeReward(wrappers.NormalizeObservation(noted))
    seen, _ = envs.reset(seed=0)
    assert seen.shape == envs.observation_space.shape
    rng, ended, ideal = np.random.default_rng(0), 0, PLACER["objective"]["time_weight"]
    while ended < 8:
        *_, ends, _, infos = envs.step(drawn(envs.unwrapped.action_masks(), rng))
        for at in np.flatnonzero(ends):
            metrics = infos["episode_metrics"]
            assert infos["episode"]["r"][at] == pytest.approx(ideal - metrics["J"][at])
            assert infos["episode"]["l"][at] == metrics["decisions"][at]
            assert metrics["carbon"][at] > 0 and "share_error" not in metrics
            ended += 1


def test_stable_baselines_steps_the_same_environments() -> None:
    theirs = BatchVecEnv(SingleAgentVectorEnv(PLACER, 2))
    envs = one_by_one(PLACER, 2, AutoresetMode.SAME_STEP)
    theirs.seed(3)
    np.testing.assert_equal(theirs.reset(), envs.reset(seed=3)[0])
    rng, ends = np.random.default_rng(0), np.zeros(2, bool)
    while not ends.any():
        masks = np.array(envs.call("action_masks"))
        np.testing.assert_array_equal(theirs.env_method("action_masks"), masks)
        actions = drawn(masks, rng)
        seen, rewards, ends, told = theirs.step(actions)
        *expected, _, infos = envs.step(actions)
        np.testing.assert_equal([seen, rewards, ends], expected)
    for env, own in enumerate(told):
        assert bool(own) == ends[env]
        for name, value in own.get("episode_metrics", {}).items():
            np.testing.assert_equal(value, infos["final_info"]["episode_metrics"][name][env])
        assert not np.any(own.get("terminal_observation", {"context": 0})["context"])
    np.testing.assert_equal(theirs.reset(), envs.reset()[0])
    assert theirs.env_is_wrapped(gymnasium.Wrapper, indices=1) == [False]


@pytest.mark.parametrize("batched", [True, False])
def test_maskable_ppo_learns_in_them(batched: bool) -> None:
    overrides = ["experiment=queue_agent", *TRACE[1:]]
    if batched:
        envs = VecMonitor(BatchVecEnv(gymnasium.make_vec(ID, num_envs=2, overrides=overrides)))
    else:
        envs = make_vec_env(ID, 2, seed=0, env_kwargs={"overrides": overrides})
    learner = MaskablePPO("MultiInputPolicy", envs, n_steps=16, batch_size=16, seed=0, device="cpu")
    learner.learn(64)  # a masked action would be refused
    assert learner.num_timesteps == 64
