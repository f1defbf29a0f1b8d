"""Episodes: repeatable, never shared between training and evaluation; whose workflows arrive."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.sim.declared.episode import EpisodeWorkload
from env.workloads.generator import (
    WorkloadConfig,
    WorkloadGenerator,
    evaluation_seed,
    training_seed,
)
from env.workloads.templates import WorkflowConfig
from env.workloads.traces.trace_samples import TraceConfig, TraceGenerator
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


def workload(**told: Any) -> WorkloadConfig:
    arrivals = {"kind": "fixed", "times": [float(second) for second in range(100)]}
    return validated(WorkloadConfig, {"seed": 0, "arrivals": arrivals, **told}, "workload")


def test_tickets_become_rights() -> None:
    config = workload(
        tenants={
            "a": {"share": 1, "tickets": 400},
            "b": {"share": 1, "tickets": 2, "currency": "lab"},
            "c": {"share": 1, "tickets": 1, "currency": "lab"},
        },
        currencies={"lab": {"tickets": 600}},
    )
    values = config.funding.rights().values()
    assert {name: float(value) for name, value in values.items()} == {"a": 400, "b": 400, "c": 200}
    assert workload(tenants={"a": 1.0}).funding is None


def test_a_tenant_is_there_for_some_time() -> None:
    active = "+workload.tenants.bob.active=[100.0,200.0]"
    made = generator("+workflow=tiny", "+workload=tickets", active)
    counts: Counter[tuple[str, bool]] = Counter()
    for number in range(5):
        episode = made.evaluation_episode(number)
        for time, tenant in zip(episode.arrival_times, episode.tenants, strict=True):
            counts[tenant, 100.0 <= time < 200.0] += 1
    assert counts["bob", False] == 0 < counts["bob", True]
    assert counts["alice", True] > 0 < counts["alice", False]


def test_nobody_is_there_when_a_workflow_arrives() -> None:
    active = "+workload.tenants={a: {share: 1, active: [0, 0.001]}}"
    made = generator("+workflow=tiny", "+workload=tiny", active)
    with pytest.raises(InputError, match="workload.tenants: nobody is active at "):
        made.evaluation_episode(0)


@pytest.mark.parametrize(
    ("workflow", "tickets"), [("tiny", {"chain": 7.0}), ("study", {"genome": 10.0, "blast": 3.0})]
)
def test_workflows_get_tickets_by_their_name_or_entry(
    workflow: str, tickets: dict[str, float]
) -> None:
    of_bob = ", ".join(f"{name}: {amount}" for name, amount in tickets.items())
    override = f"+workload.tenants.bob.workflows={{{of_bob}}}"
    made = generator(f"+workflow={workflow}", "+workload=tickets", override)
    episode = made.evaluation_episode(0)
    wanted = [
        tickets.get(template.name.partition("-")[0], 1.0) if tenant == "bob" else 1.0
        for tenant, template in zip(episode.tenants, episode.templates, strict=True)
    ]
    assert list(episode.tickets) == wanted
    assert set(wanted) == {*tickets.values(), 1.0}


def test_tickets_of_no_workflow_are_refused() -> None:
    told = ["+workflow=study", "+workload=tickets", "+workload.tenants.bob.workflows={gnome: 2}"]
    with pytest.raises(InputError, match="no workflow is called 'gnome', did you mean 'genome'"):
        generator(*told)


def test_every_episode_draws_turns_of_its_own() -> None:
    made = generator("+workflow=tiny", "+workload=tickets")
    seeds = [made.evaluation_episode(number).turns_seed for number in range(5)]
    assert len(set(seeds)) == 5
    assert seeds == [made.evaluation_episode(number).turns_seed for number in range(5)]


OWNERS = {"shop": "a" * 64, "photos": "a" * 8 + "b" * 56, "mail": "c" * 64, "backup": "c" * 64}
"""Of the applications; the first two differ from the ninth character on."""


@pytest.mark.parametrize("kind", ["owner", "app"])
def test_owners_of_a_trace_are_tenants(tmp_path: Path, fixtures: Path, kind: str) -> None:
    for file in (fixtures / "azure2019").iterdir():
        text = file.read_text()
        for app, owner in OWNERS.items():
            text = text.replace(f"team,{app}", f"{owner},{app}")
        (tmp_path / file.name).write_text(text)
    told = composed("+workload=azure2019", f"workload.source.path={tmp_path}")["workload"]
    told["sampling"] |= {"start": 0, "minutes": 12}
    config = validated(TraceConfig, told | {"tenants": kind}, "workload")
    sample = TraceGenerator(config, 1).sample(0)
    names = sample.profiles.names
    owners = dict(zip(names, sample.tenants, strict=True))
    if kind == "owner":  # as short as tells them apart
        short = {"cart": "a" * 9, "index": "a" * 8 + "b", "send": "c" * 9, "daily": "c" * 9}
    else:
        short = {"cart": "shop", "index": "photos", "send": "mail", "daily": "backup"}
    assert short.items() <= owners.items()
    assert set(short.values()) == set(owners.values())
    episode = sample.episode(1_000_000)
    assert set(episode.funding.tenants) == set(owners.values())
    whose = [owners[template.name] for template in episode.templates]
    assert list(episode.tenants) == whose
    assert len(set(episode.funding.rights().values().values())) == 1
