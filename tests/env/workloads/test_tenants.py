"""Whose workflows and requests arrive, when, and with which tickets."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.generator import WorkloadConfig
from env.workloads.traces.trace_samples import TraceConfig, TraceGenerator
from tests.env.workloads.test_generator import generator
from tests.env.worlds import composed


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
    assert config.funding is not None
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
    assert episode.funding is not None
    assert set(episode.funding.tenants) == set(owners.values())
    whose = [owners[template.name] for template in episode.templates]
    assert list(episode.tenants) == whose
    assert len(set(episode.funding.rights().values().values())) == 1
