"""Files of conf/baseline that cannot be used: one line each, with the file and the key."""

from pathlib import Path

import pytest

from agents import baseline
from agents.baseline import all_baselines, known_baselines, make_baselines
from agents.order.srf import Srf
from agents.order.tickets import InTurn
from agents.rule_kinds import QueueOrder
from env.base.errors import InputError
from env.score.reward import Objective
from env.tickets.records import MECHANISMS
from tests.documents import refused_in_a_line

PLACED = "order: {name: submission}\nmemory: {name: required}\nplacement: "
GREEDY = PLACED + "{name: greedy_objective, weights: "
BAD: dict[str, tuple[str | bytes, str]] = {
    "broken": ("placement: [", "not YAML"),
    "a Python object": ("order: !!python/object:os.system x", "not YAML"),
    "empty": ("", "a mapping is needed"),
    "unplaced": ("order: {name: submission}\nmemory: {name: required}\n", "placement: missing"),
    "a resource": (
        "order: {name: stride, within: {name: fcfs}, resource: gpu, quantum: 1, half_life: null}\n"
        "placement: {name: worst_fit}\nmemory: {name: required}\n",
        "order.resource: Input should be 'core_seconds', 'mb_seconds' or 'dominant', found 'gpu'",
    ),
    "weighed": (GREEDY + "{finish: 1, delay: 1, rnt: 1}}", "did you mean 'rent'?"),
    "nan": (GREEDY + "{finish: .nan, delay: 1, rent: 1}}", "placement.weights.finish"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, says = BAD[name]
    (tmp_path / "baseline").mkdir()
    file = tmp_path / "baseline" / f"{name}.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setattr(baseline, "CONF", tmp_path)
    with refused_in_a_line(f"conf/baseline/{name}.yaml: ", says):
        make_baselines([name])


def test_an_order_is_put_before_a_rule() -> None:
    (composed, fitting) = make_baselines(["srf+greedy_per_core", "sjf+best_fit"], queued=True)
    assert isinstance(composed.order, Srf)
    # What the engine can do by itself it does.
    assert [scheduler.fit for scheduler in (composed, fitting)] == ["asked", "best_fit"]
    assert [composed.name, fitting.name] == ["srf+greedy_per_core", "sjf+best_fit"]


def test_every_order_of_the_configuration_is_named_after_it() -> None:
    names = known_baselines(queued=True)
    assert names == sorted(
        ["critical_path", "fcfs", "funcsched", "heft", "rr", "sjf", "srf", "srtf"]
    )
    for name, scheduler in zip(names, make_baselines(names, queued=True), strict=True):
        assert isinstance(scheduler.order, QueueOrder)
        assert (scheduler.order.name, scheduler.fit) == (name, "worst_fit")


def test_orders_by_tickets_have_another_order_within_tenants() -> None:
    names = ["stride", "stride+sjf", "drf+funcsched+greedy_per_core", "lottery+greedy_per_core"]
    players = make_baselines(names, queued=True, funded=True)
    orders = [player.order for player in players]
    assert all(isinstance(order, InTurn) for order in orders)
    assert [order.name for order in orders] == ["stride", "stride", "drf", "lottery"]
    # A rule without a queue's order leaves the one of the file.
    assert [order.within.name for order in orders] == ["fcfs", "sjf", "funcsched", "fcfs"]
    assert [player.fit for player in players] == ["worst_fit", "worst_fit", "asked", "asked"]
    assert [player.name for player in players] == names
    in_turn = set(known_baselines(queued=True, funded=True)) - set(known_baselines(queued=True))
    assert {*MECHANISMS} <= in_turn


def test_who_places_a_function_that_waits(tmp_path: Path) -> None:
    """The engine, where it knows the rule and functions get the memory they need."""
    parts = "order: {{name: fcfs}}\nplacement: {{name: {}}}\nmemory: {}\n"
    required, stingy = "{name: required}", "{name: stingy, ratio: 0.5}"
    for placement, memory, fit in (
        ("best_fit", required, "best_fit"),
        ("cheapest", required, "asked"),
        ("best_fit", stingy, "asked"),
    ):
        file = tmp_path / "mine.yaml"
        file.write_text(parts.format(placement, memory))
        (scheduler,) = make_baselines([str(file)], queued=True)
        assert scheduler.fit == fit


def test_a_family_of_rules_has_weights_for_each_objective() -> None:
    (rule,) = make_baselines(["greedy_per_core"])
    weights = rule._config.placement
    for time, cost, completion, chosen in (
        (1.0, 1.0, 0.0, weights.weights),
        (3.0, 1.0, 0.0, weights.weights),
        (1.0, 0.1, 0.0, weights.latency),
        (0.0, 0.0, 1.0, weights.latency),
        (0.1, 1.0, 0.0, weights.cost),
    ):
        objective = Objective(time_weight=time, cost_weight=cost, completion_weight=completion)
        assert weights.of(objective) == chosen
    (single,) = make_baselines(["greedy_objective"])
    assert single._config.placement.of(Objective(time_weight=1.0, cost_weight=0.0)).rent == 1.0


def test_all_are_those_that_can_play_and_are_no_references() -> None:
    at_once = set(all_baselines())
    assert {"random", "cheapest", "greedy_objective_tuned"} <= at_once
    assert not at_once & {"rollout", "clairvoyant", "best_of", "fcfs", "stride"}
    queued = set(all_baselines(queued=True))
    assert at_once < queued and "fcfs" in queued and "stride" not in queued
    assert "stride" in all_baselines(queued=True, funded=True)


def test_a_dispatch_rule_places_nothing_at_once() -> None:
    with pytest.raises(InputError, match="'fcfs' says who of a central queue goes next"):
        make_baselines(["fcfs"])
