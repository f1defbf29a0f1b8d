"""Regions: what servers cost and emit where they stand, and what lies between; all by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.score.metrics import FinishedEpisode, episode_metrics
from env.score.reward import Objective, arrived_objective, potential
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.power import Power
from env.sim.declared.regions import Link, Region, Regions
from env.sim.declared.rules import DEFAULT_RULES, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import take_down
from env.sim.events.placing import transfer_between_regions
from env.sim.forecast.candidates import forecast_placements, update_finish_bounds
from env.sim.node.fit import suits
from env.sim.view.raw_env import RawEnv
from tests.documents import put
from tests.env.small import functions
from tests.episodes import begun, checked, objections

POWER = Power(
    idle_core_w=1.0, busy_core_w=5.0, memory_w_per_gb=2.0, pue=1.0, carbon_intensity_g_per_kwh=100.0
)
OUT = Link(round_trip=0.5, bandwidth=1e8, egress=0.09)
BACK = Link(round_trip=0.25, bandwidth=1e7, egress=0.02)
REGIONS = {
    "a": Region(links={"b": OUT}),
    "b": Region(
        price=1.5,
        relative_performance=0.5,
        power={"pue": 2.0, "carbon_intensity_g_per_kwh": [300.0, 0.0]},
        links={"a": BACK},
    ),
}
SERVER = ServerType("s", 1, 0.36, 0.0, 1, 1, 1024)
CLUSTER = ClusterConfig(
    1_000, 1e12, 1e12, 1e9, (SERVER,), POWER, regions=REGIONS, transfer_kwh_per_gb=0.5
)
"""A server of one core and 1 GB in `a` and in `b`: it draws 3 W, and 4 W more at work."""
A, B = ("s_a", 0, 0), ("s_b", 0, 0)


def pair(data_bytes: int = 2 * 10**9) -> WorkflowTemplate:
    """Two functions: 100 s at full speed, then 900 s."""
    return WorkflowTemplate("pair", [100_000, 900_000], [512] * 2, [1] * 2, [(0, 1)], [data_bytes])


def carbon(env: RawEnv) -> float:
    objective = Objective(time_weight=1, cost_weight=1)
    return FinishedEpisode(env.state, objective, env.cluster_config.power).carbon


def test_a_type_without_a_region_stands_in_each() -> None:
    own = replace(SERVER, name="own", region="b", single_core_speed=3)
    cluster = replace(CLUSTER, server_types=(SERVER, own))
    kinds = [(each.name, each.region) for each in cluster.server_types]
    assert kinds == [("s_a", "a"), ("s_b", "b"), ("own", "b")]
    assert [cluster.rate_of(each) for each in cluster.server_types] == [0.36, 0.54, 0.54]
    # 1.5 operations a second are 2: halves go to the even number.
    assert [cluster.speed_of(each) for each in cluster.server_types] == [1_000, 500, 2]
    named = replace(CLUSTER, regions={"aws:a": Region()}, server_types=(SERVER,))
    assert [each.name for each in named.server_types] == ["s_aws-a"]
    assert replace(cluster, home="b").server_types == cluster.server_types
    assert replace(cluster, regions={}, server_types=(SERVER,)).server_types == (SERVER,)


def test_data_wait_pay_and_emit_between_regions() -> None:
    """0 in `a`, where clients are: 0 to 100 s. 2 GB to `b`: 0.5 s and, at 1e8 bytes/s, 20 s.

    Egress is 0.18 USD. 1 kWh is emitted at the mean of 100 and 300 g. Then 1 runs at half the
    speed, from 120.5 to 1920.5 s: 4 W at PUE 2 and 300 g, 1.2 g. Before, 0 emits 400 J at 100 g.
    Leases: `a` for 3 Wh, 0.3 g; `b` from 100 s on, so 3500 s of 6 W at 300 g and 100 s at 0 g.
    """
    env = begun([0.0], [pair()], CLUSTER, record=True)
    env.step(*A, 512)
    there = forecast_placements(env.state, 512)[1]
    env.step(*B, 512)
    ((_, second),) = [flow.functions for flow in env.workload.workflows]
    assert (second.start_time, second.completion_time) == (120.5, 1920.5)
    assert there["data_transfer_time"] == env.logs[1].data_transfer_time == 20.5
    assert there["rent_increase"] == pytest.approx(0.54 + 0.18)
    assert there["finish_time"] == 1920.5
    assert env.logs[1].rent == pytest.approx(0.54 + 0.18)
    assert env.state.ledger["egress"].tolist() == pytest.approx([0.0, 0.18])
    assert env.state.ledger["rent"].tolist() == pytest.approx([0.36, 0.54])
    assert env.total_rent == pytest.approx(0.36 + 0.54 + 0.18)
    in_a, in_b = 0.3 + 400 / 3.6e6 * 100, 200.0 + 6 / 1000 * 300 * 3500 / 3600 + 1.2
    assert env.state.ledger["carbon"].tolist() == pytest.approx([in_a, in_b])
    assert carbon(env) == pytest.approx(in_a + in_b)
    checked(env)


def test_data_emit_by_the_hours_in_which_they_move() -> None:
    """1 kWh in 200.25 s on the way back, half of them at 300 g and half at 0, and at 100 g."""
    env = begun([3600 - 200.25 / 2 - 200.5], [pair()], CLUSTER)
    env.step(*B, 512)
    assert env.time == pytest.approx(3600 - 200.25 / 2)
    function = int(env.state.cluster["deciding"][0])
    assert transfer_between_regions(env.state, function, 0)[3] == pytest.approx((150 + 100) / 2)


def test_a_link_may_differ_by_direction_and_clients_wait_for_the_start_hop() -> None:
    """0 in `b`: called from `a`, 0.5 s away, until 200.5 s. Back to `a`: 0.25 s and 200 s."""
    env = begun([0.0], [pair()], CLUSTER, record=True)
    env.step(*B, 512)
    env.step(*A, 512)
    starts = [function.start_time for function in env.workload.workflows[0].functions]
    assert starts == [0.5, 200.5 + 200.25]
    assert env.state.ledger["egress"].tolist() == pytest.approx([0.04, 0.0])
    checked(env)
    one_way = {"a": Region(), "b": Region(links={"a": BACK})}
    env = begun([0.0], [functions(1_000)], replace(CLUSTER, regions=one_way, home="b"))
    env.step(*A, 512)
    assert env.time == 1.25


def test_work_and_leases_emit_by_the_hour() -> None:
    """From 3000 to 4200 s, half of it at 300 g and half at 0: 4800 J at PUE 2 and 150 g."""
    for begin_hour, dirty in ((0, 600.5), (1, 2999.5)):
        work = functions(600_000, memory=512)
        env = begun([2999.5], [work], CLUSTER, record=True, begin_hour=begin_hour)
        env.step(*B, 512)
        lease = 6 / 1000 * 300 * dirty / 3600
        assert env.state.ledger["carbon"].tolist() == pytest.approx([0.0, 0.4 + lease])
        assert checked(env).options.begin_hour == (begin_hour or None)


def test_what_is_paid_back_is_not_emitted() -> None:
    """Of four steps of 600 s two have not begun at 700 s; 699.5 s of work emit all the same."""
    templates = [functions(900_000, memory=512), functions(1, memory=512)]
    rules = Rules(lease=Lease(step=600.0))
    env = begun([0.0, 700.0], templates, CLUSTER, rules=rules)
    env.step(*B, 512)
    assert env.time == 700.0
    take_down(env.state, 1)
    assert env.state.ledger["lease_seconds"].tolist() == [0.0, 1200.0]
    work = 4 * 699.5 / 3.6e6 * 2 * 300
    assert env.state.ledger["carbon"].tolist() == pytest.approx([0.0, 0.6 + work])


def test_servers_that_are_not_paid_emit_as_long_as_they_are_up() -> None:
    """Both up to 4000 s: 3 W at 100 g in `a`, where 4000 s of work are done; `b` for one hour."""
    rules = Rules(lease=Lease(kind="always", charged=False))
    env = begun([0.0], [functions(4_000_000, memory=512)], CLUSTER, rules=rules)
    env.step(*A, 512)
    assert carbon(env) == pytest.approx(7 / 1000 * 100 * 4000 / 3600 + 6 / 1000 * 300)


def test_hours_differ_without_regions_too() -> None:
    """From 3000 to 4000 s: the work at 0.6 of 100 g and 0.4 of 50 g, the lease up to 6600 s."""
    power = Power(**{**dict(POWER), "carbon_intensity_g_per_kwh": [100.0, 50.0]})
    env = begun([3000.0], [functions(1_000_000, memory=512)], replace(ALONE, power=power))
    env.step("s", 0, 0, 512)
    lease = 3 / 1000 * (100 * 600 + 50 * 3000) / 3600
    assert carbon(env) == pytest.approx(4 / 1000 * 80 * 1000 / 3600 + lease)


ALONE = ClusterConfig(1_000, 1e12, 1e12, 1e9, (SERVER,), POWER)


PRICES = {"request": 0.01, "gb_second": {"x86_64": 0.5, "arm64": 0.25}}


@pytest.mark.parametrize(
    ("free", "paid"),
    [
        # In `a` 0.5 GB for 100 s on x86: 0.01 + 25. In `b` for 1800 s on arm, times 1.5.
        ({}, [25.01, 1.5 * (0.01 + 225)]),
        # Free are the first run, all of its 50 GB-seconds and 100 of the 900 of the second one.
        ({"free_requests": 1, "free_gb_seconds": 150.0}, [0.0, 1.5 * (0.01 + 200)]),
    ],
)
def test_runs_pay_per_use_when_they_end(free: dict[str, Any], paid: list[float]) -> None:
    """Nothing else is paid but egress; the forecast knows it before."""
    kinds = (
        replace(SERVER, region="a"),
        replace(SERVER, name="arm", region="b", architecture="arm64"),
    )
    lease = Lease(kind="always", charged=False, use=PRICES | free)
    cluster = replace(CLUSTER, server_types=kinds)
    env = begun([0.0], [pair()], cluster, record=True, rules=Rules(lease=lease))
    env.step("s", 0, 0, 512)
    there = forecast_placements(env.state, 512)[1]
    env.step("arm", 0, 0, 512)
    assert env.state.ledger["rent"].tolist() == pytest.approx(paid)
    assert env.total_rent == pytest.approx(sum(paid) + 0.18)
    assert there["rent_increase"] == pytest.approx(paid[1] + 0.18)
    found = objections(checked(env), put("expected", "servers", 1, "rent", to=paid[1] + 0.01))
    assert ["rent is" in line for line in found] == [True, True]


def test_uses_are_paid_where_servers_are_not() -> None:
    with pytest.raises(InputError, match="use: found, it needs kind 'always' and charged false"):
        validated(Lease, {"kind": "always", "charged": True, "use": PRICES}, "lease")


def test_the_carbon_ratio_compares_to_the_work_where_it_emits_least() -> None:
    """1000 s in `a` emit 7 W at 100 g, and 3 W up to the end of the hour.

    A core-second is 7 J at 100 g in `a`; in `b` it takes twice as long, at PUE 2 and 150 g.
    Rewards see the lease as its hours pass: at 500 s, where the next arrives, it emits 3 W so far.
    """
    only = Objective(time_weight=1, cost_weight=0, carbon_weight=2)
    env = begun([0.0, 500.0], [functions(600_000, memory=512)] * 2, CLUSTER)
    env.step(*A, 512)
    update_finish_bounds(env.state)
    core_second = 7 / 3.6e6 * 100
    least = 1200 * core_second
    assert CLUSTER.core_second_carbon == pytest.approx(core_second)
    so_far = potential(env.state, only.weights, 1.0) - 1.0
    assert so_far == pytest.approx(2 * 3 * 500 / 3.6e6 * 100 / least)
    env.step(*A, 512)
    metrics = episode_metrics(env.state, only, POWER)
    emitted = (3 * 3600 + 4 * 1200) / 3.6e6 * 100
    assert metrics["carbon"] == pytest.approx(emitted)
    assert metrics["J"] == pytest.approx(metrics["slowdown"] + 2 * emitted / least)
    assert arrived_objective(env.state, only.weights) == pytest.approx(metrics["J"])


def where(template: WorkflowTemplate, rules: Rules = DEFAULT_RULES) -> RawEnv:
    return begun([0.0], [template], CLUSTER, record=True, rules=rules)


@pytest.mark.parametrize(
    ("regions", "nodes"),
    [
        (Regions(), [True, True]),
        (Regions(disallowed=("a",)), [False, True]),
        (Regions(allowed=("a",), disallowed=("b",)), [True, False]),
    ],
)
def test_functions_run_where_they_may(regions: Regions, nodes: list[bool]) -> None:
    env = where(replace(functions(1_000), regions=(regions,)))
    assert [suits(env.state, node, 1) for node in range(2)] == nodes
    assert [bool(each["feasible"]) for each in forecast_placements(env.state, 1)] == nodes
    if False in nodes:
        with pytest.raises(InputError, match="must not run in the region of"):
            env.step(*(A, B)[nodes.index(False)], 1)
    env.step(*(A, B)[nodes.index(True)], 1)
    checked(env)


def test_a_chosen_region_counts_too() -> None:
    env = where(functions(1_000))
    env.state.functions["region"] = 1
    assert [suits(env.state, node, 1) for node in range(2)] == [False, True]


def test_who_may_run_in_one_region_waits_for_it() -> None:
    """Both need all memory: 1 follows 0 in `b`, though `a` is free from the start."""
    template = functions(1_000, 1_000, memory=1024, regions=(Regions(allowed=("b",)),) * 2)
    rules = Rules(FIRST_COME, "first_fit", lease=Lease(kind="always", charged=False))
    env = where(template, rules)
    assert env.runs["node"].tolist() == [1, 1]
    assert np.sort(env.runs["end_time"]).tolist() == [2.5, 5.0]
    checked(env)


@pytest.mark.parametrize(
    ("rows", "key", "value", "line"),
    [
        ("servers", "egress", 0.17, "server s_b 0: egress is 0.17, 0.18"),
        ("runs", "data_transfer_time", 20.0, "data_transfer_time is 20.0, 20.5 is due"),
        ("runs", "server_type", "s_a", "must not run in region 'a'"),
        ("servers", "rent", 0.36, "server s_b 0: rent is 0.36, 0.54 is due"),
    ],
)
def test_the_validator_knows_regions(rows: str, key: str, value: Any, line: str) -> None:
    """Of the second run, or of the second server."""
    env = where(replace(pair(), regions=(Regions(), Regions(disallowed=("a",)))))
    env.step(*A, 512)
    env.step(*B, 512)
    found = objections(checked(env), put("expected", rows, 1, key, to=value))
    assert any(line in each for each in found)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"home": "c"}, "home: region 'c' is unknown, allowed: a, b"),
        ({"regions": {"a": {}, "b": {}}}, r"regions.a.links.b: missing, all pairs need a link"),
        (
            {"regions": {"a": {"links": {"bb": OUT.model_dump()}}, "b": {}}},
            r"regions.a.links: region 'bb' is unknown, did you mean 'b'\?",
        ),
        ({"regions": {"a": {"power": {"pue": 0.5}}}}, "regions.a.power: pue: Input should be"),
        ({"power": None}, "regions.b.power: found, but cluster.power is not"),
        ({"regions": {}}, "server_types.s_a.region: region 'a' is unknown, cluster.regions has"),
    ],
)
def test_regions_that_cannot_be_are_refused(change: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=f"^(ClusterConfig: )?{line}"):
        replace(CLUSTER, **change)


@pytest.mark.parametrize(
    ("regions", "line"),
    [
        (Regions(allowed=("c",)), "region 'c' is unknown"),
        (Regions(disallowed=("a", "b")), "it may run in none of a, b"),
    ],
)
def test_functions_without_a_region_are_refused(regions: Regions, line: str) -> None:
    with pytest.raises(InputError, match=f"workflow 'functions': function 1: regions: {line}"):
        where(functions(1, 1, regions=(Regions(), regions)))


def test_a_function_must_fit_where_it_may_run() -> None:
    large = replace(SERVER, name="large", memory=4096, region="a")
    cluster = replace(CLUSTER, server_types=(SERVER, large))
    with pytest.raises(
        InputError, match="function 0 needs 2000 MB, no NUMA node where it may run has"
    ):
        begun([0.0], [functions(1, memory=2000, regions=(Regions(allowed=("b",)),))], cluster)
