"""The page holds what the evaluation found, and what was left out is said."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from env.base.errors import InputError
from env.score.metrics import METRICS, Metric
from evaluation.statistics import Estimate
from report import page
from report.charts import pareto, wrapped
from report.summary import spread, summarise, write_summary
from report.timeline import read_timeline
from tests.report import recorded
from tests.report.evaluations import SETTINGS, finished, run_of
from tests.report.recorded import POLICIES, finished_evaluation, write_training

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.json"))
MEMORY_WAITING = GOLDEN[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_evaluation(tmp_path_factory.mktemp("page") / "run", episodes=1)


def embedded(text: str) -> list[tuple[str, str]]:
    """(episode, policy) of the recordings in a page."""
    return re.findall(r'class="episode" data-episode="([^"]+)" data-policy="([^"]+)"', text)


def test_it_says_what_was_run(folder: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    run["config"]["note"] = "</script><b>bold</b>"
    run["commit"] = "0123456789ab"
    (folder / "run.json").write_text(json.dumps(run))
    text = page.write_report(folder).read_text()
    for shown in (
        "python evaluate.py",
        "0123456789ab",
        f"numpy {np.__version__}",
        "confidence: 0.95",
    ):
        assert shown in text
    assert "<b>bold</b>" not in text


def test_nothing_is_fetched_from_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page around the library; test_browser.py sees what both ask the network for."""
    monkeypatch.setattr(page, "_library", lambda: "")
    text = page.write_report(folder).read_text()
    assert not re.search(r"""<(script|link|img|iframe)[^>]+(src|href)=["'](?!data:)""", text)
    assert "http" not in text and "@import" not in text


def test_all_policies_metrics_and_recordings_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = Metric("made_up", "parsecs", "higher", "always 7", lambda episode: 7.0)
    monkeypatch.setitem(METRICS, "made_up", made_up)
    text = page.write_report(finished_evaluation(tmp_path / "run", episodes=2)).read_text()
    for heading in ("J", "rent (USD)", "made up (parsecs)"):
        assert f"<th>{heading}</th>" in text
    assert "always 7" in text
    ranked = json.loads((tmp_path / "run" / "summary.json").read_text())["policies"]
    best_first = [row["policy"] for row in ranked]
    assert set(best_first) == set(POLICIES)
    assert embedded(text) == [
        (f"{episode} of seed 0", policy) for episode in range(2) for policy in best_first
    ]


