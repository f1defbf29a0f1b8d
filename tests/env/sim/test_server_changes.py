"""Servers join, drain, leave and fail; functions retry, are saved, run again, and fail: by hand."""

import json
from dataclasses import replace
from itertools import chain, cycle, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from env.base.errors import InputError
from env.base.files import read_yaml
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.server_changes import ListedChanges, RandomFailures, Recovery
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.recording import episode_of
from env.sim.state.history import leases_of
from env.sim.state.records import DOWN
from env.sim.view.raw_env import RawEnv
from run.command import CONF
from tests import episodes
from tests.documents import refused_in_a_line
from tests.env.small import functions

ONE = ClusterConfig(1000, 1e9, 1e9, 1e9, (ServerType("s", 1, 3.6, 0.0, 1, 1, 100),))
TWO = replace(ONE, server_types=(ServerType("s", 2, 3.6, 0.0, 1, 1, 100),))
ALWAYS = Lease(kind="always", charged=False)
MINUTE = 60.0
TEN_MINUTES = functions(600_000)
CHAIN = WorkflowTemplate("chain", [10_000, 20_000], [1, 1], [1, 1], [(0, 1)], [0])
OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)


def event(time: float, action: str, server: str = "s 0", **more: Any) -> dict[str, Any]:
    return {"time": time, "server": server, "action": action, **more}


def fail(time: float, repair: float | None, server: str = "s 0") -> dict[str, Any]:
    return event(time, "fail", server, repair=repair)


def begun(
    *events: dict[str, Any],
    templates: tuple[WorkflowTemplate, ...] = (TEN_MINUTES,),
    cluster: ClusterConfig = ONE,
    lease: Lease = ALWAYS,
    time: float = 0.0,
    seed: int = 0,
    **recovery: Any,
) -> RawEnv:
    """An episode in which workflows arrive at a time and servers change."""
    changes = ListedChanges.model_validate({"kind": "listed", "events": events})
    rules = Rules(lease=lease, changes=changes, recovery=Recovery.model_validate(recovery))
    return world(rules, *templates, cluster=cluster, time=time, seed=seed)


def world(
    rules: Rules,
    *templates: WorkflowTemplate,
    cluster: ClusterConfig = ONE,
    time: float = 0.0,
    seed: int = 0,
) -> RawEnv:
    """An episode in which workflows arrive at a time."""
    times = [time] * len(templates)
    return episodes.begun(times, templates, cluster, record=True, rules=rules, turns_seed=seed)


def ended(env: RawEnv, *servers: int) -> RawEnv:
    """The same, played on some servers one after the other, the last one again and again."""
    turns = chain(servers or [0], repeat(servers[-1] if servers else 0))
    while not env.done:
        env.step("s", next(turns), 0, 1)
    episodes.checked(env)
    return env


def runs_of(env: RawEnv) -> list[tuple[Any, ...]]:
    """(function, node, start, end, outcome) in the order of ends."""
    return env.runs[["fn_id", "node", "start_time", "end_time", "outcome"]].tolist()


def reasons_of(env: RawEnv) -> list[tuple[int, float, str]]:
    """(function, time, reason) of those that failed."""
    results = episode_of(env, "a test", "").expected
    assert results is not None
    return [(row.function_id, row.time, row.reason) for row in results.unfinished]


@pytest.mark.parametrize(
    ("failures", "checkpoint", "minutes"),
    [
        ([], None, 10),
        ([(5, 5)], None, 20),
        ([(5, 5), (17, 10)], None, 37),  # it begins anew at 10 and at 27
        ([(5, 5)], 120.0, 16),  # of 5 minutes 4 are kept
        ([(5, 5), (12, 3)], 120.0, 19),  # then 2 more, of 6 none is left to be saved again
    ],
)
def test_opendc(failures: list[tuple[int, int]], checkpoint: float | None, minutes: int) -> None:
    """A task of 10 minutes that fails: OpenDC's tests of failures and checkpoints."""
    listed = [fail(at * MINUTE, repair * MINUTE) for at, repair in failures]
    env = ended(begun(*listed, checkpoint=checkpoint))
    assert env.time == minutes * MINUTE


