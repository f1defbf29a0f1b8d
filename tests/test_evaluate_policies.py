"""`python evaluate.py` on learned policies: beside baselines, alone, shipped, and unfit ones."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.agents.learned.test_queue_policy import save_untrained
from tests.commands import Command, refused
from tests.env.worlds import TINY
from tests.evaluate_command import BRIEF, results_in, run_in


def make_policy(folder: Path, layout: str, *overrides: str) -> Path:
    """A policy with random weights, as a run on the tiny cluster would leave it."""
    save_untrained(folder, f"agents={layout}", *overrides, base=TINY)
    return folder


def test_rows_of_another_policy_are_not_gone_on_with(command: Command, tmp_path: Path) -> None:
    make_policy(tmp_path / "mine", "placer")
    told = (*TINY, "baselines=[random]", "policy=mine", "episodes=1")
    assert command(*told).code == 0
    (folder,) = tmp_path.glob("outputs/*/*")
    typed = json.loads((folder / "run.json").read_text())["command"]
    assert command(*told, f"resume={folder}").code == 0
    # What makes the same numbers from the start.
    assert json.loads((folder / "run.json").read_text())["command"] == typed
    make_policy(tmp_path / "mine", "placer", "agents.memory_tiers=[1.0]")
    done = command(*told, f"resume={folder}")
    assert done.code == 2
    assert "resume: players_sha256.mine is " in done.err


@pytest.mark.parametrize(
    "told",
    [["dispatch=queued", "baselines=[fcfs]", "record=0"], ["sweep={lease: [hourly,always]}"]],
)
def test_a_learned_policy_plays_in_worlds_it_was_not_trained_in(
    told: list[str], command: Command, tmp_path: Path
) -> None:
    make_policy(tmp_path / "mine", "placer")
    done = command(*TINY, "baselines=[random]", "policy=mine", "episodes=2", *told)
    assert done.code == 0, done
    found = results_in(tmp_path)
    assert (found.loc[found["policy"] == "mine", "bound_gap"] >= 0).all()


@pytest.mark.parametrize(
    ("overrides", "change", "says"),
    [
        (["agents=placer"], {}, "hierarchical, the environment has"),
        ([], {"config": {}}, "agents: layout, memory_tiers, score: missing"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(
    overrides: list[str], change: dict[str, Any], says: str, command: Command, tmp_path: Path
) -> None:
    file = make_policy(tmp_path / "mine", "hierarchical") / "policy.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    refused(command(*BRIEF, "policy=mine", *overrides), says)


def test_the_shipped_policy_beats_the_tuned_rule_without_training(
    command: Command, tmp_path: Path
) -> None:
    rule = "greedy_objective_tuned"
    assert command("policy=hetero_numa", f"baselines=[{rule}]", "episodes=25").code == 0
    mean = results_in(tmp_path).groupby("policy")["J"].mean()
    assert mean["hetero_numa"] < 0.95 * mean[rule]


def test_a_policy_trained_for_another_objective_is_said_to_be(command: Command) -> None:
    same = command(*BRIEF, "policy=hetero_numa")
    other = command(*BRIEF, "policy=hetero_numa", "objective=latency", "hydra.run.dir=other")
    assert same.code == other.code == 0
    assert "trained for" not in same.out
    assert other.out.startswith(
        "note: hetero_numa was trained for objective.time_weight=1.0 objective.cost_weight=1.0, "
        "here objective.time_weight=1.0 objective.cost_weight=0.1 counts\n"
    )


def test_several_policies_play_under_their_names(command: Command, tmp_path: Path) -> None:
    for folder in ("one/run/policy", "two/run/policy", "mine"):
        policy = make_policy(tmp_path / folder, "placer")
        curve = "env_steps,difference\n" + ("" if folder == "mine" else "1,9\n2,8\n")
        (policy.parent / "metrics.csv").write_text(curve)
    told = "policy=[mine,one/run,two/run/policy,hetero_numa]"
    done = command(*TINY, "baselines=[random]", told, "episodes=1")
    assert done.code == 0, done.err
    names = ["mine", "one_run", "two_run", "hetero_numa"]
    found = results_in(tmp_path)
    assert list(found["policy"]) == [*names, "random"]
    assert list(found["kind"]) == ["learned"] * 4 + ["baseline"]
    run = run_in(tmp_path)
    assert {path.stem for path in (run / "episodes").iterdir()} == {
        f"{name}_0_0000" for name in (*names, "random")
    }
    assert list(json.loads((run / "run.json").read_text())["players_sha256"]) == names
    curves = pd.read_csv(run / "metrics.csv")
    assert curves.values.tolist() == [
        [*row, name] for name in ("one_run", "two_run") for row in ([1.0, 9.0], [2.0, 8.0])
    ]
    page = (run / "report.html").read_text()
    assert '"upper":"mine"' in page


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("policy=hetero_nuna", "shipped with the project: hetero_numa"),
        ("policy=[mine,mine]", "policy: 'mine' is given twice"),
        ("policy=[mine,random]", "baselines: 'random' is what another one is called"),
    ],
)
def test_what_is_no_list_of_policies_is_refused(
    told: str, says: str, command: Command, tmp_path: Path
) -> None:
    for folder in ("mine", "random"):
        make_policy(tmp_path / folder, "placer")
    refused(command(*TINY, "baselines=[random]", told, "episodes=1"), says)


def test_swept_policies_have_one_name(command: Command, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        make_policy(tmp_path / folder, "placer")
    told = (*TINY, "baselines=[random]", "episodes=1")
    assert command(*told, "sweep={policy: [one,two]}").code == 0
    assert set(results_in(tmp_path)["policy"]) == {"learned", "random"}
    done = command(*told, "sweep={policy: [one,null]}", "hydra.run.dir=other")
    assert done.code == 2 and "sweep: policy: null leaves a player out" in done.err
