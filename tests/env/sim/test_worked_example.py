"""The speeds of the speed model's worked example, which is golden episode 03.

Four containers on a node of 4 cores of 1,000 operations/s, 8,192 MB. A and B run from 1 s, C comes
at 2 s, D at 3 s with 1,536 of the 2,048 MB it needs.
"""

import pytest

from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import played
from run.command import PROJECT

A, B, C, D = range(4)


@pytest.mark.parametrize(
    ("wf_id", "speeds"),
    [
        (A, [(1.0, 1000), (2.0, 571), (2.5, 1000), (3.0, 800)]),
        (B, [(1.0, 2000), (2.0, 1142), (2.5, 2000), (3.0, 1600), (4.0, 2000)]),
        (C, [(2.0, 2284)]),
        (D, [(3.0, 1200), (4.0, 1500)]),
    ],
)
def test_speed_records(wf_id: int, speeds: list[tuple[float, int]]) -> None:
    """The execution-speed record of each container over the whole example."""
    (path,) = (PROJECT / "tests" / "golden").glob("03*.json")
    ((server,),) = played(read_episode(path)).cluster.servers.values()
    changes: list[tuple[float, int]] = []
    for time, speed in server.numa_nodes[0].speed_records(wf_id, 0):
        if speed > 0 and (not changes or changes[-1][1] != speed):
            changes.append((time, speed))
    assert changes == speeds
