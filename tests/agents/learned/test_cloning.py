"""Behaviour cloning: teachers are repeated, and the other algorithms can begin with it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from ray.rllib.algorithms.algorithm import Algorithm

from agents.baseline import make_baselines
from agents.learned.algorithms import policy_networks
from agents.learned.cloning import demonstrate, warm_start
from agents.learned.policy_file import policy_of
from agents.learned.run_log import measures_of
from agents.scheduler import play
from env.learn.actions import NO_PLACE
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from run.settings import AlgoSettings, TrainSettings
from tests.agents.learned.conftest import Started, algo, same
from tests.agents.learned.test_algorithms import SETTINGS
from tests.documents import refused_in_a_line
from tests.env.worlds import LAYOUTS, TINY, world

LESSON = algo("bc")["cloning"] | {
    "decisions": 600,
    "epochs": 15,
    "batch_size": 128,
    "learning_rate": 3e-3,
}
BC = algo("bc", teacher="greedy_objective", cloning=LESSON, iteration_steps=600)


def record(teacher: str, decisions: int, *overrides: str, every: int = 1) -> dict[str, Any]:
    return demonstrate(teacher, decisions, world(*TINY, *overrides), every=every, seed=4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_recorded_is_what_the_teacher_does(layout: str) -> None:
    """Played again by its recorded actions, an episode ends as the teacher's own."""
    told = world(*TINY, f"agents={layout}")
    environment = ServerlessEnv(told)
    environment.reset(seed=4)
    env = environment.raw_env
    assert env is not None
    again = env.fork()
    (teacher,) = make_baselines(["earliest_finish"])
    play(again, teacher, environment.objective, np.random.SeedSequence(4, spawn_key=(0,)))

    recorded = record("earliest_finish", again.decisions, f"agents={layout}")
    rows = {policy: iter(columns["actions"]) for policy, columns in recorded.items()}
    observations, _ = environment.reset(seed=4)
    while environment.agents:
        actions = {name: next(rows[policy_of(name, True)]) for name in observations}
        observations = environment.step(actions)[0]
    assert environment.raw_env is not None
    assert environment.raw_env.time == again.time
    assert environment.raw_env.total_rent == again.total_rent


def test_one_decision_in_every_so_many_is_recorded() -> None:
    (all_of_them,) = record("best_fit", 12, "agents=placer").values()
    (some,) = record("best_fit", 4, "agents=placer", every=3).values()
    assert (some["actions"] == all_of_them["actions"][::3]).all()
    assert (some["obs"]["items"] == all_of_them["obs"]["items"][::3]).all()


@pytest.mark.parametrize("teacher", ["random", "rollout"])
def test_recorded_actions_are_allowed_by_the_masks(teacher: str) -> None:
    recorded = record(teacher, 20, "agents=server_types")["server"]
    mask, actions = recorded["obs"]["mask"], recorded["actions"]
    assert len(mask) == len(actions) == 40  # two server types
    bids = mask[:, :8][np.arange(40), actions[:, 0]]
    asked = actions[:, 1] != NO_PLACE
    places = mask[asked, 8:][np.arange(asked.sum()), actions[asked, 1]]
    assert (bids == 1).all() and (places == 1).all()
    assert asked.sum() == 20


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cloned_policy_repeats_its_teacher(started: Started, layout: str) -> None:
    algorithm = started(BC, world(*TINY, f"agents={layout}"), ENV_NAME, ServerlessEnv)
    critics = critics_of(algorithm)
    for _ in range(2):
        result = algorithm.train()
    measures = measures_of(result, seconds=1.0)
    assert same(critics_of(algorithm), critics)
    agreements = [value for name, value in measures.items() if name.startswith("agreement/")]
    assert len(agreements) == {"placer": 1, "hierarchical": 3, "server_types": 1}[layout]
    assert min(agreements) > 0.9
    # Random weights come to four times the J of the reference, the teacher to no more than it.
    assert measures["J_relative"] < 1.6


@pytest.mark.parametrize("name", ["ppo", "impala", "appo"])
def test_a_warm_start_hands_the_policies_over_and_leaves_the_critic(
    started: Started, name: str
) -> None:
    told = world(*TINY, "agents=placer")
    settings = SETTINGS[name] | {"warm_start": "greedy_objective", "cloning": LESSON}
    algorithm = started(settings, told, ENV_NAME, ServerlessEnv)
    critics, before = critics_of(algorithm), policy_networks(algorithm)
    parsed = TrainSettings.model_construct(
        algo=TypeAdapter(AlgoSettings).validate_python(settings),
        agents=SimpleNamespace(share_type_policy=True),
    )
    agreement = warm_start(algorithm, parsed, told)
    assert agreement["placer"] > 0.9
    assert same(critics_of(algorithm), critics)
    learned = policy_networks(algorithm)["placer"]
    assert not same(learned, before["placer"])
    # Who samples has it, and so has the network that APPO is held to.
    assert same(algorithm.env_runner.module["placer"].policy, learned)
    weights = algorithm.learner_group.get_weights()["placer"]
    held = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith("target_policy.")}
    assert not held or same(held, learned.state_dict())
    assert bool(held) == (name == "appo")
    algorithm.train()
    assert not same(policy_networks(algorithm)["placer"], learned)


def critics_of(algorithm: Algorithm) -> dict[str, dict[str, np.ndarray]]:
    return {
        policy: {key: np.array(a) for key, a in weights.items() if key.startswith("value.")}
        for policy, weights in algorithm.learner_group.get_weights().items()
    }


@pytest.mark.parametrize(
    ("teacher", "says"),
    [
        ("earliest_finnish", "'earliest_finnish' is unknown, did you mean 'earliest_finish'?"),
        ("earliest_finish_stingy", "'earliest_finish_stingy' cannot be cloned: 128 MB is no tier"),
    ],
)
def test_a_teacher_that_cannot_be_cloned_is_refused(teacher: str, says: str) -> None:
    told = world(*TINY, "agents=placer", "agents.memory_tiers=[0.75,1.0]")
    with refused_in_a_line("", says):
        demonstrate(teacher, 1, told)
