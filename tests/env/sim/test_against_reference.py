"""Every world is what the reference has of it, and the goldens what their files say."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given

from env.score.metrics import FinishedEpisode
from env.score.reward import Objective
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode
from env.sim.episode.recorded_world import specification
from env.sim.episode.replay import played, replayed
from env.sim.node import idle_forecast
from env.sim.view.raw_env import RawEnv, StepLog
from tests.env.small import cluster_of, functions, held
from tests.episodes import GOLDEN
from tests.reference_inputs import Played, engine, mean, placements_of
from tests.reference_node import Job
from tests.reference_world import Run
from tests.strategies import World, plain_worlds, worlds

assert len(GOLDEN) == 6
OBJECTIVE = Objective(time_weight=1, cost_weight=1)


def check(world: World) -> RawEnv:
    """The engine has the decisions, runs, leases and counts of the reference."""
    env, wanted = engine(world), Played(world)
    assert env.runs[list(Run._fields)].tolist() == wanted.runs
    assert [tuple(log.target_node_before) for log in env.logs] == [
        before for _, before in wanted.decided
    ]
    paid = env.state.ledger["lease_seconds"].reshape(len(wanted.servers), -1).sum(axis=1)
    paid = np.rint(paid / world.episode.rules.lease.step)
    assert paid.tolist() == [server.steps for server in wanted.servers]
    leases = [server.expiration for server in wanted.servers]
    assert env.state.servers["expiration_time"].tolist() == leases
    assert env.state.cluster[0]["tracked_count"] == 0
    assert (env.cold_starts, env.time) == (wanted.server_cold_starts, wanted.now)
    assert env.state.queue[0]["container_cold_starts"] == wanted.container_cold_starts
    assert env.total_rent == pytest.approx(wanted.total_rent)
    carbon = FinishedEpisode(env.state, OBJECTIVE, world.episode.cluster.power).carbon
    if world.episode.cluster.power is not None:
        assert carbon == pytest.approx(wanted.carbon, rel=1e-6, abs=1e-6)
    if env.rules.order is None:
        check_logs(env, [job for job, _ in wanted.decided])
    return env


def check_logs(env: RawEnv, decided: list[Job]) -> None:
    """What steps say of functions that are placed at once; they complete in the order of ends."""
    assert [
        (log.wf_id, log.fn_id, log.submission_time, log.cold_start_time, log.creation_time)
        for log in env.logs
    ] == [(job.wf_id, job.fn_id, job.submission, job.startup, job.creation_time) for job in decided]
    ends = sorted((run["end_time"], run["wf_id"], run["fn_id"]) for run in env.runs)
    assert [one for log in env.logs for one in log.completed] == [tuple(end[1:]) for end in ends]
    if env.rules.lease.kind == "hourly":
        assert sum(log.rent for log in env.logs) == pytest.approx(env.total_rent)


EIGHTEEN_YEARS = World(
    Episode(
        EpisodeWorkload(
            (0.0, 0.0, 0.0), (functions(1), functions(1_000_000), functions(4_000_000_000))
        ),
        ClusterConfig(1_000_000, 1e3, 3e2, 12.5, (ServerType("slow", 1, 0.0, 0.0, 1, 2, 4, 7),)),
    ),
    placements={(0, 0): (0, 4), (1, 0): (0, 1), (2, 0): (0, 1)},
)
"""At 7 operations a second: so long that float64 no longer holds a nanosecond."""


@given(world=worlds())
def test_any_world(world: World) -> None:
    """Forecasts are those of `mean`; any number of warm containers begins with room for one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        patch.setattr("env.sim.assembly.with_rules.WARM", 1)
        check(world)


@given(world=plain_worlds())
@example(EIGHTEEN_YEARS)
def test_plain_worlds(world: World) -> None:
    check(world)


@given(world=plain_worlds(by_tickets=True))
def test_cores_shared_by_tickets(world: World) -> None:
    """Who runs nothing does not count."""
    check(world)


@given(world=plain_worlds())
def test_one_tenant_has_what_all_have_where_threads_share_alike(world: World) -> None:
    episode = world.episode
    workload = replace(
        episode.workload, tenants=("a",) * len(episode.workload.templates), funding=held(a=1)
    )
    cluster = replace(episode.cluster, cpu_share="tickets")
    shared = replace(world, episode=replace(episode, workload=workload, cluster=cluster))
    assert engine(shared).logs == engine(world).logs


