"""Evaluations with numbers of our choice, or of small episodes, for tests of the report."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.scheduler import Kind
from env.score.metrics import Metric
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from evaluation.contest import recording_name
from evaluation.episode_metrics import SHARES, PlayedEpisode, all_metrics
from report.compare import main as compare
from report.files import write_report
from report.summary import summarise
from tests.env.worlds import composed, world
from tests.episodes import begun, written

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
        patch.setattr("report.files.write_figures", lambda *figures: [])
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
    config = composed("episodes=3", f"slo={list(DEADLINES)}", name="evaluate") | {
        "cluster": CLUSTER,
        "workload": workload_of(),
        "objective": {"time_weight": 1.0, "cost_weight": 1.0},
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


HARDWARE = cluster_from_config(CLUSTER, "cluster")
POLICIES: dict[str, Kind] = {
    "learned": "learned",
    "greedy_objective_tuned_for_us": "baseline",
    "round_robin": "baseline",
    "clairvoyant": "reference",
}
"""Kinds by name. The first one uses all NUMA nodes, others fewer; see `played`."""
MEMORY = 3072
"""MB of every function, so that two run at a time on a small server and others wait."""
OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)


def fork(functions: int) -> WorkflowTemplate:
    """One function whose result all others read."""
    return WorkflowTemplate(
        "fork",
        computation=60_000_000 * (1 + np.arange(functions) % 3),
        memory_req=np.full(functions, MEMORY),
        parallelism=np.full(functions, 2),
        edges=np.array([(0, index) for index in range(1, functions)]),
        data_bytes=np.full(functions - 1, 100_000_000),
    )


def played(
    policy: int,
    episode: int,
    workflows: int,
    functions: int,
    gap: float,
    tenants: Sequence[str] = (),
) -> RawEnv:
    """An episode played to its end; workflows belong to the tenants in turn."""
    arrivals = [gap * index + episode for index in range(workflows)]
    owners = [tenants[index % len(tenants)] for index in range(workflows) if tenants]
    env = begun(arrivals, [fork(functions)] * workflows, HARDWARE, record=True, tenants=owners)
    nodes = len(env.state.nodes) - policy % 3
    while not env.done:
        env.step(*env.place_of(env.decisions // (1 + policy) % nodes), MEMORY)
    return env


def finished_evaluation(
    folder: Path,
    policies: Mapping[str, Kind] = POLICIES,
    episodes: int = 2,
    workflows: int = 3,
    functions: int = 6,
    gap: float = 40.0,
    tenants: Mapping[str, float] | None = None,
) -> Path:
    """Writes the files of an evaluation into a new folder and returns it.

    `tenants` have their declared shares; workflows arrive `gap` seconds apart; see `played`.
    """
    run = run_of(workload=workload_of(**(tenants or {})), episodes=episodes)
    rows = []
    for index, (policy, kind) in enumerate(policies.items()):
        for episode in range(episodes):
            env = played(index, episode, workflows, functions, gap, list(tenants or {}))
            finished = PlayedEpisode(env.state, OBJECTIVE, HARDWARE.power, env, 1.0, math.nan)
            metrics = {name: each.compute(finished) for name, each in metrics_of_rows().items()}
            rows.append(result(policy, episode, math.nan, 0, kind, "", **metrics))
            (folder / "episodes").mkdir(parents=True, exist_ok=True)
            written(env, folder / "episodes" / f"{recording_name(policy, 0, episode)}.json")
    write_results(folder, run, rows)
    return folder


def write_training(folder: Path) -> None:
    """Adds what a training of the learned policy has left."""
    steps = np.arange(1, 11)
    curve = pd.DataFrame({"env_steps": 8192 * steps, "difference": 15.0 / np.sqrt(steps)})
    curve.to_csv(folder / "metrics.csv", index=False)
