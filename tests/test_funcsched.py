"""The experiments of conf/experiment/funcsched_*: each runs, and their directions hold."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from env.base.errors import InputError
from env.workloads.traces.trace_samples import sample_recording
from evaluate import check, evaluate
from evaluation.queued_evaluation import Case, CaseRow, QueuedEvaluation
from evaluation.results import read_results
from evaluation.statistics import Estimate
from report.queued.summary import summarise_cases
from report.summary import spread
from run.command import CONF, plain
from tests.commands import InProcess

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("funcsched_*.yaml"))
FILE = Path(__file__).parent / "env" / "workloads" / "fixtures" / "photo.json"
SMALL = ("trace.source.functions=40", "trace.source.minutes=200", "trace.sampling.minutes=1")
# 100 minutes of 40 functions in one, on two servers: more than they can hold.
SAMPLE = {"start": 100, "compression": 100, "ratios": [0.1, 1.0]}


@cache
def composed(*overrides: str) -> DictConfig:
    """Read-only: whoever asks for the same gets the same."""
    first, *rest = overrides
    experiment = first if "=" in first else f"experiment={first}"
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("evaluate", overrides=[experiment, *rest])
    OmegaConf.set_readonly(config, True)
    return config


def played(evaluation: QueuedEvaluation) -> list[CaseRow]:
    return [evaluation.play(task) for task in evaluation.tasks]


def words(experiment: str, *overrides: str) -> list[str]:
    """What to type so that it plays in a moment."""
    brief = [f"experiment={experiment}", "cluster.server_types.worker.server_count=2"]
    brief.append("dispatch.seeds=[1,2]")
    if experiment == "funcsched_workflows":
        return [*brief, f"workflow.path={FILE}", "episodes=1", *overrides]
    sample = "{" + ",".join(f"{key}:{value}" for key, value in SAMPLE.items()) + "}"
    names = composed(experiment).dispatch.samples
    return [*brief, *SMALL, *(f"dispatch.samples.{name}={sample}" for name in names), *overrides]


def small(experiment: str, *overrides: str) -> dict[str, Any]:
    """The same as a configuration."""
    return plain(composed(*words(experiment, *overrides)))


def rows_in(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_leaves_its_files(
    experiment: str, in_process: InProcess, tmp_path: Path
) -> None:
    done = in_process("evaluate", evaluate, check)(*words(experiment))
    assert done.code == 0, done.err
    (folder,) = tmp_path.glob("outputs/*/*")
    settings = small(experiment)["dispatch"]
    assert {path.name for path in folder.iterdir() if "tfevents" not in path.name} == {
        *("run.json", "results.parquet", "summary.csv", "summary.json", "summary.md"),
        *("figures", "report.html", ".hydra"),
    }
    figures = {f"{settings['figure']}.{ending}" for ending in ("png", "svg")}
    assert {path.name for path in (folder / "figures").iterdir()} == figures
    (picture,) = folder.glob("figures/*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    runs, summary = read_results(folder), rows_in(folder / "summary.csv")
    loads = 1 if experiment == "funcsched_workflows" else 2 * len(settings["samples"])
    assert len(summary) == loads * len(settings["orders"]) * len(settings["keep_alives"])
    assert len(runs) == 2 * len(summary)
    read = json.loads((folder / "summary.json").read_text())
    shown = (folder / "summary.md").read_text()
    for row, case in zip(summary, read["cases"], strict=True):
        same = runs["ratio"] == float(row["ratio"])
        for key in ("sample", "keep_alive", "order"):
            same &= runs[key] == row[key]
            assert case[key] == row[key]
        assert float(row["completion_mean"]) == pytest.approx(runs["completion"][same].mean())
        for name, cell in case["metrics"].items():
            assert cell == {part: float(row[f"{name}_{part}"]) for part in cell}
        assert spread(Estimate(*case["metrics"]["completion"].values())) in shown
    assert all(name in done.out for name in (*settings["orders"], *settings["keep_alives"]))
    events = EventAccumulator(str(folder)).Reload()
    assert events.Tags()["images"] == [f"evaluation/{settings['figure']}"]
    assert "_hparams_/session_start_info" in events.summary_metadata


def test_funcsched_beats_fcfs_where_memory_is_short() -> None:
    """And every order serves the same requests; at a tenth of the load they hardly differ."""
    evaluation = QueuedEvaluation(small("funcsched_orders", "dispatch.seeds=[1]"))
    rows = {(row.ratio, row.order): row.metrics for row in played(evaluation)}
    assert len({row["requests"] for (ratio, _), row in rows.items() if ratio == 1.0}) == 1
    busy, idle = rows[1.0, "fcfs"], rows[0.1, "fcfs"]
    assert busy["queueing"] > 10 > 1 > idle["queueing"]
    assert rows[1.0, "funcsched"]["completion"] < 0.7 * busy["completion"]
    assert rows[1.0, "funcsched"]["queueing"] < 0.5 * busy["queueing"]
    assert rows[1.0, "rr"]["cold_start"] > busy["cold_start"]
    assert rows[0.1, "funcsched"]["completion"] == pytest.approx(idle["completion"], rel=0.2)


def test_parts_of_the_completion_time_add_up() -> None:
    evaluation = QueuedEvaluation(small("funcsched_orders", "dispatch.seeds=[1]"))
    for row in played(evaluation):
        found = row.metrics
        parts = sum(found[key] for key in ("queueing", "cold_start", "execution"))
        assert parts == pytest.approx(found["completion"], rel=1e-6)
        assert row.completion_quantiles == sorted(row.completion_quantiles)
        assert row.completion_quantiles[99] == pytest.approx(found["completion_median"], rel=0.1)
        met = [found[f"slo_{k:g}"] for k in evaluation.settings.slo]
        assert met == sorted(met)  # later deadlines are met more often


def test_the_same_seed_gives_the_same_numbers_in_any_order() -> None:
    evaluation = QueuedEvaluation(small("funcsched_distribution"))
    rows = played(evaluation)
    again = QueuedEvaluation(small("funcsched_distribution"))
    backwards = [again.play(task) for task in reversed(again.tasks)]
    assert rows == backwards[::-1]
    one, other = (row for row in rows if (row.ratio, row.order) == (1.0, "fcfs"))
    assert one.metrics != other.metrics  # the other seed


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
        ("dispatch.samples.rare.start=10000", "dispatch.samples.rare: with start 10000, "),
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
