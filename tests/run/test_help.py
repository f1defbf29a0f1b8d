"""The help of a command lists what the command takes, and says what that needs."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import evaluate
import search_baseline
import train
from run.command import CONF
from tests.agents.learned.test_queue_policy import save_untrained
from tests.commands import Command, InProcess

FIXTURES = Path(__file__).parents[1] / "env" / "workloads" / "fixtures"
FILES = {
    "workflow=files": FIXTURES / "photo.json",
    "workload=azure2019": FIXTURES / "azure2019",
    "workload=azure2021": FIXTURES / "azure2021.csv",
    "experiment=real_workflows": FIXTURES / "photo.json",
    "experiment=real_workflows_cost": FIXTURES / "photo.json",
    "experiment=funcsched_workflows": FIXTURES / "photo.json",
    "experiment=tickets_azure": FIXTURES / "azure2019",
}
"""What a user has, for options that need a path."""
OF_MINUTES = ("workload.sampling.start=2", "workload.sampling.minutes=1")
"""Traces that a user has here are of 4 and 12 minutes."""


def listed(command: Command, *typed: str) -> Iterator[tuple[str, str, list[str]]]:
    """Group, option and what this needs: words of a command line, `…` where the user says what."""
    done = command(*typed, "--help")
    assert done.code == 0, done.err
    lines = done.out.partition("(group=option):\n\n")[2].partition("\n\n")[0].splitlines()
    for group, _, options in (line.partition(": ") for line in lines):
        for part in options.split("; "):
            needed, _, names = part.removeprefix("needs ").rpartition(": ")
            yield from ((group, name, needed.split()) for name in names.split(", "))


def test_the_help_explains_every_group(in_process: InProcess, elsewhere: Path) -> None:
    done = in_process("train", train.train, train.check)("--help")
    assert done.code == 0
    shown = done.out
    groups = ("cluster", "workflow", "workload", "agents", "objective", "algo", "ray", "experiment")
    for group in groups:
        assert f"\n  {group} " in shown, group
    assert "hetero_numa" in shown
    # Values with the comments of their files; nothing that the command would refuse.
    assert "\n  same_node_bandwidth_bytes_per_s: 100000000000\n" in shown
    assert "\n  # Bytes per second. Local memory reads of one node" in shown
    assert "\n      hourly_rate: 0.17\n" in shown
    assert "\n    busy_core_w: 3.5  # W of a core at work" in shown
    experiments = next(line for line in shown.splitlines() if line.startswith("experiment: "))
    assert "hetero_numa_placer" in experiments and "funcsched" not in experiments
    assert "\nbaseline: " not in shown
    needs = "needs workload.container_cold_start=…: "
    assert f"\nkeep_alive: {needs}faascache, fixed, lru, none\n" in shown
    assert "Checkpoints are pickles" in shown
    assert list(elsewhere.iterdir()) == []


def typed(group: str, option: str) -> str:
    """How an option is chosen on the command line."""
    return f"baselines=[{option}]" if group == "baseline" else f"{group}={option}"


def said(word: str, chosen: str, needed: list[str]) -> str:
    """A needed word as a user gives it, whose own part is `…`."""
    if word == "policy=…":
        base = ("cluster=tiny", "workflow=tiny", *needed[1:], chosen)
        save_untrained(Path(chosen.replace("=", "_")), base=base)
        return f"policy={chosen.replace('=', '_')}"
    own = "2.5" if word.startswith("workload.container") else FILES.get(chosen, "earliest_finish")
    return word.replace("…", str(own))


@pytest.mark.long
@pytest.mark.parametrize("program", [train, evaluate, search_baseline])
def test_the_help_lists_what_is_taken_and_says_with_what(
    program: ModuleType, in_process: InProcess
) -> None:
    command = in_process(program.__name__, lambda config: None, program.check)
    names = list(listed(command))
    assert len(names) > 20
    for group, option, needed in names:
        chosen = typed(group, option)
        alone = command(chosen)
        assert alone.code == (2 if needed else 0), (chosen, alone)
        if needed:
            window = OF_MINUTES if "azure" in str(FILES.get(chosen)) else ()
            together = command(chosen, *window, *(said(word, chosen, needed) for word in needed))
            assert together.code == 0, (chosen, together)
    for file in CONF.glob("*/*.yaml"):  # what is not listed is not taken
        if (file.parent.name, file.stem) not in {name[:2] for name in names}:
            assert command(typed(file.parent.name, file.stem)).code == 2, file


@pytest.mark.parametrize(
    ("words", "group", "option", "needed"),
    [
        ([], "agents", "queue", ["dispatch=queued"]),
        (["dispatch=queued"], "agents", "queue", []),
        (["dispatch=queued"], "agents", "tenants", ["workload=tickets"]),
        ([], "workflow", "files", ["workflow.path=…"]),
        (["workflow=files", "workflow.path=a.json"], "workflow", "files", []),
        ([], "algo/cloning", "default", ["algo.warm_start=…"]),
        (["algo=bc"], "algo/cloning", "default", []),
    ],
)
def test_what_is_given_is_not_needed(
    words: list[str], group: str, option: str, needed: list[str], in_process: InProcess
) -> None:
    names = list(listed(in_process("train", train.train, train.check), *words))
    assert (group, option, needed) in names


def test_groups_without_effect_are_not_listed(in_process: InProcess) -> None:
    command = in_process("evaluate", evaluate.evaluate, evaluate.check)
    groups = {group for group, *_ in listed(command, "workload=azure_like")}
    assert "workflow/annotation" not in groups and "workload/annotation" in groups
