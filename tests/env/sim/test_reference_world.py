"""The reference world, followed by hand where dispatch, lease and keep-alive meet."""

import math

import pytest

from env.sim.declared.hardware import ClusterConfig, ServerType
from tests.reference_inputs import mean
from tests.reference_records import Function, Image, Job, Rules
from tests.reference_world import ReferenceWorld

SPEED = 1_000_000
RATE = 36.0  # USD/h: a cent a second


def play(jobs: list[Job], rules: Rules, servers: int = 1, memory: int = 4) -> ReferenceWorld:
    """Servers of one node that take 10 s to start; who is asked gives the first that may be."""
    kind = ServerType("server", servers, RATE, 10.0, 1, 4, memory)
    cluster = ClusterConfig(SPEED, 1e9, 1e9, 1e9, (kind,))
    return ReferenceWorld(
        cluster, jobs, rules, mean, lambda _, job, nodes: (nodes[0], job.function.memory)
    )


def request(number: int, image: Image, time: float, seconds: float, memory: int = 2) -> Job:
    return Job(number, 0, Function(image, seconds, 1, memory), int(seconds * SPEED), time)


def test_a_lease_ends_with_all_that_is_warm() -> None:
    """Ends at 13 s; warm at 50 s; the minute that was paid is over at 60 s: all anew at 100 s."""
    image = Image(2.0)
    jobs = [request(number, image, time, 1.0) for number, time in enumerate([0.0, 50.0, 100.0])]
    rules = Rules(dispatch="immediate", lease="hourly", step=60.0, keep_alive="lru")
    played = play(jobs, rules)
    assert [(run.start, run.end) for run in played.runs] == [(12, 13), (50, 51), (112, 113)]
    assert [(run.warm, run.startup, run.cold) for run in played.runs] == [
        (False, 10.0, 2.0),
        (True, 0.0, 0.0),
        (False, 10.0, 2.0),
    ]
    assert played.servers[0].leases == [(0.0, 60.0, 1), (100.0, 160.0, 1)]
    assert (played.starts, played.container_cold_starts, played.now) == (2, 2, 113.0)
    assert played.total_rent == pytest.approx(1.2)


@pytest.mark.parametrize(("patience", "dispatched"), [(0.0, 1.0), (5.0, 6.0), (math.inf, 110.0)])
def test_patience_ends_before_another_server_is_started(patience: float, dispatched: float) -> None:
    """The first server is full from 0 to 110 s."""
    jobs = [request(0, Image(0.0), 0.0, 100.0, 4), request(1, Image(0.0), 1.0, 1.0, 4)]
    played = play(jobs, Rules(lease="hourly", patience=patience), servers=2)
    second = next(run for run in played.runs if run.wf_id == 1)
    assert (second.dispatched, second.queueing) == (dispatched, dispatched - 1)
    assert played.starts == (1 if patience == math.inf else 2)


def test_servers_that_are_always_up_are_paid_until_the_end() -> None:
    jobs = [request(0, Image(0.0), 0.0, 1.0), request(1, Image(0.0), 130.0, 1.0)]
    played = play(jobs, Rules(lease="always", charged=True, step=60.0), servers=2)
    thrice = [(0.0, 60.0, 1), (60.0, 120.0, 1), (120.0, 180.0, 1)]
    assert [server.leases for server in played.servers] == [thrice, thrice]
    assert played.total_rent == pytest.approx(3.6)
    assert (played.starts, played.now) == (0, 131.0)
