"""The page holds what the evaluation found, and what was left out is said."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.table import Table

from report import files
from report.charts import pareto
from report.files import write_files
from report.summary import wrapped
from report.world import calm, world
from tests.report import evaluations
from tests.report.evaluations import (
    POLICIES,
    SCENARIOS,
    finished,
    finished_evaluation,
    result,
    rows_of,
    run_of,
    settings_in,
    with_run,
    write_page,
    write_results,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_evaluation(tmp_path_factory.mktemp("page") / "run", episodes=1)


def specs_in(text: str, scenario: str = "") -> dict[str, Any]:
    """The charts of a page: those of a scenario, and those that are there once."""
    settings = settings_in(text)
    return {**settings["specs"], **settings["scenarios"][scenario]}


def embedded(text: str) -> list[tuple[str, str]]:
    """(episode, policy) of the recordings in a page."""
    return re.findall(r'class="episode" data-episode="([^"]+)" data-policy="([^"]+)"', text)


def test_it_says_what_was_run(folder: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    run["config"]["note"] = "</script><b>bold</b>"
    run["commit"] = "0123456789ab"
    run["samples"] = {"rare": "12 of 90 functions"}
    (folder / "run.json").write_text(json.dumps(run))
    text = write_page(folder).read_text()
    for shown in ("python evaluate.py", run["commit"], f"numpy {np.__version__}"):
        assert shown in text
    assert "confidence: 0.95" in text and "with 4 NUMA nodes and 40 cores cost" in text
    assert "<b>bold</b>" not in text and "<strong>rare</strong>: 12 of 90 functions" in text


def test_all_policies_and_recordings_are_there(tmp_path: Path) -> None:
    text = write_page(finished_evaluation(tmp_path / "run", episodes=2)).read_text()
    results = pd.read_parquet(tmp_path / "run" / "results.parquet")
    best_first = list(results.groupby("policy")["J"].mean().sort_values().index)
    assert set(best_first) == set(POLICIES)
    assert embedded(text) == [
        (f"{episode} of seed 0", policy) for episode in range(2) for policy in best_first
    ]


def test_recordings_beyond_the_size_are_counted(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    with_run(lambda run: run["config"]["report"].update(episodes_mb=1e-6))(tmp_path / "run")
    text = write_page(tmp_path / "run").read_text()
    assert len(embedded(text)) == 1
    assert f"{len(POLICIES) - 1} more recorded episodes" in text


def test_sections_without_files_are_left_out(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", episodes=1, tenants={"a": 1.0})
    assert ">Flow time of tenants</h" in write_page(folder).read_text()
    for recording in (folder / "episodes").iterdir():
        recording.unlink()
    text = write_page(folder).read_text()
    assert ">Ranking of means</h2>" in text
    for heading in ("Gantt chart", "Flow time of tenants", "Learning curve"):
        assert f">{heading}</h" not in text
    for steps, shown in (("8192,", False), ("8192,\n16384,5.24", True)):
        (folder / "metrics.csv").write_text(f"env_steps,difference\n{steps}\n")
        assert (">Learning curve</h2>" in write_page(folder).read_text()) == shown


def test_carbon_has_an_axis_where_it_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shown in (">Time against carbon</h2>", "<th>carbon (gCO2e)</th>"):
        assert shown in write_page(folder).read_text()
    monkeypatch.setattr(evaluations, "HARDWARE", replace(evaluations.HARDWARE, power=None))
    text = write_page(finished_evaluation(tmp_path / "run", episodes=1)).read_text()
    assert ">Time against cost</h2>" in text
    assert "Time against carbon" not in text and "<th>carbon" not in text


def test_utilisation_is_averaged_over_time() -> None:
    """Half used from 0 to 2 s, fully to 3 s, idle from then on; bins of 2 s."""
    use = files.percent_over(
        np.array([0.0, 2.0, 3.0]), np.array([0.5, 1.0, 0.0]), np.array([0.0, 2.0, 4.0, 6.0])
    )
    assert use == [50, 50, 0]


def test_policies_are_compared_episode_by_episode(tmp_path: Path) -> None:
    """`a` is the best in two of four episodes and 3, then 5 times the best in the others."""
    finished(tmp_path, {"a": [1.0, 1.0, 6.0, 10.0], "b": [2.0, 2.0, 2.0, 2.0]})
    text = write_page(tmp_path).read_text()
    specs = specs_in(text)
    compared = rows_of(specs["improvement"])
    assert compared[["policy", "mean"]].values.tolist() == [["a", 0.5]]
    lines = rows_of(specs["profiles"]).set_index("policy")
    shares = dict(zip(*lines.loc["a", ["ratio", "share"]], strict=True))
    assert (shares[1.0], shares[2.5], shares[4.0]) == (0.5, 0.5, 0.75)
    assert "<th>P(better)</th>" in text


def test_flow_times_are_those_of_all_episodes(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [10.0, 20.0]})
    times = rows_of(specs_in(write_page(tmp_path).read_text())["flow-time"]).iloc[0]
    curve = pd.DataFrame({"time": times["flow_time"], "share": times["share"]})
    # Quarters of the workflows: half of 10 and of 20 s, and one and a half times that.
    shares = curve.groupby("time")["share"].max().to_dict()
    assert shares == pytest.approx({5.0: 0.25, 10.0: 0.5, 15.0: 0.75, 30.0: 1.0})


def test_parts_and_deadlines_where_they_are_known(tmp_path: Path) -> None:
    known = {"queueing": 5.0, "container_start": 2.0, "execution": 3.0, "slo_2": 0.5, "slo_5": 1.0}
    unknown = dict.fromkeys(("server_start", "transfer", "cost_ratio", "carbon"), math.nan)
    rows = [result("a", episode, 0.0, J=4.0, **known, **unknown) for episode in range(2)]
    write_results(tmp_path, run_of(), rows)
    text = write_page(tmp_path).read_text()
    specs = specs_in(text)
    assert set(specs) == {"ranking", "profiles", "flow-time", "parts", "deadlines"}
    parts = rows_of(specs["parts"])
    assert dict(zip(parts["part"], parts["seconds"], strict=True)) == {
        "queueing": 5.0,
        "container start": 2.0,
        "execution": 3.0,
    }
    met = rows_of(specs["deadlines"])
    assert dict(zip(met["deadline"], met["mean"], strict=True)) == {2.0: 0.5, 5.0: 1.0}
    for heading in ("Time against cost", "Cold starts of servers", "Against what was swept"):
        assert f">{heading}</h" not in text


def test_every_scenario_has_its_charts_and_tables(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [1.0, 2.0], "b": [4.0, 5.0]}, run=run_of(scenarios=SCENARIOS))
    text = write_page(tmp_path).read_text()
    for factor, scenario in enumerate(SCENARIOS, 1):
        assert f"<option>{scenario}</option>" in text
        ranked = rows_of(specs_in(text, scenario)["ranking"])
        J = ranked[ranked["metric"] == "J"]
        assert dict(zip(J["policy"], J["mean"], strict=True)) == {
            "a": 1.5 * factor,
            "b": 4.5 * factor,
        }
        (table,) = re.findall(f'<tbody data-scenario="{scenario}" hidden>(.*?)</tbody>', text, re.S)
        assert f">{1.5 * factor:g}</td>" in table and table.index(">a<") < table.index(">b<")


def test_a_number_that_was_swept_is_an_axis(tmp_path: Path) -> None:
    played = {"a": [1.0, 2.0, 1.0, 2.0, 1.0, 2.0], "b": [4.0] * 6}
    finished(tmp_path, played, run=run_of(scenarios=SCENARIOS))
    ((axis, sweep),) = settings_in(write_page(tmp_path).read_text())["sweeps"].items()
    assert (axis, sweep["panels"]) == ("ratio", ["keep_alive=none", "keep_alive=lru"])
    rows = rows_of(sweep["specs"]["J"])
    own = rows[(rows["policy"] == "a") & (rows["panel"] == "keep_alive=lru")]
    assert dict(zip(own["x"], own["mean"], strict=True)) == {0.3: 4.5, 0.7: 6.0}
    # Three times the values: a standard error of sqrt(2.7 / 6), and Student's t of six values.
    assert own["low"].iloc[0] == pytest.approx(4.5 - 2.571 * math.sqrt(2.7 / 6), abs=0.01)
    still = rows[rows["policy"] == "b"]  # which does not vary
    assert (still["low"] == still["mean"]).all() and (still["high"] == still["mean"]).all()


def differences_in(text: str) -> pd.DataFrame:
    return rows_of(specs_in(text)["difference"]).set_index("policy")


def test_the_first_chart_is_the_paired_difference(tmp_path: Path) -> None:
    """Of 8 episodes `a` has 1 less than the best baseline in each, and `c` once 2 more."""
    played = {"b": [4.0, 6.0] * 4, "c": [4.0, 6.0] * 3 + [6.0, 6.0], "a": [3.0, 5.0] * 4}
    finished(tmp_path, played, {"a": "learned"})
    text = write_page(tmp_path).read_text()
    assert text.index('id="difference"') < text.index('id="ranking"')
    rows = differences_in(text)
    assert list(rows.index) == ["a", "b", "c"]
    assert rows["mean"].tolist() == [-0.2, 0.0, 0.05]
    assert rows["spread"].tolist() == ["-20%", "0%", "+5% [-7, +17]"]
    assert rows["clear"].tolist() == [True, False, False]
    # Of c the mean is one standard error, beyond which are 35% with 7 degrees of freedom.
    assert rows["p"].tolist() == ["<0.001", "1", "0.35"]
    assert (
        "Learned policy a, J -20% against b, the best baseline: surely better, rank 1 of 3." in text
    )


def test_outliers_do_not_set_the_axis(tmp_path: Path) -> None:
    finished(tmp_path, {"a": [4.0] * 6, "b": [5.0] * 6, "c": [6.0] * 6, "z": [80.0] * 6})
    rows = differences_in(write_page(tmp_path).read_text())
    assert rows.loc["z", "beyond"] == "+1,900%"
    assert rows["mean"].max() < 2
    assert rows.loc[["a", "b", "c"], "beyond"].tolist() == [""] * 3


@pytest.mark.parametrize(("episodes", "few"), [(4, True), (5, False)])
def test_few_episodes_are_points(episodes: int, few: bool, tmp_path: Path) -> None:
    values = [2.0, 3.0, 4.0, 5.0, 6.0][:episodes]
    finished(tmp_path, {"a": values, "b": [value + value % 2 + 1 for value in values]})
    text = write_page(tmp_path).read_text()
    rows = differences_in(text)
    assert (rows["low"] == rows["mean"]).all() == few
    assert rows.loc["b", "each"] == ([1 / 3.5, 2 / 3.5, 1 / 3.5, 2 / 3.5] if few else [])
    assert ("95% interval" in text) == (not few)


ARRIVING = "3 to 4 workflows arrive 5 s apart on average, an episode has 40 functions on average."
KEY = "cluster.server_types.large.server_count"


@pytest.mark.parametrize(
    ("scenarios", "text"),
    [
        (
            {"": {}},
            "3 servers (2 small, 1 large) with 4 NUMA nodes and 40 cores cost 0.17 to 1.09 USD/h "
            "each, 1.43 USD/h together; each started hour of a lease is paid. " + ARRIVING,
        ),
        ({"one": {KEY: 1}, "two": {KEY: 2}}, f"{ARRIVING} Scenarios differ in {KEY}."),
    ],
)
def test_it_says_what_the_world_was(scenarios: dict[str, Any], text: str) -> None:
    """What is swept is not said to be the same."""
    results = pd.DataFrame([result("a", 0, 2.0, decisions=40.0)])
    assert world(run_of(scenarios=scenarios), results) == text


@pytest.mark.parametrize(
    ("weights", "formula"),
    [
        ({"time_weight": 0.1, "cost_weight": 1.0}, "0.1 * mean slowdown + cost ratio, 1 each"),
        (
            {"time_weight": 1.0, "cost_weight": 0.0, "fairness_weight": 2.0},
            "mean slowdown + 2 * share error, 1 is ideal, no share error",
        ),
    ],
)
def test_J_is_defined_as_it_was_weighted(
    weights: dict[str, float], formula: str, tmp_path: Path, no_figures: None
) -> None:
    results = finished(tmp_path, {"a": [1.0, 2.0]})
    run = run_of(objective=weights)
    told = write_files(tmp_path, run, results, 100)
    table = told.renderables[-1]
    assert isinstance(table, Table)
    assert f"<p>J = {formula}" in (tmp_path / "report.html").read_text()
    assert f"- J: {formula}" in (tmp_path / "summary.md").read_text()
    assert str(table.caption).startswith(f"J = {formula}")


def test_the_front_holds_whom_nobody_beats() -> None:
    points = np.array([[1.0, 4.0], [2.0, 2.0], [2.0, 3.0], [4.0, 1.0], [4.0, 4.0], [2.0, 2.0]])
    assert pareto(points).tolist() == [True, True, False, True, False, True]


def test_long_names_have_two_lines() -> None:
    assert wrapped("greedy_objective_tuned_for_us") == "greedy_objective_\ntuned_for_us"
    assert wrapped("onewordwithoutanybreakinit") == "onewordwithoutanybreakinit"


def luminance(colour: str) -> float:
    """Relative, as in WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def layers_of(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for layer in spec.get("layer", []):
        yield from layers_of(layer)
    if "encoding" in spec:
        yield spec


def test_text_can_be_read_in_light_and_in_dark(folder: Path) -> None:
    text = write_page(folder).read_text()
    for style in re.findall(r":root[^{]*{([^}]*)}", text):
        colours = dict(re.findall(r"--(\w+): (#\w{6})", style))
        for name, back in product(("text", "soft"), ("card", "back")):
            dark, light = sorted((luminance(colours[name]), luminance(colours[back])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, back, colours)
    # Text in charts has these colours, not those of policies.
    for spec in specs_in(text).values():
        for layer in layers_of(spec):
            if "text" in layer["encoding"]:
                assert not {"color", "fill"} & layer["encoding"].keys()


def test_it_is_said_where_nothing_waited(tmp_path: Path, no_figures: None) -> None:
    """Orders make no difference there, which equal rows alone do not tell."""
    scenarios = {name: {"workload": name} for name in ("calm", "busy")}
    run = run_of(scenarios=scenarios, dispatch={"kind": "queued"})
    results = finished(tmp_path, {"fcfs": [1, 2], "srf": [1, 2]}, run=run)
    results.loc[results["scenario"] == "calm", "queueing"] = 0.0
    told = "nothing waited in the central queue in 1 of 2 scenarios, so orders make no difference"
    assert calm(run, results) == f"{told} there"
    assert calm(run, results.assign(queueing=1.0)) == ""
    nowhere = results.assign(queueing=0.0)
    assert calm(run_of(scenarios=scenarios), nowhere) == ""
    write_files(tmp_path, run, nowhere, 80)
    for name in ("report.html", "summary.md"):
        assert "nothing waited in the central queue, so orders" in (tmp_path / name).read_text()
