"""Advantages and value targets over columns are those of RLlib's stock connectors."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from agents.learned.advantages import ChunksToBatch, advantages, values_of
from agents.learned.chunk import ENDED, OPEN
from tests.agents.learned.conftest import Started
from tests.agents.learned.episodes import to_chunk
from tests.agents.learned.test_training import PPO_SETTINGS

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
