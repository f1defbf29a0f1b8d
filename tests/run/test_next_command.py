"""The command that a run names as the next one."""

import shlex
import sys
from pathlib import Path

from omegaconf import DictConfig

from run.composing import WORLD, plain
from run.next_command import PROJECT, evaluate_command
from tests.commands import InProcess, doing
from tests.env.worlds import composed


def said_by(in_process: InProcess, *told: str) -> tuple[str, dict[str, object]]:
    """What a training that was told this names, and what it was told."""
    said: list[tuple[str, dict[str, object]]] = []

    def main(config: DictConfig, folder: Path) -> None:
        command = evaluate_command(plain(config), policy=Path("some/policy").absolute())
        said.append((command, plain(config)))

    assert in_process("train", doing(main))(*told).code == 0
    return said[0]


def test_a_run_says_how_its_world_is_evaluated(in_process: InProcess) -> None:
    command, _ = said_by(
        in_process,
        *("experiment=hetero_numa_latency", "cluster=tiny", "workload.arrivals.mean_gap=30"),
        *("seed=4", "workflow/annotation=reserved", "++workload.arrivals.workflows=5"),
    )
    python, script, *words = shlex.split(command)
    # It can be typed where the user stands.
    assert python == sys.orig_argv[0]
    assert Path(script).is_file() and Path(script).samefile(PROJECT / "evaluate.py")
    assert set(words) == {
        "policy=some/policy",
        "cluster=tiny",
        "objective=latency",
        "workflow/annotation=reserved",
        "workload.arrivals.mean_gap=30",
        "workload.arrivals.workflows=5",
    }


def test_what_options_of_the_users_own_set_is_evaluated(
    elsewhere: Path, in_process: InProcess
) -> None:
    mine = elsewhere / "my conf"
    (mine / "cluster").mkdir(parents=True)
    (mine / "experiment").mkdir()
    (mine / "cluster" / "mine.yaml").write_text("defaults: [tiny]\nnetwork_bandwidth: 3.0e8\n")
    (mine / "experiment" / "busy.yaml").write_text(
        "# @package _global_\ndefaults: [{override /cluster: mine}, {override /workflow: tiny}]\n"
        "workload: {arrivals: {mean_gap: 7.5}}\nobjective: {cost_weight: 0.25}\n"
    )
    command, told = said_by(in_process, "--config-dir", "my conf", "experiment=busy")
    words = shlex.split(command)[2:]
    assert words[:2] == ["--config-dir", "my conf"]
    overrides = [word for word in words[2:] if not word.startswith("policy=")]
    overrides.append(f"hydra.searchpath=[{mine.as_uri().replace('%20', ' ')}]")
    world = composed(*overrides, name="evaluate")
    assert {group: world[group] for group in WORLD} == {group: told[group] for group in WORLD}
