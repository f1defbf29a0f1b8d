"""What an evaluation comes to: ranking, files, tables, pictures, every metric in each of them."""

import csv
import io
import json
import math
import re
import resource
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console, Group
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import parse_session_start_info_plugin_data

from agents.scheduler import Kind
from env.score.reward import Objective
from report import palette
from report.charts import time_against
from report.digits import exact
from report.drawing import library
from report.files import write_files, write_summary
from report.line_charts import sweep_charts, sweep_figure
from report.summary import Summary, summarise
from report.table import summary_table
from tests.report.evaluations import (
    CONFIDENCE,
    WIDE,
    finished,
    metrics_of_rows,
    result,
    rows_of,
    run_of,
    write_results,
)


def summary_in(results: pd.DataFrame) -> Summary:
    return summarise(results, metrics_of_rows(), CONFIDENCE)


FIGURES = {
    *("difference", "ranking", "time-against-cost", "time-against-carbon", "improvement", "parts"),
    *("profiles", "flow-time", "deadlines", "cold-starts"),
}
SWEEP = {f"lease.step={step}": {"lease.step": step} for step in (60, 3600)}


def printed(found: Summary | Group, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(summary_table(found, width) if isinstance(found, Summary) else found)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_who_lets_functions_fail_is_named() -> None:
    rows = [result("sound", 0, 1.0, failed=0.0), result("rash", 0, 1.0, failed=0.1)]
    assert "Functions failed under rash: " in printed(summary_in(pd.DataFrame(rows)), 300)


PLAYED = {"worst": [6, 9, 9], "rule": [2, 4, 6], "learned": [1, 3, 2], "seer": [0, 0, 1]}


@pytest.mark.parametrize(
    ("kinds", "measure", "differences"),
    [
        ({"learned": "learned", "seer": "reference"}, "rule", [-11 / 3, -2, 0, 4]),
        # Without baselines the best policy is the measure.
        (dict.fromkeys(PLAYED, "learned") | {"seer": "reference"}, "learned", [-5 / 3, 0, 2, 6]),
        (dict.fromkeys(PLAYED, "reference"), "seer", [0, 5 / 3, 11 / 3, 23 / 3]),
    ],
)
def test_policies_are_sorted_by_mean_j_and_compared_with_the_best_baseline(
    kinds: dict[str, Kind], measure: str, differences: list[float], tmp_path: Path
) -> None:
    summary = summary_in(finished(tmp_path, PLAYED, kinds))
    assert [each.policy for each in summary.policies] == ["seer", "learned", "rule", "worst"]
    assert summary.measure == measure
    found = [each.against.difference.value for each in summary.policies]
    assert found == pytest.approx(differences)


def test_the_title_counts_the_episodes_of_all_seeds(tmp_path: Path) -> None:
    one, other = (finished(tmp_path / name, {"a": [1, 2, 3]}) for name in "xy")
    assert summary_in(one).title == "3 held-out episodes, seed 0"
    both = pd.concat([one, other.assign(seed=4)])
    assert summary_in(both).title == "6 held-out episodes, seeds 0, 4"
    swept = finished(tmp_path / "z", {"a": [1]}, run=run_of(scenarios=SWEEP))
    assert summary_in(swept).title == "1 held-out episode in each of 2 scenarios, seed 0"


def test_all_pairs_are_compared(tmp_path: Path) -> None:
    played = {"b": [3, 5, 4, 9, 7, 8], "a": [1, 2, 3, 4, 5, 6], "c": [9, 9, 9, 9, 9, 9]}
    summary = summary_in(finished(tmp_path, played))
    write_summary(tmp_path, summary)
    pairs = json.loads((tmp_path / "summary.json").read_text())["pairs"]
    assert [pair["policy"] + pair["other"] for pair in pairs] == ["ab", "ac", "bc"]
    assert pairs[1]["against"]["difference"]["value"] == pytest.approx((21 - 54) / 6)
    # b is as good as c in one episode of six.
    assert pairs[2]["against"]["probability"]["value"] == pytest.approx(5.5 / 6)


NOISE = [0.9, -0.9, 0.3, -0.3, 0.6, -0.6]


@pytest.mark.parametrize(
    ("gain", "told"),
    [
        (1.0, "Learned policy mine, J -10.0% [-17.5, -2.5] against rule, the best baseline: su"),
        # Of a spread of 0.71: 2.145 of it / sqrt(15) is less than 0.4, 2.160 / sqrt(14) is more.
        (0.4, "against rule, the best baseline: not sure yet, about 9 more episodes would settle"),
        (0.0, "against rule, the best baseline: too close for any number of episodes to settle"),
    ],
)
def test_the_headline_is_the_learned_policy_against_the_best_rule(
    gain: float, told: str, tmp_path: Path
) -> None:
    mine = [10 - gain + each for each in NOISE]
    played = {"worst": [15.0] * 6, "mine": mine, "rule": [10.0] * 6}
    summary = summary_in(finished(tmp_path, played, {"mine": "learned"}))
    assert told in summary.finding
    row = next(row for row in summary.policies if row.policy == "mine")
    assert ("surely" in summary.finding) == (row.against.p_value < 0.05)


def test_the_headline_of_a_sweep_is_about_all_scenarios(tmp_path: Path) -> None:
    found = summary_in(swept(tmp_path))
    # Over both scenarios even has 1.5 more than 5.5; the first scenario alone says the opposite.
    assert found.finding.startswith("Over all 2 scenarios, lowest J: odd; next is even, J +27.3%")
    assert found.finding.endswith("lowest by scenario: odd in 1, even in 1")
    assert found.of("lease.step=60").finding.startswith("Lowest J: even, J -25% against odd")


def test_the_files_say_the_same(tmp_path: Path) -> None:
    summary = summary_in(finished(tmp_path, {"b": [3, 5], "a": [1, 2]}))
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
        relative = exact(each["relative"]["value"], "share", "+")
        assert each["relative"]["value"] == pytest.approx(difference["value"] / 1.5)
        assert f"| {row['policy']} | {relative} |" in text


def test_no_name_is_a_formula_or_mark_up(tmp_path: Path) -> None:
    names = ["=1+1", "|a*b*", "$x_$"]
    write_summary(tmp_path, summary_in(finished(tmp_path, {name: [1, 2] for name in names})))
    with (tmp_path / "summary.csv").open(newline="") as file:
        assert {row["policy"] for row in csv.DictReader(file)} == {"'=1+1", "|a*b*", "$x_$"}
    text = (tmp_path / "summary.md").read_text()
    assert all(written in text for written in (r"| =1+1 |", r"| \|a\*b\* |", r"| \$x\_\$ |"))
    tree = json.loads((tmp_path / "summary.json").read_text())
    assert {row["policy"] for row in tree["policies"]} == set(names)


def test_a_number_that_nobody_has_is_nowhere(tmp_path: Path, no_figures: None) -> None:
    rows = [result("a", episode, 2.0, optimum_gap=math.nan) for episode in range(2)]
    results = write_results(tmp_path, run_of(), rows)
    table = printed(summary_in(results), WIDE)
    write_files(tmp_path, run_of(), results, WIDE)
    assert "optimum" not in table and "decisions" in table
    for name in ("summary.json", "summary.csv", "summary.md"):
        text = (tmp_path / name).read_text()
        assert "optimum" not in text and "decisions" in text
    assert "<th>optimum gap</th>" not in (tmp_path / "report.html").read_text()


def test_a_number_that_a_policy_lacks_is_null(tmp_path: Path) -> None:
    rows = [result("a", 0, 2.0, optimum_gap=1.5), result("b", 0, 2.0, optimum_gap=math.nan)]
    summary = summary_in(write_results(tmp_path, run_of(), rows))
    write_summary(tmp_path, summary)
    (one, other) = json.loads((tmp_path / "summary.json").read_text())["policies"]
    keys = ("value", "ci_low", "ci_high")
    assert one["metrics"]["optimum_gap"]["mean"]["value"] == 1.5
    assert other["metrics"]["optimum_gap"]["mean"] == dict.fromkeys(keys)


def swept(folder: Path) -> pd.DataFrame:
    """The policy `even` has 1 less than `odd` in one scenario and 4 more in the other."""
    rows = [
        result(policy, episode, value + episode, scenario=scenario)
        for policy, values in {"odd": (3, 6), "even": (2, 10)}.items()
        for scenario, value in zip(SWEEP, values, strict=True)
        for episode in range(3)
    ]
    return write_results(folder, run_of(scenarios=SWEEP), rows)


def test_the_files_of_several_scenarios(tmp_path: Path) -> None:
    short, long = SWEEP
    run = run_of(scenarios=SWEEP)
    table = write_files(tmp_path, run, swept(tmp_path), WIDE)
    with (tmp_path / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["policy"], row["J_mean"]) for row in rows] == [
        (short, "even", "3.0"), (short, "odd", "4.0"), (long, "odd", "7.0"), (long, "even", "11.0"),
    ]  # fmt: skip
    tree = json.loads((tmp_path / "summary.json").read_text())
    assert [(row["policy"], row["metrics"]["J"]["mean"]["value"]) for row in tree["overall"]] == [
        ("odd", 5.5), ("even", 7.0),
    ]  # fmt: skip
    assert f"| {short} | even | -25% |" in (tmp_path / "summary.md").read_text()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Scalars(f"evaluation/J/{long}/even")[0].value == 11
    pictures = {str(path.relative_to(tmp_path / "figures")) for path in tmp_path.rglob("*.png")}
    folders = ("01_lease.step=60", "02_lease.step=3600")
    assert pictures == {"sweep.png"} | {f"{at}/{name}.png" for at in folders for name in FIGURES}
    assert set(events.Tags()["images"]) == {
        f"evaluation/{name.removesuffix('.png')}" for name in pictures
    }
    words = [line.split() for line in printed(table, WIDE).splitlines() if line.strip()]
    first = [line[0] for line in words if line[0] in (short, long, "even", "odd")]
    assert first == [short, "even", "odd", long, "odd", "even"]


