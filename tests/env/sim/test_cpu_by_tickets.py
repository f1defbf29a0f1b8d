"""Cores of a node that tenants share by tickets, by hand; case 27, on the level of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import CpuShare, ServerType
from env.sim.state.queue_records import ON_NODE
from env.sim.view.raw_env import RawEnv
from env.tickets.cpu_share import cpu_share
from tests.env import small
from tests.env.small import cluster_of, held
from tests.episodes import begun, end

FOUR_CORES = cluster_of(ServerType("only", 1, 1.0, 0.0, 1, 4, 1000), cpu_share="tickets")


def ends(
    functions: Sequence[tuple[str, int, int]],
    funding: Funding,
    cpu_share: CpuShare = "tickets",
    at: Sequence[float] | None = None,
) -> list[float]:
    """When functions (tenant, operations, threads) end that come to four cores of 1000 op/s."""
    env = begun(
        at or [0.0] * len(functions),
        [small.functions(work, threads=threads) for _, work, threads in functions],
        replace(FOUR_CORES, cpu_share=cpu_share),
        tenants=[tenant for tenant, _, _ in functions],
        funding=funding,
    )
    end(env)
    return [env.workload.workflows[i].functions[0].completion_time for i in range(len(functions))]


def test_the_episode_of_the_documentation() -> None:
    """3 : 1 of 4000 op/s: a has done 12000 after 4 s; b then has 8000 left, at 4000 op/s."""
    functions = [("a", 12_000, 4), ("b", 12_000, 4)]
    assert ends(functions, held(a=3, b=1)) == [4.0, 6.0]
    assert ends(functions, held(a=3, b=1), cpu_share="equal") == [6.0, 6.0]


def test_more_threads_do_not_get_a_tenant_more() -> None:
    """b has nine functions of 4 threads, and yet a keeps half of the cores: 2000 op/s."""
    functions = [("a", 12_000, 4), *[("b", 12_000, 4)] * 9]
    assert ends(functions, held(a=1, b=1))[0] == 6.0
    assert ends(functions, held(a=1, b=1), cpu_share="equal")[0] == pytest.approx(30.0)


def test_a_currency_is_shared_by_those_of_it_that_run() -> None:
    """a and c run: c has all of the group's half. Then b comes: c and b have a quarter each."""
    of_group = Grant(tickets=3, currency="group")
    tenants = {"a": Grant(tickets=10), "b": of_group, "c": of_group}
    funding = Funding(tenants=tenants, currencies={"group": Grant(tickets=10)})
    functions = [("a", 100_000, 4), ("c", 6_000, 4), ("b", 100_000, 4)]
    assert ends(functions, funding, at=[0.0, 0.0, 2.0])[1] == 4.0


def test_without_tickets_there_is_nothing_to_share_by() -> None:
    with pytest.raises(InputError, match="cpu_share is 'tickets': tenants with tickets"):
        RawEnv([0.0], [small.functions(1)], FOUR_CORES)


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
