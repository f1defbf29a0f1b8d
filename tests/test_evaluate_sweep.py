"""`python evaluate.py` with traces and sweeps: interrupted, continued, on several processes."""

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from env.sim.cluster_file import cluster_from_config
from env.workloads.source import workload_source
from evaluate import prepared
from evaluation.contest import Contest, Played, Task
from tests.commands import Command, InProcess, refused
from tests.env.worlds import TINY, world
from tests.evaluate_command import (
    EVALUATE,
    FREE,
    TRACE,
    results_in,
    results_of,
    run_in,
    told_in,
)

LOADS = "sweep={workload.sampling.ratio: [0.1,0.3]}"
WORDS = [*TRACE, *FREE, LOADS, "baselines=[fcfs,funcsched]", "seed=[1,2]", "episodes=1"]
ROWS = 2 * 2 * 2
"""Scenarios, seeds, schedulers."""
COLD = "workload.container_cold_start=2.5"
WORKFLOWS = [*TINY, "baselines=[random,cheapest]", "episodes=2"]


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("evaluate", prepared)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished evaluation of WORDS, in a process of its own."""
    folder = tmp_path_factory.mktemp("finished")
    told = [*EVALUATE, *WORDS, "hydra.run.dir=run"]
    subprocess.run(told, cwd=folder, check=True, capture_output=True, timeout=600)
    return folder / "run"


def test_every_scenario_is_played(finished: Path) -> None:
    found = results_of(finished)
    scenarios = [f"sampling.ratio={ratio}" for ratio in (0.1, 0.3)]
    assert list(zip(found["scenario"], found["seed"], found["policy"], strict=True)) == [
        (scenario, seed, policy)
        for scenario in scenarios
        for seed in (1, 2)
        for policy in ("fcfs", "funcsched")
    ]
    run = json.loads((finished / "run.json").read_text())
    ratios = {name: point["workload.sampling.ratio"] for name, point in run["scenarios"].items()}
    assert ratios == dict(zip(scenarios, (0.1, 0.3), strict=True))
    for name, ratio in ratios.items():
        assert f"of which a share of {ratio:g} keeps" in run["samples"][name]
    assert (run["seeds"], run["players_sha256"], run["assumptions"]) == ([1, 2], {}, {})
    # Nothing is recorded where something is swept.
    assert not (finished / "episodes").exists()


def test_a_scenario_alone_has_the_same_numbers(
    finished: Path, command: Command, tmp_path: Path
) -> None:
    alone = [word for word in WORDS if word != LOADS]
    assert command(*alone, "workload.sampling.ratio=0.3", "record=0").code == 0
    found = results_of(finished)
    same = found[found["scenario"] == "sampling.ratio=0.3"].reset_index(drop=True)
    pd.testing.assert_frame_equal(results_in(tmp_path).assign(scenario=same["scenario"]), same)


def test_schedulers_meet_the_same_workflows_in_every_scenario(
    command: Command, tmp_path: Path
) -> None:
    told = "sweep={lease: [hourly,always], keep_alive: [none,lru]}", COLD
    assert command(*WORKFLOWS, *told).code == 0
    found = results_in(tmp_path)
    assert found["scenario"].nunique() == 4
    assert (found.groupby("episode")["decisions"].nunique() == 1).all()
    free = found["scenario"].str.startswith("lease=always")
    assert (found.loc[free, "rent"] == 0).all() and (found.loc[~free, "rent"] > 0).all()


def test_an_interrupted_evaluation_goes_on(
    finished: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Task] = []

    def counted(contest: Contest, task: Task) -> Played:
        if len(played) == 3:
            raise KeyboardInterrupt
        played.append(task)
        return play(contest, task)

    play = Contest.play
    monkeypatch.setattr(Contest, "play", counted)
    with pytest.raises(KeyboardInterrupt):
        command(*WORDS)
    (folder,) = tmp_path.glob("outputs/*/*")
    assert not (folder / "results.parquet").exists()
    # What changes numbers, or who plays, is refused.
    for changed, says in (
        ("late=50", "resume: late is 50"),
        ("sweep={workload.sampling.ratio: [0.1,0.5]}", "resume: sweep.workload.sampling.ratio is "),
        ("baselines=[fcfs]", "resume: baselines is "),
    ):
        key = changed.partition("=")[0]
        told = [word for word in WORDS if not word.startswith(f"{key}=")]
        done = command(*told, changed, f"resume={folder}")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert says in done.err
    monkeypatch.setattr(Contest, "play", lambda *it: played.append(it[1]) or play(*it))
    assert command(*WORDS, f"resume={folder}").code == 0
    # Nothing is played twice, and nothing is elsewhere.
    assert len({(task.scenario, task.seed) for task in played}) == len(played) == ROWS / 2
    pd.testing.assert_frame_equal(results_of(run_in(tmp_path)), results_of(finished))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"scenario": "sampling.ratio=0.2"}, "has a row of ('fcfs', 'sampling.ratio=0.2', "),
        ({"flow_time_quantiles": [1.0]}, "flow_time_quantiles: List should have at least 200"),
    ],
)
def test_rows_of_something_else_are_not_gone_on_with(
    changed: dict[str, object], says: str, finished: Path, command: Command, tmp_path: Path
) -> None:
    """Of finished results, and nothing is written."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    table = pq.read_table(folder / "results.parquet")
    first, *others = table.to_pylist()
    changed_table = pa.Table.from_pylist([first | changed, *others], schema=table.schema)
    pq.write_table(changed_table, folder / "results.parquet")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    refused(command(*WORDS, f"resume={folder}"), says)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_processes_change_no_number(finished: Path, command: Command, tmp_path: Path) -> None:
    assert command(*WORDS, "workers=2").code == 0
    pd.testing.assert_frame_equal(results_in(tmp_path), results_of(finished))


