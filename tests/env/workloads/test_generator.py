"""Episodes: repeatable, and never shared between training and evaluation."""

import itertools

import numpy as np
import pytest

from env.schema import validated
from env.workloads.generator import (
    EpisodeWorkload,
    WorkloadConfig,
    WorkloadGenerator,
    evaluation_seed,
    training_seed,
)
from env.workloads.templates import WorkflowConfig

from .conftest import Composed


def generator(composed: Composed, *overrides: str) -> WorkloadGenerator:
    data = composed(*overrides)
    return WorkloadGenerator(
        validated(WorkflowConfig, data["workflow"], "workflow"),
        validated(WorkloadConfig, data["workload"], "workload"),
        1_000_000_000,
    )


def content(episode: EpisodeWorkload) -> tuple[object, ...]:
    return episode.arrival_times, tuple(template.name for template in episode.templates)


@pytest.mark.parametrize("workload", ["poisson", "bursty", "daily", "fixed", "tiny"])
def test_episodes_repeat(composed: Composed, workload: str) -> None:
    first, again = (generator(composed, "+workflow=tiny", f"+workload={workload}") for _ in "ab")
    for index in range(3):
        assert content(first.evaluation_episode(index)) == content(again.evaluation_episode(index))
        seed = training_seed(1, 0, 0, index)
        again_seed = training_seed(1, 0, 0, index)
        episode = first.training_episode(seed)
        assert content(episode) == content(again.training_episode(again_seed))
        assert len(episode.arrival_times) == len(episode.templates) > 0


def test_episodes_differ_from_each_other_and_by_seed(composed: Composed) -> None:
    one = generator(composed, "+workflow=tiny", "+workload=poisson")
    two = generator(composed, "+workflow=tiny", "+workload=poisson", "workload.seed=2")
    drawn = [content(made.evaluation_episode(index)) for made in (one, two) for index in range(50)]
    drawn += [content(one.training_episode(training_seed(1, 0, 0, index))) for index in range(50)]
    assert len(set(drawn)) == 150


def test_workloads_are_drawn_from_the_pool_of_their_purpose(composed: Composed) -> None:
    made = generator(composed, "+workflow=study", "+workload=poisson")
    for index in range(5):
        held_out = made.evaluation_episode(index)
        assert all("-evaluation-" in template.name for template in held_out.templates)
        training = made.training_episode(training_seed(1, 2, 3, index))
        assert all("-training-" in template.name for template in training.templates)


def test_no_two_seeds_are_the_same() -> None:
    """Whatever the seed: every training and every evaluation episode has a stream of its own."""

    def state(sequence: np.random.SeedSequence) -> tuple[int, ...]:
        return tuple(sequence.generate_state(4).tolist())

    states = [
        state(training_seed(*numbers)) for numbers in itertools.product(range(4), repeat=4)
    ] + [state(evaluation_seed(seed, index)) for seed in range(4) for index in range(100)]
    assert len(set(states)) == len(states)
