"""The speeds of the speed model's worked example, on a NUMA node that stands alone.

Four containers on a node of 4 cores of 1,000 operations/s, 8,192 MB. A and B run from 0 s, C comes
at 1 s, D at 2 s with 1,536 of the 2,048 MB it needs. (Golden episode 03 is the same one second
later, behind a cold start.)
"""

import pytest

from env.sim.view.container import Container
from env.sim.view.numa_node import numa_node_alone

A, B, C, D = range(4)


def _container(
    fn_id: int, computation: int, parallelism: int, needed: int, given: int, creation: float
) -> Container:
    return Container(
        wf_id=0,
        fn_id=fn_id,
        memory_req=needed,
        memory_alloc=given,
        computation=computation,
        parallelism=parallelism,
        submission_time=creation,
        creation_time=creation,
    )


@pytest.mark.parametrize(
    ("fn_id", "speeds"),
    [
        (A, [(0.0, 1000), (1.0, 571), (1.5, 1000), (2.0, 800)]),
        (B, [(0.0, 2000), (1.0, 1142), (1.5, 2000), (2.0, 1600), (3.0, 2000)]),
        (C, [(1.0, 2284)]),
        (D, [(2.0, 1200), (3.0, 1500)]),
    ],
)
def test_speed_records(fn_id: int, speeds: list[tuple[float, int]]) -> None:
    """The execution-speed record of each container over the whole example."""
    node = numa_node_alone(cpu=4, memory=8192, single_core_speed=1000)
    node.on_container_creation(_container(A, 2585, 1, 512, 512, 0.0))
    node.on_container_creation(_container(B, 7171, 2, 1024, 1536, 0.0))
    node.on_container_creation(_container(C, 1142, 4, 1024, 1024, 1.0))
    node.on_container_completion()
    node.on_container_creation(_container(D, 4200, 2, 2048, 1536, 2.0))
    while node.running_containers:
        node.on_container_completion()
    changes: list[tuple[float, int]] = []
    for record in node.speed_records(0, fn_id):
        if record.speed > 0 and (not changes or changes[-1][1] != record.speed):
            changes.append((record.timestamp, record.speed))
    assert changes == speeds