def test_back_off_doubles_and_retries_end() -> None:
    """Killed at 10, 21 and 43 s, 10 s after each start: the third time is one too often."""
    events = [fail(time, 0.0) for time in (10.0, 21.0, 33.0)]
    env = ended(begun(*events, retries=2, backoff={"wait": 1.0, "factor": 2.0}))
    assert runs_of(env) == [(0, 0, 0.0, 10.0, 2), (0, 0, 11.0, 21.0, 2), (0, 0, 23.0, 33.0, 2)]
    assert reasons_of(env) == [(0, 33.0, "retries")]
    metrics = episode_metrics(env.state, OBJECTIVE)
    assert (metrics["failed"], metrics["retries"], metrics["work_lost"]) == (1.0, 2.0, 30.0)
    assert (metrics["goodput"], metrics["time_to_recover"]) == (0.0, 1.5)
    assert metrics["slowdown"] == pytest.approx(33.0 / 600.0)  # until it failed
    assert np.isnan(metrics["bound_gap"])


def test_jitter_is_drawn_from_the_seed() -> None:
    waits = []
    for seed in range(50):
        env = ended(begun(fail(10.0, 0.0), seed=seed, backoff={"wait": 4.0, "jitter": 0.5}))
        waits.append(env.runs["dispatch_time"][1] - 10.0)
    assert 2.0 <= min(waits) < 2.5 < 5.5 < max(waits) <= 6.0
    assert np.mean(waits) == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize("last", [event(50.0, "leave"), fail(50.0, None)])
def test_where_no_server_is_left_and_none_comes_functions_fail(last: dict[str, Any]) -> None:
    env = ended(begun(last))
    assert reasons_of(env) == [(0, 50.0, "no server")]
    env = ended(begun(last, event(80.0, "join")))
    assert env.time == 680.0 and reasons_of(env) == []
    env = ended(begun(event(5.0, "leave"), time=7.0))  # nothing ever runs
    assert reasons_of(env) == [(0, 7.0, "no server")]


def test_failures_of_others_are_not_waited_for() -> None:
    """The large server never comes back; the small one fails for ever, but is of no use."""
    kinds = (ServerType("s", 1, 3.6, 0.0, 1, 1, 1), ServerType("t", 1, 3.6, 0.0, 1, 1, 100))
    cluster = replace(ONE, server_types=kinds)
    heavy = WorkflowTemplate("heavy", [600_000], [50], [1], [], [])
    events = [fail(float(time), 10.0) for time in range(20, 2000, 20)]
    env = begun(event(50.0, "leave", "t 0"), *events, templates=(heavy,), cluster=cluster)
    env.step("t", 0, 0, 50)
    assert env.done and reasons_of(env) == [(0, 50.0, "no server")]


@pytest.mark.parametrize(("notice", "end"), [(120.0, 220.0), (900.0, 600.0)])
def test_a_server_that_drains_leaves_when_it_is_empty_or_the_notice_ends(
    notice: float, end: float
) -> None:
    templates = (TEN_MINUTES, functions(900_000))
    env = begun(event(100.0, "drain", notice=notice), templates=templates, cluster=TWO)
    env.step("s", 0, 0, 1)
    env.step("s", 1, 0, 1)
    ended(env, 1)
    changes = [(row.time, row.condition) for row in episode_of(env, "", "").changes]
    assert changes == [(100.0, "draining"), (end, "down")]
    assert runs_of(env)[0] == (0, 0, 0.0, end, 0 if notice == 900.0 else 2)


def test_a_server_that_joins_first_is_not_there_before() -> None:
    """Neither is it paid for, where all are from the start; it is there at 30 s."""
    charged = Lease(kind="always", step=60.0)
    env = begun(event(30.0, "join", "s 1"), cluster=TWO, lease=charged)
    assert env.state.servers["condition"].tolist() == [0, DOWN]
    with pytest.raises(InputError, match=r"server s 1 is down"):
        env.step("s", 1, 0, 1)
    ended(env)
    assert env.total_rent == pytest.approx(10 * 0.06 + 10 * 0.06)
    first = episode_of(env, "", "").changes[0]
    assert (first.time, first.condition, first.events) == (0.0, "down", None)
    assert episode_metrics(env.state, OBJECTIVE)["availability"] == 1 - 30 / 1200


@pytest.mark.parametrize(("step", "least", "paid"), [(3600.0, 1, 7200), (1.0, 60, 60 + 600)])
def test_steps_that_have_begun_are_paid(step: float, least: int, paid: float) -> None:
    """From 0 and, after the failure at 10 s, again from 20 s, for 600 s."""
    env = ended(begun(fail(10.0, 10.0), lease=Lease(step=step, least=least)))
    assert env.total_rent == pytest.approx(paid * 3.6 / 3600)
    leases = leases_of(env.history)
    assert [lease[1:3] for lease in leases] == [(0.0, 10.0), (20.0, 20.0 + max(step, 600.0))]
    assert sum(lease[3] for lease in leases) == pytest.approx(env.total_rent)


