"""Orders that hold functions back while electricity is dirty, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents.baseline import BaselineConfig, ComposedScheduler
from agents.memory.required import Required
from agents.order.cap import Cap, cores_allowed
from agents.order.fcfs import Fcfs
from agents.order.pcaps import Pcaps
from agents.placement.worst_fit import WorstFit
from agents.scheduler import play
from env.score.reward import Objective
from env.sim.declared.hardware import ServerType
from env.sim.declared.keep_alive_policy import NoKeepAlive
from env.sim.declared.ordering import DeclaredFunctions, Order
from env.sim.declared.power import Power
from env.sim.state.queue_records import WAITING
from env.sim.view.raw_env import RawEnv
from tests.env.small import always_up, chain, cluster_of, functions
from tests.episodes import begun, checked

HALF = 0.5 * np.exp(0.5)
"""1 - least / most where alpha is 2: e^(1 / alpha) * (1 - 1 / alpha)."""


def test_cap_allows_more_cores_the_cleaner_electricity_is() -> None:
    """Of 3 cores 1 always; the thresholds of the others: 1000 / 2, and 1000 * (1 - 1.25 / 2)."""
    least = 1000 * (1 - HALF)
    grams = [1000.0, 501.0, 499.0, 376.0, 374.0, least]
    assert [cores_allowed(3, 1, now, least, 1000.0) for now in grams] == [1, 1, 2, 2, 3, 3]
    assert cores_allowed(3, 3, 1000.0, least, 1000.0) == 3
    assert cores_allowed(3, 1, 200.0, 200.0, 200.0) == cores_allowed(3, 1, 0.0, 0.0, 0.0) == 3
    assert cores_allowed(3, 1, 0.0, 0.0, 1000.0) == 3


def played(order: Any, *templates: Any, by_hour: tuple[float, ...]) -> RawEnv:
    """An episode on 4 cores that are always up; all workflows arrive at time 0."""
    power = Power(
        idle_core_w=0.0,
        busy_core_w=1.0,
        memory_w_per_gb=0.0,
        pue=1.0,
        carbon_intensity_g_per_kwh=by_hour,
    )
    cluster = cluster_of(ServerType("s", 1, 0.0, 0.0, 1, 4, 1000), power=power)
    rules = always_up(order, NoKeepAlive())
    env = begun([0.0] * len(templates), templates, cluster, record=True, rules=rules)
    config = BaselineConfig(order=order, placement=WorstFit(), memory=Required(ratio=1.0))
    scheduler = ComposedScheduler("held back", config)
    play(env, scheduler, Objective(time_weight=1.0, cost_weight=1.0), np.random.SeedSequence(0))
    checked(env)
    return env


def starts(env: RawEnv) -> list[float]:
    return sorted(env.runs["dispatch_time"].tolist())


def test_cap_runs_one_after_the_other_in_a_dirty_hour() -> None:
    """0.5 h each: two in the dirty hour, the other two side by side from when it ends."""
    halves = [functions(1_800_000) for _ in range(4)]
    order = Cap(within=Fcfs(), least_share=0.25, hours=2)
    assert starts(played(order, *halves, by_hour=(400.0, 100.0))) == [0.0, 1800.0, 3600.0, 3600.0]
    assert starts(played(order, *halves, by_hour=(400.0, 400.0))) == [0.0] * 4


def test_pcaps_starts_who_is_important_enough() -> None:
    """Half of the largest share, gamma 1: 100 + 300 * (e^0.5 - 1) / (e - 1) = 213.3."""
    waiting = np.zeros(2, WAITING)
    waiting["rank"] = [-1.0, -0.5]
    decision: Any = SimpleNamespace(rng=np.random.default_rng(0))

    def drawn(now: float, gamma: float) -> dict[int, bool]:
        order = Pcaps(gamma=gamma, hours=24)
        picked = [order.pick(decision, waiting, now, 100.0, 400.0) for _ in range(50)]
        return {int(place): bool(may) for place, may in picked}

    assert drawn(213.0, 1.0) == {0: True, 1: True}
    assert drawn(214.0, 1.0) == {0: True, 1: False}
    assert drawn(400.0, 1.0) == {0: True, 1: False}
    assert drawn(400.0, 0.0) == {0: True, 1: True}
    same = Pcaps(gamma=0.3, hours=24)
    assert all(same.pick(decision, waiting, 55.5, 55.5, 55.5)[1] for _ in range(50))


def test_who_has_most_behind_it_is_drawn_most() -> None:
    """A chain of 10 s and 30 s, and a function that takes no time."""
    times = np.array([10.0, 30.0, 0.0])
    upward, downward = np.array([40.0, 30.0, 0.0]), np.array([0.0, 10.0, 0.0])
    known = DeclaredFunctions(times, times, times.astype(np.int64), upward, downward)
    weight = -Pcaps(gamma=0.5, hours=1).rank(known)
    assert weight.tolist() == [40.0, 30.0, 1e-3]


@pytest.mark.parametrize(
    "order", [Cap(within=Fcfs(), least_share=0.1, hours=2), Pcaps(gamma=1, hours=2)]
)
def test_somebody_runs_in_the_dirtiest_hour(order: Order) -> None:
    """Chains end though now is the dirtiest of the hours that are looked at."""
    env = played(order, *[chain(60_000, 60_000)] * 3, by_hour=(400.0, 399.0))
    assert env.done
