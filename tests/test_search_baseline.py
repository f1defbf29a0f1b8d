"""`python search_baseline.py` as users run it: weights, a file evaluate.py takes, bad input."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agents.baseline import make_baselines
from env.base.schema import validated
from env.learn.training_episodes import TrainingEpisodes
from env.score.reward import Objective
from evaluation.weight_search import UNTUNED, SearchResult, SearchSettings, WeightSearch
from search_baseline import FILE, prepared
from tests.commands import Command, InProcess, refused
from tests.env.worlds import TINY, world

# Rent counts so little that the untuned weights save too much of it.
CROWDED = [*TINY, "workload.arrivals.workflows=[8,10]", "objective.cost_weight=0.003"]
OTHERS = ("rent_per_core", "economy", "demand", "own_use", "arrival_use", "arrival_horizon")
SETTINGS = SearchSettings(
    candidates=16,
    episodes=16,
    rounds=3,
    finish=(0.001, 10.0),
    rent=(0.001, 10.0),
    **dict.fromkeys((*OTHERS, "known_use"), (0, 0)),
)


def searched(
    seed: int = 0,
    tell: Callable[[int], None] = lambda played: None,
    overrides: list[str] = CROWDED,
    **ranges: tuple[float, float],
) -> SearchResult:
    """A search in that world, or another one, with some other ranges."""
    config, settings = world(*overrides), SETTINGS.model_copy(update=ranges)
    objective = validated(Objective, config["objective"], "objective")
    return WeightSearch(TrainingEpisodes(config), objective, settings, seed, tell).run()


def test_it_beats_the_untuned_weights_and_repeats() -> None:
    told: list[int] = []
    found = searched(0, told.append)
    assert found.difference.ci_high < 0
    assert found.difference.value == pytest.approx(found.j.value - found.untuned.value)
    assert found.weights.delay == 1 and found.weights != UNTUNED
    # 16 weights, then 4 new ones near 4 of them, then 2 near 2.
    assert (found.tried, found.searched) == (22, 64)
    # 16 on 16; 4 on 16 more and 4 on 32; 2 on 32 more and 2 on 64; 2 on 64 others.
    played = 256 + 4 * 16 + 4 * 32 + 2 * 32 + 2 * 64 + 2 * 64
    assert found.played == told[-1] == SETTINGS.plays == played
    assert searched(0) == found
    assert searched(1).weights != found.weights


def test_fields_of_one_value_keep_it_and_those_left_out_are_not_drawn() -> None:
    weights = searched(economy=(1.2, 1.2), rent=(0, 0)).weights
    assert (weights.economy, weights.rent, weights.demand) == (1.2, 0, None)


def test_the_untuned_weights_can_be_among_the_best_of_a_search_for_demand() -> None:
    """They have none, and half of the next round is drawn near them."""
    ranges = {"finish": (1e5, 1e6), "rent_per_core": (1e-9, 1e-8), "demand": (1.0, 8.0)}
    tried = searched(overrides=TINY, **ranges)
    assert tried.weights.demand is None and tried.weights.finish < 10


@pytest.fixture
def command(in_process: InProcess) -> Command:
    return in_process("search_baseline", prepared)


def test_the_command_leaves_a_baseline(command: Command, tmp_path: Path) -> None:
    small = ("search.candidates=8", "search.episodes=4", "search.rounds=2")
    code, out, err = command(*CROWDED, *small)
    assert (code, err) == (0, "")
    (file,) = tmp_path.glob(f"outputs/*/*/{FILE}")
    assert f"baseline: {file}" in out
    text = file.read_text()
    assert "objective.cost_weight=0.003" in text.splitlines()[1]
    weights = text.split("weights: {")[1].split("}")[0]
    assert f"  {weights}" in out
    (scheduler,) = make_baselines([str(file)])
    assert (scheduler.name, scheduler.kind) == (file.stem, "baseline")


BAD = {
    "a range": (["search.rent=[2,1]"], "found [2.0, 1.0]"),
    "half a range": (["search.rent=[0,1]"], "search.rent: [least, most] are both above 0, or [0"),
    "no end": (["search.rent=[1,1e308]"], "search.rent.1: Input should be less than"),
    "episodes": (["search.episodes=0"], "search.episodes"),
    # Its requests have drawn work, which the search would not know of.
    "a trace": (["workload=azure_like"], "workload: weights are searched on workflows"),
    "free servers": (["cluster.server_types.large.hourly_rate=0"], "at least 1e-06 is needed"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_line(case: str, command: Command) -> None:
    overrides, says = BAD[case]
    refused(command(TINY[0], *overrides), says)
