"""The learner takes RLlib's own gradient step, repeats itself exactly, and shares out its work."""

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.learner_group import LearnerGroup

from agents.learned.advantages import ChunksToBatch
from agents.learned.env_runner import FastPPOConfig
from agents.learned.learner import BudgetPPOLearner
from agents.learned.sampler import Chunk, Steps
from tests.agents.learned.conftest import PPO_SETTINGS, Started, config_of, same
from tests.agents.learned.episodes import to_chunk

# Of the last gradient step, under RLlib's names.
LOGGED = (
    "total_loss",
    "policy_loss",
    "vf_loss",
    "vf_loss_unclipped",
    "vf_explained_var",
    "entropy",
    "mean_kl_loss",
)


def make_config(layout: str, **ppo: Any) -> FastPPOConfig:
    config: FastPPOConfig = config_of(PPO_SETTINGS | {"kl_stop": 10.0} | ppo, {"layout": layout})
    connector = partial(ChunksToBatch, gamma=1.0, gae_lambda=0.95)
    return config.learners(
        add_default_connectors_to_learner_pipeline=False, learner_connector=connector
    )


def make_learner(
    config: FastPPOConfig, kind: type[Learner] = BudgetPPOLearner, state: Any = None
) -> Learner:
    learner = kind(config=config, module_spec=config.rl_module_spec)
    learner.build()
    if state is not None:
        learner.set_state(state)
    return learner


def sampled(started: Started, layout: str) -> Chunk:
    return to_chunk(started(PPO_SETTINGS, {"layout": layout}).env_runner.sample())


def weights_of(learner: Learner) -> dict[str, Any]:
    return state_of(learner)["rl_module"]


def state_of(learner: Learner) -> dict[str, Any]:
    """A copy: RLlib's state shares its memory with the weights."""
    return copy.deepcopy(learner.get_state())


@pytest.mark.parametrize("layout", ["hierarchical", "server_types"])
def test_a_full_batch_step_is_the_one_of_rllibs_learner(started: Started, layout: str) -> None:
    config = make_config(layout, epochs=1, entropy=0.1, batch_size=4096, minibatch_size=4096)
    chunk = sampled(started, layout)
    ours = make_learner(config)
    before = weights_of(ours)
    stock = make_learner(config, PPOTorchLearner, {"rl_module": before})
    for learner in (ours, stock):
        less_adaptive(learner)
    results = []
    for learner, size in ((ours, 4096), (stock, None)):
        learner.update(episodes=[chunk], timesteps={}, num_epochs=1, minibatch_size=size)
        results.append(learner.update(episodes=[chunk], timesteps={}, minibatch_size=size))
    assert not same(before, weights_of(ours))
    assert_close(weights_of(ours), weights_of(stock))
    for policy in before:
        found, known = (each[policy] for each in results)
        for key in (*LOGGED, "curr_entropy_coeff", "default_optimizer_learning_rate"):
            assert float(found[key].peek()) == pytest.approx(
                float(known[key].peek()), rel=1e-4, abs=1e-5
            ), key


def test_a_restored_learner_goes_on_exactly(started: Started) -> None:
    config = make_config("hierarchical", minibatch_size=32)
    chunk = sampled(started, "hierarchical")
    learner = make_learner(config)
    learner.update(episodes=[chunk], timesteps={})
    state = state_of(learner)
    restored = make_learner(config, state=state)
    fresh = make_learner(config, state={"rl_module": state["rl_module"]})
    for each in (learner, restored, fresh):
        each.update(episodes=[chunk], timesteps={})
    assert same(weights_of(restored), weights_of(learner))
    assert same(state_of(restored)["shuffle"], state_of(learner)["shuffle"])
    assert not same(weights_of(fresh), weights_of(learner))


def test_a_loss_that_is_not_finite_ends_the_run(started: Started) -> None:
    chunk = sampled(started, "placer")
    chunk.modules["placer"].rewards[3] = np.nan
    with pytest.raises(FloatingPointError, match="placer"):
        make_learner(make_config("placer")).update(episodes=[chunk], timesteps={})


@pytest.mark.long
def test_two_learners_take_the_step_of_one(started: Started) -> None:
    """Two equal halves, so that each learner sees what one learner would see of the whole."""
    config = make_config("hierarchical", epochs=2, batch_size=4096, minibatch_size=4096)
    half = sampled(started, "hierarchical")
    moved = {
        policy: Steps.joined([steps, shifted(steps)]) for policy, steps in half.modules.items()
    }
    one = make_learner(config)
    start = {"learner": {"rl_module": weights_of(one)}}
    one.update(episodes=[half], timesteps={})

    group = LearnerGroup(
        config=config.copy(copy_frozen=False).learners(num_learners=2),
        module_spec=config.rl_module_spec,
    )
    group.set_state(start)
    group.update(episodes=[Chunk(moved, 2 * half.steps)], timesteps={}, minibatch_size=4096)
    first, second = (each.get() for each in group.foreach_learner(weights_of))
    group.shutdown()
    assert same(first, second)
    assert_close(first, weights_of(one))


def test_threads_take_the_step_of_one(started: Started) -> None:
    config = make_config("hierarchical", epochs=2, batch_size=4096, minibatch_size=4096)
    chunk = sampled(started, "hierarchical")
    one = make_learner(config)
    before = weights_of(one)
    shared = config.copy(copy_frozen=False)
    shared.threads_per_learner = 3
    three = make_learner(shared, state={"rl_module": before})
    results = []
    for learner in (one, three):
        less_adaptive(learner)
        results.append(learner.update(episodes=[chunk], timesteps={}))
    assert not same(weights_of(one), before)
    assert_close(weights_of(three), weights_of(one))
    for policy in before:
        of_one, of_three = (
            {key: float(each[policy][key].peek()) for key in LOGGED} for each in results
        )
        assert of_three == pytest.approx(of_one, rel=1e-4, abs=1e-5), policy


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Weights that differ by less than a hundredth of one gradient step (3e-3)."""
    for policy, weights in expected.items():
        for name, array in weights.items():
            # With one choice an item, this bias moves all logits alike: its gradient is nothing
            # but rounding, which Adam makes steps of.
            if not name.endswith("score.2.bias"):
                np.testing.assert_allclose(found[policy][name], array, atol=3e-5, err_msg=name)


def less_adaptive(learner: Learner) -> None:
    """From here on Adam's steps are small where a gradient is nothing but rounding.

    Rounding differs between kinds of processors.
    """
    for policy in weights_of(learner):
        for _, optimizer in learner.get_optimizers_for_module(policy):
            for group in optimizer.param_groups:
                group["eps"] = 1e-3


def shifted(steps: Steps) -> Steps:
    """The same steps in other environments."""
    columns = dict(vars(steps))
    columns["environment"] = steps.environment + 1000
    return Steps(**columns)
