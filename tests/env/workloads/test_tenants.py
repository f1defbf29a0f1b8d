"""Whose workflows and requests arrive, when, and with which tickets."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.generator import WorkloadConfig
from env.workloads.traces.trace_samples import TraceConfig, sample_trace
from tests.env.workloads.conftest import Composed
from tests.env.workloads.test_generator import generator


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


def test_a_tenant_is_there_for_some_time(composed: Composed) -> None:
    made = generator(
        composed,
        "+workflow=tiny",
        "+workload=tickets",
        "+workload.tenants.bob.active=[100.0,200.0]",
    )
    counts: Counter[tuple[str, bool]] = Counter()
    for number in range(5):
        episode = made.evaluation_episode(number)
        for time, tenant in zip(episode.arrival_times, episode.tenants, strict=True):
            counts[tenant, 100.0 <= time < 200.0] += 1
    assert counts["bob", False] == 0 < counts["bob", True]
    assert counts["alice", True] > 0 < counts["alice", False]


def test_nobody_is_there_when_a_workflow_arrives(composed: Composed) -> None:
    made = generator(
        composed,
        "+workflow=tiny",
        "+workload=tiny",
        "+workload.tenants={a: {share: 1, active: [0, 0.001]}}",
    )
    with pytest.raises(InputError, match="workload.tenants: nobody is active at "):
        made.evaluation_episode(0)


@pytest.mark.parametrize(
    ("workflow", "tickets"), [("tiny", {"chain": 7.0}), ("study", {"genome": 10.0, "blast": 3.0})]
)
def test_workflows_get_tickets_by_their_name_or_entry(
    composed: Composed, workflow: str, tickets: dict[str, float]
) -> None:
    of_bob = ", ".join(f"{name}: {amount}" for name, amount in tickets.items())
    told = [f"+workflow={workflow}", "+workload=tickets"]
    override = f"+workload.tenants.bob.workflows={{{of_bob}}}"
    episode = generator(composed, *told, override).evaluation_episode(0)
    wanted = [
        tickets.get(template.name.partition("-")[0], 1.0) if tenant == "bob" else 1.0
        for tenant, template in zip(episode.tenants, episode.templates, strict=True)
    ]
    assert list(episode.tickets) == wanted
    assert set(wanted) == {*tickets.values(), 1.0}


def test_tickets_of_no_workflow_are_refused(composed: Composed) -> None:
    told = ["+workflow=study", "+workload=tickets", "+workload.tenants.bob.workflows={gnome: 2}"]
    with pytest.raises(InputError, match="no workflow is called 'gnome', did you mean 'genome'"):
        generator(composed, *told)


def test_every_episode_draws_turns_of_its_own(composed: Composed) -> None:
    made = generator(composed, "+workflow=tiny", "+workload=tickets")
    seeds = [made.evaluation_episode(number).turns_seed for number in range(5)]
    assert len(set(seeds)) == 5
    assert seeds == [made.evaluation_episode(number).turns_seed for number in range(5)]


OWNERS = ("a" * 64, "a" * 8 + "b" * 56, "c" * 64)
"""The first two differ from the ninth character on."""


def azure(folder: Path, composed: Composed, tenants: str | None) -> TraceConfig:
    """A trace of four functions of three owners: the first owner has two of them."""
    minutes = ",".join(str(minute) for minute in range(1, 61))
    rows = [(OWNERS[0], "f0"), (OWNERS[0], "f1"), (OWNERS[1], "f2"), (OWNERS[2], "f3")]
    calls = ",".join(["2"] * 60)
    (folder / "invocations.csv").write_text(
        f"HashOwner,HashApp,HashFunction,Trigger,{minutes}\n"
        + "".join(f"{owner},app{owner[-1]},{name},http,{calls}\n" for owner, name in rows)
    )
    percentiles = ",".join(f"percentile_Average_{p}" for p in (0, 1, 25, 50, 75, 99, 100))
    with gzip.open(folder / "durations.csv.gz", "wt") as file:
        file.write(f"HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum,{percentiles}\n")
        for owner, name in rows:
            figures = ",".join(["100"] * 7)
            file.write(f"{owner},app{owner[-1]},{name},100,120,100,100,{figures}\n")
    told = composed("+workload=azure2019", "workload/annotation=reserved")["workload"]
    told["source"] |= {"path": str(folder), "memory": None}
    told["sampling"] |= {"start": 0, "minutes": 30, "functions": 4}
    return validated(TraceConfig, told | {"tenants": tenants, "seed": 0}, "workload")


@pytest.mark.parametrize("kind", ["owner", "app"])
def test_owners_of_a_trace_are_tenants(tmp_path: Path, composed: Composed, kind: str) -> None:
    sample = sample_trace(azure(tmp_path, composed, kind))
    names = sample.window.profiles.names
    owners = dict(zip(names, sample.tenants, strict=True))
    if kind == "owner":  # as short as tells them apart
        assert owners == {"f0": "a" * 9, "f1": "a" * 9, "f2": "a" * 8 + "b", "f3": "c" * 9}
    else:
        assert owners == {"f0": "appa", "f1": "appa", "f2": "appb", "f3": "appc"}
    episode = sample.episode(1_000_000)
    assert episode.funding is not None
    assert set(episode.funding.tenants) == set(owners.values())
    whose = [owners[template.name] for template in episode.templates]
    assert list(episode.tenants) == whose
    values = episode.funding.rights().values().values()
    assert np.ptp([float(value) for value in values]) == 0.0
