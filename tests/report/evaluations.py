"""Evaluations with numbers of our choice, for tests of what is made of them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.scheduler import Kind
from env.score.metrics import Metric
from evaluation.episode_metrics import SHARES, all_metrics
from report.compare import main as compare
from report.page import write_report
from report.summary import summarise
from tests.env.worlds import world

CONFIDENCE = 0.95

WIDE = 400
"""Characters in which tables have all their columns."""
DEADLINES, LATE = (2.0, 5.0), 100.0


def metrics_of_rows() -> Mapping[str, Metric]:
    """What is known of an evaluation's episodes, by name."""
    return all_metrics(DEADLINES, LATE)


def result(
    policy: str,
    episode: int,
    value: float,
    seed: int = 0,
    kind: Kind = "baseline",
    scenario: str = "",
    **others: float,
) -> dict[str, Any]:
    """A row of results.parquet: all metrics have one value, but for the `others`.

    Half of the workflows take half the flow time, the others half as much again.
    """
    metrics = {**dict.fromkeys(metrics_of_rows(), value), **others}
    where = {"policy": policy, "kind": kind, "scenario": scenario, "seed": seed, "episode": episode}
    times = metrics["flow_time"] * np.where(SHARES <= 0.5, 0.5, 1.5)
    return {**where, **metrics, "flow_time_quantiles": times.tolist()}


def write_results(
    folder: Path, run: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> pd.DataFrame:
    """run.json and results.parquet of a finished evaluation; returns its rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(run))
    table = pd.DataFrame(rows)
    table.to_parquet(folder / "results.parquet")
    return table


def write_page(folder: Path) -> Path:
    """report.html of the evaluation in a folder, without figures."""
    run = json.loads((folder / "run.json").read_text())
    results = pd.read_parquet(folder / "results.parquet")
    known = {name: each for name, each in metrics_of_rows().items() if name in results}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("report.page.write_figures", lambda *figures: [])
        write_report(folder, run, summarise(results, known, CONFIDENCE))
    return folder / "report.html"


def settings_in(page: str) -> dict[str, Any]:
    """What a page is drawn from."""
    found: dict[str, Any] = json.loads(re.findall(r'id="settings">(.*?)</script>', page)[0])
    return found


def rows_of(spec: Mapping[str, Any]) -> pd.DataFrame:
    """The data of a chart."""
    return pd.DataFrame(spec["data"]["values"])


SCENARIOS = {
    f"keep_alive={name} ratio={ratio:g}": {"keep_alive": name, "ratio": ratio}
    for name in ("none", "lru")
    for ratio in (0.3, 0.7)
}
SLOW_LINKS = "cluster.between_servers_bandwidth_bytes_per_s=20_000_000"
CLUSTER = world("cluster=hetero_numa", SLOW_LINKS)["cluster"]
CLUSTER["server_types"] = {
    name: CLUSTER["server_types"][name] | {"server_count": count}
    for name, count in (("small", 2), ("large", 1))
}


def workload_of(mean_gap: float = 5, **tenants: float) -> dict[str, Any]:
    """The group `workload` of a configuration."""
    arrivals = {"kind": "poisson", "workflows": [3, 4], "mean_gap": mean_gap}
    return {"seed": 1, "arrivals": arrivals, "tenants": tenants, "container_cold_start": 0.0}


def run_of(**changes: Any) -> dict[str, Any]:
    """What run.json holds, as far as it is read."""
    config: dict[str, Any] = {
        "policy": None,
        "episodes": 3,
        "seed": 0,
        "cluster": CLUSTER,
        "workflow": {"mix": {}},
        "workload": workload_of(),
        "objective": {"time_weight": 1.0, "cost_weight": 1.0},
        "dispatch": {"kind": "immediate"},
        "lease": {"kind": "hourly", "step": 3600.0},
        "keep_alive": {"policy": "none"},
        "statistics": {"confidence": CONFIDENCE},
        "report": {"episodes_mb": 12.0},
        "workers": 1,
        "slo": list(DEADLINES),
        "late": LATE,
        "sweep": None,
    }
    plain = {
        "format": 1,
        "command": "python evaluate.py",
        "commit": "c",
        "versions": {"numpy": np.__version__},
        "scenarios": {"": {}},
        "seeds": [0],
        "episodes": 3,
        "workload_sha256": "w",
    }
    run: dict[str, Any] = json.loads(json.dumps({**plain, "config": config}))
    for key, value in changes.items():
        where = run if key in plain or key not in config else run["config"]
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
    """A finished evaluation: per policy the value of all its metrics in every episode.

    Where `run` has several scenarios, values are multiplied by 1, 2, 3, ... in them.
    """
    run = run or run_of()
    rows = [
        result(policy, episode, factor * value, 0, (kinds or {}).get(policy, "baseline"), scenario)
        for factor, scenario in enumerate(run["scenarios"], 1)
        for policy, found in values.items()
        for episode, value in enumerate(found)
    ]
    return write_results(folder, run, rows)