def test_tenants_are_paid_back_what_they_have_paid_of_the_lease() -> None:
    """The lease of `a` is over. Of ten minutes for `b` one has begun as the server fails."""
    changes = ListedChanges.model_validate({"kind": "listed", "events": [fail(1030.0, None)]})
    rules = Rules(lease=Lease(step=60.0), changes=changes, recovery=Recovery(retries=0))
    work, times = [TEN_MINUTES] * 2, [0.0, 1000.0]
    env = episodes.begun(times, work, ONE, record=True, rules=rules, tenants=["a", "b"])
    assert ended(env).state.ledger["lease_seconds"].tolist() == [600.0, 60.0]


def test_a_function_that_is_killed_while_its_server_starts() -> None:
    """It has waited for 5 of 25 s; after its back-off of 10 s it waits for all of them."""
    cluster = replace(ONE, server_types=(ServerType("s", 1, 3.6, 25.0, 1, 1, 100),))
    backoff = {"wait": 10.0, "jitter": 0.0}
    runs = ended(begun(fail(5.0, 1.0), cluster=cluster, lease=Lease(), backoff=backoff)).runs
    assert runs["server_start_time"].tolist() == [5.0, 25.0]
    assert runs["dispatch_time"].tolist() == runs["joined_time"].tolist() == [0.0, 15.0]


@pytest.mark.parametrize(
    ("durability", "servers", "events", "ends"),
    [
        # Function 1 is killed at 15 s; what it needs is in storage, or was lost with its server.
        ("durable", (0, 0, 1), [event(15.0, "leave")], [10.0, 15.0, 35.0]),
        ("server", (0, 0, 1), [event(15.0, "leave")], [10.0, 15.0, 25.0, 45.0]),
        # It runs on the other server, and has fetched its data already.
        ("server", (0, 1), [event(15.0, "leave")], [10.0, 30.0]),
        # Killed later, it needs them again.
        (
            "server",
            (0, 1),
            [event(15.0, "leave"), fail(20.0, 0.0, "s 1")],
            [10.0, 20.0, 30.0, 50.0],
        ),
    ],
)
def test_lost_data_are_made_again(
    durability: str, servers: tuple[int, ...], events: list[dict[str, Any]], ends: list[float]
) -> None:
    env = begun(*events, templates=(CHAIN,), cluster=TWO, data_durability=durability)
    assert ended(env, *servers).runs["end_time"].tolist() == ends
    useful = 30.0
    assert episode_metrics(env.state, OBJECTIVE)["goodput"] == useful / (
        useful + env.runs["execution_time"].sum() - useful
    )


def test_failures_are_the_same_whoever_plays_and_in_a_fork() -> None:
    law = {"shape": 1.0, "scale": 100.0}
    changes = RandomFailures.model_validate({"kind": "random", "failures": law, "repairs": law})
    rules = Rules(lease=ALWAYS, changes=changes, recovery=Recovery())

    def failures(*servers: int) -> list[Any]:
        env = world(rules, TEN_MINUTES, functions(60_000), cluster=TWO, seed=5)
        turns = cycle(servers)
        while not env.done:
            env, server = env.fork(), next(turns)
            free = np.flatnonzero(env.state.servers["condition"] == 0)
            env.step("s", server if server in free else int(free[0]), 0, 1)
        changed = env.history[env.history["kind"] == 5]
        return changed[["time", "node", "flag"]].tolist()

    one, other = failures(0, 1), failures(1, 0)
    count = min(len(one), len(other))
    assert count > 4 and one[:count] == other[:count]


def test_grid5000() -> None:
    """The first failures of many servers, and their repairs, have the quantiles of the laws."""
    declared = read_yaml(CONF / "changes" / "grid5000.yaml", "grid5000")
    changes = RandomFailures.model_validate(declared)
    kind = ServerType("s", 2000, 3.6, 0.0, 1, 1, 100)
    cluster = replace(ONE, server_types=(kind, ServerType("t", 1, 3.6, 0.0, 1, 1, 200)))
    rules = Rules(lease=ALWAYS, changes=changes, recovery=Recovery())
    env = world(rules, functions(10**12), cluster=cluster)
    timers = env.state.timers[: int(env.state.cluster[0]["timers_size"])]
    first = timers["time"][timers["major"] == 8] / 3600.0
    quantiles = np.array([0.25, 0.5, 0.75])
    due = 14.37 * (-np.log(1 - quantiles)) ** (1 / 0.48)
    assert len(first) == 2001
    np.testing.assert_allclose(np.quantile(first, quantiles), due, rtol=0.2)


