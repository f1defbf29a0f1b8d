"""Chunks are shared out among learners by RLlib without losing a row."""

import numpy as np
import pytest
import tree
from ray.rllib.utils.minibatch_utils import ShardEpisodesIterator

from agents.learned.chunk import ENDED, OPEN, Chunk, Steps


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
