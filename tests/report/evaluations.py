"""Evaluations with numbers of our choice, for tests of what is made of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agents.scheduler import Kind
from evaluation.contest import Row, all_metrics
from evaluation.results import ResultsWriter, episode_layout
from evaluation.statistics import StatisticsSettings
from report.compare import main as compare

SETTINGS = StatisticsSettings(confidence=0.95)


def row_of(policy: str, episode: int, value: float, seed: int = 0, kind: Kind = "baseline") -> Row:
    """A row whose metrics all have one value."""
    return Row(policy, kind, seed, episode, dict.fromkeys(all_metrics(), value))


def run_of(**changes: Any) -> dict[str, Any]:
    """What run.json holds, as far as it is read."""
    config = {
        "cluster": {"single_core_speed_ops_per_s": 1},
        "workflow": {"mix": {}},
        "workload": {"arrivals": {"mean_gap": 5}},
        "objective": {"time_weight": 1.0, "cost_weight": 1.0},
        "dispatch": {"kind": "immediate"},
        "lease": {"kind": "hourly", "step": 3600.0},
        "keep_alive": {"policy": "none"},
        "statistics": SETTINGS.model_dump(),
        "report": {"episodes_mb": 12.0},
        "workers": 1,
    }
    plain = {"format": 1, "commit": "c", "seeds": [0], "episodes": 3, "workload_sha256": "w"}
    run: dict[str, Any] = json.loads(json.dumps({**plain, "config": config}))
    for key, value in changes.items():
        where = run["config"] if key in config else run
        where[key] = value
    return run


Damage = Callable[[Path], object]
"""Does something to the folder of an evaluation."""


def with_run(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Changes run.json."""

    def changed(folder: Path) -> None:
        run = json.loads((folder / "run.json").read_text())
        change(run)
        (folder / "run.json").write_text(json.dumps(run))

    return changed


def with_rows(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Damage:
    """Changes the rows of results.parquet."""

    def changed(folder: Path) -> None:
        change(pd.read_parquet(folder / "results.parquet")).to_parquet(folder / "results.parquet")

    return changed


def refused(folders: Sequence[Path], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`report.compare` leaves with one line that names the second folder."""
    with pytest.raises(SystemExit) as left:
        compare([str(folder) for folder in folders])
    said = capsys.readouterr()
    assert (left.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert says in said.err and str(folders[1]) in said.err


def finished(
    folder: Path,
    values: Mapping[str, Sequence[float]],
    kinds: Mapping[str, Kind] | None = None,
    run: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """A finished evaluation: per policy the value of all its metrics in every episode."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = kinds or {}
    with ResultsWriter(folder, run or run_of(), list(values), episode_layout()) as writer:
        for policy, found in values.items():
            for episode, value in enumerate(found):
                row = row_of(policy, episode, value, kind=kinds.get(policy, "baseline"))
                writer.add([(row, None)])
        return writer.finish()
