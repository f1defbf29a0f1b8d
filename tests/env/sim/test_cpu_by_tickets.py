"""Cores of a NUMA node that tenants share by tickets: by hand, and against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import CpuShare, ServerType
from env.sim.view.raw_env import RawEnv
from tests.env import small
from tests.env.sim.test_engine_against_reference import assert_same, play
from tests.env.small import cluster_of, held
from tests.episodes import begun
from tests.reference_inputs import play_plain
from tests.strategies import Scenario, scenarios

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
    while not env.done:
        env.step("only", 0, 0, 1)
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


@given(scenario=scenarios(), data=st.data())
def test_random_episodes(scenario: Scenario, data: st.DataObject) -> None:
    """The same times, number for number, as the reference; who runs nothing does not count."""
    count = len(scenario.templates)
    tickets = data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
    idle = data.draw(st.sampled_from([1, 10**9]))
    funding = held(idle=idle, **dict(zip("abc", tickets, strict=True)))
    tenants = data.draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    owners = {w: (name, tickets["abc".index(name)]) for w, name in enumerate(tenants)}
    env = play(
        replace(scenario, cluster=replace(scenario.cluster, cpu_share="tickets")),
        tenants=tenants,
        funding=funding,
    )
    assert_same(env, *play_plain(scenario, owners))


@given(scenario=scenarios())
def test_one_tenant_has_what_all_have_where_threads_share_alike(scenario: Scenario) -> None:
    plain = RawEnv(scenario.arrival_times, scenario.templates, scenario.cluster)
    shared = begun(
        scenario.arrival_times,
        scenario.templates,
        replace(scenario.cluster, cpu_share="tickets"),
        tenants=["a"] * len(scenario.templates),
        funding=held(a=1),
    )
    while (function := plain.current_function) is not None:
        place = scenario.placements[function.wf_id, function.fn_id]
        assert plain.step(*place) == shared.step(*place)
    assert shared.done


def test_without_tickets_there_is_nothing_to_share_by() -> None:
    with pytest.raises(InputError, match="cpu_share is 'tickets': tenants with tickets"):
        RawEnv([0.0], [small.functions(1)], FOUR_CORES)
