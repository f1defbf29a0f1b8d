"""Promises on results of our choice: who keeps them surely, and the cheapest who does."""

from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from agents.scheduler import Kind
from env.base.errors import InputError
from evaluation.promise import Judgement, Promise, check_promises, judge
from evaluation.statistics import Estimate
from tests.report.evaluations import CONFIDENCE, metrics_of_rows, result

SMALL, LARGE = "count=1", "count=2"
Played = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Slowdown and rent of every episode, by scenario and policy."""


def judged(played: Played, *written: str, minimise: str = "rent", **kinds: Kind) -> Judgement:
    rows = [
        result(
            policy,
            episode,
            1.0,
            kind=kinds.get(policy, "baseline"),
            scenario=scenario,
            slowdown=slowdown,
            rent=rent,
        )
        for (scenario, policy), episodes in played.items()
        for episode, (slowdown, rent) in enumerate(episodes)
    ]
    promises = [Promise.of("slowdown", each) for each in written]
    return judge(pd.DataFrame(rows), promises, minimise, metrics_of_rows(), CONFIDENCE)


# Student's t of two values that are 0.2 apart reaches 12.706 * 0.1 to both sides.
PLAYED: Played = {
    (SMALL, "slow"): [(9.0, 1.0), (9.2, 1.2)],
    (SMALL, "fair"): [(2.9, 2.0), (3.1, 2.2)],
    (LARGE, "slow"): [(1.4, 5.0), (1.6, 5.2)],
    (LARGE, "fair"): [(1.2, 4.0), (1.4, 4.4)],
}


def test_the_cheapest_that_surely_keeps_it_is_the_answer() -> None:
    found = judged(PLAYED, "<3")
    assert found.best is not None
    assert (found.best.scenario, found.best.policy) == (LARGE, "fair")
    assert [(row.scenario, row.policy, row.verdict) for row in found.rows] == [
        (LARGE, "fair", "kept"),
        (LARGE, "slow", "kept"),
        (SMALL, "fair", "unsure"),
        (SMALL, "slow", "broken"),
    ]
    assert found.best.means[0].value == pytest.approx(1.3)
    assert found.best.means[0].ci_high == pytest.approx(1.3 + 1.2706, abs=1e-4)
    # Episode by episode 1.0 and 0.8 more.
    assert found.rows[1].more.value == pytest.approx(0.9)
    assert found.rows[1].more.ci_low == pytest.approx(0.9 - 1.2706, abs=1e-4)


def test_perhaps_is_the_cheapest_whose_mean_keeps_it() -> None:
    """The interval of the mean of 3.0 ends below 3.05 once 0.1414 t / sqrt(n) < 0.05: n = 34."""
    found = judged(PLAYED, "<3.05")
    assert found.perhaps is not None
    assert (found.perhaps.scenario, found.perhaps.policy) == (SMALL, "fair")
    assert found.settling == 34
    assert judged(PLAYED, "<3").perhaps is None  # the mean does not
    second = judged(PLAYED, "<3.05", "<2").perhaps
    assert second is not None and (second.scenario, second.policy) == (LARGE, "fair")
    assert judged(PLAYED, "<3.05", fair="reference").perhaps is None


def test_episodes_without_the_number_settle_nothing() -> None:
    """Half of the episodes have none, so it takes twice as many."""
    nan = float("nan")
    played = {("", "a"): [(2.9, 1.0), (3.1, 1.0), (nan, 1.0), (nan, 1.0)]}
    assert judged(played, "<3.05").settling == 68


def test_nobody_keeps_it() -> None:
    found = judged(PLAYED, "<0.1")
    assert found.best is None
    # 1.3 less 1.2706 is below the bound.
    assert [row.verdict for row in found.rows] == ["unsure", "broken", "broken", "broken"]
    assert found.of("kept") == ()


def test_all_promises_have_to_be_kept() -> None:
    assert judged(PLAYED, "<3", ">=1").best is None
    found = judged(PLAYED, "<3", ">=-1")
    assert found.best is not None and found.best.policy == "fair"


def test_references_are_no_answer() -> None:
    found = judged(PLAYED, "<3", fair="reference")
    assert found.best is not None and found.best.policy == "slow"
    assert found.rows[0].policy == "fair" and found.rows[0].more.value == pytest.approx(-0.9)


def test_what_has_no_number_is_not_kept() -> None:
    nan = float("nan")
    unknown = judged(
        {("", "a"): [(nan, 1.0), (nan, 1.0)], ("", "b"): [(9.0, 1.0), (9.0, 1.0)]}, "<3"
    )
    assert {row.policy: row.verdict for row in unknown.rows} == {"a": "unknown", "b": "broken"}
    free = judged({("", "a"): [(1.0, nan), (1.0, nan)]}, "<3")
    assert (free.best, free.rows[0].verdict) == (None, "kept")


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
    ("metric", "minimised", "episodes", "says"),
    [
        ("slowdown_p96", "rent", 2, "keep.slowdown_p96: .*did you mean 'slowdown_p95'"),
        ("slowdown", "rnt", 2, "minimise: 'rnt' is no metric, did you mean 'rent'"),
        ("slowdown", "utilisation", 2, "minimise: utilisation is better the higher"),
        ("slowdown", "rent", 1, "keep: 2 episodes or more"),
    ],
)
def test_what_cannot_be_judged(metric: str, minimised: str, episodes: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_promises([Promise(metric, "<", 3.0)], minimised, metrics_of_rows(), episodes)
