"""What an evaluation comes to: ranking, files, tables, pictures, every metric in each of them."""

import csv
import io
import json
import math
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import parse_session_start_info_plugin_data

from agents.scheduler import Kind
from env.score import metrics
from env.score.metrics import Metric
from evaluation.statistics import Estimate
from report.figures import draw_comparison, draw_figures
from report.summary import Summary, means, number, spread, summarise, write_summary
from report.table import PLAIN_WIDTH, summary_table
from report.tensorboard import write_events
from tests.report.evaluations import SETTINGS, finished

NAMES = ("greedy_objective_tuned", "earliest_finish_stingy", "earliest_finish", "random")


def summary_of(folder: Path, *values: float) -> Summary:
    """A policy for each value, which all its metrics have in all of two episodes."""
    played = {name: [value] * 2 for name, value in zip(NAMES, values, strict=False)}
    return summarise(finished(folder, played), SETTINGS)


def printed(summary: Summary, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(summary_table(summary, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_policies_are_sorted_by_mean_j_and_compared_with_the_best_baseline(tmp_path: Path) -> None:
    played = {"worst": [6, 9, 9], "rule": [2, 4, 6], "learned": [1, 3, 2], "seer": [0, 0, 1]}
    kinds: dict[str, Kind] = {"learned": "learned", "seer": "reference"}
    summary = summarise(finished(tmp_path, played, kinds), SETTINGS)
    assert [each.policy for each in summary.policies] == ["seer", "learned", "rule", "worst"]
    assert summary.measure == "rule"
    found = [each.against.difference.value for each in summary.policies]
    assert found == pytest.approx([-11 / 3, -2, 0, 4])


def test_the_title_counts_the_episodes_of_all_seeds(tmp_path: Path) -> None:
    one, other = (finished(tmp_path / name, {"a": [1, 2, 3]}) for name in "xy")
    assert summarise(one, SETTINGS).title == "3 held-out episodes, seed 0"
    both = pd.concat([one, other.assign(seed=4)])
    assert summarise(both, SETTINGS).title == "6 held-out episodes, seeds 0, 4"


@pytest.mark.parametrize(
    ("kinds", "measure"),
    [
        ({"a": "reference", "b": "learned", "c": "learned"}, "b"),
        ({"a": "reference", "b": "reference", "c": "reference"}, "a"),
    ],
)
def test_without_baselines_the_best_policy_is_the_measure(
    kinds: dict[str, Kind], measure: str, tmp_path: Path
) -> None:
    played = {"c": [3, 3], "a": [1, 1], "b": [2, 2]}
    results = finished(tmp_path, played, kinds)
    assert summarise(results, SETTINGS).measure == measure


def test_all_pairs_are_compared_and_corrected_for_their_number(tmp_path: Path) -> None:
    played = {"b": [3, 5, 4, 9, 7, 8], "a": [1, 2, 3, 4, 5, 6], "c": [9, 9, 9, 9, 9, 9]}
    summary = summarise(finished(tmp_path, played), SETTINGS)
    write_summary(tmp_path, summary)
    pairs = json.loads((tmp_path / "summary.json").read_text())["pairs"]
    assert [(pair["policy"], pair["other"]) for pair in pairs] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert pairs[1]["against"]["difference"]["value"] == pytest.approx((21 - 54) / 6)
    # b is as good as c in one episode of six.
    assert pairs[2]["against"]["probability"]["value"] == pytest.approx(5.5 / 6)
    # Of 2^6 signs two are as far out, for three comparisons, and for two against a alone.
    assert pairs[1]["against"]["p_holm"] == pytest.approx(3 * 2 / 64)
    assert summary.policies[2].against.p_holm == pytest.approx(2 * 2 / 64)


def test_the_files_say_the_same(tmp_path: Path) -> None:
    summary = summarise(finished(tmp_path, {"b": [3, 5], "a": [1, 2]}), SETTINGS)
    write_summary(tmp_path, summary)
    tree = json.loads((tmp_path / "summary.json").read_text())
    assert (tree["measure"], tree["ranked_by"]) == ("a", "J")
    with (tmp_path / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    text = (tmp_path / "summary.md").read_text()
    assert [row["policy"] for row in rows] == ["a", "b"]
    for row, each in zip(rows, tree["policies"], strict=True):
        for metric in (found["name"] for found in tree["metrics"]):
            values = each["metrics"][metric]
            assert float(row[f"{metric}_mean"]) == values["mean"]["value"]
            assert float(row[f"{metric}_mean_ci_low"]) == values["mean"]["ci_low"]
            for number_of in ("median", "iqm", "p99"):
                assert float(row[f"{metric}_{number_of}"]) == values[number_of]
        difference = each["against"]["difference"]
        assert float(row["against_difference"]) == difference["value"]
        assert f"| {row['policy']} | {spread(Estimate(**difference), '+')} |" in text


def test_a_number_that_nobody_has_is_null_and_not_shown(tmp_path: Path) -> None:
    summary = summarise(finished(tmp_path, {"a": [math.nan, math.nan]}), SETTINGS)
    write_summary(tmp_path, summary)
    (policy,) = json.loads((tmp_path / "summary.json").read_text())["policies"]
    assert policy["metrics"]["optimum_gap"]["mean"] == dict.fromkeys(("value", "ci_low", "ci_high"))
    assert "optimum" not in printed(summary, PLAIN_WIDTH)
    assert not any(name.startswith("optimum_gap") for name in means(summary))


def test_a_metric_declared_once_is_in_every_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dummy = Metric("wait_of_cats", "h", "lower", "hours cats wait", lambda episode: 1.0)
    monkeypatch.setitem(metrics.METRICS, dummy.name, dummy)
    results = finished(tmp_path, {"a": [1.5, 2.5], "b": [3, 4]})
    assert list(results[dummy.name]) == [1.5, 2.5, 3, 4]
    summary = summarise(results, SETTINGS)
    write_summary(tmp_path, summary)
    tree = json.loads((tmp_path / "summary.json").read_text())
    assert {
        "name": dummy.name, "unit": "h", "better": "lower", "formula": dummy.formula,
    } in tree["metrics"]  # fmt: skip
    assert tree["policies"][0]["metrics"][dummy.name]["mean"]["value"] == 2
    assert f"{dummy.name}_mean" in (tmp_path / "summary.csv").read_text()
    text = (tmp_path / "summary.md").read_text()
    assert "| wait of cats (h) |" in text and "hours cats wait; lower is better" in text
    assert "cats" in printed(summary, PLAIN_WIDTH)
    pictures = draw_figures(summary, results, tmp_path / "figures")
    # Text in these SVG files is drawn, with what it says in a comment.
    assert "wait of cats (h), lower is better" in (tmp_path / "figures/metrics.svg").read_text()
    write_events(tmp_path, means(summary), pictures, {"policy": "mine", "episodes": 3})
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Scalars(f"evaluation/{dummy.name}/a")[0].value == 2
    about = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    told = parse_session_start_info_plugin_data(about).hparams
    assert (told["policy"].string_value, told["episodes"].number_value) == ("mine", 3)


def test_figures_and_their_images(tmp_path: Path) -> None:
    results = finished(tmp_path, {"a": [1, 2], "b": [3, 4]})
    summary = summarise(results, SETTINGS)
    pictures = draw_figures(summary, results, tmp_path / "figures")
    names = {"comparison", "metrics", "improvement", "profiles", "distribution"}
    assert {picture.stem for picture in pictures} == names
    before = {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()}
    assert set(before) == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    draw_figures(summary, results, tmp_path / "figures")
    again = {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()}
    assert again == before
    for _ in range(2):  # writing again replaces what was there
        write_events(tmp_path, means(summary), pictures, {})
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["images"]) == {f"evaluation/{name}" for name in names}


@pytest.mark.parametrize("width", [80, 100, 140, 200])
def test_nothing_is_cut(width: int, tmp_path: Path) -> None:
    text = printed(summary_of(tmp_path, 1.0, 12.0, 1234.5), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for shown in ("greedy_objective_tuned", "earliest_finish_stingy", "12.00 [12.00, 12.00]"):
        assert shown in text
    if "overcommits" not in text:
        assert "summary.md" in text


def test_files_and_pipes_have_all_columns(tmp_path: Path) -> None:
    text = printed(summary_of(tmp_path, 1.0, 2.0), PLAIN_WIDTH)
    for metric in summary_of(tmp_path, 1.0, 2.0).metrics:
        assert all(word in text for word in metric.heading.split())


def test_a_reference_is_marked(tmp_path: Path) -> None:
    played = {"seer": [1, 1], "rule": [2, 2]}
    text = printed(summarise(finished(tmp_path, played, {"seer": "reference"}), SETTINGS), 200)
    assert "seer (reference) " in text
    assert text.count("(reference)") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"),
        (0.01234, "0.0123"),
        (1.23456, "1.235"),
        (123.456, "123.5"),
        (5678.9, "5,679"),
    ],
)
def test_four_digits_are_shown(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    "values", [(3.0,), (2.0, 2.0, 2.0, 2.0), (1.0, 1.01, 30.0, 900.0), (0.0, 5.0)]
)
def test_the_names_of_the_points_cover_nothing(values: tuple[float, ...], tmp_path: Path) -> None:
    figure = draw_comparison(summary_of(tmp_path, *values))
    try:
        points = figure.axes[1]
        extents = [text.get_window_extent() for text in points.texts if text.get_text()]
        assert len(extents) == len(values)
        for index, extent in enumerate(extents):
            assert extent.count_overlaps(extents[:index]) == 0
    finally:
        plt.close(figure)
