"""A disk that is full: one line, and what is complete stays."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from omegaconf import DictConfig
from ray.exceptions import RayTaskError
from safetensors.numpy import save
from tensorboard.summary.writer.record_writer import RecordWriter

from agents.learned import policy_file
from agents.learned.checkpoint import RunState, find_checkpoint, load_checkpoint, save_checkpoint
from agents.learned.network import PolicySizes, SetPolicyNetwork
from agents.learned.policy_file import save_policy
from agents.learned.run_log import RunLog
from agents.learned.tuning import Outcome, write_outcomes
from tests.commands import InProcess, NoWeights, doing, never

FULL = OSError(errno.ENOSPC, "in words of a library")
NO_SPACE = os.strerror(errno.ENOSPC)


class FullDisk:
    """In place of an algorithm: the disk is full in the middle of its checkpoint."""

    def save_to_path(self, path: str) -> None:
        """Writes the first of two files."""
        Path(path).mkdir(parents=True)
        (Path(path) / "metadata.json").write_text("{}")
        raise FULL


def full(*args: object) -> None:
    raise FULL


def save_weights(folder: Path) -> None:
    save_policy(
        folder / "policy",
        networks={"placer": SetPolicyNetwork(PolicySizes(1, 1, 1, 0, (1,)))},
        features={},
        layout="placer",
        memory_tiers=[1.0],
        objective={},
        config={},
    )


def full_in_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(FullDisk(), folder, RunState(iteration=2), {}, keep=1)


def full_in_remote_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raise RayTaskError("save_to_path", "traceback", FULL).as_instanceof_cause()


def full_in_policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_alone(weights: dict[str, np.ndarray]) -> bytes:
        monkeypatch.setattr(policy_file, "save", full)
        return save(weights)

    monkeypatch.setattr(policy_file, "save", first_alone)
    for _ in range(2):
        save_weights(folder)


MEASURES = {"J": 1.0, "env_steps_per_s": 1.0, "runners": 0.0, "runners_timed_out": 0.0}


def full_in_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "metrics.csv").symlink_to("/dev/full")
    with RunLog(folder, ["placer"], 0, RunState()) as log:
        log.write(MEASURES, RunState(), 0.5)


def full_in_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunLog(folder, ["placer"], 0, RunState()) as log:
        monkeypatch.setattr(RecordWriter, "write", full)
        while True:  # a thread writes them
            log.write(MEASURES, RunState(), 0.5)


def full_in_trials(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.learned.tuning.table_row", full)
    write_outcomes([Outcome("1", {}, None, 100.0, None)], [], folder / "trials.csv")


@pytest.mark.parametrize(
    "fill",
    [
        full_in_checkpoint,
        full_in_remote_checkpoint,
        full_in_policy,
        full_in_table,
        full_in_events,
        full_in_trials,
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_a_full_disk_gets_one_line_and_what_is_complete_stays(
    fill: Callable[[Path, pytest.MonkeyPatch], None],
    saved: bool,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: InProcess,
) -> None:
    def main(config: DictConfig, folder: Path) -> None:
        if saved:
            save_weights(folder)
            save_checkpoint(NoWeights(), folder, RunState(iteration=1), {}, keep=1)
        fill(folder, monkeypatch)

    done = in_process("train", doing(main))("hydra.run.dir=mine")
    folder = elsewhere / "mine"
    go_on = f", go on with resume={folder}" if saved else ""
    says = f"error: '{folder}': {NO_SPACE}; what is complete stays{go_on}\n"
    assert (done.code, done.err) == (1, says)
    if saved:
        assert load_checkpoint(find_checkpoint(folder)).state.iteration == 1
        assert [path.name for path in (folder / "checkpoints").iterdir()] == ["iteration_000001"]
        assert {path.name for path in (folder / "policy").iterdir()} == {
            "placer.safetensors",
            "policy.json",
        }
    assert not [*folder.glob(".[!h]*"), *folder.glob("trials*")]


def test_a_thread_that_fails_otherwise_says_so(in_process: InProcess) -> None:
    def main(config: DictConfig, folder: Path) -> None:
        thread = threading.Thread(target=lambda: [][0])
        thread.start()
        thread.join()

    assert "IndexError" in in_process("train", doing(main))("hydra.run.dir=mine").err


def always_full(dir: Path) -> BinaryIO:
    """In place of a file on a full disk."""
    return Path("/dev/full").open("wb")


def test_a_disk_that_is_full_from_the_start_is_refused(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    monkeypatch.setattr("run.run_folder.TemporaryFile", always_full)
    done = in_process("train", doing(never))("hydra.run.dir=mine")
    says = f"'{elsewhere / 'mine'}': '{elsewhere}' is no folder to write to: {NO_SPACE}"
    assert (done.code, done.err) == (2, f"error: {says}\n")
    assert list(elsewhere.iterdir()) == []
