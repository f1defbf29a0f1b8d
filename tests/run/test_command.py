"""Bad commands: one line that says what is wrong, exit code 2, and nothing written."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from numba import njit
from omegaconf import DictConfig

from env.base.errors import InputError
from env.base.jit import before_compiling
from env.base.schema import validated
from run.command import StopOnSignals, plain, refuse, run
from run.next_command import PROJECT
from run.settings import TrainSettings
from tests.commands import InProcess

BAD = {
    "a group": (["clutser=tiny"], "clutser: unknown key, did you mean 'cluster'?"),
    "a group of another command": (
        ["baseline=drf"],
        "baseline: unknown key, allowed: cluster, ",
    ),
    "a sweep as Hydra's settings": (
        ["-m", "+hydra.sweeper.params={seed: '0,1'}"],
        "hydra.sweeper.params: not supported, -m takes KEY=A,B",
    ),
    "another folder to run in": (
        ["hydra.job.chdir=true"],
        "hydra.job.chdir: without effect, paths",
    ),
    "an option": (["cluster=tinny"], "cluster=tinny: unknown option, did you mean 'tiny'?"),
    "no option": (["experiment=null"], "experiment=None: unknown option"),
    "an experiment": (["experiment=smoek"], "did you mean 'smoke'?"),
    "a key": (["budget.minuts=3"], "budget.minuts: unknown key, did you mean 'budget.minutes'?"),
    "an added key": (["+algo.clp=1"], "algo.clp: unknown key, did you mean 'clip'?"),
    "a key added whether it is there or not": (
        ["++ray.runtime_env.working_dir=/nope"],
        "ray.runtime_env: /nope is not a valid path",
    ),
    "an added root": (["+sede=1"], "sede: unknown key, did you mean 'seed'?"),
    "a key like no other": (
        ["algo.lr=1"],
        "algo.lr: unknown key, allowed: algo.cloning, ",
    ),
    "a removed key": (["~algo.clip"], "algo.clip"),
    "a word for a number": (["algo.clip=wide"], "algo.clip"),
    "NaN": (["objective.time_weight=nan"], "objective.time_weight"),
    "a negative weight": (["objective.cost_weight=-1"], "objective.cost_weight"),
    "no weight": (["objective.time_weight=0", "objective.cost_weight=0"], "all 0"),
    "a share above 1": (["algo.gamma=1.5"], "algo.gamma"),
    "a minibatch above the batch": (["algo.batch_size=64"], "minibatch_size"),
    "a batch above memory": (
        ["algo.batch_size=1e12"],
        "algo.batch_size: Input should be less than or equal to 10000000, found 1000000000000.0",
    ),
    "steps that no weights survive": (["algo.learning_rate=1e30"], "algo.learning_rate"),
    "a clip of nothing": (["algo.clip=1e-300"], "algo.clip"),
    "an entropy beyond all": (["algo.entropy=1e300"], "algo.entropy"),
    "a temperature beyond all": (["algo.cloning.temperature=1e300"], "algo.cloning.temperature"),
    "updates without end": (["algo=dqn", "algo.updates_per_step=1e300"], "algo.updates_per_step"),
    "an unknown key for Ray": (
        ["+ray.runtime_env.env_var={A: b}"],
        "env_var: unknown key, did you mean 'env_vars'?",
    ),
    "no layers": (["algo.hidden=[]"], "algo.hidden: Tuple should have at least 1 item"),
    "an algorithm": (["algo=dpn"], "algo=dpn: unknown option, did you mean 'dqn'?"),
    "an algorithm by its name": (
        ["algo.name=sac"],
        "algo.name: 'sac' is unknown, allowed: ppo, appo, impala, dqn, bc",
    ),
    "DQN that bids": (["algo=dqn", "agents=server_types"], "are placer, hierarchical and queue"),
    "a warm start of DQN": (["algo=dqn", "algo.warm_start=random"], "algo.warm_start: unknown key"),
    "a list of teachers": (["algo.warm_start=[random]"], "algo.warm_start"),
    "a teacher without a name": (["algo.warm_start="], "algo.warm_start"),
    "loads of nothing": (["variation.load=1e-300"], "variation.load"),
    "work of nothing": (["variation.computation=[0.0]"], "variation.computation.0"),
    "prices of nothing": (
        ["variation.hourly_rate=[1e-320,1e-320]"],
        "a rate has to be at least 1e-06",
    ),
    "layers wider than memory": (["algo.hidden=[65536]"], "algo.hidden.0"),
    "messages without end": (["algo.message_rounds=1000000000"], "algo.message_rounds"),
    "a search of what is not": (
        ["tune=asha", "+tune.space.clp={low: 0.1, high: 0.3}"],
        "tune.space.clp: not a setting of algo=ppo, did you mean 'clip'?",
    ),
    "a search in no range": (["tune=asha", "tune.space.learning_rate.low=1"], "is not below high"),
    "a search of bad values": (
        ["tune=pbt", "+tune.space.clip={low: -0.1, high: 0.3}"],
        "tune.space.clip -0.1: algo.clip",
    ),
    "a search of whole numbers among fractions": (
        ["tune=asha", "+tune.space.epochs={low: 1, high: 4}"],
        "tune.space.epochs 1.9",
    ),
    "a search of values that do not go together": (
        [
            *("tune=asha", "algo.batch_size=256", "algo.minibatch_size=64"),
            "+tune.space.batch_size={choices: [128, 256]}",
            "+tune.space.minibatch_size={choices: [100, 200]}",
        ],
        "tune.space.batch_size 128 and tune.space.minibatch_size 200: algo: minibatch_size",
    ),
    "a search of batches too small for the environments": (
        [
            "algo=appo",
            "tune=asha",
            "~tune.space.gae_lambda",
            "+tune.space.batch_size={choices: [8, 4096]}",
        ],
        "tune.space.batch_size 8: algo.batch_size 8 is less than 4 turns of each of 256",
    ),
    "a change of layers on the way": (
        ["tune=pbt", "+tune.space.hidden={choices: [[8], [16]]}"],
        "choose tune=asha",
    ),
    "a search that resumes": (["tune=asha", "resume=outputs"], "resume goes on with one training"),
    "a search of one": (["tune=asha", "tune.trials=1"], "tune.trials"),
    "a scheduler": (["tune=ahsa"], "tune=ahsa: unknown option, did you mean 'asha'?"),
    "no end": (["budget.minutes=null"], "never end"),
    "a layout": (["agents.layout=flat"], "agents.layout"),
    "no tiers": (["agents.memory_tiers=[]"], "agents.memory_tiers"),
    "tiers out of order": (["agents.memory_tiers=[1.0,0.5]"], "agents.memory_tiers"),
    "bids of another layout": (["+agents.bid_levels=8"], "bid_levels"),
    "no bids": (["agents=server_types", "agents.bid_levels=null"], "bid_levels"),
    "cores of a running cluster": (["ray=cluster", "ray.num_cpus=4"], "ray"),
    "no address": (
        ["ray.address=foo"],
        "ray.address: 'foo' is found; auto, host:port or ray://host:port is allowed",
    ),
    "a port above all": (["ray=cluster", "ray.address=ray://host:65536"], "host:port"),
    "learners of another algorithm": (
        ["algo=impala", "ray.num_learners=2"],
        "ray.num_learners 2 is for algo=ppo",
    ),
    "pieces in which nobody acts twice": (
        ["algo=appo", "algo.batch_size=512", "ray.envs_per_runner=256"],
        "algo.batch_size 512 is less than 4 turns of each of 256 environments",
    ),
    "a window of less than nothing": (["agents.workflow_window=-1"], "agents.workflow_window"),
    "no messages": (["algo.message_rounds=0"], "algo.message_rounds"),
    "no override": (["seed"], "seed"),
    "no key": (["=3"], "'=3': KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY is needed"),
    "a path with an equals sign": (
        ["resume=runs/epoch=3"],
        "'resume=runs/epoch=3': not readable, text is written 'resume=\"runs/epoch=3\"'",
    ),
    "blanks and an umlaut": (
        ["resume=mine  \N{LATIN SMALL LETTER U WITH DIAERESIS}"],
        "'resume=\"mine  \N{LATIN SMALL LETTER U WITH DIAERESIS}\"'",
    ),
    "an equals sign in a sweep": (
        ["-m", "seed=1,2=3"],
        "'seed=\"1,2=3\"', each of several texts in quotes of its own",
    ),
    "thousands of digits": ([f"seed={'9' * 5000}"], "text is written 'seed=\"...\"'"),
    "a line break": (["resume=a\nb"], "'resume=a\\nb': a character that cannot be printed"),
    "nothing in place of a mapping": (
        ["workflow.mix={}"],
        "workflow.mix={}: mappings are merged, so this takes nothing away: write ~workflow.mix, or "
        "~workflow.mix.montage",
    ),
    "nothing in place of an added mapping": (["++cluster.power={}"], "write ~cluster.power, or"),
    "nothing inside of a mapping": (
        ["cluster.server_types={small: {}}"],
        "write ~cluster.server_types.small, or ~cluster.server_types.small.",
    ),
    "nothing and something in place of a mapping": (
        ["workflow.mix={}", "++workflow.mix.montage=1"],
        "write ~workflow.mix, or ~workflow.mix.epigenomics and so on",
    ),
    "something and nothing": (
        ["+workload.tenants.a=1", "workload.tenants={}"],
        "write ~workload.tenants, or ~workload.tenants.a and so on",
    ),
    "nothing in one job of a sweep": (["-m", "workflow.mix={},{}"], "write ~workflow.mix"),
    "a mapping for a list": (
        ["algo.hidden={a: 1}"],
        "override algo.hidden={a: 1}: a list is needed, found a mapping",
    ),
    "a flag": (["--sede"], "--sede"),
    "another config": (["--config-name", "other"], "--config-name"),
    "a folder of configs": (["--config-dir", "nowhere"], "--config-dir"),
    "a sweep without -m": (["seed=1,2"], "seed=1,2"),
    "one of a sweep": (["-m", "seed=0,1,-2"], "seed"),
    "one option of a sweep": (["-m", "cluster=tiny,tinny"], "did you mean 'tiny'?"),
    "results in a file": (["hydra.run.dir=/dev/null/x"], "'/dev/null' is no folder to write to"),
    "results where nothing can be written": (
        ["hydra.run.dir=/proc/x"],
        "hydra.run.dir: '/proc/x': '/proc' is no folder to write to",
    ),
    "results under a name too long": ([f"hydra.run.dir={'a' * 300}"], "no folder to write to"),
    "results in a folder without a name": (["hydra.run.dir="], "hydra.run.dir: '' is no name"),
    "a sweep in a file": (["-m", "hydra.sweep.dir=/dev/null"], "hydra.sweep.dir"),
    "a name for a folder of results": (["hydra.run.dir=[a]"], "hydra.run.dir"),
    "an interpolation of nothing": (["seed=${nothing}"], "nothing"),
    "an interpolation of itself": (["seed=${seed}"], "Recursive interpolation"),
    "an interpolation of a mapping": (
        ["seed=${algo}"],
        "seed: an interpolation of a mapping or list, only of single values is allowed",
    ),
    "an interpolation within text": (
        ["resume=${seed}x"],
        "command line: resume: '${seed}x': an interpolation has to be the whole value and of the "
        "form ${KEY}",
    ),
    "an interpolation in quotes, in a mapping, in a sweep": (
        ["-m", "seed=1,2", "ray.runtime_env={env_vars: {A: '${seed}${seed}'}}"],
        "command line: ray.runtime_env.env_vars.A: '${seed}${seed}'",
    ),
    "an interpolation that reads the environment": (["seed=${oc.env:HOME}"], "of the form ${KEY}"),
    "a folder that reads the environment": (
        ["hydra.run.dir='${${now:oc}.env:HOME}/x'"],
        "hydra.run.dir: '${${now:oc}.env:HOME}/x': at most 10 interpolations are allowed, of the "
        "forms ${KEY} and ${now:FORMAT}",
    ),
    "a folder of far too many": (["hydra.sweep.dir=" + 11 * "${seed}"], "hydra.sweep.dir: "),
}


def settings_only(config: DictConfig) -> None:
    """The part of the training check that needs no environment."""
    validated(TrainSettings, plain(config), "train")


@pytest.mark.parametrize("case", BAD)
def test_a_bad_command_gets_one_line(
    case: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    overrides, says = BAD[case]
    monkeypatch.setattr(sys, "argv", ["train.py", *overrides])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", settings_only)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(elsewhere.iterdir()) == []


def test_no_error_reaches_the_terminal_as_escape_sequences_or_without_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        refuse(InputError("a\x1b[2J\nb  c" + "x" * 10**6))
    line = capsys.readouterr().err
    assert caught.value.code == 2
    assert line.startswith(r"error: a\x1b[2J b  cxxx") and line.endswith("x\n")
    assert line.count("\n") == 1 and len(line) < 1_100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_to_stop_and_a_second_one_insists(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopOnSignals() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_own_configs_can_be_given(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = elsewhere / "mine" / "objective"
    mine.mkdir(parents=True)
    (mine / "fast.yaml").write_text("time_weight: 5.0\ncost_weight: 0.0\n")
    overrides = ["--config-dir", "mine", "objective=fast"]
    monkeypatch.setattr(sys, "argv", ["train.py", *overrides])
    seen: list[float] = []
    run(lambda config: seen.append(config.objective.time_weight), "train", settings_only)
    assert seen == [5.0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"time_weight:\t5.0\n\tcost_weight: 0.0\n", "broken.yaml"),
        (b"time_weight: 5.0\ntime_weight: 1.0\n", "broken.yaml"),
        ("time_weight: 5.0  # caf\N{LATIN SMALL LETTER E WITH ACUTE}\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_a_slip_in_an_own_config_gets_one_line(
    content: bytes,
    says: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = elsewhere / "mine" / "objective"
    mine.mkdir(parents=True)
    (mine / "broken.yaml").write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["train.py", "--config-dir", "mine", "objective=broken"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", settings_only)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.startswith("error: ") and error.count("\n") == 1


def test_pip_is_told_that_the_clone_is_the_program() -> None:
    install = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", str(PROJECT)]
    done = subprocess.run(install, text=True, capture_output=True, check=False)
    assert done.returncode != 0
    assert "run `make .venv/installed` in it" in done.stderr


def test_what_is_compiled_is_named(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    command = in_process("train", lambda config: None, lambda config: njit(lambda: 0)())
    monkeypatch.setattr("run.command.before_compiling", before_compiling)
    says = f"compiling {__name__}, once after it is installed or changed: takes a minute or two"
    # Commands of other tests in this process may wait to say so as well.
    assert set(command().err.splitlines()) == {says}


def test_the_help_fits_any_terminal() -> None:
    ascii_alone = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    given = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    command = [sys.executable, str(PROJECT / "evaluate.py"), "--help"]
    done = subprocess.run(command, env=given | ascii_alone, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\nagents: needs policy=?: " in done.stdout


def test_a_run_that_is_refused_while_it_plays_leaves_nothing(in_process: InProcess) -> None:
    def played(config: DictConfig) -> None:
        (Path(HydraConfig.get().runtime.output_dir) / "assumptions.json").write_text("{}")
        raise InputError("workload: nobody has a choice")

    done = in_process("train", played, lambda config: None)("hydra.run.dir=run")
    assert (done.code, done.err) == (2, "error: workload: nobody has a choice\n")
    assert not Path("run").exists()
