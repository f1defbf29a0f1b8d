"""Which functions a sample has, and what a ratio and a window do to the requests."""

from typing import Any

import numpy as np
import pytest

from env.workloads.traces.sampling import SampleKind, Sampling, choose_functions, play
from env.workloads.traces.trace_recording import MinuteCounts

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
