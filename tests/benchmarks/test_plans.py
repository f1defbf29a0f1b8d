"""The benchmark of plans: its peer comes to the same."""

import numpy as np
import pytest

from benchmarks.plans import PlainEstimator
from tests.agents.deployment.tables import drawn_inputs, problem


@pytest.mark.parametrize("seed", range(4))
def test_both_sides_come_to_the_same(seed: int) -> None:
    """In expectation: each has draws of its own."""
    inputs, plan = drawn_inputs(6, 4, seed), tuple(np.random.default_rng(seed).integers(4, size=6))
    ours = problem(inputs, most_samples=20_000, tolerance=0.0).estimate(plan)
    mean, tail = PlainEstimator(inputs, 20_000, seed).estimate(plan, inputs.intensity[0].tolist())
    assert [*ours["average"].values()] == pytest.approx(mean, rel=0.01)
    assert [*ours["tail"].values()] == pytest.approx(tail, rel=0.02)
