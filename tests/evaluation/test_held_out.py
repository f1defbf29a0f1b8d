"""Policies that still learn play the held-out episodes as evaluate.py would have them play."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.baseline import make_baselines
from agents.learned.checkpoint import RunState
from agents.learned.evaluator import Evaluated, Evaluator
from agents.learned.learned_scheduler import LearnedScheduler
from agents.learned.policy_file import load_policy
from env.sim.declared.ordering import FIRST_COME
from env.workloads.source import workload_source
from evaluation.contest import Contest, Task
from evaluation.held_out import EvaluatedWorld, HeldOut
from run.settings import HeldOutSettings
from tests.agents.learned.test_queue_policy import save_untrained
from tests.env.worlds import TENANTS, TINY, TRACE, with_queue, world

SETTINGS = HeldOutSettings(
    baselines=("earliest_finish", "cheapest"), episodes=3, functions=10_000, seed=3, share=0.05
)
WORLDS = {
    "placer": (*TINY, "agents=placer", "variation=wide"),
    "hierarchical": (*TINY, "agents=hierarchical", "variation=wide"),
    "bids": (*TINY, "agents=server_types"),
    "window": (*TINY, "agents=placer", "agents.workflow_window=4"),
    "queue": TRACE,
    "queue and hierarchy": (*TRACE, *with_queue("hierarchical"), "lease=hourly"),
    "tenants": TENANTS,
    "workflows that wait": (*TINY, *with_queue("placer"), "dispatch=queued", "lease=always"),
    # In some episodes nobody waits beside another.
    "no choice": (*TRACE, "workload.source.functions=4", "workload.sampling.ratio=0.5"),
}
OF_THEIR_OWN = ("bids", "tenants")
"""Worlds in which each server type, or tenant, has a policy of its own."""


def contest_in(world: EvaluatedWorld, config: dict[str, Any], *players: Any) -> Contest:
    """As evaluate.py makes it."""
    source = workload_source(config["workflow"], config["workload"], world.cluster, SETTINGS.seed)
    rules = world.rules if world.rules.order is None else replace(world.rules, order=FIRST_COME)
    return Contest(players, world.cluster, {3: source}, world.objective, None, rules, (), 100.0)


@pytest.mark.parametrize("name", WORLDS)
def test_policies_come_to_what_evaluate_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world(*WORLDS[name])
    config["agents"]["share_type_policy"] = shared = name not in OF_THEIR_OWN
    save_untrained(tmp_path, base=WORLDS[name], shared=shared)
    evaluated, networks = EvaluatedWorld(config, SETTINGS), load_policy(tmp_path).networks
    queued = evaluated.rules.order is not None
    told = (evaluated.cluster, evaluated.objective, None, queued, evaluated.tenants)
    contest = contest_in(evaluated, config, LearnedScheduler(tmp_path, *told))
    tasks = [Task("", 3, episode, ("learned",), False) for episode in range(3)]
    wanted = [row.metrics["J"] for task in tasks for row, _ in contest.play(task)]
    monkeypatch.setattr(EvaluatedWorld, "baselines", lambda self: {"": [1.0]})
    held_out = HeldOut(config, SETTINGS)
    # Neither what was played before nor what others draw at random changes anything.
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    for _ in range(2):
        np.testing.assert_allclose(held_out.play(networks), wanted, rtol=1e-6)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    assert (len(evaluated.undecided) > 0) == (name == "no choice")


def test_the_rule_is_the_best_baseline_in_the_same_episodes() -> None:
    config = world(*TINY, "agents=placer")
    evaluated = EvaluatedWorld(config, SETTINGS)
    contest = contest_in(evaluated, config, *make_baselines(SETTINGS.baselines))
    tasks = [Task("", 3, episode, SETTINGS.baselines, False) for episode in range(3)]
    rows = [row for task in tasks for row, _ in contest.play(task)]
    J = {name: [r.metrics["J"] for r in rows if r.policy == name] for name in SETTINGS.baselines}
    held_out = HeldOut(config, SETTINGS)
    assert held_out.rule_J.tolist() == J[held_out.rule]
    assert np.mean(held_out.rule_J) == min(map(np.mean, J.values()))


def test_episodes_with_many_functions_are_fewer() -> None:
    few = SETTINGS.model_copy(update={"functions": 1})
    assert len(EvaluatedWorld(world(*TINY, "agents=placer"), few).workloads) == 2


@pytest.mark.parametrize(
    ("J", "verdict", "told"),
    [
        # Differences of -1, 0 and -2 to a mean of 3; t(0.975, 2) = 4.303, their deviation is 1.
        ([1.0, 2.0, 3.0], "neither shown to be better nor worse than", "-33.3% [-116.1, +49.5]"),
        ([1.5, 1.5, 4.5], "better than", "-16.7% [-16.7, -16.7]"),
        ([2.3, 2.3, 5.3], "worse than", "+10.0% [+10.0, +10.0]"),
    ],
)
def test_the_paired_difference_is_told_in_percent_of_the_rule(
    J: list[float], verdict: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HeldOut, "play", lambda self, networks: np.array(J))
    baselines = {"cheapest": [2.0, 2.0, 5.0], "random": [9.0, 9.0, 9.0]}
    monkeypatch.setattr(EvaluatedWorld, "baselines", lambda self: baselines)
    held_out = HeldOut(world(*TINY, "agents=placer"), SETTINGS)
    found = held_out.evaluate({})
    assert (found.J, found.J_rule) == (pytest.approx(np.mean(J)), 3.0)
    assert found.as_text() == told
    assert held_out.of_policy(found).startswith(f"{verdict} cheapest, the best baseline: J ")


def test_evaluations_take_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second each of iterations of three; policies get better until the last but one."""
    monkeypatch.setattr("agents.learned.evaluator.policy_networks", lambda algorithm: {})
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    differences = iter([9.0, 5.0, 7.0, 5.0])

    def evaluate(networks: object) -> Evaluated:
        clock[0] += 1.0
        return Evaluated(1.0, 1.0, next(differences), 0.0, 0.0)

    evaluator, state, best = Evaluator(evaluate, 0.05), RunState(), []
    nobody: Any = None
    while state.iteration < 25:
        clock[0] += 3.0
        state.iteration += 1
        state.seconds = clock[0]
        if evaluator.is_due(state):
            evaluator.evaluate(nobody, state)
            best += [state.iteration] * state.is_best
    # After 3 s, and once all of 2 and of 3 seconds are 5%: after 40 and 60 seconds.
    assert (state.evaluated, state.evaluating, best) == (20, 3.0, [1, 13])
    assert state.difference == 7.0 and state.best == 5.0
    # The end is evaluated, too, once.
    assert evaluator.evaluate(nobody, state) is evaluator.evaluate(nobody, state)
    assert (state.evaluated, state.evaluating) == (25, 4.0)
