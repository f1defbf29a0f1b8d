"""`python train.py` as users run it: elsewhere, resumed, interrupted, swept, tuned, refused."""

import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import parse_session_start_info_plugin_data

from agents.baseline import make_baselines
from agents.learned.checkpoint import RunState, find_checkpoint, save_checkpoint
from agents.learned.policy_file import load_policy
from agents.learned.run_log import tell_assumed
from agents.learned.tuning import _row
from env.base.schema import validated
from env.learn.multi_agent import ENV_NAME
from env.score.greedy_score import ScoreWeights
from env.score.reward import Objective
from evaluate import prepared as evaluation
from run.command import CONF, PROJECT
from tests.commands import Command, InProcess, NoWeights, refused
from tests.env.worlds import TENANTS, TINY, TRACE, composed, world, write_carbon
from tests.evaluate_command import ended, results_in
from train import prepared

TRAIN = [sys.executable, str(PROJECT / "train.py")]
# The least that is still a run. One episode of the tiny cluster is shorter than a batch.
MOMENT = [*TINY, "ray.envs_per_runner=2", "budget.minutes=null", "held_out.episodes=2"]
BRIEF = [*MOMENT, "algo.batch_size=256", "algo.minibatch_size=64"]
QUEUE_MOMENT = [*MOMENT[3:], *TRACE[1:]]
TENANTS_MOMENT = [*MOMENT[3:], *TENANTS[1:]]
CURVES = {
    *("J", "J_rule", "difference", "J_relative", "slowdown", "cost_ratio", "makespan", "rent"),
    *("carbon", "cold_starts", "utilisation", "env_steps_per_s"),
}
TIMEOUT = 600