def test_a_training_without_a_finished_episode_has_no_curve(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", episodes=1)
    (folder / "metrics.csv").write_text("env_steps,J\n8192,\n")
    assert 'id="learning"' not in page.write_report(folder).read_text()
    (folder / "metrics.csv").write_text("env_steps,J\n8192,\n16384,5.24\n")
    assert 'id="learning"' in page.write_report(folder).read_text()


def test_every_policy_meets_every_other(folder: Path) -> None:
    text = page.write_report(folder).read_text()
    matrix = text[text.index('<table id="pairs">') :].partition("</table>")[0]
    assert len(re.findall("<td title=", matrix)) == len(POLICIES) * (len(POLICIES) - 1)
    for pair in json.loads((folder / "summary.json").read_text())["pairs"]:
        one, other = pair["policy"], pair["other"]
        numbers = re.search(f'title="{one} - {other}: ([^"]+)"', matrix)
        mirrored = re.search(f'title="{other} - {one}: ([^"]+)"', matrix)
        assert numbers and mirrored
        assert numbers[1].startswith(spread(Estimate(**pair["against"]["difference"]), "+"))
        better = [float(found.rpartition(" ")[2]) for found in (numbers[1], mirrored[1])]
        assert sum(better) == pytest.approx(1, abs=0.011)


def test_recordings_beyond_the_size_are_counted(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", episodes=1)
    run = json.loads((folder / "run.json").read_text())
    run["config"]["report"]["episodes_mb"] = 1e-6
    (folder / "run.json").write_text(json.dumps(run))
    text = page.write_report(folder).read_text()
    assert len(embedded(text)) == 1
    assert f"{len(POLICIES) - 1} more recorded episodes" in text


def test_sections_without_files_are_left_out(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", episodes=1, tenants={"a": 1.0})
    assert ">Flow time of tenants</h" in page.write_report(folder).read_text()
    for recording in (folder / "episodes").iterdir():
        recording.unlink()
    text = page.write_report(folder).read_text()
    assert "<h2>Ranking</h2>" in text
    for heading in ("Gantt chart", "Flow time", "Flow time of tenants", "Learning curve"):
        assert f">{heading}</h" not in text
    write_training(folder)
    assert ">Learning curve</h2>" in page.write_report(folder).read_text()


def test_carbon_has_an_axis_where_it_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shown in (">Time against carbon</h2>", "<th>carbon (gCO2e)</th>"):
        assert shown in page.write_report(folder).read_text()
    monkeypatch.setattr(recorded, "CLUSTER", replace(recorded.CLUSTER, power=None))
    text = page.write_report(finished_evaluation(tmp_path / "run", episodes=1)).read_text()
    assert ">Time against cost</h2>" in text
    assert "Time against carbon" not in text and "<th>carbon" not in text


def test_an_unfinished_evaluation_has_no_report(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", episodes=1)
    (folder / "results.parquet").unlink()
    with pytest.raises(InputError, match="has not finished"):
        page.write_report(folder)
    assert not (folder / "report.html").exists()


def test_what_a_container_did_in_the_page() -> None:
    """The second one: a second of cold start, ten of waiting, eight of running."""
    data = page.episode_data(read_timeline(MEMORY_WAITING), {})
    columns = {name: column[1] for name, column in data["containers"].items()}
    assert columns["submission_time"] == 1.0
    assert columns["cold start"] == 1.0
    assert columns["transfer"] == 0.0
    assert columns["waiting"] == 10.0
    assert columns["running"] == 8.0


def test_utilisation_is_averaged_over_time() -> None:
    """Half used from 0 to 2 s, fully to 3 s, idle from then on; bins of 2 s."""
    use = page.percent_over(
        np.array([0.0, 2.0, 3.0]), np.array([0.5, 1.0, 0.0]), np.array([0.0, 2.0, 4.0, 6.0])
    )
    assert use == [50, 50, 0]


def test_policies_are_compared_episode_by_episode(tmp_path: Path) -> None:
    """`a` is the best in two of four episodes and 3, then 5 times the best in the others."""
    values = {"a": [1.0, 1.0, 6.0, 10.0], "b": [2.0, 2.0, 2.0, 2.0]}
    run = run_of(command="python evaluate.py", versions={})
    results = finished(tmp_path / "run", values, run=run)
    write_summary(tmp_path / "run", summarise(results, SETTINGS))
    text = page.write_report(tmp_path / "run").read_text()
    specs = json.loads(re.findall(r'id="settings">(.*?)</script>', text)[0])["specs"]
    (compared,) = (rows for rows in specs["improvement"]["datasets"].values() if len(rows[0]) > 1)
    assert [(row["policy"], row["probability"]) for row in compared] == [("a", 0.5)]
    (lines,) = specs["profiles"]["datasets"].values()
    shares = {row["ratio"]: row["share"] for row in lines if row["policy"] == "a"}
    assert (shares[1.0], shares[2.5], shares[4.0]) == (0.5, 0.5, 0.75)
    assert "<th>P(better)</th>" in text


def test_the_front_holds_whom_nobody_beats() -> None:
    points = np.array([[1.0, 4.0], [2.0, 2.0], [2.0, 3.0], [4.0, 1.0], [4.0, 4.0], [2.0, 2.0]])
    assert pareto(points).tolist() == [True, True, False, True, False, True]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("random", ["random"]),
        ("earliest_finish_stingy", ["earliest_", "finish_stingy"]),
        ("greedy_objective_tuned_latency", ["greedy_objective_", "tuned_latency"]),
        ("onewordwithoutanybreakinit", ["onewordwithoutanybreakinit"]),
    ],
)
def test_long_names_have_two_lines(name: str, lines: list[str]) -> None:
    assert wrapped(name).split("\n") == lines
