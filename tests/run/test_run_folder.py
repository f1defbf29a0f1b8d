"""The folder of a run: one run has it, and nothing is left of a run that wrote nothing."""

import os
import signal
import sys
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from env.base.errors import InputError
from run.command import run
from run.run_folder import run_folder
from tests.run.test_command import settings_only


def test_a_good_command_runs_in_its_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "-m", "seed=3,4", "objective=cost,latency"])
    seen: list[tuple[int, float]] = []

    def main(config: DictConfig) -> None:
        seen.append((config.seed, config.objective.time_weight))

    run(main, "train", settings_only)
    assert seen == [(3, 0.1), (3, 1.0), (4, 0.1), (4, 1.0)]
    assert len(list(elsewhere.glob("outputs/*/*/*/.hydra/config.yaml"))) == 4


def test_what_is_refused_late_leaves_no_run(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(config: DictConfig) -> None:
        raise InputError("ray: 1 core")

    for _ in range(2):  # the same command again is not told that there is a run already
        monkeypatch.setattr(sys, "argv", ["train.py", "hydra.run.dir=runs/mine"])
        with pytest.raises(SystemExit) as caught:
            run(main, "train", settings_only)
        assert (caught.value.code, capsys.readouterr().err) == (2, "error: ray: 1 core\n")
        assert list(elsewhere.glob("runs/*")) == []


@pytest.mark.parametrize(
    ("told", "key"), [(["-m", "seed=3,4"], "hydra.sweep.dir"), ([], "hydra.run.dir")]
)
def test_a_folder_takes_one_run(
    told: list[str],
    key: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[int] = []
    for folder in ("here", "there"):
        monkeypatch.setattr(sys, "argv", ["train.py", *told, f"{key}={folder}"])
        run(lambda config: seen.append(config.seed), "train", settings_only)
    runs = len(seen)
    with pytest.raises(SystemExit) as caught:
        run(lambda config: seen.append(config.seed), "train", settings_only)
    assert caught.value.code == 2
    place = elsewhere / "there"
    says = f"error: {key}: '{place}' has a run already: name a new folder\n"
    assert capsys.readouterr().err == says
    assert len(seen) == runs > 0


def test_jobs_of_a_sweep_in_one_folder_are_refused(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["-m", "seed=3,4", "hydra.sweep.dir=here", "hydra.sweep.subdir=same"]
    monkeypatch.setattr(sys, "argv", ["train.py", *told])
    seen: list[int] = []
    with pytest.raises(SystemExit) as caught:
        run(lambda config: seen.append(config.seed), "train", settings_only)
    assert caught.value.code == 2
    assert seen == [3]
    assert "here/same' has a run already" in capsys.readouterr().err


def test_of_runs_that_begin_in_one_folder_at_once_one_goes_on(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(config: DictConfig) -> None:
        # Between this run's look at the folder and its start another one begins there.
        (elsewhere / "here" / ".hydra").mkdir(parents=True)
        (elsewhere / "here" / ".hydra" / "claimed").touch()

    monkeypatch.setattr(sys, "argv", ["train.py", "hydra.run.dir=here"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", check)
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        f"error: '{elsewhere / 'here'}' has a run already: name a new folder\n"
    )
    assert (elsewhere / "here" / ".hydra" / "claimed").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_before_it_began_leaves_nothing(
    number: signal.Signals,
    code: int,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main(config: DictConfig) -> None:
        os.kill(os.getpid(), number)

    monkeypatch.setattr(sys, "argv", ["train.py", "hydra.run.dir=runs/mine"])
    with pytest.raises(SystemExit) as caught:
        run(main, "train", settings_only)
    assert (caught.value.code, capsys.readouterr().err) == (code, "stopped\n")
    assert list(elsewhere.glob("runs/*")) == []


def test_a_program_that_gives_up_says_why_alone(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(config: DictConfig) -> None:
        raise SystemExit("error: nothing came to an end")

    monkeypatch.setattr(sys, "argv", ["train.py", "hydra.run.dir=runs/mine"])
    with pytest.raises(SystemExit) as caught:
        run(main, "train", settings_only)
    assert caught.value.code == "error: nothing came to an end"
    assert capsys.readouterr().err == ""
    assert list(elsewhere.glob("runs/*")) == []


@pytest.mark.parametrize("left", ["results.parquet", "checkpoints"])
def test_results_of_a_run_are_known_without_what_hydra_writes(
    left: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (elsewhere / "copy" / left).mkdir(parents=True)
    monkeypatch.setattr(sys, "argv", ["train.py", "hydra.run.dir=copy"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it began"), "train", settings_only)
    assert caught.value.code == 2
    says = f"error: hydra.run.dir: '{elsewhere / 'copy'}' has a run already: name a new folder\n"
    assert capsys.readouterr().err == says


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["cluster=hetero_numa", "algo=ppo", "seed=3"], "hetero_numa-ppo-seed3"),
        (["cluster=tiny", "workflow=tiny", "episodes=2"], "tiny-episodes2"),
        (
            ["policy=outputs/2030-01-31/12-00-00_ppo-seed1/policy", "episodes=3"],
            "ppo-seed1-episodes3",
        ),
        (["policy=[hetero_numa,real_workflows]"], "hetero_numa+real_workflows"),
        (["baselines=[rules/mine.py:MyRule,greedy_per_core]"], "MyRule+greedy_per_core"),
        (["sweep={lease: [hourly,always]}", "resume=outputs/x"], ""),
        (["seed=1", f"baselines=[{','.join(50 * ['random'])}]"], "seed1"),
        (["name=mine", "seed=1"], "mine"),
    ],
)
def test_the_folder_of_a_run_has_a_name(typed: list[str], name: str, elsewhere: Path) -> None:
    overrides = OmegaConf.create(typed)
    given = next((word[5:] for word in typed if word.startswith("name=")), None)
    folder = Path(run_folder(given, overrides, None, "checkpoints"))
    time, _, found = folder.name.partition("_")
    assert (found, folder.parts[0]) == (name, "outputs")
    assert len(time.split("-")) == 3
    # Another one that begins in the same second.
    (elsewhere / folder).mkdir(parents=True)
    again = Path(run_folder(given, overrides, None, "checkpoints"))
    assert again != folder and not again.exists()


def test_a_run_goes_on_in_its_folder_a_lone_checkpoint_in_a_new_one(elsewhere: Path) -> None:
    checkpoint = elsewhere / "some" / "checkpoints" / "iteration_000002"
    checkpoint.mkdir(parents=True)
    typed = OmegaConf.create([f"resume={checkpoint}"])
    assert run_folder(None, typed, "some", "checkpoints") == "some"
    assert Path(run_folder(None, typed, str(checkpoint), "checkpoints")).parts[0] == "outputs"


def test_a_name_that_the_folder_does_not_take_is_refused(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "name=mine", "hydra.run.dir=there"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", settings_only)
    assert caught.value.code == 2
    says = f"error: name: no effect, since results go to '{elsewhere / 'there'}'\n"
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("name", ["../x", "a b", "", "x" * 81, "5", "[a]", "é"])
def test_a_name_is_a_word(
    name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", f"name='{name}'" if name != "5" else "name=5"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", settings_only)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("error: name: ")
    assert list(elsewhere.iterdir()) == []