def test_the_figure_of_a_sweep(tmp_path: Path) -> None:
    scenarios = {
        f"keep_alive={name} step={step}": {"keep_alive": name, "step": step}
        for name in ("lru", "none")
        for step in (60, 600)
    }
    played = {"a": [1, 2], "b": [3, 4], "c": [4, 5]}
    results = finished(tmp_path, played, {"b": "learned"}, run_of(scenarios=scenarios))
    charts = sweep_charts(summary_in(results.assign(queueing=0.0)), scenarios)
    objective = Objective(time_weight=1, cost_weight=1)
    drawn = sweep_figure(charts, objective)
    rows = {
        panels["spec"]["layer"][0]["encoding"]["y"]["title"]: panels for panels in drawn["vconcat"]
    }
    # What is 0 everywhere has no panels.
    assert list(rows) == ["J against a", "slowdown", "cost ratio", "container start (s)"]
    green = objective.model_copy(update={"carbon_weight": 1.0})
    assert len(sweep_figure(charts, green)["vconcat"]) == len(rows) + 1
    points = rows_of(rows["J against a"])
    own = points[points["policy"] == "b"]
    assert own[["panel", "x"]].values.tolist() == [
        ["keep_alive=lru", 60], ["keep_alive=lru", 600],
        ["keep_alive=none", 60], ["keep_alive=none", 600],
    ]  # fmt: skip
    # Paired: 2 more than 1 and 2, in each scenario.
    assert own["mean"].tolist() == pytest.approx([2 / 1.5] * 4)
    colour = rows["slowdown"]["spec"]["layer"][0]["encoding"]["color"]["scale"]
    colours = [palette.KINDS["baseline"], palette.KINDS["learned"], palette.SERIES[2]]
    assert (colour["domain"], colour["range"]) == (["a", "b", "c"], colours)


