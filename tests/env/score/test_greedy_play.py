"""Compiled play against the same decisions taken one by one from Python."""

from typing import Any

import numpy as np
import pytest

from agents.baseline import make_baselines
from agents.scheduler import play
from env.base.errors import InputError
from env.score.greedy_score import Forks, ScoreWeights, buffers_of, play_greedy, trace_greedy
from env.score.metrics import episode_metrics
from env.score.reward import Objective, cheapest_cost
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.declared.server_changes import RandomFailures, Recovery, Weibull
from env.sim.state import history
from env.sim.state.block import CHANGING
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import TWO_TYPES, Fn, workflow
from tests.env.sim.test_forecast import random_decision, random_env
from tests.episodes import begun

GREEDY: Any = make_baselines(["greedy_objective_tuned"])[0]
WEIGHTS: ScoreWeights = GREEDY._config.placement.weights
OBJECTIVE = Objective(time_weight=1.0, cost_weight=0.5)


def middle(seed: int) -> RawEnv:
    """An episode after some random decisions."""
    env, rng = random_env(seed)
    for _ in range(int(rng.integers(0, 25))):
        if not env.done:
            node, memory_alloc = random_decision(env, rng)
            env.step(*env.place_of(node), memory_alloc)
    return env


def play_slowly(env: RawEnv) -> None:
    """The rest of the episode by the baseline, a decision at a time."""
    play(env, GREEDY, OBJECTIVE, np.random.SeedSequence(0))


@pytest.mark.parametrize("seed", range(4))
def test_compiled_play_decides_as_the_baseline(seed: int) -> None:
    env = middle(seed)
    state = env.fork().state
    assert play_greedy(state, WEIGHTS.by_objective(OBJECTIVE), *buffers_of(state)) == 0
    play_slowly(env)
    for name in ("node", "memory_alloc", "creation_time", "completion_time"):
        assert (state.functions[name] == env.state.functions[name]).all()
    assert state.cluster[0]["decisions"] == env.decisions
    assert state.cluster[0]["total_rent"] == env.total_rent


@pytest.mark.parametrize("seed", range(2))
def test_clairvoyant_outcomes_are_what_j_comes_to(seed: int) -> None:
    env = middle(seed)
    function = env.current_function
    assert function is not None
    before = [getattr(env.state, name).tobytes() for name in CHANGING if name != "scratch"]
    found = Forks(env.state, True, OBJECTIVE).of_nodes(function.memory_req, WEIGHTS)
    assert [getattr(env.state, name).tobytes() for name in CHANGING if name != "scratch"] == before
    tried = np.full(len(found), np.inf)
    fresh = set()
    for node, server in enumerate(env.state.servers[env.state.nodes["server"]]):
        if server["expiration_time"] == -np.inf:
            if server["type"] in fresh:
                continue  # the first one of its kind stands for it
            fresh.add(server["type"])
        fork = env.fork()
        fork.step(*fork.place_of(node), function.memory_req)
        play_slowly(fork)
        tried[node] = episode_metrics(fork.state, OBJECTIVE)["J"]
    assert found == pytest.approx(tried, rel=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_outcomes_that_know_nothing_of_later_workflows(seed: int) -> None:
    env, rng = random_env(seed)
    while (env.state.slot_of < 0).sum() > 1:
        node, memory_alloc = random_decision(env, rng)
        env.step(*env.place_of(node), memory_alloc)
    # The same moment of an episode in which the fourth workflow never comes.
    shorter, rng = random_env(seed)
    shorter = RawEnv(shorter.arrival_times[:3], shorter.workflow_templates[:3], env.cluster_config)
    for _ in range(env.decisions):
        node, memory_alloc = random_decision(shorter, rng)
        shorter.step(*shorter.place_of(node), memory_alloc)
    assert env.current_function is not None and shorter.current_function is not None
    memory_alloc = env.current_function.memory_req
    found = Forks(env.state, False, OBJECTIVE).of_nodes(memory_alloc, WEIGHTS)
    expected = Forks(shorter.state, True, OBJECTIVE).of_nodes(memory_alloc, WEIGHTS)
    assert (found == expected).all()
    told = Forks(env.state, True, OBJECTIVE).of_nodes(memory_alloc, WEIGHTS)
    assert (found != told).any()


@pytest.mark.parametrize("seed", range(2))
def test_rules_come_to_what_playing_on_comes_to(seed: int) -> None:
    env = middle(seed)
    before = [getattr(env.state, name).tobytes() for name in CHANGING if name != "scratch"]
    other = ScoreWeights(finish=1, delay=0, rent=0)
    found = Forks(env.state, True, OBJECTIVE).of_rules((other, WEIGHTS))
    assert [getattr(env.state, name).tobytes() for name in CHANGING if name != "scratch"] == before
    fork = env.fork()
    play_slowly(fork)
    assert found[1] == pytest.approx(episode_metrics(fork.state, OBJECTIVE)["J"], rel=1e-12)
    assert (Forks(env.state, True, OBJECTIVE).of_rules((WEIGHTS, other)) == found[::-1]).all()


def test_recording_changes_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of an episode whose history is full after a few entries are played to their ends."""
    monkeypatch.setattr(history, "ROOM", 1)
    plain, _ = random_env(0)
    episode = plain.arrival_times, plain.workflow_templates, plain.cluster_config
    recorded = RawEnv(*episode, record=True)
    found = [
        Forks(env.state, True, OBJECTIVE).of_rules((WEIGHTS,))
        for env in (recorded, RawEnv(*episode))
    ]
    assert found[0] == found[1]


def test_rollouts_know_only_worlds_in_which_containers_end_with_their_functions() -> None:
    plain, _ = random_env(0)
    templates = plain.workflow_templates[:2]
    images = Images.by_name(templates, 5.0)
    env = RawEnv([0.0, 1.0], templates, plain.cluster_config, images=images)
    with pytest.raises(InputError, match="schedules are tried out only where functions are placed"):
        Forks(env.state, True, OBJECTIVE)


def test_too_few_slots_are_an_error() -> None:
    env, _ = random_env(0)
    env = begun([0.0, 1.0], env.workflow_templates[:2], env.cluster_config, workflow_slots=1)
    with pytest.raises(InputError, match="more than 1 workflows are active in a rollout"):
        Forks(env.state, True, OBJECTIVE).of_nodes(4096, WEIGHTS)
    assert np.isfinite(Forks(env.state, False, OBJECTIVE).of_nodes(4096, WEIGHTS)).any()


def test_the_reference_comes_to_its_end_where_functions_are_placed_again_and_again() -> None:
    changes = RandomFailures(
        kind="random",
        failures=Weibull(shape=1.0, scale=30.0),
        repairs=Weibull(shape=1.0, scale=5.0),
    )
    rules = Rules(changes=changes, recovery=Recovery(retries=50))
    env = RawEnv.of(
        Episode(EpisodeWorkload((0.0,) * 6, (workflow(Fn(50_000)),) * 6), TWO_TYPES, rules)
    )
    state = env.fork().state
    trace, weights = np.zeros((7, 2)), WEIGHTS.by_objective(OBJECTIVE)
    trace_greedy(state, weights, *buffers_of(state), OBJECTIVE.weights, cheapest_cost(state), trace)
    play_slowly(env)
    assert env.decisions > 6
    assert trace[-1, 1] == pytest.approx(episode_metrics(env.state, OBJECTIVE)["J"])
