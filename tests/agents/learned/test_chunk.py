"""Columns: RLlib shares them out without losing a row, and learns from them as from episodes."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
import tree
from ray.rllib.core.columns import Columns
from ray.rllib.utils.minibatch_utils import ShardEpisodesIterator

from agents.learned.advantages import ChunksToBatch, advantages, values_of
from agents.learned.sampler import ENDED, OPEN, Chunk, Steps
from tests.agents.learned.conftest import PPO_SETTINGS, Started
from tests.agents.learned.episodes import to_chunk

GAMMA, LAMBDA = 0.97, 0.9


def by_observation(batch: dict[str, Any], values: np.ndarray) -> dict[bytes, tuple[float, float]]:
    """Advantage (not standardised) and value target of every trained row, by what it saw."""
    contexts, targets = batch[Columns.OBS]["context"], batch[Columns.VALUE_TARGETS].numpy()
    return {
        contexts[row].numpy().tobytes(): (targets[row] - values[row], targets[row])
        for row in torch.nonzero(batch[Columns.LOSS_MASK]).flatten().tolist()
    }


@pytest.mark.parametrize("layout", ["placer", "hierarchical", "server_types"])
def test_value_targets_are_those_of_the_stock_connectors(started: Started, layout: str) -> None:
    # 40 steps an environment and sample: every sample cuts episodes of 17 steps in the middle.
    settings = PPO_SETTINGS | {"gamma": GAMMA, "gae_lambda": LAMBDA, "batch_size": 160}
    algorithm = started(settings, {"layout": layout, "steps": 17})
    runner, learner = algorithm.env_runner, algorithm.learner_group._learner
    samples = [runner.sample() for _ in range(2)]
    kinds = {
        kind
        for part in samples
        for each in to_chunk(part).modules.values()
        for kind in each.following.tolist()
    }
    assert {ENDED, OPEN} < kinds
    for episodes in samples:
        chunk = to_chunk(episodes)
        ours = ChunksToBatch(gamma=GAMMA, gae_lambda=LAMBDA)(
            rl_module=learner.module, episodes=[chunk]
        )
        stock = learner._learner_connector(
            rl_module=learner.module, batch={}, episodes=copy.deepcopy(episodes), shared_data={}
        )
        assert ours.keys() == stock.keys()
        for policy, batch in ours.items():
            module = learner.module[policy]
            found = by_observation(batch, values_of(module, batch[Columns.OBS]))
            expected = by_observation(stock[policy], values_of(module, stock[policy][Columns.OBS]))
            assert found.keys() == expected.keys()
            for key, pair in expected.items():
                assert found[key] == pytest.approx(pair, abs=1e-5)
            trained = batch[Columns.ADVANTAGES][batch[Columns.LOSS_MASK]]
            assert float(trained.mean()) == pytest.approx(0.0, abs=1e-5)
            assert float(trained.std(correction=0)) == pytest.approx(1.0, abs=1e-5)
            for column in (Columns.ACTIONS, Columns.ACTION_LOGP, Columns.ACTION_DIST_INPUTS):
                assert batch[column].shape[1:] == stock[policy][column].shape[1:]


def test_advantages_of_a_hand_worked_example() -> None:
    """Two agents in turn; the first's episode goes on in the next chunk, the second's ends."""
    rewards = np.array([1.0, 2.0, 3.0, 4.0, 99.0])
    following = np.array([2, 3, 4, ENDED, OPEN])
    values = np.array([0.5, 1.0, 1.5, 2.0, 10.0])
    out = np.empty(5)
    advantages(rewards, following, values, 1.0, 0.5, out)
    third, fourth = 3 + 10 - 1.5, 4 - 2.0
    assert out.tolist() == [1 + 1.5 - 0.5 + 0.5 * third, 2 + 2 - 1 + 0.5 * fourth, third, fourth, 0]


def make_steps(environments: list[int], seed: int) -> Steps:
    """Two agents in every environment, ten steps each, some of them ends of episodes."""
    random = np.random.default_rng(seed)
    order = np.repeat(environments, 2)
    lives = np.tile(np.arange(len(order)), 10)  # step by step, all agents side by side
    rows = len(lives)
    following = np.arange(rows) + len(order)
    following[random.random(rows) < 0.1] = ENDED
    following[-len(order) :] = OPEN
    return Steps(
        obs={"context": random.normal(size=(rows, 3)).astype(np.float32)},
        actions=random.integers(0, 5, rows),
        action_logp=random.normal(size=rows).astype(np.float32),
        action_dist_inputs=random.normal(size=(rows, 5)).astype(np.float32),
        rewards=random.normal(size=rows),
        following=following,
        environment=order[lives],
    )


def pairs(steps: Steps) -> set[tuple[float, float]]:
    """Every row with the one that follows it, each by its reward, which is unique."""
    followed = [steps.rewards[row] if row >= 0 else float(row) for row in steps.following.tolist()]
    return set(zip(steps.rewards.tolist(), followed, strict=True))


@pytest.mark.parametrize("learners", [2, 3])
@pytest.mark.parametrize("environments", [[4], [0, 1], [9, 3, 5, 7, 2]])
def test_sharing_out_loses_no_row_and_keeps_what_follows(
    environments: list[int], learners: int
) -> None:
    chunks = [
        Chunk({"placer": make_steps(environments, 1), "server": make_steps(environments, 2)}, 101),
        Chunk({"placer": make_steps(environments, 3)}, 57),
    ]
    shares = list(ShardEpisodesIterator(list(chunks), learners, len_lookback_buffer=0))
    assert len(shares) == learners
    assert sum(len(chunk) for share in shares for chunk in share) == 158
    for policy in ("placer", "server"):
        before = [pairs(chunk.modules[policy]) for chunk in chunks if policy in chunk.modules]
        after = [
            pairs(chunk.modules[policy])
            for share in shares
            for chunk in share
            if policy in chunk.modules
        ]
        assert set().union(*before) == set().union(*after)
        assert sum(map(len, before)) == sum(map(len, after))
    if len(environments) > 2 * learners:
        rows = [sum(len(chunk.modules["placer"]) for chunk in share) for share in shares]
        assert max(rows) - min(rows) <= 3 * 20


def test_a_cut_is_between_environments() -> None:
    chunk = Chunk({"placer": make_steps([0, 1, 2, 3], 1)}, steps=40)
    first, rest = chunk[:12], chunk.slice(slice(12, None), len_lookback_buffer=0)
    assert (len(first), len(rest)) == (12, 28)
    assert set(first.modules["placer"].environment) == {0}
    assert set(rest.modules["placer"].environment) == {1, 2, 3}


def test_joined_rows_keep_what_follows() -> None:
    parts = [make_steps([0, 1], 1), make_steps([0], 2), make_steps([3, 4], 3)]
    joined = Steps.joined(parts)
    assert pairs(joined) == set().union(*map(pairs, parts))
    assert len(joined) == len(joined.obs["context"]) == sum(map(len, parts))


def test_ray_takes_a_chunk_for_one_episode() -> None:
    chunk = Chunk({"placer": make_steps([0], 1)}, steps=10)
    assert tree.flatten([[chunk], [chunk, chunk]]) == [chunk, chunk, chunk]
