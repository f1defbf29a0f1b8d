"""Promises as they are written, and whether a mean keeps them."""

import pytest

from env.base.errors import InputError
from evaluation.promise import Promise, check_promises
from evaluation.statistics import Estimate
from tests.report.evaluations import metrics_of_rows


@pytest.mark.parametrize(
    ("written", "low", "high", "verdict"),
    [
        ("<3", 1, 2, "kept"),
        ("<3", 1, 3, "unsure"),
        ("<=3", 1, 3, "kept"),
        (">0.5", 0.5, 0.6, "unsure"),
        (">=0.5", 0.5, 0.6, "kept"),
    ],
)
def test_bounds(written: str, low: float, high: float, verdict: str) -> None:
    assert Promise.of("J", written).verdict(Estimate((low + high) / 2, low, high)) == verdict


NO_BOUNDS = ["3", "=3", "<", "<three", "<nan", "<1_0", "<\uff11", "<1e400", 3]


@pytest.mark.parametrize("written", NO_BOUNDS)
def test_what_is_no_promise(written: object) -> None:
    with pytest.raises(ValueError, match=r"^J: one of <, <=, >, >= and a number is needed, found "):
        Promise.of("J", written)


@pytest.mark.parametrize(
    ("written", "bound"),
    [("<0", 0), (">=-1.5", -1.5), ("< +.5", 0.5), ("<2.", 2), ("<=1E3", 1000)],
)
def test_how_a_bound_is_written(written: str, bound: float) -> None:
    assert Promise.of("J", written).bound == bound


@pytest.mark.parametrize(
    ("metric", "minimised", "says"),
    [
        ("slowdown_p96", "rent", "keep.slowdown_p96: .*did you mean 'slowdown_p95'"),
        ("slowdown", "rnt", "minimise: 'rnt' is no metric, did you mean 'rent'"),
    ],
)
def test_what_is_no_metric(metric: str, minimised: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_promises([Promise(metric, "<", 3.0)], minimised, metrics_of_rows())
