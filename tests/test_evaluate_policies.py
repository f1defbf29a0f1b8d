"""`python evaluate.py` on learned policies: beside baselines, alone, shipped, and unfit ones."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from env.sim.check.validate import violations
from env.sim.episode.episode_file import read_episode
from tests.agents.learned.test_queue_policy import save_untrained
from tests.commands import Command, refused
from tests.env.worlds import LAYOUTS, TINY, world
from tests.evaluate_command import BRIEF, results_in, run_in


def make_policy(folder: Path, layout: str, *overrides: str, shared: bool = True) -> Path:
    """A policy with random weights, as a run on the tiny cluster would leave it."""
    if not shared:
        overrides = (*overrides, "agents.share_type_policy=false")
    save_untrained(folder, f"agents={layout}", *overrides, base=TINY, shared=shared)
    return folder


LEARNED = [
    pytest.param(layout, shared, id=f"{layout}-{'shared' if shared else 'own'}")
    for layout, shared in [*((layout, True) for layout in LAYOUTS), ("server_types", False)]
]


@pytest.mark.parametrize(("layout", "shared"), LEARNED)
def test_a_learned_policy_beside_baselines(
    layout: str, shared: bool, command: Command, tmp_path: Path
) -> None:
    make_policy(tmp_path / "run" / "policy", layout, shared=shared)
    world = (*TINY, "cluster=homogeneous")
    done = command(*world, "baselines=[random]", "policy=run", "episodes=1", "record=2")
    assert done.code == 0, done.err
    assert set(results_in(tmp_path)["policy"]) == {"run", "random"}
    (file,) = tmp_path.glob("outputs/*/*/episodes/run_0_0000.json")
    assert violations(read_episode(file)) == []


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


def edited(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Changes keys of policy.json."""

    def change(folder: Path) -> None:
        file = folder / "policy.json"
        found = json.loads(file.read_text())
        file.write_text(json.dumps(found | {key: to(found[key]) for key, to in changes.items()}))

    return change


def without_type_agents(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != "server"}


def nothing(folder: Path) -> None:
    """Leaves the policy as it is."""


AS_PLACER: dict[str, Any] = world(*TINY, "agents=placer")["agents"]
# What is done to a policy of the layout hierarchical, further arguments, what the error says.
UNFIT: dict[str, tuple[Callable[[Path], None], list[str], str]] = {
    "layout": (
        nothing,
        ["agents=placer"],
        "agents.layout hierarchical, the environment has placer",
    ),
    "an agent left out": (
        edited(networks=without_type_agents, features=without_type_agents),
        [],
        "of the agent server_small are 1 and 0, found none",
    ),
    "another layout in its name": (
        edited(layout=lambda _: "placer", config=lambda found: found | {"agents": AS_PLACER}),
        [],
        "agent memory needs the context features",
    ),
    "no agents in its config": (
        edited(config=lambda _: {}),
        [],
        "agents: layout, memory_tiers, score: missing",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_policy_that_does_not_fit_is_refused(case: str, command: Command, tmp_path: Path) -> None:
    damage, overrides, says = UNFIT[case]
    damage(make_policy(tmp_path / "mine", "hierarchical"))
    refused(command(*BRIEF, "policy=mine", *overrides), says)


def test_a_policy_with_other_choices_than_its_layout_is_refused(
    command: Command, tmp_path: Path
) -> None:
    # Trained with three tiers; the file claims two.
    make_policy(tmp_path / "mine", "placer")
    two = [0.5, 1.0]
    edited(
        memory_tiers=lambda _: two,
        config=lambda found: found | {"agents": {**AS_PLACER, "memory_tiers": two}},
    )(tmp_path / "mine")
    says = "choices and bids of the agent placer are 2 and 0, found [(3, 0)]"
    refused(command(*BRIEF, "policy=mine"), says)


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


def test_an_unknown_policy_is_told_the_shipped_ones(command: Command) -> None:
    done = command("policy=hetero_nuna")
    refused(done, "shipped with the project: hetero_numa")


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
        ("policy=[mine,mine]", "policy: 'mine' is given twice"),
        ("policy=[mine,random]", "baselines: 'random' is what another one is called"),
    ],
)
def test_a_list_of_policies_is_checked_one_by_one(
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