def call(*overrides: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return ended([*TRAIN, *overrides], folder)


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("train", prepared)


def runs_in(folder: Path) -> list[Path]:
    """Run folders, those of sweeps too, oldest first."""
    # Not "**": checkpoints vanish while a run goes on.
    found = [*folder.glob("outputs/*/*/metrics.csv"), *folder.glob("outputs/*/*/*/metrics.csv")]
    return sorted(path.parent for path in found)


def rows_of(run: Path) -> list[dict[str, str]]:
    with (run / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with packages of the same names as the project's."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("env", "agents"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('the wrong package')\n")
    return folder


@pytest.fixture(scope="module")
def first(shadowed: Path) -> Path:
    """The folder of a finished run of two iterations."""
    done = call(*BRIEF, "budget.iterations=2", folder=shadowed)
    assert done.returncode == 0, done.stderr
    assert "results:" in done.stdout and "policy:   " in done.stdout
    (run,) = runs_in(shadowed)
    return run


def test_a_run_leaves_what_it_says(first: Path) -> None:
    rows = rows_of(first)
    assert [row["iteration"] for row in rows] == ["1", "2"]
    for name in CURVES | {"loss/server/policy", "entropy/memory", "KL/placer"}:
        float(rows[-1][name])
    assert [path.name for path in (first / "checkpoints").iterdir()] == ["iteration_000002"]
    assert (first / ".hydra" / "config.yaml").is_file()
    events = EventAccumulator(str(first))
    events.Reload()
    # A card of the page has few curves, with what matters in the first.
    tags = events.Tags()["scalars"]
    assert all("/" in tag for tag in tags)
    assert {tag.partition("/")[2] for tag in tags} >= CURVES
    first_card = {tag.partition("/")[2] for tag in tags if tag.startswith("episodes/")}
    assert first_card == {"J_relative", "slowdown", "cost_ratio"}
    assert len(events.Scalars("episodes/J_relative")) == len(events.Scalars("held_out/J")) == 2
    assert "custom_scalars__config__" in events.Tags()["tensors"]
    # Its settings, for TensorBoard's page HPARAMS, and a name that is short where it matters.
    about = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    session = parse_session_start_info_plugin_data(about)
    assert session.group_name.startswith(f"{first.name} {first.parent.name}")
    assert session.hparams["cluster"].string_value == "tiny"
    assert session.hparams["algo.batch_size"].number_value == 256
    for name in ("policy", "policy_best"):
        assert load_policy(first / name).networks.keys() == {"memory", "placer", "server"}
        assert not list((first / name).glob("*.pkl"))


def test_evaluate_says_the_same_of_the_policy(
    first: Path, in_process: InProcess, tmp_path: Path
) -> None:
    rule = "greedy_objective_tuned"
    told = [*MOMENT[:3], f"policy={first}", f"baselines=[{rule}]", "episodes=2"]
    assert in_process("evaluate", evaluation)(*told).code == 0
    found = results_in(tmp_path).set_index("policy")["J"]
    last = rows_of(first)[-1]
    assert float(last["J"]) == pytest.approx(found.drop(rule).mean(), rel=1e-5)
    assert float(last["J_rule"]) == pytest.approx(found[rule].mean(), rel=1e-5)


def test_a_run_resumes_with_two_remote_runners(first: Path, shadowed: Path) -> None:
    resumed = first.with_name("another")
    shutil.copytree(first, resumed)
    # As if it had been killed after its last checkpoint: what it did since is done again.
    with (resumed / "metrics.csv").open("a") as file:
        file.write(",".join(["3", "999999"] + (len(rows_of(first)[0]) - 2) * ["7"]) + "\n")
    # It knows what it was told; what is typed is changed.
    done = call(
        "budget.iterations=3",
        "ray.num_env_runners=2",
        f"resume={resumed.relative_to(shadowed)}",
        folder=shadowed,
    )
    assert done.returncode == 0, done.stderr
    assert runs_in(shadowed) == [first, resumed]
    # The same curves go on.
    before, after = rows_of(first), rows_of(resumed)
    assert after[:2] == before
    assert [row["iteration"] for row in after] == ["1", "2", "3"]
    assert int(before[1]["env_steps"]) < int(after[2]["env_steps"]) < 999999
    events = EventAccumulator(str(resumed))
    events.Reload()
    steps = [each.step for each in events.Scalars("episodes/J_relative")]
    assert steps == [int(row["env_steps"]) for row in after]


@pytest.mark.long
def test_two_learners_share_a_batch(first: Path, tmp_path: Path) -> None:
    done = call(*BRIEF, "budget.iterations=1", "ray.num_learners=2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = runs_in(tmp_path)
    (shared,), alone = rows_of(run), rows_of(first)[0]
    for name in ("env_steps", "J_relative"):
        assert shared[name] == alone[name]
    assert float(shared["loss/placer/value"]) > 0
    assert load_policy(run / "policy").description.layout == "hierarchical"


@pytest.mark.long
def test_a_resumed_run_ends_as_one_that_ran_through(tmp_path: Path) -> None:
    told = [*BRIEF, "budget.iterations=4", "checkpoint.every_minutes=1e-9", "checkpoint.keep=9"]
    assert call(*told, folder=tmp_path).returncode == 0
    (through,) = runs_in(tmp_path)
    middle = through / "checkpoints" / "iteration_000002"
    # Held-out episodes, played more or less often, change nothing.
    assert call(*told, "held_out.share=1", f"resume={middle}", folder=tmp_path).returncode == 0
    resumed = runs_in(tmp_path)[-1]
    assert [row["iteration"] for row in rows_of(resumed)] == ["3", "4"]
    for file in sorted((through / "policy").glob("*.safetensors")):
        assert file.read_bytes() == (resumed / "policy" / file.name).read_bytes()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *((f"hetero_numa{kind}", "greedy_economy") for kind in ("", "_placer", "_latency")),
        ("hetero_numa_cost", "greedy_expected_use"),
        ("real_workflows", "greedy_expected_use"),
        ("real_workflows_cost", "greedy_expected_use"),
    ],
)
def test_features_have_the_weights_of_a_rule(name: str, rule: str) -> None:
    files = ["workflow.path=any"] if name.startswith("real_workflows") else []
    told = composed(f"experiment={name}", *files, name="train")
    assert told["algo"]["warm_start"] in (None, rule)
    (baseline,) = make_baselines([rule])
    weights = baseline._config.placement.of(validated(Objective, told["objective"], "objective"))
    assert validated(ScoreWeights, told["agents"]["score"], "agents.score") == weights


@pytest.mark.long
def test_every_experiment_runs_for_a_moment_and_the_same_seed_repeats(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARBON", str(tmp_path))
    write_carbon(tmp_path, 2023)
    names = sorted(
        path.stem
        for path in (CONF / "experiment").glob("*.yaml")
        if "\nbaselines:" not in path.read_text()  # they evaluate: test_carbon, test_tickets
    )
    # Those of the large cluster have batches and clones of minutes, the queue has no tiny world,
    # no tiny workload has tickets, and no tiny cluster regions.
    large = [name for name in names if name.startswith(("hetero_numa", "real"))]
    queue = [name for name in names if name.startswith("queue")]
    tenants = [name for name in names if name == "tickets_agents"]
    carbon = [name for name in names if name.startswith("carbon")]
    small = [name for name in names if name not in (*large, *queue, *tenants, *carbon)]
    shorter = ("algo.batch_size=2048", "algo.cloning.decisions=200")
    for each, moment, shortened in (
        (large, MOMENT, shorter),
        # One by one: Hydra makes the folder of a sweep without what is swept, so without a trace.
        *(([name], QUEUE_MOMENT, shorter) for name in queue),
        (tenants, TENANTS_MOMENT, shorter[:1]),  # nothing is cloned
        (carbon, [*MOMENT[3:], "workload.arrivals.workflows=[2,2]"], shorter[:1]),
        (small, MOMENT, ()),
    ):
        told = (f"experiment={','.join(each)}", *moment, "budget.iterations=1", *shortened)
        (tmp_path / each[0]).mkdir()
        done = call("-m", *told, folder=tmp_path / each[0])
        assert done.returncode == 0, done.stderr
        assert len(runs_in(tmp_path / each[0])) == len(each)
    runs = runs_in(tmp_path / small[0])
    repeated, before = rows_of(runs[small.index("smoke")])[0], rows_of(first)[0]
    for timed in ("seconds", "env_steps_per_s"):
        del repeated[timed], before[timed]
    assert repeated == before


@pytest.mark.long
def test_an_interrupted_run_is_saved(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*TRAIN, *BRIEF, "budget.iterations=100000"],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + TIMEOUT
        while not (runs_in(tmp_path) and rows_of(runs_in(tmp_path)[0])):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "stopping" in told
    (run,) = runs_in(tmp_path)
    (checkpoint,) = (run / "checkpoints").iterdir()
    state = json.loads((checkpoint / "run.json").read_text())["state"]
    assert state["iteration"] == len(rows_of(run))
    load_policy(run / "policy")


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["resume=nowhere"], "neither a checkpoint nor a run folder"),
        (["held_out.baselines=[clairvoyant]"], "held_out: baselines: 'clairvoyant' is a ref"),
        (["ray.address=127.0.0.1:1"], "ray.address: '127.0.0.1:1': Connection refused"),
    ],
)
def test_what_only_the_world_can_tell_is_refused_too(
    command: Command, overrides: list[str], says: str
) -> None:
    refused(command(*BRIEF, "budget.iterations=1", *overrides), says)