def test_figures_and_their_images(tmp_path: Path) -> None:
    results = finished(tmp_path, {"a": [1, 2], "b": [3, 4]}, {"a": "learned"})
    found = []
    for _ in range(2):  # writing again replaces what was there
        write_files(tmp_path, run_of(policy="mine"), results, WIDE)
        figures = tmp_path / "figures"
        found.append({file.name: file.read_bytes() for file in figures.iterdir()})
    assert set(found[0]) == {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}
    assert found[0] == found[1]
    # The keys that the page has around its charts are in the figures.
    for name, keys in (("difference", "learned"), ("profiles", "a"), ("parts", "execution")):
        assert keys in re.findall(r">([^<]+)</text>", found[0][f"{name}.svg"].decode())
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["images"]) == {f"evaluation/{name}" for name in FIGURES}
    about = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    named = parse_session_start_info_plugin_data(about).hparams
    assert (named["policy"].string_value, named["episodes"].number_value) == ("mine", 3)


def test_results_are_kept_where_nothing_can_be_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """V8 reserves more addresses than there are, so its process is ended."""
    results = finished(tmp_path, {"a": [1, 2], "b": [3, 4]})
    limits = resource.getrlimit(resource.RLIMIT_AS)
    library.cache_clear()
    resource.setrlimit(resource.RLIMIT_AS, (30 << 30, limits[1]))
    try:
        write_files(tmp_path, run_of(), results, WIDE)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    told = capsys.readouterr().err
    assert told.startswith("no report.html and no figures: ") and told.count("\n") == 1
    kept = {path.name for path in tmp_path.iterdir() if not path.name.startswith("events")}
    assert kept == {"run.json", "results.parquet", *(f"summary.{e}" for e in ("csv", "json", "md"))}


