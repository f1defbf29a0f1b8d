"""The benchmark of plans: its peer comes to the same."""

import numpy as np
import pytest

from agents.deployment.estimate import Estimator
from benchmarks.plans import PlainEstimator
from tests.agents.deployment.tables import drawn_inputs, settings_with


@pytest.mark.parametrize("seed", range(4))
def test_both_sides_come_to_the_same(seed: int) -> None:
    """In expectation: each has draws of its own."""
    inputs = drawn_inputs(6, 4, seed)
    plan, intensity = tuple(np.random.default_rng(seed).integers(4, size=6)), inputs.intensity[9]
    settings = settings_with(most_samples=20_000, tolerance=0.0)
    estimator = Estimator(inputs, settings, "cost", np.random.default_rng(seed))
    ours = estimator.estimate(plan, intensity)
    mean, tail = PlainEstimator(inputs, 20_000, seed).estimate(plan, intensity.tolist())
    assert [*ours["average"].values()] == pytest.approx(mean, rel=0.01)
    assert [*ours["tail"].values()] == pytest.approx(tail, rel=0.02)
