"""The config group `workload` of a trace, from its files to samples that can be played."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.traces.trace_samples import TraceConfig, TraceGenerator, TraceSample
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
