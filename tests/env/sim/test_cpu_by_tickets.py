"""Cores of a NUMA node that tenants share by tickets, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from env.base.errors import InputError
from env.sim.declared.funding import Funding, Grant
from env.sim.declared.hardware import CpuShare, ServerType
from env.sim.view.raw_env import RawEnv
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
