"""Episodes: repeatable, and never shared between training and evaluation."""

import itertools

import numpy as np
import pytest

from env.base.schema import validated
from env.sim.declared.episode import EpisodeWorkload
from env.workloads.generator import (
    WorkloadConfig,
    WorkloadGenerator,
    evaluation_seed,
    training_seed,
)
from env.workloads.templates import WorkflowConfig
from tests.env.worlds import composed


def generator(*overrides: str) -> WorkloadGenerator:
    data = composed(*overrides)
    return WorkloadGenerator(
        validated(WorkflowConfig, data["workflow"], "workflow"),
        validated(WorkloadConfig, data["workload"], "workload"),
        1_000_000_000,
    )


def content(episode: EpisodeWorkload) -> tuple[object, ...]:
    names = tuple(template.name for template in episode.templates)
    return episode.arrival_times, names, episode.tenants


@pytest.mark.parametrize("workload", ["poisson", "bursty", "daily", "tenants"])
def test_episodes_repeat(workload: str) -> None:
    first, again = (generator("+workflow=tiny", f"+workload={workload}") for _ in "ab")
    for index in range(3):
        assert content(first.evaluation_episode(index)) == content(again.evaluation_episode(index))
        episode = first.training_episode(training_seed(1, 0, 0, index))
        assert content(episode) == content(again.training_episode(training_seed(1, 0, 0, index)))
        assert len(episode.arrival_times) == len(episode.templates) > 0


def test_episodes_differ_from_each_other_and_by_seed() -> None:
    one = generator("+workflow=tiny", "+workload=poisson")
    two = generator("+workflow=tiny", "+workload=poisson", "workload.seed=2")
    drawn = [content(made.evaluation_episode(index)) for made in (one, two) for index in range(50)]
    drawn += [content(one.training_episode(training_seed(1, 0, 0, index))) for index in range(50)]
    assert len(set(drawn)) == 150


def test_tenants_change_nothing_else() -> None:
    nobody, shared = (
        generator("+workflow=tiny", f"+workload={name}") for name in ("poisson", "tenants")
    )
    for index in range(20):
        sequence = training_seed(1, 0, 0, index)
        for one, other in (
            (nobody.evaluation_episode(index), shared.evaluation_episode(index)),
            (nobody.training_episode(sequence), shared.training_episode(sequence)),
        ):
            assert content(one)[:2] == content(other)[:2]
            assert one.tenants == ()
            assert len(other.tenants) == len(other.templates)


def test_workflows_belong_to_tenants_by_share() -> None:
    def tenants(*shares: str) -> list[str]:
        made = generator("+workflow=tiny", "+workload=tenants", *shares)
        episodes = (made.evaluation_episode(index) for index in range(200))
        return [tenant for episode in episodes for tenant in episode.tenants]

    drawn = tenants()
    for tenant, share in {"retail": 0.6, "science": 0.3, "media": 0.1}.items():
        assert drawn.count(tenant) / len(drawn) == pytest.approx(share, abs=0.05)
    # Only their ratio counts.
    scaled = [f"workload.tenants.{name}" for name in ("retail=6", "science=3", "media=1")]
    assert tenants(*scaled) == drawn
    others = tenants("workload.tenants.retail=1e-9", "workload.tenants.media=1e-9")
    assert set(others) == {"science"}


def test_workloads_are_drawn_from_the_pool_of_their_purpose() -> None:
    made = generator("+workflow=study", "+workload=poisson")
    for index in range(5):
        held_out = made.evaluation_episode(index)
        assert all("-evaluation-" in template.name for template in held_out.templates)
        training = made.training_episode(training_seed(1, 2, 3, index))
        assert all("-training-" in template.name for template in training.templates)


def test_what_an_image_needs_does_not_tell_what_will_arrive() -> None:
    """Two workflows call `resize`, with 400 and with 700 MB: containers of it have 700 always."""
    of = "{{weight: 1, functions: {{resize: {{runtime: 1.0, memory: {}, parallelism: 1}}}}}}"
    mix = f"{{small: {of.format(400)}, large: {of.format(700)}}}"
    mine = generator(
        "+workflow=inline",
        "~workflow.mix",
        f"+workflow.mix={mix}",
        "+workload=tiny",
        "workload.arrivals.workflows=1",
    )
    arrived = set()
    for index in range(10):
        for episode in (
            mine.evaluation_episode(index),
            mine.training_episode(training_seed(0, 0, 0, index)),
        ):
            assert episode.images is not None
            assert episode.images.memory.tolist() == [700]
            arrived.add(episode.templates[0].name)
    assert len(arrived) == 2


def test_no_two_seeds_are_the_same() -> None:
    """Whatever the seed: every training and every evaluation episode has a stream of its own."""

    def state(sequence: np.random.SeedSequence) -> tuple[int, ...]:
        return tuple(sequence.generate_state(4).tolist())

    states = [state(training_seed(*own)) for own in itertools.product(range(4), repeat=4)]
    states += [state(evaluation_seed(*own)) for own in itertools.product(range(4), range(100))]
    assert len(set(states)) == len(states)