def test_a_folder_that_cannot_hold_the_sockets_of_ray_is_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", f"/tmp/{90 * 'x'}")
    done = command(*BRIEF, "budget.iterations=1")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert (
        "error: RAY_TMPDIR, its folder: " in done.err
        and "AF_UNIX path length cannot exceed" in done.err
    )


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["agents=placer"], "agents.layout is placer"),
        (["algo.hidden=[8]"], "algo.hidden is"),
        (["cluster=homogeneous"], "cluster.server_types."),
    ],
)
def test_a_checkpoint_of_another_kind_is_not_resumed(
    first: Path, command: Command, overrides: list[str], says: str
) -> None:
    refused(command(f"resume={first}", *overrides), says)
    assert list(Path().iterdir()) == []


def test_a_run_that_is_done_is_not_resumed_and_ends_the_process_with_2(
    first: Path, tmp_path: Path
) -> None:
    done = call(f"resume={first}", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "give a larger one" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("made_in", "changed", "says"),
    [
        ("serverless-v1", {}, "made in the environment serverless-v1, this is"),
        (ENV_NAME, {"agents": {}}, "run.json': config: agents.layout, agents.memory_tiers"),
        (ENV_NAME, {"cluster": {}}, "made with None: give the same"),
    ],
)
def test_a_checkpoint_that_cannot_go_on_is_not_resumed(
    made_in: str, changed: dict[str, Any], says: str, command: Command
) -> None:
    told = composed(*BRIEF, "budget.iterations=1", name="train")
    save_checkpoint(NoWeights(made_in), Path("saved"), RunState(), told | changed, keep=1)
    refused(command(*BRIEF, "budget.iterations=2", "resume=saved"), says)