def test_the_hash_is_of_what_arrives(finished: Path, command: Command, tmp_path: Path) -> None:
    """In any world, whoever plays."""
    base = json.loads((finished / "run.json").read_text())["workload_sha256"]

    def hashed(name: str, *changed: str) -> str:
        keys = ["baselines", *(word.partition("=")[0] for word in changed)]
        told = [word for word in WORDS if word.partition("=")[0] not in keys]
        done = command(*told, *changed, "baselines=[sjf]", f"hydra.run.dir={name}")
        assert done.code == 0, done
        run = json.loads((tmp_path / name / "run.json").read_text())
        return str(run["workload_sha256"])

    assert hashed("others") == hashed("kept", "keep_alive=none") == base
    assert hashed("source", "workload.source.seed=7") != base
    assert hashed("seeds", "seed=[1,3]") != base


def test_a_sample_is_described_when_it_is_played(command: Command, tmp_path: Path) -> None:
    done = command(*TRACE, *FREE, "baselines=[fcfs]", "episodes=1", "record=0")
    assert done.code == 0, done
    ((name, line),) = told_in(tmp_path)["samples"].items()
    assert name == "" and line in done.out.splitlines()
    assert line.startswith("azure_like: ") and "functions, " in line


def test_seeds_and_episodes_of_a_trace_are_samples_of_their_own(
    command: Command, tmp_path: Path
) -> None:
    told = ("baselines=[random,cheapest]", "episodes=2", "seed=[1,2]", "record=0")
    assert command(*TRACE, "workload.sampling.ratio=0.1", *told).code == 0
    found = results_in(tmp_path)
    assert len(set(found.loc[found["policy"] == "random", "decisions"])) == 4
    # Both place as many functions as arrive.
    assert (found.groupby(["seed", "episode"])["decisions"].nunique() == 1).all()


def test_a_function_too_large_for_every_node_is_refused_before_anything_is_played(
    command: Command, tmp_path: Path
) -> None:
    """Whichever seed draws it; with one MB more on every node the same samples are played."""
    config = world(*TRACE)
    cluster = cluster_from_config(config["cluster"], "cluster")
    most = {}
    for seed in (1, 2):
        found = workload_source({}, config["workload"], cluster, seed)
        templates = found.evaluation_templates(0)
        most[seed] = max(int(template.memory_req.max()) for template in templates)
    fits, large = sorted(most, key=lambda seed: most[seed])
    assert most[fits] < most[large]
    node = "cluster.server_types.worker.memory_mb_per_numa_node"
    told = (*TRACE, *FREE, "baselines=[fcfs]", "episodes=1", "record=0", f"seed=[{fits},{large}]")
    done = command(*told, f"{node}={most[large] - 1}")
    says = f"needs {most[large]} MB, the largest NUMA node has {most[large] - 1}"
    refused(done, f"workload, seed {large}: workflow 'function_")
    assert says in done.err
    assert command(*told, f"{node}={most[large]}").code == 0
