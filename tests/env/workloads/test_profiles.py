"""What a trace leaves open: requests within a minute; memory, runtime and cold start."""

import numpy as np
import pytest

from env.workloads.traces.profiles import (
    RUNTIMES,
    LogNormal,
    ProfileRules,
    annotate_functions,
    hello_world_cold_start,
    largest_memory,
)
from env.workloads.traces.trace import (
    QUANTILES,
    REQUEST,
    FunctionProfiles,
    MinuteCounts,
    Recording,
    SingleInvocations,
)

SEED = 5
RULES = ProfileRules(
    min_duration=0.001,
    min_memory=128,
    max_memory=2048,
    missing_memory=LogNormal(median=150, sigma=0.3),
    memory_factor=(1, 1),
    runtime_shares={"python": 3, "java": 1},
    cold_start_factor=(1, 1),
)


def recording(memory: list[float]) -> Recording:
    count = len(memory)
    return Recording(
        source="made up",
        names=tuple(f"function_{number}" for number in range(count)),
        memory=np.array(memory),
        invocations=MinuteCounts(np.ones((1, count), np.int64), np.full((count, 7), 0.5)),
    )


def profiles(made: Recording, rules: ProfileRules = RULES) -> FunctionProfiles:
    return annotate_functions(made, rules, SEED)[0]


def test_measured_memory_is_rounded_up_and_raised_to_the_smallest_container() -> None:
    made, counts = annotate_functions(recording([300.2, 64.0, 128.0]), RULES, SEED)
    assert made.memory.tolist() == [301, 128, 128]
    assert counts == {"memory raised to min_memory": 1}


def test_reserved_memory_is_a_drawn_multiple_of_the_measured_one() -> None:
    rules = RULES.model_copy(update={"memory_factor": (2, 32)})
    made, counts = annotate_functions(recording([100.0] * 400), rules, SEED)
    # Log-uniform in 200 to 3200, median 800; log(3200 / 2048) / log(16) = 16% are cut.
    assert made.memory.min() >= 200 and made.memory.max() == 2048
    assert np.median(made.memory) == pytest.approx(800, rel=0.2)
    assert counts == {"memory cut to max_memory": (made.memory == 2048).sum()}
    assert (made.memory == 2048).mean() == pytest.approx(0.16, abs=0.06)


def test_missing_memory_is_drawn() -> None:
    made, counts = annotate_functions(recording([np.nan] * 400), RULES, SEED)
    assert counts["memory drawn"] == 400
    assert 140 < np.median(made.memory) < 160
    assert made.memory.min() == 128 and made.memory.max() > 250


def test_no_seed_gives_more_memory_than_the_largest() -> None:
    rules = RULES.model_copy(update={"memory_factor": (1, 4)})
    made = recording([100.2, 20.0, 900.0, np.nan])
    most = largest_memory(made, rules)
    assert most.tolist() == [401, 128, 2048, 2048]
    drawn = [annotate_functions(made, rules, seed)[0].memory for seed in range(60)]
    assert (np.array(drawn) <= most).all()
    assert (np.max(drawn, axis=0)[:3] > 0.95 * most[:3]).all()


def test_cold_start_is_the_measured_one_of_a_drawn_runtime() -> None:
    made = profiles(recording([200.0] * 400))
    # Median of 40 cold starts of a hello-world at 256 MB: 86.8 ms in Python, 257.8 ms in Java.
    python, java = sorted(set(made.cold_start))
    assert (python, java) == pytest.approx((0.0868, 0.2578))
    assert (made.cold_start == python).mean() == pytest.approx(0.75, abs=0.06)


def test_cold_start_follows_the_nearest_measured_memory() -> None:
    assert hello_world_cold_start("java", 128) == pytest.approx(0.2541)
    assert hello_world_cold_start("java", 5_000) == pytest.approx(0.2634)
    assert all(0.04 < hello_world_cold_start(runtime, 512) < 0.3 for runtime in RUNTIMES)


def test_a_function_is_the_same_in_every_sample() -> None:
    everyone = recording([np.nan] * 10)
    whole, part = profiles(everyone), profiles(everyone.select(np.array([3, 7])))
    assert part.names == ("function_3", "function_7")
    assert part.memory.tolist() == whole.memory[[3, 7]].tolist()
    assert part.cold_start.tolist() == whole.cold_start[[3, 7]].tolist()


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
