"""Cores shared by weight: case 27, on the level of the rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.sim.state.queue_records import ON_NODE
from env.tickets.cpu_share import cpu_share

CORE_SPEED = 1_000_000_000


def speeds(weights: list[int], threads: list[int], cpu: int, core_speed: int) -> list[int]:
    rows = np.zeros(len(weights), ON_NODE)
    rows["weight"], rows["threads"] = weights, threads
    cpu_share(rows, len(rows), cpu, core_speed)
    return [int(speed) for speed in rows["speed"]]


def completion_times(weights: list[int], seconds: list[float], cpu: int) -> list[float]:
    """Seconds until each call ends, whose work takes so many with as many cores as its weight."""
    left = {call: seconds[call] * weights[call] * CORE_SPEED for call in range(len(weights))}
    ends, now = [0.0] * len(weights), 0.0
    while left:
        calls = list(left)
        of_calls = [weights[call] for call in calls]
        speed = dict(zip(calls, speeds(of_calls, of_calls, cpu, CORE_SPEED), strict=True))
        passed = min(left[call] / speed[call] for call in calls)
        now += passed
        for call in calls:
            left[call] -= speed[call] * passed
            if left[call] < 1:
                ends[call] = now
                del left[call]
    return ends


def test_case_27_ten_calls_of_a_second_on_four_cores() -> None:
    assert completion_times([1] * 10, [1.0] * 10, 4) == pytest.approx([2.5] * 10)


def test_case_27_calls_of_two_weights_on_seven_cores() -> None:
    ends = completion_times([2] * 5 + [3] * 5, [1.0] * 5 + [2.0] * 5, 7)
    assert ends == pytest.approx([3.5714] * 5 + [5.7143] * 5, abs=1e-4)


def test_who_cannot_use_its_share_leaves_it_to_the_others() -> None:
    assert speeds([98, 1, 1], [1, 4, 4], 4, 1000) == [1000, 1500, 1500]
    assert speeds([1, 9], [2, 1], 8, 1000) == [2000, 1000]


def test_speeds_are_whole_and_at_least_one() -> None:
    assert speeds([1, 1, 1], [1, 1, 1], 1, 100) == [33, 33, 33]
    assert speeds([1, 1_000_000], [1, 1], 1, 100) == [1, 99]


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 8)), min_size=1, max_size=20),
    st.integers(1, 64),
)
def test_no_core_is_idle_while_a_thread_waits(calls: list[tuple[int, int]], cpu: int) -> None:
    weights, threads = [list(each) for each in zip(*calls, strict=True)]
    found = speeds(weights, threads, cpu, CORE_SPEED)
    wanted = [each * CORE_SPEED for each in threads]
    assert all(speed <= most for speed, most in zip(found, wanted, strict=True))
    everything = min(sum(wanted), cpu * CORE_SPEED)
    assert everything - len(calls) <= sum(found) <= everything
    waiting = [
        speed / weight
        for speed, weight, most in zip(found, weights, wanted, strict=True)
        if speed < most
    ]
    assert waiting == pytest.approx([max(waiting)] * len(waiting), rel=1e-5) if waiting else True