def test_what_is_assumed_of_the_workflows_is_said_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "w.dax"
    file.write_text('<adag><job id="a" name="x" runtime="2"/></adag>')
    drawn = world("cluster=tiny", "workflow=files", f"workflow.path={file}", "agents=placer")
    tell_assumed(drawn, tmp_path)
    text = "workflows: 1; tasks: 1; parallelism drawn: 1; memory drawn: 1"
    assert capsys.readouterr().out == f"assumed, {file}: {text}\n"
    kept = json.loads((tmp_path / "assumptions.json").read_text())
    assert kept["total"]["text"] == text
    (tmp_path / "other").mkdir()
    tell_assumed(world("cluster=tiny", "workflow=tiny", "agents=placer"), tmp_path / "other")
    assert capsys.readouterr().out == ""
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.long
def test_a_search_leaves_a_table_curves_and_the_best_policy(tmp_path: Path) -> None:
    search = ("tune=asha", "tune.trials=2", "tune.parallel=2", "tune.first_cut=100")
    told = (*BRIEF, *search, "budget.iterations=2", "+tune.space.epochs={low: 1, high: 3}")
    done = call(*told, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("outputs/*/*")
    with (run / "trials.csv").open() as file:
        trials = list(csv.DictReader(file))
    assert len(trials) == 2
    assert float(trials[0]["difference_percent"]) <= float(trials[1]["difference_percent"])
    assert {trial["budget_percent"] for trial in trials} == {"100.0"}
    rates = {trial["learning_rate"] for trial in trials}
    assert len(rates) == 2
    assert {trial["epochs"] for trial in trials} <= {"1", "2", "3"}
    # The table, the best first.
    assert done.stdout.index(trials[0]["trial"]) < done.stdout.rindex(trials[1]["trial"])

    for trial in trials:
        folder = run / "trials" / trial["trial"]
        events = EventAccumulator(str(folder))
        events.Reload()
        assert len(events.Scalars("entropy/memory")) == 2
        assert "_hparams_/session_start_info" in events.summary_metadata
        # Any trial can go on as a run of its own.
        find_checkpoint(folder)

    policy = load_policy(run / "policy").description
    assert str(policy.config["algo"]["learning_rate"]) == trials[0]["learning_rate"]
    assert policy.config["tune"] is None


def test_a_trial_that_could_not_begin_is_in_the_table() -> None:
    error = "Traceback:\nclip does not fit"
    failed = SimpleNamespace(metrics=None, config=None, error=error)
    row = _row("trial_1", failed, ["clip"])
    assert (row["trial"], row["clip"], row["error"]) == ("trial_1", None, "clip does not fit")
    assert math.isnan(row["difference_percent"])
