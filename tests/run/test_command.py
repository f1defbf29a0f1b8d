"""Bad commands: one line that says what is wrong, exit code 2, and nothing written."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import DictConfig

from env.base.schema import validated
from run.command import COMPILING, stop_on_signals
from run.composing import plain
from run.next_command import PROJECT
from run.settings import TrainSettings
from tests.commands import Command, InProcess, doing, never, refused

BAD = {
    "a group": (["clutser=tiny"], "clutser: unknown key, did you mean 'cluster'?"),
    "a group of another command": (["baseline=drf"], "baseline: unknown key, allowed: cluster, "),
    "an option": (["cluster=tinny"], "cluster=tinny: unknown option, did you mean 'tiny'?"),
    "an option of what is null": (["tune=ash"], "tune=ash: unknown option, did you mean 'asha'?"),
    "no folder": (["resume=3"], "resume: the folder of a run is needed, found 3"),
    "a key": (["budget.minuts=3"], "budget.minuts: unknown key, did you mean 'budget.minutes'?"),
    "a key of another option": (
        ["lease=always", "lease.step=60"],
        "lease.step: unknown key, allowed: lease.kind, lease.charged",
    ),
    "an added key": (["+algo.clp=1"], "algo.clp: unknown key, did you mean 'clip'?"),
    "a key that is needed": (["~algo.clip"], "algo.clip: missing"),
    "a flag": (["--nope"], "--nope: unknown, see --help"),
    "a folder of configs": (["--config-dir", "nowhere"], "nowhere' is not a folder"),
    "a folder to run in": (["hydra.job.chdir=true"], "hydra.job.chdir: not supported, of hydra"),
    "a sweep as Hydra's settings": (
        ["-m", "+hydra.sweeper.params={seed: '0,1'}"],
        "hydra.sweeper.params: not supported",
    ),
    "no override": (["seed"], "'seed': KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY is needed"),
    "a path with an equals sign": (
        ["resume=runs/epoch=3"],
        "'resume=runs/epoch=3': not readable, text is written 'resume=\"runs/epoch=3\"'",
    ),
    "several values": (["seed=1,2"], "'seed=1,2': several values are for -m"),
    "one of a sweep": (["-m", "seed=0,1,-2"], "seed: Input should be greater than or equal to 0"),
    "a mapping that takes nothing away": (
        ["workload=tickets", "workload.tenants={}"],
        "workload.tenants={}: mappings are merged, so this takes nothing away: write ~workload.ten",
    ),
    "an interpolation of nothing": (["seed=${nothing}"], "Interpolation key 'nothing' not found"),
    "a path too long": ([f"resume={'a' * 300}"], "cannot be read: File name too long"),
    "results in a file": (["hydra.run.dir=/dev/null/x"], "'/dev/null' is no folder to write to"),
    "a name of two words": (["name='a b'"], "name: String should match pattern"),
    # What settings say of each other.
    "an unknown key for Ray": (
        ["+ray.runtime_env.env_var={A: b}"],
        "env_var: unknown key, did you mean 'env_vars'?",
    ),
    "cores of a running cluster": (["ray=cluster", "ray.num_cpus=4"], "num_cpus is for a Ray star"),
    "no address": (["ray.address=foo"], "ray.address: String should match pattern '^(auto|(ray:"),
    "a minibatch above the batch": (["algo.batch_size=64"], "minibatch_size 1024 is above batch_s"),
    "a warm-up above the replay": (["algo=dqn", "algo.replay_steps=10"], "is above replay_steps"),
    "DQN that bids": (["algo=dqn", "agents=server_types"], "are placer, hierarchical and queue"),
    "learners of another algorithm": (["algo=impala", "ray.num_learners=2"], "is for algo=ppo"),
    "pieces in which nobody acts twice": (
        ["algo=appo", "algo.batch_size=512"],
        "algo.batch_size 512 is less than 4 turns of each of 256 environments",
    ),
    "no end": (["budget.minutes=null"], "the run would never end"),
    "an objective that nothing lowers": (
        ["lease=always", "objective.time_weight=0"],
        "objective: with lease=always nothing is paid, so cost alone is no objective",
    ),
    "a search of what is not": (
        ["tune=asha", "+tune.space.clp={low: 0.1, high: 0.3}"],
        "tune.space.clp 0.1: algo.clp: unknown key, did you mean 'clip'?",
    ),
    "a search in no range": (["tune=asha", "tune.space.learning_rate.low=1"], "is not below high"),
    "a search of bad values": (
        ["tune=asha", "+tune.space.clip={low: -0.1, high: 0.3}"],
        "tune.space.clip -0.1: algo.clip",
    ),
    "a search that resumes": (["tune=asha", "resume=outputs"], "resume goes on with one training"),
}


def settings_only(config: DictConfig) -> None:
    """The part of the training check that needs no environment."""
    validated(TrainSettings, plain(config), "train")


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("train", doing(never, settings_only))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_command_gets_one_line(case: str, command: Command, elsewhere: Path) -> None:
    overrides, says = BAD[case]
    refused(command(*overrides), says)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_to_stop_and_a_second_one_insists(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_options_of_ones_own_that_are_none(elsewhere: Path, command: Command) -> None:
    (elsewhere / "objective").mkdir()
    (elsewhere / "objective" / "broken.yaml").write_text("time_weight:\t5.0\n\tcost_weight: 0.0\n")
    refused(command("--config-dir", str(elsewhere), "objective=broken"), "broken.yaml")


def test_pip_is_told_that_the_clone_is_the_program() -> None:
    install = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", str(PROJECT)]
    done = subprocess.run(install, text=True, capture_output=True, check=False)
    assert done.returncode != 0
    assert "run `make .venv/installed` in it" in done.stderr


def test_that_it_compiles_is_said(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = in_process("train", doing(lambda config, folder: None))
    assert command().err == ""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "new"))
    assert command().err == f"{COMPILING}\n"


@pytest.mark.parametrize("name", ["evaluate", "train", "search_baseline"])
def test_the_help_names_options_and_keys(name: str) -> None:
    given = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    command = [sys.executable, str(PROJECT / f"{name}.py"), "--help"]
    done = subprocess.run(command, env=given, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\ncluster: " in done.stdout and b" hetero_numa," in done.stdout
    assert b"\nname: null" in done.stdout and b"\n# A word in the name of the run's" in done.stdout


@pytest.mark.parametrize("name", ["evaluate", "train", "search_baseline"])
def test_a_slip_is_answered_before_anything_heavy_is_imported(name: str, tmp_path: Path) -> None:
    script = f"""
