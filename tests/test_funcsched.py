"""The experiments of conf/experiment/funcsched_*: each runs, and their directions hold."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from agents.command import CONF, plain
from agents.queued_evaluation import Case, QueuedEvaluation, summarise_cases
from env.sim.errors import InputError
from env.workloads.trace_samples import sample_recording
from evaluate import check
from report.queued import evaluate_queued

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("funcsched_*.yaml"))
FILE = Path(__file__).parent / "env" / "workloads" / "fixtures" / "photo.json"
SMALL = ("trace.source.functions=40", "trace.source.minutes=200", "trace.sampling.minutes=1")
# 100 minutes of 40 functions in one, on two servers: more than they can hold.
SAMPLE = {"start": 100, "compression": 100, "ratios": [0.1, 1.0]}


def composed(experiment: str, *overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("evaluate", overrides=[f"experiment={experiment}", *overrides])


def small(experiment: str, *overrides: str) -> dict[str, Any]:
    """A configuration that plays in a moment."""
    workflows = experiment == "funcsched_workflows"
    own = (f"workflow.path={FILE}", "episodes=1") if workflows else SMALL
    servers = "cluster.server_types.worker.server_count=2"
    config = plain(composed(experiment, servers, "dispatch.seeds=[1,2]", *own, *overrides))
    for sample in config["dispatch"]["samples"].values():
        sample.update(SAMPLE)
    return config


def rows_in(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_leaves_its_files(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = QueuedEvaluation(small(experiment))
    evaluate_queued(evaluation, tmp_path)
    figure = f"{evaluation.settings.figure}.png"
    assert {path.name for path in tmp_path.iterdir()} == {"runs.csv", "summary.csv", figure}
    assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")
    runs, summary = rows_in(tmp_path / "runs.csv"), rows_in(tmp_path / "summary.csv")
    assert len(runs) == 2 * len(summary) == 2 * len(evaluation.cases)
    for row in summary:
        own = [
            float(run["completion"])
            for run in runs
            if all(run[key] == row[key] for key in ("sample", "ratio", "keep_alive", "order"))
        ]
        assert float(row["completion_mean"]) == pytest.approx(np.mean(own))
    printed = capsys.readouterr().out
    settings = evaluation.settings
    assert all(name in printed for name in (*settings.orders, *settings.keep_alives))


def test_funcsched_beats_fcfs_where_memory_is_short() -> None:
    """And every order serves the same requests; at a tenth of the load they hardly differ."""
    evaluation = QueuedEvaluation(small("funcsched_orders", "dispatch.seeds=[1]"))
    rows = {(each.case.ratio, each.case.order): each.row for each in evaluation.play()}
    assert len({row["requests"] for (ratio, _), row in rows.items() if ratio == 1.0}) == 1
    busy, idle = rows[1.0, "fcfs"], rows[0.1, "fcfs"]
    assert busy["queueing"] > 10 > 1 > idle["queueing"]
    assert rows[1.0, "funcsched"]["completion"] < 0.7 * busy["completion"]
    assert rows[1.0, "funcsched"]["queueing"] < 0.5 * busy["queueing"]
    assert rows[1.0, "rr"]["cold_start"] > busy["cold_start"]
    assert rows[0.1, "funcsched"]["completion"] == pytest.approx(idle["completion"], rel=0.2)


def test_parts_of_the_completion_time_add_up() -> None:
    evaluation = QueuedEvaluation(small("funcsched_orders", "dispatch.seeds=[1]"))
    for each in evaluation.play():
        parts = sum(each.row[key] for key in ("queueing", "cold_start", "execution"))
        assert parts == pytest.approx(each.row["completion"], rel=1e-6)
        assert each.row["completion"] == pytest.approx(each.completions.mean())
        met = [each.row[f"slo_{k:g}"] for k in evaluation.settings.slo]
        assert met == sorted(met)  # later deadlines are met more often


def test_the_same_seed_gives_the_same_numbers() -> None:
    played = [
        [each.row for each in QueuedEvaluation(small("funcsched_distribution")).play()]
        for _ in range(2)
    ]
    assert played[0] == played[1]
    assert played[0][0] != played[0][2]  # the other seed


def test_a_speedup_is_paired_by_seed() -> None:
    slow, fast = Case("s", 1.0, "lru", "fcfs"), Case("s", 1.0, "lru", "sjf")
    rows = {
        slow: [{"completion": 8.0}, {"completion": 2.0}],
        fast: [{"completion": 1.0}, {"completion": 1.0}],
    }
    found = dict(summarise_cases(rows, "fcfs"))
    assert found[slow]["speedup"].mean == pytest.approx(1.0)
    assert found[fast]["speedup"].mean == pytest.approx(4.0)  # geometric mean of 8 and 2
    assert found[fast]["completion"].mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("dispatch.orders=[fcsf]", "'fcsf' is unknown, did you mean 'fcfs'?"),
        ("dispatch.orders=[fcfs,random]", "random.yaml: order.name: 'submission'"),
        (
            "dispatch.keep_alives=[lur]",
            "dispatch.keep_alives: 'lur' is unknown, did you mean 'lru'",
        ),
        ("dispatch.seeds=[1,1]", "dispatch: seeds: one of [1, 1] is given twice"),
        ("dispatch.seeds=[]", "dispatch: seeds"),
        ("dispatch.figure=pie", "dispatch: figure: 'pie' is unknown"),
        ("dispatch.samples.representative.ratios=[1.5]", "dispatch: samples.representative.ratios"),
        ("dispatch.samples.rare.start=10000", "the window is minutes 10000 to"),
        ("trace.annotation.memory_factor=[3,2]", "memory_factor is [3.0, 2.0], [low, high]"),
        (
            "trace.annotation.max_memory=100",
            "min_memory is 128.0, allowed: at most max",
        ),
    ],
)
def test_what_cannot_be_evaluated_gets_one_line(override: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        check(composed("funcsched_load", override))
    assert says in str(error.value)


def test_a_function_too_large_for_every_node_is_refused_before_anything_is_played() -> None:
    """Whichever seed draws it; with one MB more on every node the same samples are played."""
    roomy = QueuedEvaluation(small("funcsched_distribution"))
    assert roomy.trace is not None
    (sample,) = roomy.settings.samples.values()
    most = {}
    for seed in (1, 2):
        found = sample_recording(roomy.recording, sample.of(roomy.trace, 1.0, seed))
        most[seed] = int(found.window.profiles.memory.max())
    fits, large = sorted(most, key=lambda seed: most[seed])
    node = "cluster.server_types.worker.memory_mb_per_numa_node"
    seeds = f"dispatch.seeds=[{fits},{large}]"
    QueuedEvaluation(small("funcsched_distribution", seeds, f"{node}={most[large]}"))
    with pytest.raises(InputError) as error:
        QueuedEvaluation(small("funcsched_distribution", seeds, f"{node}={most[large] - 1}"))
    said = str(error.value)
    assert said.startswith(f"dispatch.samples.representative, seed {large}: function '")
    assert said.endswith(f"needs {most[large]} MB, the largest NUMA node has {most[large] - 1}")


def test_a_trace_needs_the_queue() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("evaluate", overrides=["trace=azure_like"])
    with pytest.raises(InputError, match="trace"):
        check(config)
