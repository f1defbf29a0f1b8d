"""Placement and memory rules on states small enough to work out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pkgutil import iter_modules
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agents import placement
from agents.baseline import _config, known_baselines, make_baselines
from agents.memory.required import Required
from agents.memory.stingy import Stingy
from agents.placement.best_of import BestOf
from agents.placement.greedy_objective import GreedyObjective
from agents.placement.rollout import Rollout
from agents.rule_kinds import MemoryRule, PlacementRule, in_folder
from agents.scheduler import Decision, play
from env.score.greedy_score import ScoreWeights
from env.score.lower_bound import lower_bound
from env.score.metrics import episode_metrics
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import (
    BALANCED,
    FAST,
    FAST_TOO,
    FAST_TYPE,
    LONG,
    SLOW,
    SLOW_TYPE,
    TWO_TYPES,
    Fn,
    chosen,
    moment,
    workflow,
)
from tests.env.sim.test_regions import CLUSTER, A, pair
from tests.episodes import begun
from tests.strategies import plain_worlds


def rules() -> dict[str, PlacementRule]:
    """All of agents/placement, found by their files, but for one that needs regions."""
    weights = {"finish": 1, "delay": 1, "rent": 1}
    told: dict[str, dict[str, object]] = {
        "best_of": {"clairvoyant": False, "rules": [{"weights": weights}] * 2},
        "greedy_objective": {"weights": weights},
        "rollout": {"clairvoyant": False, "weights": weights},
    }
    names = sorted({file.name for file in iter_modules(placement.__path__)} - {"deployed"})
    told |= {name: _config(name).placement.model_dump() for name in names if "ray_" in name}
    kind = TypeAdapter(Annotated[PlacementRule, in_folder(placement, PlacementRule)])
    return {name: kind.validate_python({"name": name, **told.get(name, {})}) for name in names}


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_a_node_without_the_memory_is_never_chosen(rule: PlacementRule) -> None:
    # The slow node is warm, idle, cheap and first, but has 1,000 MB of the 2,000 that are needed.
    # The others are cold and full: their containers hold 3,900 of 4,000 MB and all cores.
    full = Fn(computation=10**6, memory=3900, parallelism=8)
    decision = moment((SLOW, Fn()), (FAST, full), (FAST_TOO, full), ask=Fn(memory=2000), later=12)
    for seed in range(20):
        assert chosen(rule, decision, seed=seed) in (FAST, FAST_TOO)


def test_random_draws_every_feasible_node_and_repeats_with_the_seed() -> None:
    rule = rules()["random"]

    def draws(memory: int, seed: int) -> list[int]:
        env = moment(ask=Fn(memory=memory)).env
        asked = Decision(env, BALANCED, rng=np.random.default_rng(seed))
        return [rule.choose(asked) for _ in range(300)]

    counts = np.bincount(draws(100, seed=1), minlength=3)
    assert counts.min() > 70  # 100 each on average, standard deviation 8
    assert set(draws(2000, seed=1)) == {FAST, FAST_TOO}
    assert draws(100, seed=1) == draws(100, seed=1) != draws(100, seed=2)


def placed_nodes(env: RawEnv) -> list[int]:
    """Nodes in the order of the decisions."""
    index_of = env.cluster_config.node_index
    return [index_of(log.server_name, log.server_id, log.numa_node_id) for log in env.logs]


@pytest.mark.parametrize(
    ("memory", "types", "turns"),
    [
        ((100,) * 5, (SLOW_TYPE, FAST_TYPE), [0, 1, 2, 0, 1]),
        # Decision 3 is the slow node's turn; 2,000 MB only fit on the next one.
        ((100, 100, 100, 2000, 100), (SLOW_TYPE, FAST_TYPE), [0, 1, 2, 1, 1]),
        # With the slow node last the one after it is the first.
        ((100, 100, 2000, 100), (FAST_TYPE, SLOW_TYPE), [0, 1, 0, 0]),
    ],
)
def test_round_robin_takes_turns(
    memory: Sequence[int], types: tuple[ServerType, ...], turns: list[int]
) -> None:
    cluster = ClusterConfig(1000, 1e6, 1e5, 1e4, types)
    one = workflow(*(Fn(memory=needed) for needed in memory))
    env = RawEnv([0.0], [one], cluster, record=True)
    (scheduler,) = make_baselines(["round_robin"])
    for _ in range(2):  # the turns of an episode do not depend on the one before
        env.reset()
        play(env, scheduler, BALANCED, np.random.SeedSequence(0))
        assert placed_nodes(env) == turns


# Of a rule: what is placed, what is asked about, and the node that it takes.
FIT_CASES: dict[str, dict[str, tuple[list[tuple[int, Fn]], Fn, int]]] = {
    "first_fit": {
        "all empty": ([], Fn(), SLOW),
        # 1,000 - 950 = 50 MB are free on the slow node.
        "memory is short": ([(SLOW, Fn(LONG, 950))], Fn(), FAST),
        "memory just fits": ([(SLOW, Fn(LONG, 900))], Fn(), SLOW),
        # (2 + 1) / 2 cores.
        "cores are short": ([(SLOW, Fn(LONG, parallelism=2))], Fn(), FAST),
        # (1 + 1) / 2 cores.
        "cores just fit": ([(SLOW, Fn(LONG, parallelism=1))], Fn(), SLOW),
        # No node has a core to spare: (2 + 1) / 2 = 1.5, (6 + 1) / 4 = 1.75, (4 + 1) / 4 = 1.25.
        "lowest load": (
            [
                (SLOW, Fn(LONG, parallelism=2)),
                (FAST, Fn(LONG, parallelism=6)),
                (FAST_TOO, Fn(LONG, parallelism=4)),
            ],
            Fn(),
            FAST_TOO,
        ),
        # Alone it is too wide for every node: 8 / 2, 8 / 4, 8 / 4.
        "wider than all": ([], Fn(parallelism=8), FAST),
    },
    "best_fit": {
        # Left: 1,000 - 300 = 700; 4,000 - 300 = 3,700 twice.
        "smallest node": ([], Fn(memory=300), SLOW),
        # Left: 700; 4,000 - 3,500 - 300 = 200; 3,700.
        "fullest node": ([(FAST, Fn(LONG, 3500))], Fn(memory=300), FAST),
        # Left: 700; 4,000 - 3,800 - 300 = -100, which is no room; 3,700.
        "without room": ([(FAST, Fn(LONG, 3800))], Fn(memory=300), SLOW),
        # Left: 1,000 - 500 - 900 = -400; 4,000 - 3,800 - 900 = -700; 4,000 - 3,400 - 900 = -300.
        "least short": (
            [(SLOW, Fn(LONG, 500)), (FAST, Fn(LONG, 3800)), (FAST_TOO, Fn(LONG, 3400))],
            Fn(memory=900),
            FAST_TOO,
        ),
        # The second container on the slow node waits: 500 held, 700 waited for, left -200 - 50. The
        # others: 4,000 - 3,900 - 50 = 50 and 3,950.
        "those that wait count": (
            [(SLOW, Fn(LONG, 500)), (SLOW, Fn(LONG, 700)), (FAST, Fn(LONG, 3900))],
            Fn(memory=50),
            FAST,
        ),
    },
    "worst_fit": {
        # Free: 1,000; 4,000; 4,000, the first of which is taken.
        "largest node": ([], Fn(), FAST),
        # Free: 1,000; 3,900; 4,000.
        "emptiest node": ([(FAST, Fn(LONG, 100))], Fn(), FAST_TOO),
        # Free: 1,000; 4,000 - 3,500 = 500 twice.
        "smaller but emptier": (
            [(FAST, Fn(LONG, 3500)), (FAST_TOO, Fn(LONG, 3500))],
            Fn(),
            SLOW,
        ),
    },
}


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, cases in FIT_CASES.items() for case in cases]
)
def test_rules_of_memory_and_load(rule: str, case: str) -> None:
    placed, ask, node = FIT_CASES[rule][case]
    assert chosen(rules()[rule], moment(*placed, ask=ask)) == node


FINISH_CASES: dict[str, tuple[list[tuple[int, Fn]], Fn, int, float]] = {
    # At 100 s the slow server is warm: 100 + 20,000 / 1,000 = 120. The fast one is cold:
    # 100 + 60 + 20,000 / 2,000 = 170.
    "a warm slow node before a cold fast one": ([(SLOW, Fn())], Fn(20_000), SLOW, 120.0),
    # 100 + 200 = 300 against 100 + 60 + 100 = 260.
    "a cold fast node for long work": ([(SLOW, Fn())], Fn(200_000), FAST, 260.0),
    # Both warm: 120 against 100 + 20,000 / 2,000 = 110.
    "the fast one if both are warm": ([(SLOW, Fn()), (FAST, Fn())], Fn(20_000), FAST, 110.0),
    # Five threads on four cores: 4 * 2,000 / 5 = 1,600 a core, 100 + 20,000 / 1,600 = 112.5. The
    # other node of the server has its cores free: 110.
    "a free node before a shared one": (
        [(SLOW, Fn()), (FAST, Fn(10**7, parallelism=4))],
        Fn(20_000),
        FAST_TOO,
        110.0,
    ),
    # 4,000 MB are all held until 60 + 200,000 / 2,000 = 160 and, on the other node, until 260;
    # waiting ends at 160 + 10 = 170. The slow node, cold: 100 + 10 + 20 = 130.
    "a cold node before waiting": (
        [(FAST, Fn(200_000, 4000)), (FAST_TOO, Fn(400_000, 4000))],
        Fn(20_000),
        SLOW,
        130.0,
    ),
    # Of 2,000 MB, so not on the slow one.
    "the shorter wait": (
        [(FAST, Fn(400_000, 4000)), (FAST_TOO, Fn(200_000, 4000))],
        Fn(20_000, 2000),
        FAST_TOO,
        170.0,
    ),
}


@pytest.mark.parametrize("case", FINISH_CASES)
def test_earliest_finish(case: str) -> None:
    placed, ask, node, finish = FINISH_CASES[case]
    decision = moment(*placed, ask=ask, later=100.0)
    assert chosen(rules()["earliest_finish"], decision) == node
    assert decision.candidates(ask.row[1])["finish_time"][node] == pytest.approx(finish)
    # It comes true.
    env = decision.env.fork()
    wf_id = decision.function.wf_id
    env.step(*env.place_of(node), ask.row[1])
    assert env.done
    assert env.workload.workflows[wf_id].functions[0].completion_time == pytest.approx(finish)


CHEAPEST_CASES: dict[str, tuple[list[tuple[int, Fn]], Fn, int, list[float]]] = {
    # An hour of the slow server costs 0.36 USD, one of the fast 3.6.
    "all cold": ([], Fn(), SLOW, [0.36, 3.6, 3.6]),
    # The fast one is paid for until 3,600 s.
    "a lease that runs": ([(FAST, Fn())], Fn(), FAST, [0.36, 0.0, 0.0]),
    # Free on both nodes of the fast server; the first has its cores taken, the second ends sooner.
    "ties by finish time": (
        [(FAST, Fn(10**6, parallelism=8))],
        Fn(),
        FAST_TOO,
        [0.36, 0.0, 0.0],
    ),
    # 8,000 s on the fast server end after 8,100 s: two more hours. 16,000 s on the slow one, cold:
    # 16,010 s are five hours.
    "hours are counted": ([(FAST, Fn())], Fn(16_000_000), SLOW, [1.8, 7.2, 7.2]),
}


@pytest.mark.parametrize("case", CHEAPEST_CASES)
def test_cheapest(case: str) -> None:
    placed, ask, node, rents = CHEAPEST_CASES[case]
    decision = moment(*placed, ask=ask, later=100.0)
    assert chosen(rules()["cheapest"], decision) == node
    assert decision.candidates(ask.row[1])["rent_increase"] == pytest.approx(rents)


def test_data_local_goes_where_most_of_the_data_is() -> None:
    # 1 MB on the slow node and 5 MB on the second fast one. Per second 1 MB move within a node,
    # 0.1 MB between nodes of a server, 0.01 MB between servers. To slow: 1 + 500; to the first
    # fast one: 100 + 50; to the second: 100 + 5.
    bytes_of = {(0, 2): 1_000_000, (1, 2): 5_000_000}
    env = RawEnv([0.0], [workflow(Fn(), Fn(), Fn(), edges=bytes_of)], TWO_TYPES)
    env.step(*env.place_of(SLOW), 100)
    env.step(*env.place_of(FAST_TOO), 100)
    decision = Decision(env, BALANCED)
    assert chosen(rules()["data_local"], decision) == FAST_TOO
    assert decision.candidates(100)["data_transfer_time"] == pytest.approx([501, 150, 105])


@pytest.mark.parametrize("name", ["data_local", "greedy_carbon"])
@pytest.mark.parametrize(("computation", "node"), [(1000, SLOW), (10**6, FAST)])
def test_where_nothing_else_differs_the_first_end_counts(
    name: str, computation: int, node: int
) -> None:
    # Cold: 10 + 1 against 60 + 0.5, and 10 + 1,000 against 60 + 500; no data, and no power.
    assert chosen(rules()[name], moment(ask=Fn(computation))) == node


@pytest.mark.parametrize(("arrival", "sent", "node"), [(0.0, 0, 0), (3600.0, 0, 1), (3600.0, 1, 0)])
def test_greedy_carbon_takes_this_hour_and_the_data(arrival: float, sent: int, node: int) -> None:
    """`b` emits 6 times as much as `a` in the first hour and is half as fast, in the next nothing.

    By then 2 GB from `a` to `b` emit 50 g; 900 s of work in `a` emit 0.1 g.
    """
    env = begun([arrival], [pair(sent * 2 * 10**9)], CLUSTER)
    env.step(*A, 512)
    assert chosen(rules()["greedy_carbon"], Decision(env, BALANCED)) == node


SHARED, COLD, SLUGGISH = 0, 1, 2
THREE_TYPES = ClusterConfig(
    1000,
    1e6,
    1e5,
    1e4,
    (
        ServerType("shared", 1, 1.0, 0.0, numa_nodes=1, cpu=2, memory=1000),
        ServerType("cold", 1, 1.0, 5.0, numa_nodes=1, cpu=2, memory=1000),
        ServerType("sluggish", 1, 1.0, 0.0, 1, cpu=2, memory=1000, single_core_speed=500),
    ),
)


@pytest.fixture
def trade_off() -> Decision:
    """A function of 10 s at 3,595 s, and three nodes each of which is best at one thing.

    - shared: leased until 3,600; a function of 6,000 operations and 2 threads begins at 3,595 and
      ends 3 s later, alone. With ours there are 3 threads on 2 cores, 2,000 // 3 = 666 each: it
      takes 6,000 / 1,332 = 4.5045 s, in which ours does 3,000 operations; 7 s more and ours ends,
      at 3,606.5045. One more hour is rented.
    - cold: starts in 5 s, so ours ends at 3,610. One hour is rented.
    - sluggish: leased until 3,700; ours takes 20 s and ends at 3,615.
    """
    small = workflow(Fn())
    templates = [small, small, workflow(Fn(6000, parallelism=2)), workflow(Fn(10_000))]
    env = RawEnv([0.0, 100.0, 3595.0, 3595.0], templates, THREE_TYPES)
    for node in (SHARED, SLUGGISH, SHARED):
        env.step(*env.place_of(node), 100)
    return Decision(env, BALANCED)


def test_the_forecasts_of_the_trade_off(trade_off: Decision) -> None:
    found = trade_off.candidates(100)
    assert found["finish_time"] == pytest.approx([3606.504505, 3610, 3615], abs=2e-3)
    assert found["rent_increase"] == pytest.approx([1, 1, 0])
    # Ours ends 1.5045, 5 and 10 s after its bound, of a critical path of 10 s.
    assert found["delay_own"] == pytest.approx([0.15045, 0.5, 1.0], abs=2e-4)
    # The other ends 1.5045 s later, of a critical path of 3 s.
    assert found["delay_others"] == pytest.approx([0.50150, 0, 0], abs=2e-4)


ONLY: dict[str, tuple[dict[str, float], dict[str, float], int]] = {
    # Smallest finish time.
    "finish": ({"finish": 1, "delay": 0, "rent": 0}, {}, SHARED),
    # 0.152 + 0.502 = 0.653 against 0.5 and 1.
    "delay": ({"finish": 0, "delay": 1, "rent": 0}, {}, COLD),
    # 1, 1 and 0 USD.
    "rent": ({"finish": 0, "delay": 0, "rent": 1}, {}, SLUGGISH),
    # 0.150 + 0.653 = 0.803 against 0.5 + 0.5 = 1 and 1 + 1 = 2.
    "finish and delay": ({"finish": 1, "delay": 1, "rent": 0}, {}, SHARED),
    # The objective's weights go on top: these leave the delay, the rent and the finish alone.
    "no cost": ({"finish": 0, "delay": 1, "rent": 1}, {"cost_weight": 0}, COLD),
    "no time": ({"finish": 0, "delay": 1, "rent": 1}, {"time_weight": 0}, SLUGGISH),
    "no finish": ({"finish": 1, "delay": 1, "rent": 0}, {"time_weight": 0}, SHARED),
    # Arrived are 1 + 1 + 6 + 10 = 18 s of work in 4 workflows, 4.5 s each; the cheapest
    # core-second costs 1 / 3,600 / 2 USD, so a workflow 0.000625 USD and an hour 1,600 of them.
    # Weighed by 0.0002 that is 0.32: 0.653 + 0.32, 0.5 + 0.32, 1.
    "little rent": ({"finish": 0, "delay": 1, "rent": 0.0002}, {}, COLD),
    # By 0.0004 it is 0.64: 1.293, 1.14, 1.
    "more rent": ({"finish": 0, "delay": 1, "rent": 0.0004}, {}, SLUGGISH),
}


@pytest.mark.parametrize("case", ONLY)
def test_greedy_objective_weighs_its_terms(case: str, trade_off: Decision) -> None:
    weights, objective, node = ONLY[case]
    trade_off.objective = BALANCED.model_copy(update=objective)
    rule = GreedyObjective(name="greedy_objective", weights=ScoreWeights.model_validate(weights))
    assert chosen(rule, trade_off) == node


@st.composite
def with_free_servers(draw: st.DrawFn) -> Episode:
    """A random episode on a cluster some or all of whose servers cost nothing."""
    episode = draw(plain_worlds()).episode
    rates = st.sampled_from([0.0, 0.0, 1e-6, 1.5])
    kinds = [replace(kind, hourly_rate=draw(rates)) for kind in episode.cluster.server_types]
    kinds[0] = replace(kinds[0], hourly_rate=0.0)
    return replace(episode, cluster=replace(episode.cluster, server_types=tuple(kinds)))


@pytest.mark.parametrize("name", known_baselines())
@settings(max_examples=10)
@given(episode=with_free_servers())
def test_every_baseline_schedules_with_free_servers(name: str, episode: Episode) -> None:
    env = RawEnv.of(episode, record=True)
    (scheduler,) = make_baselines([name])
    # A node that does not have the memory would be an error.
    play(env, scheduler, BALANCED, np.random.SeedSequence(1))
    assert violations(episode_of(env, name, "a test")) == []
    computed = episode_metrics(env.state, BALANCED, None)
    assert np.isfinite([computed["J"], computed["cost_ratio"]]).all()
    if env.total_rent == 0.0:
        assert computed["cost_ratio"] == 0.0
    assert lower_bound(env.state, BALANCED) <= computed["J"] * (1 + 1e-9)


FREE = {
    # (rate of the slow server, rate of the fast one): the node for BIG, for a small function
    "all are free: the sooner": ((0.0, 0.0), FAST, SLOW),
    "the fast server is free": ((0.36, 0.0), FAST, FAST),
    "the slow server is free": ((0.0, 3.6), FAST, SLOW),
}


@pytest.mark.parametrize("case", FREE)
def test_greedy_objective_counts_rent_where_servers_are_free(case: str) -> None:
    """Rent is compared to the cheapest cores that are not free; the slow node has no 2,000 MB."""
    rates, large, small = FREE[case]
    kinds = (replace(SLOW_TYPE, hourly_rate=rates[0]), replace(FAST_TYPE, hourly_rate=rates[1]))
    cluster = replace(TWO_TYPES, server_types=kinds)
    rule = rules()["greedy_objective"]
    assert chosen(rule, moment(ask=Fn(memory=2000), cluster=cluster)) == large
    assert chosen(rule, moment(ask=Fn(), cluster=cluster)) == small


@pytest.mark.parametrize("name", ["best_fit", "first_fit", "worst_fit"])
def test_a_node_whose_gpu_is_taken_comes_last(name: str) -> None:
    kinds = (
        replace(SLOW_TYPE, resources={"GPU": 1}),
        replace(SLOW_TYPE, name="b", resources={"GPU": 1}),
    )
    asks = replace(workflow(Fn(LONG)), resources={"GPU": np.array([0.75])})
    env = RawEnv([0.0, 0.0], [asks, asks], replace(TWO_TYPES, server_types=kinds))
    env.step("slow", 0, 0, 100)
    assert rules()[name].choose(Decision(env, BALANCED)) == 1


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (Required(name="required"), 1001),
        (Stingy(name="stingy", ratio=0.5), 501),
        (Stingy(name="stingy", ratio=0.001), 2),
        (Stingy(name="stingy", ratio=1.0), 1001),
    ],
)
def test_a_share_of_what_is_required_rounded_up(rule: MemoryRule, given: int) -> None:
    decision = Decision(moment(ask=Fn(memory=1001)).env, BALANCED, (rule.ratio,))
    assert decision.placement(1) == (1, given)


WEIGHTS = ScoreWeights(finish=1, delay=1, rent=1)
BIG = Fn(memory=2000)
"""Fits on the fast nodes alone."""


def rolled_out(decision: Decision, clairvoyant: bool) -> int:
    return chosen(Rollout(name="rollout", clairvoyant=clairvoyant, weights=WEIGHTS), decision)


def test_rollout_sees_what_greedy_misses() -> None:
    # The second function has to go to the fast server, 3.6 USD. For the first one alone the slow
    # server is 3.24 USD cheaper; both on the fast one are 0.36 USD cheaper, and sooner done.
    env = RawEnv([0.0], [workflow(Fn(), BIG, edges={(0, 1): 0})], TWO_TYPES)
    decision = Decision(env, BALANCED)
    assert chosen(GreedyObjective(name="greedy_objective", weights=WEIGHTS), decision) == SLOW
    assert rolled_out(decision, clairvoyant=False) == FAST


def test_only_the_clairvoyant_knows_what_arrives_later() -> None:
    # The same need of the fast server, in a workflow that arrives a second later.
    env = RawEnv([0.0, 1.0], [workflow(Fn()), workflow(BIG)], TWO_TYPES)
    decision = Decision(env, BALANCED)
    assert rolled_out(decision, clairvoyant=False) == SLOW
    assert rolled_out(decision, clairvoyant=True) == FAST


HASTY = ScoreWeights(finish=1, delay=0, rent=0)
LONG_FUNCTION = Fn(LONG)
"""Done after 10 + 1,000 s on the slow server and 60 + 500 s on the fast one: `HASTY` takes that."""


@pytest.mark.parametrize(
    ("arrival_times", "workflows", "clairvoyant", "node"),
    [
        # As above: a function alone is cheaper on the slow server, with a big one on the fast.
        ([0.0], [workflow(LONG_FUNCTION)], True, SLOW),
        ([0.0], [workflow(LONG_FUNCTION, BIG, edges={(0, 1): 0})], False, FAST),
        ([0.0, 1.0], [workflow(LONG_FUNCTION), workflow(BIG)], False, SLOW),
        ([0.0, 1.0], [workflow(LONG_FUNCTION), workflow(BIG)], True, FAST),
    ],
)
def test_best_of_does_as_the_rule_that_comes_out_best(
    arrival_times: list[float], workflows: list[WorkflowTemplate], clairvoyant: bool, node: int
) -> None:
    decision = Decision(RawEnv(arrival_times, workflows, TWO_TYPES), BALANCED)
    rule = BestOf(
        name="best_of", clairvoyant=clairvoyant, rules=({"weights": HASTY}, {"weights": WEIGHTS})
    )
    assert chosen(GreedyObjective(name="greedy_objective", weights=HASTY), decision) == FAST
    assert chosen(rule, decision) == node


def test_rollout_without_a_difference_does_as_greedy() -> None:
    # Both servers are rented, and the workflow ends with its long function wherever the last one
    # runs: after 60 + 0.5 s on the fast nodes, which come first here, after 10 + 1 s on the slow.
    cluster = ClusterConfig(1000, 1e6, 1e5, 1e4, (FAST_TYPE, SLOW_TYPE))
    env = RawEnv([0.0], [workflow(Fn(), Fn(), Fn(10**6), Fn())], cluster)
    for node in (0, 2, 0):
        env.step(*env.place_of(node), 100)
    decision = Decision(env, BALANCED)
    assert chosen(GreedyObjective(name="greedy_objective", weights=WEIGHTS), decision) == 2
    assert rolled_out(decision, clairvoyant=True) == 2