import runpy, sys
sys.argv = ["{name}.py", "clutser=tiny"]
try:
    runpy.run_path({str(PROJECT / f"{name}.py")!r}, run_name="__main__")
except SystemExit as left:
    print(left.code, *{{"numba", "numpy", "pandas", "scipy", "torch", "ray"}} & sys.modules.keys())
"""
    given = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=given, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr.count(b"\n")) == (b"2\n", 1)


TRACE = "workload=azure_like"
CASES = (
    ("train", ["workload.seed=3"], "seed says it"),
    ("evaluate", [TRACE, "workflow=tiny"], "workload is a trace of single functions"),
    ("evaluate", ["keep_alive=lru"], "dispatch is immediate and workload.container_cold_start=0"),
    ("evaluate", ["dispatch=queued", "lease=always", "dispatch.patience=9"], "lease=always, no"),
    ("evaluate", ["lease=always", "+lease.step=60"], "lease=always without lease.charged"),
    ("evaluate", ["agents=placer"], "policy is null"),
    (
        "evaluate",
        ["cluster=aws_regions", "cluster.power.carbon_intensity_g_per_kwh=5"],
        "each region has its own",
    ),
    ("evaluate", ["sweep={lease: [hourly]}", "record=5"], "nothing is recorded where something"),
    ("evaluate", ["workload=tickets", "objective.fairness_weight=1"], "no tenants with tickets"),
    ("search_baseline", ["+workload.tenants.a=1"], "training tells no tenants apart"),
    ("train", ["variation={single: 0.5, load: 0.5}"], "variation.unvaried is 1"),
    ("search_baseline", ["workload.container_cold_start=2"], "weights are searched where"),
)
PASS = (
    # A value that says what is so anyway.
    ("evaluate", ["keep_alive=none", "record=1", "sweep={lease: [hourly]}"]),
    ("train", ["variation.load=1.0", "lease=hourly", "+lease.charged=true"]),
    # What another group gives an effect.
    ("evaluate", ["keep_alive=lru", "workload.container_cold_start=2"]),
    ("evaluate", ["lease=always", "lease.charged=true", "+lease.step=60"]),
    ("evaluate", ["workload=tickets", "dispatch=queued", "objective.fairness_weight=1"]),
    ("train", ["agents=tenants", "workload=tickets", "workload.tenants.alice.tickets=5"]),
    ("train", ["variation=wide", "variation.load=0.5"]),
)


@pytest.mark.parametrize(("command", "told", "says"), CASES)
def test_a_row_names_what_makes_it_so(
    command: str, told: list[str], says: str, in_process: InProcess
) -> None:
    done = in_process(command, doing(lambda config, folder: None))(*told)
    key = told[-1].lstrip("+").partition("=")[0]
    refused(done, f"error: {key}: without effect, {says}")
    assert done.err.endswith(": leave it out\n")


@pytest.mark.parametrize(("command", "told"), PASS)
def test_what_counts_or_is_so_anyway_passes(
    command: str, told: list[str], in_process: InProcess
) -> None:
    done = in_process(command, doing(lambda config, folder: None))(*told)
    assert done.code == 0, done


def test_of_several_jobs_one_suffices(in_process: InProcess) -> None:
    command = in_process("evaluate", doing(lambda config, folder: None))
    assert command("-m", "dispatch=immediate,queued", "keep_alive=lru").code == 0
    assert command("-m", "seed=1,2", "keep_alive=lru").code == 2
