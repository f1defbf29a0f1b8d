"""Samples of traces: from their files to what can be played; functions, a ratio and a window."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.traces.trace import MinuteCounts
from env.workloads.traces.trace_samples import (
    SampleKind,
    Sampling,
    TraceConfig,
    TraceGenerator,
    TraceSample,
    choose_functions,
    play,
)
from tests.env.worlds import composed


def sample(*overrides: str) -> TraceSample:
    config = composed(*overrides)["workload"]
    return TraceGenerator(validated(TraceConfig, config, "workload"), 1).sample(0)


def of(requests: Callable[[], Iterator[np.ndarray]]) -> np.ndarray:
    return np.concatenate(list(requests()))


def small_2019(fixtures: Path) -> list[str]:
    return ["+workload=azure2019", f"workload.source.path={fixtures / 'azure2019'}"]


def test_a_folder_of_2019(fixtures: Path) -> None:
    found = sample(
        *small_2019(fixtures), "workload.sampling.start=6", "workload.sampling.history=3"
    )
    profiles = found.profiles
    window, history = of(found.requests), of(found.history)
    named = [profiles.names[function] for function in window["function"]]
    # Minutes 7 to 11: cart 5 a minute, pay 2, resize 4 in minute 7, send 1 in 7 and 10, bounce 3.
    assert Counter(named) == {"cart": 25, "pay": 10, "resize": 4, "send": 2, "bounce": 3}
    assert -180 <= history["time"].min() < history["time"].max() < 0
    assert len(history) == 5 * 3 + 2 * 3 + 4 + 1  # minutes 4 to 6


def test_a_file_of_2021(fixtures: Path) -> None:
    found = sample(
        "+workload=azure2021",
        f"workload.source.path={fixtures / 'azure2021.csv'}",
        "workload.sampling.start=1",
        "workload.sampling.minutes=2",
    )
    assert of(found.requests)["time"].tolist() == [0.5, 60.0]
    assert of(found.history)["time"].tolist() == [-59.6, -59.5, -59.5]
    assert "invocations that began before the trace, left out: 1" in found.report


def test_a_made_up_day() -> None:
    """The day of 130 functions that it follows has 83,352 requests, 89% of them of a fifth."""
    found = sample(
        "+workload=azure_like",
        "workload.sampling.functions=500",
        "workload.sampling.start=0",
        "workload.sampling.minutes=1440",
    )
    counts = np.zeros(len(found.profiles.names), np.int64)
    last = 0.0
    for chunk in found.requests():
        assert last <= chunk["time"][0] and chunk["time"][-1] - chunk["time"][0] < 60
        last = chunk["time"][-1]
        counts = counts + np.bincount(chunk["function"], minlength=len(counts))
    assert 150_000 < counts.sum() < 600_000  # 320,000 in proportion
    assert counts.min() >= 1 and counts.max() <= 21_000
    busiest = np.sort(counts)[::-1]
    assert busiest[: len(counts) // 5].sum() > 0.8 * counts.sum()
    assert list(found.history()) == []


def test_a_window_behind_the_trace_is_refused(fixtures: Path) -> None:
    says = "workload.sampling: the window is minutes 8 to 13 of the trace, "
    with pytest.raises(InputError, match=says):
        sample(*small_2019(fixtures), "workload.sampling.start=8")


@pytest.mark.realdata
@pytest.mark.parametrize("kind", ["representative", "rare"])
def test_samples_of_the_real_excerpt(data_dir: Path, kind: str) -> None:
    path = data_dir / "azure2019_500f_8h"
    small = ["+workload=azure2019", f"workload.source.path={path}"]
    found = sample(*small, f"workload.sampling.kind={kind}", "workload.sampling.functions=40")
    assert len(found.profiles.names) == 40
    assert f" {len(of(found.requests))} requests in " in found.report
    if kind == "rare":
        assert len(of(found.requests)) + len(of(found.history)) < 40 * 60


SEED = 3


def choose(invocations: list[int], kind: SampleKind, count: int, seed: int = 0) -> list[int]:
    rng = np.random.default_rng(seed)
    return choose_functions(np.array(invocations), kind, count, rng).tolist()


def test_representative_takes_the_same_number_of_every_quartile() -> None:
    invocations = [7 * number % 400 for number in range(400)]  # every number from 0 to 399 once
    chosen = [invocations[position] for position in choose(invocations, "representative", 200)]
    assert np.histogram(chosen, bins=[0, 100, 200, 300, 400])[0].tolist() == [50] * 4
    assert choose(invocations, "representative", 200, seed=1) != choose(
        invocations, "representative", 200, seed=2
    )


def test_rare_takes_the_least_invoked_and_draws_among_equals() -> None:
    invocations = [9, 1, 5, 1, 1, 1, 7, 2]
    assert choose(invocations, "rare", 5) == [1, 3, 4, 5, 7]
    firsts = {tuple(choose(invocations, "rare", 1, seed)) for seed in range(50)}
    assert firsts == {(1,), (3,), (4,), (5,)}


@pytest.fixture
def hour() -> MinuteCounts:
    """60 minutes of two functions, some 20 requests a minute."""
    counts = np.random.default_rng(5).poisson([15, 5], (60, 2))
    return MinuteCounts(counts, np.array([[0.1, 0.2, 0.4, 0.5, 0.8, 2.0, 8.0]] * 2))


def sampling(**changes: Any) -> Sampling:
    values = dict(kind="random", functions=2, start=20, minutes=5, history=None, ratio=1.0)
    return Sampling.model_validate({**values, "compression": 1, **changes})


def played(hour: MinuteCounts, first: int, last: int, **changes: Any) -> np.ndarray:
    chunks = list(play(hour, sampling(**changes), first, last, SEED))
    return np.concatenate(chunks)


def test_the_window_begins_at_0_and_the_history_ends_there(hour: MinuteCounts) -> None:
    window, history = played(hour, 20, 25), played(hour, 0, 20)
    assert len(window) == hour.counts[20:25].sum() and len(history) == hour.counts[:20].sum()
    assert window["time"][0] >= 0 and 240 < window["time"][-1] < 300
    assert -1200 <= history["time"][0] < -1140 and history["time"][-1] < 0
    assert (np.diff(window["time"]) >= 0).all()


def test_the_same_seed_gives_the_same_requests_in_every_window(hour: MinuteCounts) -> None:
    assert (played(hour, 20, 25) == played(hour, 20, 25)).all()
    earlier = played(hour, 10, 25, start=10)
    late = earlier[earlier["time"] >= 600]
    assert late["duration"].tolist() == played(hour, 20, 25)["duration"].tolist()
    assert late["time"] - 600 == pytest.approx(played(hour, 20, 25)["time"])
    other = np.concatenate(list(play(hour, sampling(), 20, 25, SEED + 1)))
    assert other["time"].tolist() != played(hour, 20, 25)["time"].tolist()


def test_a_smaller_ratio_keeps_part_of_a_larger_one(hour: MinuteCounts) -> None:
    everything, most, some = (played(hour, 0, 60, start=0, ratio=ratio) for ratio in (1, 0.7, 0.4))
    assert len(most) / len(everything) == pytest.approx(0.7, abs=0.05)
    assert len(some) / len(everything) == pytest.approx(0.4, abs=0.05)
    assert set(some.tolist()) < set(most.tolist()) < set(everything.tolist())


def test_compression_moves_requests_together(hour: MinuteCounts) -> None:
    plain = played(hour, 20, 60)
    compressed = played(hour, 20, 60, compression=8)
    assert sampling(compression=8).end == 60
    assert compressed["time"] == pytest.approx(plain["time"] / 8)
    assert compressed["time"][-1] < 300
    assert compressed["duration"].tolist() == plain["duration"].tolist()