def spot(trace: Path, **others: Any) -> Lease:
    given = {"trace": str(trace), "share": 1.0, "price": 0.5, "notice": 120.0, **others}
    return Lease.model_validate({"kind": "hourly", "spot": given})


def written(folder: Path, data: list[int], gap: float = 100.0) -> Path:
    file = folder / "trace.json"
    file.write_text(json.dumps({"metadata": {"gap_seconds": gap}, "data": data}))
    return file


def test_a_spot_trace(tmp_path: Path) -> None:
    """There from 100 s to 600 s of every 1,000: from any moment on, and two minutes' notice."""
    lease = spot(written(tmp_path, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]))
    rules = Rules(lease=lease, recovery=Recovery())
    begins: set[float] = set()
    for seed in range(20):
        env = ended(world(rules, functions(300_000), seed=seed))
        rows = [(row.time, row.condition) for row in episode_of(env, "", "").changes]
        begins |= {time for time, _ in rows[:2]}
        joins = [time for time, condition in rows if condition == "in service"]
        assert np.allclose(np.diff(joins), 1000.0)
        for told, left in pairwise(rows):
            if told[1] == "draining":
                assert left[1] == "down" and left[0] - told[0] <= 120.0 + 1e-6
        assert env.total_rent == pytest.approx(1.8 * (env.history["kind"] == 4).sum())
    assert len(begins) > 5


def test_of_a_trace_of_several_instances_the_kth_server_is_there_above_k(tmp_path: Path) -> None:
    lease = spot(written(tmp_path, [1] * 50 + [2] * 50), notice=0.0)
    rules = Rules(lease=lease, recovery=Recovery())
    envs = [world(rules, functions(1_000), cluster=TWO, seed=seed) for seed in range(20)]
    there = {tuple(env.state.servers["condition"].tolist()) for env in envs}
    assert there == {(0, 0), (0, DOWN)}


def test_a_spot_server_that_is_never_there_for_longer_than_the_notice_is_never_there(
    tmp_path: Path,
) -> None:
    lease = spot(written(tmp_path, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0]))
    env = ended(world(Rules(lease=lease, recovery=Recovery()), TEN_MINUTES))
    assert [reason for *_, reason in reasons_of(env)] == ["no server"]


def test_a_server_can_be_told_to_drain_any_number_of_times() -> None:
    env = ended(begun(*(event(10.0 * k, "drain", notice=1e5) for k in range(1, 41))))
    assert env.runs["end_time"].tolist() == [600.0]


def test_saved_work_is_lost_with_a_predecessor() -> None:
    """B is killed and waits; A, whose data are lost meanwhile, is killed too often and fails."""
    events = [fail(25.0, 1.0, "s 1"), fail(26.0, None), fail(30.0, 1.0, "s 1")]
    events += [fail(time, 1.0, "s 1") for time in (1100.0, 2200.0)]
    env = begun(
        *events,
        templates=(CHAIN,),
        cluster=TWO,
        checkpoint=1.0,
        data_durability="server",
        retries=1,
        backoff={"wait": 1068.0},
    )
    env.step("s", 0, 0, 1)
    env.step("s", 1, 0, 1)
    while not env.done:
        env.step("s", 1, 0, 1)
    assert sorted(reason for *_, reason in reasons_of(env)) == ["predecessor", "retries"]
    lost = episode_metrics(env.state, OBJECTIVE)["work_lost"]
    assert lost == pytest.approx(env.runs["execution_time"].sum())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"metadata": {"gap_seconds": 34}, "data": [0, 1', "trace.json"),
        ('{"metadata": {"gap_seconds": -34}, "data": [0, 1]}', "gap_seconds"),
        ('{"metadata": {"gap_seconds": 34}, "data": []}', "data"),
        ('{"metadata": {"gap_seconds": 34}, "data": [0, -1]}', "data.1"),
    ],
)
def test_damaged_traces(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "trace.json").write_text(content)
    rules = Rules(lease=spot(tmp_path / "trace.json"), recovery=Recovery())
    with refused_in_a_line("", says):
        world(rules, CHAIN)


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"changes\.events\.0\.server: 's 9', did you mean 's 0'"):
        begun(fail(1.0, None, "s 9"))
    for wrong in (fail(-1.0, None), event(1.0, "drain"), event(1.0, "join", notice=1.0)):
        with pytest.raises(ValidationError):
            ListedChanges.model_validate({"kind": "listed", "events": [wrong]})
