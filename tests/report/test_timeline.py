"""What a container went through, by hand and against the numbers of the golden episodes."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import Lru
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from report.timeline import PHASES, Timeline, read_timeline
from tests.episodes import GOLDEN, end, written
from tests.recorded_worlds import trace, world

MEMORY_WAITING = GOLDEN[3]


def test_every_phase_of_a_queued_world(tmp_path: Path) -> None:
    """One server with one place, 20 s to start; a container takes 2 s, a function 10 s.

    The second waits for the first; the third finds its container warm after a pause of 8 s.
    """
    cluster = ClusterConfig(1000, 1e9, 1e9, 1e9, (ServerType("s", 1, 1.0, 20.0, 1, 1, 1024),))
    resize = WorkflowTemplate("resize", [10_000], [1024], [1], np.zeros((0, 2), np.int64), [])
    rules = Rules(order=FIRST_COME, keep_alive=Lru())
    images = Images.by_name([resize], 2.0)
    env = RawEnv([0.0, 5.0, 50.0], [resize] * 3, cluster, record=True, rules=rules, images=images)
    timeline = read_timeline(written(env, tmp_path / "episode.json"))
    moments = ("submission_time", *(phase.end for phase in PHASES))
    assert timeline.containers[list(moments)].values.tolist() == [
        [0.0, 0.0, 20.0, 22.0, 22.0, 22.0, 32.0],
        [5.0, 32.0, 32.0, 32.0, 32.0, 32.0, 42.0],
        [50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 60.0],
    ]
    assert timeline.warm[["begin", "end"]].values.tolist() == [[42.0, 50.0]]
    times, waiting = timeline.in_phase("central queue")
    assert (times.tolist(), waiting.tolist()) == ([0.0, 5.0, 32.0], [0, 1, 0])
    (node,) = timeline.nodes
    assert (node.times.tolist(), node.cpu.tolist()) == (
        [0.0, 22.0, 32.0, 42.0, 50.0, 60.0],
        [0.0, 1.0, 1.0, 0.0, 1.0, 0.0],
    )


@pytest.mark.parametrize("order", ["immediate", "rr"])
def test_times_of_any_world(tmp_path: Path, order: str) -> None:
    """Each run is shown, its phases in order, and no row holds two containers at once."""
    for env in (world(order, "hourly", "lru"), trace(order)):
        timeline = read_timeline(written(env, tmp_path / "episode.json"))
        containers, warm = timeline.containers, timeline.warm
        assert len(containers) == len(env.runs) and len(warm) > 0
        for phase in PHASES:
            assert (containers[phase.end] >= containers[phase.begin]).all()
        for index, node in enumerate(timeline.nodes):
            assert node.memory.max() <= 1 or order == "immediate"
            for lane in range(node.lanes):
                busy = containers[(containers["node"] == index) & (containers["lane"] == lane)]
                idle = warm[(warm["node"] == index) & (warm["lane"] == lane)]
                spans = busy[["submission_time", "completion_time"]].values.tolist()
                spans = sorted([*spans, *idle[["begin", "end"]].values.tolist()])
                assert all(later >= end for (_, end), (later, _) in pairwise(spans))


def test_the_queue_for_memory() -> None:
    """Two functions could start after 2 and 3 s and have their memory after 12 and 13 s."""
    timeline = read_timeline(MEMORY_WAITING)
    times, waiting = timeline.in_phase("waiting")
    assert times.tolist() == [0.0, 2.0, 3.0, 12.0, 13.0]
    assert waiting.tolist() == [0, 1, 2, 1, 0]
    assert timeline.in_phase("waiting", 0)[1].tolist() == waiting.tolist()
    assert timeline.flow_times.tolist() == [12.0, 19.0, 13.0, 9.0]


def test_leases_cover_what_runs_and_add_up_to_the_rent() -> None:
    """On a server of 0.6 USD/h: 10 s from 0 s, within the first hour again, and as that ends."""
    cluster = ClusterConfig(1_000, 1e9, 1e9, 1e9, (ServerType("box", 2, 0.6, 1.0, 1, 2, 2048),))
    work = WorkflowTemplate("w", [10_000], [1024], [1], [], [])
    env = RawEnv([0.0, 3595.0, 7200.0], [work] * 3, cluster, record=True)
    timeline = Timeline(end(env), "leases")
    # The second one ends after the hour, so another is paid.
    assert timeline.leases[["node", "nodes", "begin", "end"]].values.tolist() == [
        [0, 1, 0.0, 7200.0],
        [0, 1, 7200.0, 10800.0],
    ]
    assert timeline.leases["rent"].tolist() == pytest.approx([1.2, 0.6])
    assert timeline.leases["rent"].sum() == pytest.approx(env.total_rent)