@given(world=plain_worlds())
def test_a_fork_at_any_moment_and_a_reset_end_the_same_way(world: World) -> None:
    env = engine(world)
    first, rent = env.logs, env.total_rent
    half = len(first) // 2
    env.reset()

    def play_again(part: RawEnv, logs: list[StepLog]) -> None:
        for log in logs:
            place = (log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
            assert part.step(*place) == log

    play_again(env, first[:half])
    fork = env.fork()
    play_again(fork, first[half:])
    assert fork.done and len(env.logs) == half
    play_again(env, first[half:])
    assert env.logs == first
    assert env.total_rent == fork.total_rent == rent


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_episodes_are_met_bit_for_bit(path: Path) -> None:
    """By the engine, in all that the file says; by the reference, as the engine is held to it."""
    episode, wanted = read_episode(path), json.loads(path.read_text())["expected"]
    env = check(World(specification(episode), placements=placements_of(episode)))
    assert [(log.wf_id, log.fn_id) for log in env.logs] == [row.function for row in episode.actions]
    assert wanted["decision_count"] == len(env.logs)
    assert wanted["decisions"] == [
        {
            "submission_time": log.submission_time,
            "cold_start_time": log.cold_start_time,
            "data_transfer_time": log.data_transfer_time,
            "creation_time": log.creation_time,
            "rent": log.rent,
            "completed_before_next_decision": [list(one) for one in log.completed],
            "target_node_before": dict(
                zip(row["target_node_before"], log.target_node_before, strict=True)
            ),
        }
        for log, row in zip(env.logs, wanted["decisions"], strict=True)
    ]
    times = ("submission_time", "creation_time", "start_time", "completion_time")
    for row in wanted["functions"]:
        own = env.workload.workflows[row["workflow_id"]].functions[row["function_id"]]
        assert {key: getattr(own, key) for key in times} == {key: row[key] for key in times}
    for row in wanted["servers"]:
        server = env.cluster.servers[row["server_type"]][row["server_index"]]
        assert (server.hours_rented, server.expiration_time, server.rent) == (
            row["hours_rented"],
            row["lease_expiration_time"],
            row["rent"],
        )
    results = replayed(episode)
    assert results.total_rent == wanted["total_rent"]
    assert results.last_completion_time == wanted["last_completion_time"]
    assert list(results.workflow_completion_times) == wanted["workflow_completion_times"]


# The speed model's worked example, which is golden episode 03: on a node of 4 cores of 1,000
# operations/s A and B run from 1 s; C comes at 2 s, D at 3 s with 3/4 of the memory it needs.
SPEEDS = [
    [(1.0, 1000), (2.0, 571), (2.5, 1000), (3.0, 800)],
    [(1.0, 2000), (2.0, 1142), (2.5, 2000), (3.0, 1600), (4.0, 2000)],
    [(2.0, 2284)],
    [(3.0, 1200), (4.0, 1500)],
]


@pytest.mark.parametrize(("wf_id", "speeds"), enumerate(SPEEDS))
def test_speed_records(wf_id: int, speeds: list[tuple[float, int]]) -> None:
    ((server,),) = played(read_episode(GOLDEN[2])).cluster.servers.values()
    changes: list[tuple[float, int]] = []
    for time, speed in server.numa_nodes[0].speed_records(wf_id, 0):
        if speed > 0 and (not changes or changes[-1][1] != speed):
            changes.append((time, speed))
    assert changes == speeds


def requested(
    templates: Sequence[WorkflowTemplate],
    times: Sequence[float],
    rules: Rules,
    servers: int = 1,
    cold_start: float = 0.0,
) -> RawEnv:
    """By engine and reference: on servers of one node that take 10 s to start, a cent a second."""
    cluster = cluster_of(ServerType("server", servers, 36.0, 10.0, 1, 4, 4))
    images = Images.by_name(templates, cold_start)
    workload = EpisodeWorkload(tuple(times), tuple(templates), images=images)
    placements = {(wf_id, 0): (wf_id % servers, 2) for wf_id in range(len(templates))}
    return check(World(Episode(workload, cluster, rules), placements=placements))


def test_a_lease_ends_with_all_that_is_warm() -> None:
    """Ends at 13 s; warm at 50 s; the minute that was paid is over at 60 s: all anew at 100 s."""
    rules = Rules(lease=Lease(step=60.0), keep_alive=Lru())
    env = requested([functions(1_000, memory=2)] * 3, [0.0, 50.0, 100.0], rules, cold_start=2.0)
    parts = ["start_time", "end_time", "warm", "server_start_time", "cold_start_time"]
    assert env.runs[parts].tolist() == [
        (12.0, 13.0, 0, 10.0, 2.0),
        (50.0, 51.0, 1, 0.0, 0.0),
        (112.0, 113.0, 0, 10.0, 2.0),
    ]
    assert env.state.ledger["lease_seconds"].tolist() == [120.0]
    assert env.state.servers["expiration_time"].tolist() == [160.0]
    assert env.total_rent == pytest.approx(1.2)


@pytest.mark.parametrize(("patience", "dispatched"), [(0.0, 1.0), (5.0, 6.0), (math.inf, 110.0)])
def test_patience_ends_before_another_server_is_started(patience: float, dispatched: float) -> None:
    """The first server is full from 0 to 110 s."""
    rules = Rules(FIRST_COME, "first_fit", patience)
    env = requested(
        [functions(100_000, memory=4), functions(1_000, memory=4)], [0.0, 1.0], rules, servers=2
    )
    (second,) = env.runs[env.runs["wf_id"] == 1]
    assert (second["dispatch_time"], second["queueing_time"]) == (dispatched, dispatched - 1)
    assert env.cold_starts == (1 if patience == math.inf else 2)


def test_servers_that_are_always_up_are_paid_until_the_end() -> None:
    """For three minutes each, though the second has nothing to do from 1 s to 130 s."""
    rules = Rules(FIRST_COME, lease=Lease(kind="always", step=60.0))
    env = requested([functions(1_000, memory=2)] * 2, [0.0, 130.0], rules, servers=2)
    assert env.state.ledger["lease_seconds"].tolist() == [180.0, 180.0]
    assert env.total_rent == pytest.approx(3.6)
    assert (env.cold_starts, env.time) == (0, 131.0)
