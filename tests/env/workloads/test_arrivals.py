"""Arrival processes: their statistics, and their configs."""

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.arrivals import Arrived, DailyArrivals
from env.workloads.generator import WorkloadConfig
from tests.env.worlds import composed

MANY = "workload.arrivals.workflows=20000"


def drawn(*overrides: str, seed: int = 0) -> np.ndarray:
    config = validated(WorkloadConfig, composed(*overrides)["workload"], "workload")
    times = np.array(config.arrivals.draw(np.random.default_rng(seed))[0])
    assert (np.diff(times) >= 0).all() and times[0] >= 0
    return times


def dispersion(times: np.ndarray, window: float) -> float:
    """Variance over mean of the counts in windows of that many seconds: 1 for Poisson."""
    counts = np.bincount((times / window).astype(int))[:-1]
    return float(counts.var() / counts.mean())


def test_fixed() -> None:
    times = drawn("+workload=fixed")
    assert times.tolist() == [0, 300, 900, 1200, 2100, 2400, 3600, 4500]


def test_the_number_of_workflows_is_drawn_uniformly() -> None:
    config = validated(WorkloadConfig, composed("+workload=poisson")["workload"], "workload")
    rng = np.random.default_rng(0)
    sizes = np.bincount([len(config.arrivals.draw(rng)[0]) for _ in range(7_000)])
    assert sizes[:6].sum() == 0
    assert sizes[6:] == pytest.approx([1_000] * 7, abs=120)


def test_poisson() -> None:
    times = drawn("+workload=poisson", MANY)
    gaps = np.diff(times, prepend=0)
    assert gaps.mean() == pytest.approx(600, rel=0.03)
    assert gaps.std() == pytest.approx(600, rel=0.05)
    assert dispersion(times, 3_600) == pytest.approx(1, abs=0.1)


def test_bursty() -> None:
    times = drawn("+workload=bursty", MANY)
    assert np.diff(times).mean() == pytest.approx(600, rel=0.06)
    # Asymptotic index of dispersion of a two-state MMPP (Fischer, Meier-Hellstern 1993, eq. 10):
    # 1 + 2 (rate1 - rate2)^2 r1 r2 / ((r1 + r2)^2 (rate1 r2 + rate2 r1)), r = rates of leaving.
    calm, burst, leave_calm, leave_burst = 1 / 1200, 1 / 150, 1 / 3600, 1 / 600
    expected = 1 + 2 * (calm - burst) ** 2 * leave_calm * leave_burst / (
        (leave_calm + leave_burst) ** 2 * (calm * leave_burst + burst * leave_calm)
    )
    assert expected > 2
    assert dispersion(times, 36_000) == pytest.approx(expected, rel=0.15)


def test_bursty_starts_in_the_long_run_state() -> None:
    """The first gap is not always a calm one: its mean lies between the two."""
    config = validated(WorkloadConfig, composed("+workload=bursty")["workload"], "workload")
    rng = np.random.default_rng(0)
    first = np.array([config.arrivals.draw(rng)[0][0] for _ in range(4_000)])
    assert (first < 60).mean() > 1.5 * (1 - np.exp(-60 / 1200))


def test_daily() -> None:
    times = drawn("+workload=daily", MANY, "workload.arrivals.start_hour=[0,0]")
    assert np.diff(times).mean() == pytest.approx(600, rel=0.03)
    counts = np.bincount((times / 3600 % 24).astype(int), minlength=24)
    share = counts / counts.mean()
    expected = 1 + 0.6 * np.cos(2 * np.pi * (np.arange(24) + 0.5 - 14) / 24)
    assert share == pytest.approx(expected, abs=0.12)


def test_daily_episodes_begin_at_any_hour() -> None:
    """An episode that begins at the peak is denser than one that begins opposite to it."""

    def drawn(hour: float) -> list[Arrived]:
        data = {"kind": "daily", "workflows": 12, "mean_gap": 300, "amplitude": 0.9}
        hours = {"peak_hour": 14, "start_hour": [hour, hour]}
        arrivals = validated(DailyArrivals, data | hours, "arrivals")
        return [arrivals.draw(np.random.default_rng(seed)) for seed in range(200)]

    spans = [np.mean([times[-1] for times, _ in drawn(hour)]) for hour in (2, 14)]
    assert spans[0] > 2 * spans[1]
    later = drawn(2.5 + 24 * 300)
    assert {hour for _, hour in later} == {2 + 24 * 300}
    assert np.array([times for times, _ in later]) == pytest.approx(
        np.array([times for times, _ in drawn(2.5)])
    )


def test_a_range_ascends() -> None:
    says = r"^workload: arrivals.workflows: found \[5, 4\], ascending numbers are needed$"
    with pytest.raises(InputError, match=says):
        drawn("+workload=poisson", "workload.arrivals.workflows=[5,4]")


def test_spells_without_arrivals_are_refused() -> None:
    # 1 us of each: 1e-6 / 1200 + 1e-6 / 150 arrivals in both.
    spells = [f"workload.arrivals.{spell}_duration=1e-6" for spell in ("calm", "burst")]
    with pytest.raises(InputError, match=r"have 7\.5e-09 arrivals on average, at least 0.001"):
        drawn("+workload=bursty", *spells)
