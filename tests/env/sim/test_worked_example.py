"""The speed model's worked example, step by step on a NUMA node that stands alone.

Four containers on a node of 4 cores of 1,000 operations/s, 8,192 MB. A and B run from 0 s, C comes
at 1 s, D at 2 s with 1,536 of the 2,048 MB it needs. (Golden episode 03 is the same one second
later, behind a cold start.)
"""

import pytest

from env.sim.view.container import Container
from env.sim.view.numa_node import NumaNode, numa_node_alone

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


def _projected(node: NumaNode) -> dict[int, float | None]:
    return {one.fn_id: one.completion_time for one in node.running_containers}


def _remaining(node: NumaNode) -> dict[int, int | None]:
    return {one.fn_id: one.remaining_computation for one in node.running_containers}


def test_worked_example() -> None:
    node = numa_node_alone(cpu=4, memory=8192, single_core_speed=1000)
    assert node.computing_capacity == 4000

    # 3 threads on 4 cores: each at full speed, (1000 + 2000) / 4000 of the CPU.
    node.on_container_creation(_container(A, 2585, 1, 512, 512, 0.0))
    node.on_container_creation(_container(B, 7171, 2, 1024, 1536, 0.0))
    assert _projected(node) == pytest.approx({A: 2.585, B: 3.5855}, abs=1e-9)
    assert node.status_at(0.5).cpu == 0.75

    # C at 1 s: 7 threads, floor(4000 / 7) = 571 each; A, B and C do 571, 1142 and 2284.
    node.on_container_creation(_container(C, 1142, 4, 1024, 1024, 1.0))
    status = node.status_at(1.25)
    assert (status.cpu, status.load, status.total_parallelism) == (0.99925, 1.75, 7)
    assert status.free_memory == 8192 - 512 - 1536 - 1024
    # After it (1.5 s) A has 1585 - floor(285.5) = 1300 left, B 5171 - 571 = 4600.
    # B would end at 3.8 by hand; 2.8 - 1.5 is a little below 1.3 in float64, which floors one
    # operation of it away: 0.5 ms.
    assert _projected(node) == pytest.approx({A: 2.8, B: 3.8005, C: 1.5}, abs=1e-9)
    assert node.status_at(1.75).cpu == 0.75

    done = node.on_container_completion()
    assert (done.fn_id, done.start_time, done.completion_time) == (C, 1.0, 1.5)
    assert node.current_time == 1.5
    assert _remaining(node) == {A: 1300, B: 4600}

    # D at 2 s: 5 threads, 800 each; D does floor(1536 / 2048 * 2 * 800) = 1200.
    node.on_container_creation(_container(D, 4200, 2, 2048, 1536, 2.0))
    assert node.status_at(2.5).cpu == 0.9
    # A ends at 3 s (800 at 800/s), then 4 threads at full speed: B 2000 at 2000/s,
    # D 3000 at 1500/s.
    assert _projected(node) == {A: 3.0, B: 4.0, D: 5.0}

    for fn_id, time, cpu_after, remaining in (
        (A, 3.0, 0.875, {B: 2000, D: 3000}),
        (B, 4.0, 0.375, {D: 1500}),
        (D, 5.0, 0.0, {}),
    ):
        done = node.on_container_completion()
        assert (done.fn_id, done.completion_time) == (fn_id, time)
        assert _remaining(node) == remaining
        assert node.status_at(time).cpu == cpu_after


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
