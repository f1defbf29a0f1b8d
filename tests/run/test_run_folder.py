"""The folder of a run: one run has it, and nothing is left of a run that wrote nothing."""

import os
import signal
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from env.base.errors import InputError
from run.run_folder import first_difference, run_folder
from tests.commands import InProcess, doing, never


def test_jobs_of_a_sweep_run_each_in_a_folder_within_one(
    elsewhere: Path, in_process: InProcess
) -> None:
    seen: list[tuple[int, float, str]] = []

    def main(config: DictConfig, folder: Path) -> None:
        seen.append((config.seed, config.objective.time_weight, folder.name))
        told = OmegaConf.load(folder / ".hydra" / "config.yaml")
        assert told.seed == config.seed and "hydra" not in told

    command = in_process("train", doing(main))
    assert command("-m", "seed=3,4", "objective=cost,latency", "budget.minutes=7").code == 0
    assert seen == [
        (3, 0.1, "0_seed3-cost-minutes7"),
        (3, 1.0, "1_seed3-latency-minutes7"),
        (4, 0.1, "2_seed4-cost-minutes7"),
        (4, 1.0, "3_seed4-latency-minutes7"),
    ]
    assert len(list(elsewhere.glob("outputs/*/*_minutes7/*/.hydra/overrides.yaml"))) == 4


@pytest.mark.parametrize(
    ("told", "folder"),
    [
        (["hydra.run.dir=here"], "here"),
        (["-m", "seed=3,4", "hydra.sweep.dir=here"], "here/0_seed3"),
        (["-m", "seed=3,4", "hydra.sweep.dir=here", "hydra.sweep.subdir=same"], "here/same"),
    ],
)
def test_a_folder_takes_one_run(
    told: list[str], folder: str, elsewhere: Path, in_process: InProcess
) -> None:
    seen: list[Path] = []
    command = in_process("train", doing(lambda config, folder: seen.append(folder)))
    assert command(*told).code == (2 if "hydra.sweep.subdir=same" in told else 0)
    runs = len(seen)
    done = command(*told)
    says = f"error: '{elsewhere / folder}' has a run already: name a new folder\n"
    assert (done.code, done.err, len(seen)) == (2, says, runs)


def test_of_runs_that_begin_in_one_folder_at_once_one_goes_on(
    elsewhere: Path, in_process: InProcess
) -> None:
    claimed = elsewhere / "here" / ".hydra"

    def check(config: DictConfig) -> None:
        # Between this run's look at the folder and its start another one begins there.
        claimed.mkdir(parents=True)

    done = in_process("train", doing(never, check))("hydra.run.dir=here")
    assert (done.code, claimed.exists()) == (2, True)
    assert "has a run already: name a new folder" in done.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_before_it_began_leaves_nothing(
    number: signal.Signals, code: int, elsewhere: Path, in_process: InProcess
) -> None:
    main = doing(lambda config, folder: os.kill(os.getpid(), number))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    done = in_process("train", main)("hydra.run.dir=runs/mine")
    signal.signal(signal.SIGINT, before)
    assert (done.code, done.err) == (code, "stopped\n")
    assert list(elsewhere.glob("runs/*")) == []


@pytest.mark.parametrize(
    ("given_up", "code"),
    [(SystemExit("error: nothing came to an end"), 1), (InputError("nothing came to an end"), 2)],
)
def test_a_run_that_gives_up_says_why_and_leaves_nothing(
    given_up: BaseException, code: int, elsewhere: Path, in_process: InProcess
) -> None:
    def main(config: DictConfig, folder: Path) -> None:
        (folder / "assumptions.json").write_text("{}")
        raise given_up

    for _ in range(2):  # the same command again is not told that there is a run already
        done = in_process("train", doing(main))("hydra.run.dir=runs/mine")
        assert (done.code, done.err) == (code, "error: nothing came to an end\n")
        assert list(elsewhere.glob("runs/*")) == []


@pytest.mark.parametrize("left", ["results.parquet", "checkpoints"])
def test_results_of_a_run_are_known_without_what_is_written_first(
    left: str, elsewhere: Path, in_process: InProcess
) -> None:
    (elsewhere / "copy" / left).mkdir(parents=True)
    done = in_process("train", doing(never))("hydra.run.dir=copy")
    assert (done.code, "has a run already" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        (["cluster=hetero_numa", "algo=ppo", "seed=3"], "hetero_numa-ppo-seed3"),
        (["cluster=tiny", "workflow=tiny", "episodes=2"], "tiny-episodes2"),
        (["policy=outputs/2030-01-31/12-00-00_ppo/policy", "episodes=3"], "ppo-episodes3"),
        (["policy=[hetero_numa,real_workflows]"], "hetero_numa+real_workflows"),
        (["baselines=[rules/mine.py:MyRule,greedy_per_core]"], "MyRule+greedy_per_core"),
        (["sweep={lease: [hourly,always]}", "resume=outputs/x"], ""),
        (["seed=1", f"baselines=[{','.join(50 * ['random'])}]"], "seed1"),
        (["name=mine", "seed=1"], "mine"),
    ],
)
def test_the_folder_of_a_run_has_a_name(typed: list[str], name: str, elsewhere: Path) -> None:
    given = next((word[5:] for word in typed if word.startswith("name=")), None)
    folder = run_folder(given, typed, None, "checkpoints")
    time, _, found = folder.name.partition("_")
    assert (found, folder.parts[0]) == (name, "outputs")
    assert len(time.split("-")) == 3
    # Another one that begins in the same second.
    (elsewhere / folder).mkdir(parents=True)
    again = run_folder(given, typed, None, "checkpoints")
    assert again != folder and not again.exists()


def test_a_run_goes_on_in_its_folder_a_lone_checkpoint_in_a_new_one(elsewhere: Path) -> None:
    checkpoint = elsewhere / "some" / "checkpoints" / "iteration_000002"
    checkpoint.mkdir(parents=True)
    typed = [f"resume={checkpoint}"]
    assert run_folder(None, typed, "some", "checkpoints") == Path("some")
    assert run_folder(None, typed, str(checkpoint), "checkpoints").parts[0] == "outputs"


def test_the_first_difference_of_two_trees() -> None:
    one = {"a": 1, "b": {"c": [1], "d": None}}
    assert first_difference(one, {"b": {"d": None, "c": [1]}, "a": 1}) is None
    assert first_difference(one, {"a": 1, "b": {"c": [2], "d": None}}) == ("b.c", [1], [2])
    assert first_difference(one, {**one, "e": 5}) == ("e", None, 5)
