"""What readers are told of promises: in words, as a table, on the page and in promise.json."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from evaluation.promise import Judgement
from report.files import write_files
from report.promise import answer, promise_table
from tests.evaluation.test_promise import LARGE, PLAYED, SMALL, judged
from tests.report.evaluations import (
    WIDE,
    result,
    run_of,
    write_results,
)


def in_words(judgement: Judgement) -> str:
    return " ".join(answer(judgement))


def test_the_answer_names_who_where_and_how_surely() -> None:
    told = in_words(judged(PLAYED, "<3.05"))
    assert (
        "Cheapest that surely keeps slowdown < 3.05, with the whole 95% interval: "
        f"fair with {LARGE}, rent (USD) 4.2"
    ) in told
    assert f"Not surely dearer: slow with {LARGE}." in told
    assert f"Perhaps cheaper: fair with {SMALL}, rent (USD) 2.1" in told
    assert "The mean keeps it, the interval does not. About 34 episodes in all" in told
    assert (
        "Of 4 pairs of scenario and scheduler 2 surely keep it, 1 cannot be told, "
        "1 surely do not" in told
    )


def test_it_is_said_when_nobody_does() -> None:
    few = {key: PLAYED[key] for key in PLAYED if key[0] == SMALL}
    told = in_words(judged(few, "<3.05"))
    assert told.startswith("Nobody surely keeps slowdown < 3.05, with the whole 95% interval. Per")
    assert f"Perhaps: fair with {SMALL}, rent" in told
    told = in_words(judged(few, "<3"))
    assert told.startswith("Nobody surely keeps slowdown < 3, ") and "Perhaps" not in told


LONG = "large.server_count=3 keep_alive=faascache"


@pytest.mark.parametrize(
    ("scenario", "policy", "slowdowns", "bound", "whole"),
    [
        (LONG, "greedy_objective_tuned", (2.0, 4.0, 3.5), "<3", [*LONG.split(), "not sure"]),
        (
            "large.server_count=1",
            "greedy_per_core",
            (1.0, 1.2),
            "<30",
            ["slowdown", "< 30", "more"],
        ),
    ],
)
def test_names_and_headings_stay_whole_in_80_columns(
    scenario: str, policy: str, slowdowns: tuple[float, ...], bound: str, whole: list[str]
) -> None:
    played = {(scenario, policy): [(each, 1.0 + each / 4) for each in slowdowns]}
    console = Console(width=80, record=True, file=StringIO())
    console.print(promise_table(judged(played, bound)))
    text = console.export_text()
    assert all(word in text for word in (*scenario.split(), policy, *whole))
    assert bound == "<3" or "…" not in text  # numbers give way to long names


@pytest.mark.parametrize("bound", ["<3.05", "<0"])
def test_files_of_an_evaluation(bound: str, tmp_path: Path) -> None:
    scenarios = {name: {"count": number} for number, name in enumerate((SMALL, LARGE), 1)}
    rows = [
        result(policy, episode, 1.0, scenario=scenario, slowdown=slowdown, rent=rent)
        for (scenario, policy), episodes in PLAYED.items()
        for episode, (slowdown, rent) in enumerate(episodes)
    ]
    run = run_of(scenarios=scenarios)
    results = write_results(tmp_path, run, rows)
    found = judged(PLAYED, bound)
    write_files(tmp_path, run, results, WIDE, found)
    kept = json.loads((tmp_path / "promise.json").read_text())
    assert kept["keep"] == {"slowdown": bound}
    assert (kept["best"] is None) == (bound == "<0")
    assert (kept["perhaps"] is None) == (bound == "<0")
    assert kept["settling"] == (None if bound == "<0" else 34)
    assert [row["verdict"] for row in kept["rows"]] == [row.verdict for row in found.rows]
    assert (tmp_path / "figures" / "promise-0.png").exists()
    page = (tmp_path / "report.html").read_text()
    assert ">What was promised</h2>" in page and 'id="promise-0"' in page
    assert f'<p class="finding">{answer(found)[0].replace("<", "&lt;")}' in page
