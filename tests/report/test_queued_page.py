"""The report of an evaluation under queued dispatch holds what it found."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluation.queued_evaluation import SHARES
from evaluation.results import read_results
from report import page
from report.queued.files import write_files
from report.queued.page import write_report
from report.queued.summary import pooled_quantiles
from tests.report.queued import finished_queued
from tests.report.recorded import write_training

MEANS = {"fcfs": (40.0, 20.0), "sjf": (10.0, 10.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("queued") / "run"
    write_files(folder, finished_queued(folder, MEANS), read_results(folder))
    return folder


def specs_in(text: str) -> dict[str, Any]:
    found = json.loads(re.findall(r'id="settings">(.*?)</script>', text)[0])["specs"]
    return dict(found)


def rows_of(spec: dict[str, Any]) -> pd.DataFrame:
    (rows,) = spec["datasets"].values()
    return pd.DataFrame(rows)


def test_many_cases_have_a_page(tmp_path: Path) -> None:
    """More rows than Altair takes unasked: 200 of each of 28 cases."""
    folder = tmp_path / "run"
    run = finished_queued(folder, {f"order_{number}": (40.0, 20.0) for number in range(14)})
    write_files(folder, run, read_results(folder))
    cdf = specs_in((folder / "report.html").read_text())["completion-cdf"]
    assert len(rows_of(cdf)) == 28 * len(SHARES)


def test_a_learned_order_has_its_learning_curve(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_files(folder, finished_queued(folder, MEANS), read_results(folder))
    assert 'id="learning"' not in (folder / "report.html").read_text()
    write_training(folder)
    text = write_report(folder).read_text()
    assert 'id="learning"' in text
    curve = rows_of(specs_in(text)["learning"])
    assert curve["J"].iloc[0] == 15.0 and curve["env_steps"].max() == 81920


def test_the_table_ranks_the_orders_of_every_load(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert "Shortest mean completion time on representative, 1, lru: <strong>sjf</strong>" in text
    (table,) = re.findall(
        r'<tbody data-load="representative, 1, lru" hidden>(.*?)</tbody>', text, re.S
    )
    first, second = re.findall(r"<tr>(.*?)</tr>", table)
    assert first.startswith("<th>sjf</th><td>2.828 [")  # geometric mean of 4 and 2
    assert second.startswith("<th>fcfs</th><td>1.000 [1.000, 1.000]</td>")
    assert "<td>10.00 [10.00, 10.00]</td>" in first
    assert "<td>30.00 [" in second
    for said in ("a line about the sample", "python evaluate.py", "1, 2</dd>"):
        assert said in text


def test_what_the_charts_draw(folder: Path) -> None:
    specs = specs_in((folder / "report.html").read_text())
    assert set(specs) == {"ranking", "against-ratio", "parts", "completion-cdf", "deadlines"}
    line = rows_of(specs["against-ratio"])
    fcfs = line[(line["order"] == "fcfs") & (line["metric"] == "completion")]
    assert dict(zip(fcfs["ratio"], fcfs["mean"], strict=True)) == {0.1: 3.0, 1.0: 30.0}
    assert (line["low"] >= 0).all() and (line["ci_low"] < 0).any()
    parts = rows_of(specs["parts"])
    fcfs = parts[(parts["order"] == "fcfs") & (parts["load"] == "representative, 1, lru")]
    assert dict(zip(fcfs["part"], fcfs["seconds"], strict=True)) == {
        "queueing": 15.0,
        "cold_start": 7.5,
        "execution": 7.5,
    }
    ranked = rows_of(specs["ranking"])
    best = ranked[(ranked["place"] == 0) & (ranked["load"] == "representative, 1, lru")]
    bests = dict(zip(best["metric"], best["order"], strict=True))
    assert bests["completion"] == bests["speedup"] == "sjf"  # the lowest, the highest
    times = rows_of(specs["completion-cdf"])
    times = times[(times["order"] == "fcfs") & (times["load"] == "representative, 1, lru")]
    # Quarters of the requests of both seeds: 0.5 * 20, 0.5 * 40, 1.5 * 20, 1.5 * 40.
    shares = times.groupby("completion")["share"].max()
    assert shares.to_dict() == pytest.approx({10.0: 0.25, 20.0: 0.5, 30.0: 0.75, 60.0: 1.0})
    met = rows_of(specs["deadlines"])
    assert sorted(set(met["deadline"])) == [2, 5, 10, 20]


def test_nothing_is_fetched_from_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_library", lambda: "")
    text = write_report(folder).read_text()
    assert not re.search(r"""<(script|link|img|iframe)[^>]+(src|href)=["'](?!data:)""", text)
    assert "http" not in text and "@import" not in text


def test_one_ratio_has_no_chart_against_it(tmp_path: Path, folder: Path) -> None:
    """And workflows, which have no deadlines, no chart of them."""
    for file in folder.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    summary = json.loads((folder / "summary.json").read_text())
    summary["cases"] = [case for case in summary["cases"] if case["ratio"] == 1.0]
    for case in summary["cases"]:
        for name in [name for name in case["metrics"] if name.startswith("slo_")]:
            del case["metrics"][name]
    summary["metrics"] = [each for each in summary["metrics"] if "slo_" not in each["name"]]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    rows = pd.read_parquet(folder / "results.parquet")
    rows[rows["ratio"] == 1.0].to_parquet(tmp_path / "results.parquet")
    text = write_report(tmp_path).read_text()
    assert set(specs_in(text)) == {"ranking", "parts", "completion-cdf"}
    for heading in ("against the ratio", "Deadlines met"):
        assert f"{heading}</h3>" not in text


def test_seeds_count_by_what_arrived() -> None:
    times = [np.full(len(SHARES), 1.0), np.full(len(SHARES), 9.0)]
    rows = pd.DataFrame({"completion_quantiles": times, "requests": [300.0, 100.0]})
    assert float((pooled_quantiles(rows) == 1.0).mean()) == pytest.approx(0.75, abs=0.01)
