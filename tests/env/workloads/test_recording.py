"""What is drawn where a trace has counts and percentiles only."""

import numpy as np
import pytest

from env.workloads.traces.trace import REQUEST
from env.workloads.traces.trace_recording import QUANTILES, MinuteCounts, SingleInvocations

SHORT = [0.1, 0.2, 0.4, 0.5, 0.8, 2.0, 8.0]
CONSTANT = [3.0] * 7


@pytest.fixture
def busy() -> MinuteCounts:
    """Minute 1 of 3 has 40,000 requests of one function and 10,000 of another."""
    counts = np.array([[0, 1], [40_000, 10_000], [2, 0]])
    return MinuteCounts(counts, np.array([SHORT, CONSTANT]))


def test_a_minute_has_the_counted_requests_within_it(busy: MinuteCounts) -> None:
    requests = busy.minute(1, np.random.default_rng(1))
    assert np.bincount(requests["function"]).tolist() == [40_000, 10_000]
    times = requests["time"]
    assert (np.diff(times) >= 0).all() and times[0] >= 60 and times[-1] < 120
    tenths, _ = np.histogram(times, bins=10, range=(60, 120))
    assert (np.abs(tenths - 5_000) < 300).all()  # uniform: a standard deviation is 67
    assert len(busy.minute(0, np.random.default_rng(1))) == 1


def test_durations_have_the_stated_percentiles_and_mean(busy: MinuteCounts) -> None:
    requests = busy.minute(1, np.random.default_rng(2))
    short = requests["duration"][requests["function"] == 0]
    for quantile, duration in zip(QUANTILES, SHORT, strict=True):
        assert (short <= duration).mean() == pytest.approx(quantile, abs=0.01)
    assert short.mean() == pytest.approx(busy.mean_duration[0], rel=0.01)
    assert requests["duration"][requests["function"] == 1] == pytest.approx(3.0)
    assert busy.mean_duration[1] == pytest.approx(3.0)


def test_selected_functions_are_numbered_anew(busy: MinuteCounts) -> None:
    constant = busy.select(np.array([1]))
    requests = constant.minute(1, np.random.default_rng(4))
    assert len(requests) == 10_000
    assert (requests["function"] == 0).all() and requests["duration"] == pytest.approx(3.0)

    rows = [(1.0, 2, 0.1), (5.0, 0, 0.2), (61.0, 2, 0.3), (62.0, 1, 0.4)]
    single = SingleInvocations(np.array(rows, REQUEST), functions=3, minutes=2)
    kept = single.select(np.array([1, 2]))
    assert kept.minute(0, np.random.default_rng(0)).tolist() == [(1.0, 1, 0.1)]
    assert kept.minute(1, np.random.default_rng(0)).tolist() == [(61.0, 1, 0.3), (62.0, 0, 0.4)]
    assert kept.count(0, 2).tolist() == [1, 2]
    assert kept.mean_duration.tolist() == pytest.approx([0.4, 0.2])