@pytest.mark.parametrize("width", [80, 200])
def test_nothing_is_cut(width: int, tmp_path: Path) -> None:
    """The longest name a baseline has, differences and J are there at any width."""
    values = {"greedy_objective_tuned": 1.0, "greedy_objective_tuned_for_us": 12.0, "random": 1234}
    wave = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95]
    played = {name: [value * each for each in wave] for name, value in values.items()}
    text = printed(summary_in(finished(tmp_path, played)), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    first = " ".join(text.split("episodes")[0].split())
    assert first.startswith(
        "Lowest J: greedy_objective_tuned; next is greedy_objective_tuned_for_us, J +1,100%"
    )
    for shown in ("greedy_objective_tuned_for_us", "+1,100% [1,020, 1,180]", "1,230"):
        assert shown.replace("[", "[+").replace(", 1,1", ", +1,1") in text
    told = " ".join(text.split())
    assert ("P(better): share of" in told) == ("P(better) " in text.replace("P(better):", ""))
    assert ("summary.md" in text) == ("overcommits" not in text)


def test_a_reference_is_marked(tmp_path: Path) -> None:
    played = {"seer": [1, 1], "rule": [2, 2]}
    text = printed(summary_in(finished(tmp_path, played, {"seer": "reference"})), 200)
    assert "Lowest J: seer (reference), J -50% against rule, the best baseline" in text
    assert [line.split()[:2] for line in text.splitlines()].count(["seer", "(reference)"]) == 1


def test_names_beside_points_cover_nothing() -> None:
    """Of three points side by side one is named on the left, one on the right, one not at all."""
    costs, slowdowns = (1.0, 1.005, 1.006, 1.5, 2.0), (2.0, 2.0, 2.0, 1.0, 3.0)
    rows = [
        result(name, 0, 1.0, cost_ratio=cost, slowdown=slowdown)
        for name, cost, slowdown in zip("abcde", costs, slowdowns, strict=True)
    ]
    drawn = time_against("cost_ratio", summary_in(pd.DataFrame(rows)))
    named = drawn["data"]["values"]
    told = {each["policy"]: (each["text"], each["align"]) for each in named if each["text"]}
    assert told == dict(a=("a", "right"), b=("b", "left"), d=("d", "left"), e=("e", "left"))
