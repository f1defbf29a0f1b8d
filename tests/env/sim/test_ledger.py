"""The ledger: who pays which lease, what crosses the network, what servers draw; all by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.power import Power
from env.sim.declared.rules import DEFAULT_RULES, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.endings import bring_back, take_down
from env.sim.events.engine import play
from env.sim.state.records import PLACE
from env.sim.view.raw_env import RawEnv
from tests.env import small
from tests.env.small import functions
from tests.episodes import begun, end

POWER = Power(
    idle_core_w=1.0, busy_core_w=5.0, memory_w_per_gb=0.5, pue=1.2, carbon_intensity_g_per_kwh=500.0
)
OBJECTIVE = Objective(time_weight=1, cost_weight=1)


def cluster(servers: int = 1, cpu: int = 1, numa_nodes: int = 1) -> ClusterConfig:
    """Servers that start at once, 1,000 operations a second, 0.36 USD an hour; 2 GB a node."""
    kind = ServerType("s", servers, 0.36, 0.0, numa_nodes, cpu, 2048)
    return ClusterConfig(1_000, 1e12, 1e12, 1_000.0, (kind,), POWER)


def single(seconds: float) -> WorkflowTemplate:
    """One function of one thread."""
    return functions(round(1_000 * seconds), memory=512)


def played(
    arrivals: Sequence[tuple[float, str, float]],
    config: ClusterConfig,
    rules: Rules = DEFAULT_RULES,
) -> RawEnv:
    """The episode of single functions: (time, tenant, seconds), all on the first server."""
    times, tenants, seconds = zip(*arrivals, strict=True)
    templates = [single(each) for each in seconds]
    return end(begun(times, templates, config, tenants=tenants, rules=rules))


def accounts(env: RawEnv, field: str) -> list[list[float]]:
    """A field of the ledger, by server and tenant."""
    by_server: list[list[float]] = env.state.ledger[field].reshape(len(env.state.servers), -1)
    return np.asarray(by_server).tolist()


def test_whoever_extends_a_lease_pays_for_it() -> None:
    """The lease of `a` at 0 reaches to 3600. `b` ends at 4200, which takes another hour.

    What `a` runs from 4300 to 4800 lies within it.
    """
    env = played([(0.0, "a", 1000.0), (3000.0, "b", 1200.0), (4300.0, "a", 500.0)], cluster())
    assert accounts(env, "lease_seconds") == [[3600.0, 3600.0]]
    assert accounts(env, "rent") == [[0.36, 0.36]]
    assert env.state.servers[0]["expiration_time"] == 7200.0


@pytest.mark.parametrize(
    ("seconds", "payer"),
    [
        # On one core: `b` has 190 s left at 3400, `a` comes with 150; each at half the speed, `a`
        # ends at 3700 and `b`, with 40 s left, at 3740: the last of both is that of `b`.
        (150.0, "b"),
        # `a` comes with 250: `b` ends at 3780, `a` has 60 s left and ends at 3840.
        (250.0, "a"),
    ],
)
def test_the_tenant_of_the_container_that_ends_last_pays(seconds: float, payer: str) -> None:
    """`b` alone would end at 3590, within its lease."""
    env = played([(0.0, "b", 10.0), (3200.0, "b", 390.0), (3400.0, "a", seconds)], cluster())
    assert env.time == (3740.0 if payer == "b" else 3840.0)
    # `b` is tenant 0 and has paid the first hour.
    wanted = [7200.0, 0.0] if payer == "b" else [3600.0, 3600.0]
    assert accounts(env, "lease_seconds") == [wanted]


def test_bytes_count_where_they_are_read_from_another_server() -> None:
    """0 and 1 are read by 2, 2 by 3: on server 0, 1, 1 and, its other NUMA node, 1.

    Of 300 bytes of 0 and 500 of 1, 300 come from another server; 7 of 2 stay within server 1. Then
    4 on server 0 reads 20 bytes of 3 and 1 byte of 0, which is there.
    """
    template = WorkflowTemplate(
        "graph",
        [1_000] * 5,
        [512] * 5,
        [1] * 5,
        [(0, 2), (1, 2), (2, 3), (3, 4), (0, 4)],
        [300, 500, 7, 20, 1],
    )
    env = begun([0.0], [template], cluster(2, numa_nodes=2), tenants=["a"])
    places = [(0, 0), (1, 0), (1, 0), (1, 1), (0, 0)]
    while not env.done:
        env.step("s", *places[env.current_function.fn_id], 512)
    assert accounts(env, "egress_bytes") == [[20.0], [300.0]]


def carbon(env: RawEnv) -> float:
    return episode_metrics(env.state, OBJECTIVE, POWER)["carbon"]


@pytest.mark.parametrize(
    ("charged", "seconds"),
    [
        (True, 900.0),  # a second step of 450 s
        (False, 600.0),  # all servers are up to the end of the episode
    ],
)
def test_servers_that_are_always_up_draw_power(charged: bool, seconds: float) -> None:
    """One function of 600 s; the other server has nothing to do, and draws 3 W all the same."""
    rules = Rules(lease=Lease(kind="always", step=450.0, charged=charged))
    env = played([(0.0, "a", 600.0)], cluster(2, cpu=2), rules)
    joules = 2 * 3 * seconds + 4 * 600
    assert carbon(env) == pytest.approx(joules / 3.6e6 * 1.2 * 500)
    metrics = episode_metrics(env.state, OBJECTIVE, POWER)
    assert metrics["utilisation"] == pytest.approx(600 / (2 * 2 * seconds))
    assert metrics["rent"] == pytest.approx(4 * 0.045 if charged else 0.0)


def test_a_server_that_is_down_draws_nothing() -> None:
    """Nothing is paid: server 1 is down from 100 to 300, and gone from 500; the end is at 600."""
    rules = Rules(lease=Lease(kind="always", charged=False))
    times = [0.0, 100.0, 300.0, 500.0]
    templates = [single(600.0), *[single(1.0)] * 3]
    env = RawEnv(times, templates, cluster(2, cpu=2), rules=rules)
    changes = {100.0: take_down, 300.0: bring_back, 500.0: take_down}
    while not env.done:
        change = changes.pop(env.time, None)
        if change is not None:
            change(env.state, 1)
            assert play(env.state) == PLACE
        env.step("s", 0, 0, 512)
    joules = 3 * 600 + 3 * (100 + 200) + 4 * 603
    assert env.time == 600.0
    assert carbon(env) == pytest.approx(joules / 3.6e6 * 1.2 * 500)
    utilisation = episode_metrics(env.state, OBJECTIVE, POWER)["utilisation"]
    assert utilisation == pytest.approx(603 / (2 * 600 + 2 * 300))


def test_what_was_paid_stays_paid_and_the_next_lease_is_paid_again() -> None:
    """Killed at 1000 after 1000 s of work, which were for nothing but drew power; again from 1000.

    Both leases are of one hour: the second reaches from 1000 to 4600.
    """
    env = begun([0.0, 1000.0], [single(1500.0), single(1.0)], cluster(cpu=2), tenants=["a", "b"])
    env.step("s", 0, 0, 512)
    take_down(env.state, 0)
    bring_back(env.state, 0)
    assert play(env.state) == PLACE
    # Whoever was killed comes first, being of workflow 0: its lease covers the other.
    assert env.current_function.wf_id == 0
    env.step("s", 0, 0, 512)
    env.step("s", 0, 0, 512)
    assert env.done
    assert env.time == 2500.0
    assert accounts(env, "rent") == [[0.72, 0.0]]
    assert accounts(env, "lease_seconds") == [[7200.0, 0.0]]
    assert accounts(env, "energy") == [[3 * 7200 + 4 * 2500.0, 4 * 1.0]]
    assert env.state.servers[0]["expiration_time"] == 4600.0


UNLIKE = small.cluster_of(
    ServerType("slow", 1, 0.1, 0.0, 2, 2, 4096),
    ServerType("fast", 1, 0.3, 0.0, 1, 4, 2048, single_core_speed=2_000),
    ServerType("never", 3, 0.3, 0.0, 1, 64, 2048),
    power=POWER,
)
HOUR = 3_600_000
"""Operations of an hour of a core of 1,000 operations a second."""


def chain(*core_hours: float) -> WorkflowTemplate:
    """Functions of two threads, one after another, without data."""
    return small.chain(*(round(HOUR * hours) for hours in core_hours), memory=1024, threads=2)


def test_carbon_is_that_of_leased_servers_and_of_their_work() -> None:
    """`slow` runs 2, 1 and 0.5 core-hours on two cores, one after another, so 1.75 h: leased for 2.

    4 cores and 8 GB at rest are 8 W, so 16 Wh; a core-hour of work adds 4 Wh, so 14 Wh. `fast` does
    what takes 4 core-hours elsewhere in 2, on two cores in 1 h: 4 cores and 2 GB are 5 W, so 5 Wh
    and 8 Wh.
    """
    # Numbered by their order here, which is not that of their arrival.
    env = RawEnv([50.0, 0.0], [chain(4.0), chain(2.0, 1.0, 0.5)], UNLIKE)
    while not env.done:
        place = ("slow", 0, 1) if env.current_function.wf_id == 1 else ("fast", 0, 0)
        env.step(*place, 1024)
    metrics = episode_metrics(env.state, Objective(time_weight=1, cost_weight=1), POWER)
    assert metrics["rent"] == pytest.approx(2 * 0.1 + 0.3)
    assert metrics["carbon"] == pytest.approx((16 + 14 + 5 + 8) / 1000 * 1.2 * 500, rel=1e-12)


def test_carbon_is_not_known_without_power() -> None:
    env = RawEnv([0.0], [chain(1.0)], UNLIKE)
    env.step("slow", 0, 0, 1024)
    assert np.isnan(episode_metrics(env.state, Objective(time_weight=1, cost_weight=1))["carbon"])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("busy_core_w", 0.9, "power: busy_core_w is 0.9, at least idle_core_w, 1.0, is needed"),
        (
            "carbon_intensity_g_per_kwh",
            [9, -1],
            "power: carbon_intensity_g_per_kwh.1: Input should",
        ),
    ],
)
def test_values_of_power_out_of_range_are_refused(key: str, value: float, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        validated(Power, POWER.model_dump() | {key: value}, "power")
