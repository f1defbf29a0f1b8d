"""A metric that is declared once is in every output of a training and of an evaluation."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import evaluate
import train
from env.score.metrics import METRICS, Metric
from report.compare import main as compare
from tests.commands import InProcess
from tests.env.worlds import TINY
from tests.test_train import BRIEF

CATS = Metric("cats", "hours that cats wait", lambda episode: 250.0, unit="h")


def scalars(folder: Path) -> dict[str, float]:
    """The last value of every curve in a folder of TensorBoard."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {name: events.Scalars(name)[-1].value for name in events.Tags()["scalars"]}


def test_a_declared_metric_is_everywhere(
    tmp_path: Path,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(METRICS, CATS.name, CATS)
    monkeypatch.setenv("COLUMNS", "200")  # room for all columns in the terminal
    trained, evaluated = tmp_path / "trained", tmp_path / "evaluated"

    told = (*BRIEF, "budget.iterations=1", f"hydra.run.dir={trained}")
    done = in_process("train", train.prepared)(*told)
    assert done.code == 0, done.err
    assert pd.read_csv(trained / "metrics.csv")["cats"].tolist() == [250.0]
    assert scalars(trained)["episodes_more/cats"] == 250.0

    rules = ("baselines=[random,cheapest]", "episodes=2", f"hydra.run.dir={evaluated}")
    done = in_process("evaluate", evaluate.prepared, figures=True)(*TINY, *rules)
    assert done.code == 0, done.err
    assert "cats" in done.out and " 250 " in done.out
    table = pq.read_table(evaluated / "results.parquet")
    assert table["cats"].to_pylist() == [250.0] * 4
    told = table.schema.field("cats").metadata
    assert (told[b"unit"], told[b"formula"]) == (b"h", b"hours that cats wait")
    assert "cats_mean" in (evaluated / "summary.csv").read_text()
    assert '"name": "cats"' in (evaluated / "summary.json").read_text()
    assert "| cats (h) |" in (evaluated / "summary.md").read_text()
    assert ">cats (h)</option>" in (evaluated / "report.html").read_text()
    page = (evaluated / "report.html").read_text()
    assert "<th>cats (h)</th>" in page and "hours that cats wait" in page
    assert scalars(evaluated)["evaluation/cats/random"] == 250.0

    again = shutil.copytree(evaluated, tmp_path / "again")
    compare([str(evaluated), str(again)])
    assert "cats" in capsys.readouterr().out
