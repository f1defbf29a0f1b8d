"""Promises: how they are written, who keeps them surely and most cheaply, what readers are told."""

import json
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from agents.scheduler import Kind
from env.base.errors import InputError
from evaluation.promise import Promise, check_promises
from evaluation.statistics import Estimate
from report.files import write_files
from report.promise import Judgement, answer, judge, promise_table
from tests.report.evaluations import (
    CONFIDENCE,
    WIDE,
    metrics_of_rows,
    result,
    run_of,
    write_results,
)

SMALL, LARGE = "count=1", "count=2"
Played = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Slowdown and rent of every episode, by scenario and policy."""


def rows_of(played: Played, **kinds: Kind) -> pd.DataFrame:
    rows = []
    for (scenario, policy), episodes in played.items():
        where = {"kind": kinds.get(policy, "baseline"), "scenario": scenario}
        for episode, (slowdown, rent) in enumerate(episodes):
            rows.append(result(policy, episode, 1.0, slowdown=slowdown, rent=rent, **where))
    return pd.DataFrame(rows)


def judged(played: Played, *written: str, **kinds: Kind) -> Judgement:
    promises = [Promise.of("slowdown", each) for each in written]
    results = rows_of(played, **kinds)
    return judge(results, promises, "rent", metrics_of_rows(), CONFIDENCE)


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


def test_nobody_keeps_it() -> None:
    found = judged(PLAYED, "<0.1")
    assert found.best is None
    # 1.3 less 1.2706 is below the bound.
    assert [row.verdict for row in found.rows] == ["unsure", "broken", "broken", "broken"]
    told = answer(found)[0]
    assert told == "Nobody surely keeps slowdown < 0.1, with the whole 95% interval."


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
    played = {("", "a"): [(nan, 1.0), (nan, 1.0)], ("", "b"): [(9.0, 1.0), (9.0, 1.0)]}
    unknown = judged(played, "<3")
    assert {row.policy: row.verdict for row in unknown.rows} == {"a": "unknown", "b": "broken"}
    free = judged({("", "a"): [(1.0, nan), (1.0, nan)]}, "<3")
    assert (free.best, free.rows[0].verdict) == (None, "kept")


def test_the_answer_names_who_where_and_how_surely() -> None:
    told = " ".join(answer(judged(PLAYED, "<3.05")))
    assert (
        "Cheapest that surely keeps slowdown < 3.05, with the whole 95% interval: "
        f"fair with {LARGE}, rent (USD) 4.2"
    ) in told
    assert (
        "Of 4 pairs of scenario and scheduler 2 surely keep it, 1 cannot be told, "
        "1 surely do not" in told
    )


def test_nothing_is_cut_in_80_columns() -> None:
    scenario, policy = "large.server_count=3 keep_alive=faascache", "greedy_objective_tuned"
    slowdowns = {(scenario, policy): [(each, 1.0 + each / 4) for each in (2.0, 4.0, 3.5)]}
    console = Console(width=80, record=True, file=StringIO())
    console.print(promise_table(judged(slowdowns, "<3", ">1")))
    text = console.export_text()
    assert all(word in text for word in (*scenario.split(), policy, "not sure")) and "…" not in text


@pytest.mark.parametrize(("bound", "keeps"), [("<3.05", True), ("<0", False)])
def test_files_of_an_evaluation(
    bound: str, keeps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not keeps:  # nor is a figure looked at
        monkeypatch.setattr("report.files.write_figures", lambda *figures: [])
    scenarios = {name: {"count": number} for number, name in enumerate((SMALL, LARGE), 1)}
    run = run_of(scenarios=scenarios)
    results = write_results(tmp_path, run, rows_of(PLAYED))
    found = judged(PLAYED, bound)
    write_files(tmp_path, run, results, WIDE, found)
    kept = json.loads((tmp_path / "promise.json").read_text())
    assert kept["keep"] == {"slowdown": bound}
    assert (kept["best"] is not None) == keeps
    assert [row["verdict"] for row in kept["rows"]] == [row.verdict for row in found.rows]
    assert (tmp_path / "figures" / "promise-0.png").exists() == keeps
    page = (tmp_path / "report.html").read_text()
    assert ">What was promised</h2>" in page and 'id="promise-0"' in page
    assert f'<p class="finding">{answer(found)[0].replace("<", "&lt;")}' in page


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
    ("written", "bound"), [("<0", 0), (">=-1.5", -1.5), ("< +.5", 0.5), ("<2.", 2), ("<=1E3", 1000)]
)
def test_how_a_bound_is_written(written: str, bound: float) -> None:
    assert Promise.of("J", written).bound == bound


@pytest.mark.parametrize(
    ("metric", "minimised", "says"),
    [
        ("slowdown_p96", "rent", "keep.slowdown_p96: .*did you mean 'slowdown_p95'"),
        ("slowdown", "rnt", "minimise: 'rnt' is no metric, did you mean 'rent'"),
        ("slowdown", "utilisation", "minimise: utilisation is better the higher"),
    ],
)
def test_what_is_no_metric(metric: str, minimised: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_promises([Promise(metric, "<", 3.0)], minimised, metrics_of_rows())
