"""The agent `region`: when it is asked, what it sees, by hand, and that its episodes replay."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test

from agents.baseline import BaselineConfig, ComposedScheduler
from agents.scheduler import Decision, play
from env.base.errors import InputError
from env.learn.aec import ServerlessAEC
from env.learn.observation import NODE_FEATURES, REGION_FEATURES, write_nodes
from env.learn.region import FEATURES, region_of
from env.learn.world import World
from env.score.reward import Objective
from env.sim.check.validate import violations
from env.sim.declared.aside import Change
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.regions import Region, Regions
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import differences, replayed
from env.sim.events.carbon import intensities
from env.sim.events.endings import bring_back, take_down
from env.sim.forecast.candidates import forecast_placements
from env.sim.node.fit import suits
from env.sim.view.raw_env import RawEnv
from evaluate import prepared as evaluation
from tests.env.sim.test_regions import CLUSTER, OUT, REGIONS, A, B, pair
from tests.env.small import functions
from tests.env.worlds import LAYOUTS, TINY, world
from tests.episodes import begun, checked
from train import prepared as training

EAST_WEST = (
    "+cluster.regions={east:{links:{west:{round_trip:0.1,bandwidth:1e8,egress:0.05}}},"
    "west:{price:1.2,power:{carbon_intensity_g_per_kwh:[100,50]}}}"
)
WORLD = (*TINY, EAST_WEST, "+cluster.forecast_error=0.12")
ALONE = (*WORLD, "agents=region", "dispatch=queued")
BESIDE = (*WORLD, "agents=placer", "agents.region=true")


def asking(
    *templates: WorkflowTemplate, times: Sequence[float] = (), cluster=CLUSTER, **others: Any
) -> RawEnv:
    """An episode in which the region is asked for; `others` are fields of `Episode`."""
    workload = EpisodeWorkload(tuple(times) or (0.0,) * len(templates), templates)
    return RawEnv.of(Episode(workload, cluster, asked=(region_of(cluster),), **others), True)


def seen(env: RawEnv) -> list[dict[str, float]]:
    """The features of the regions, but for those that are 0."""
    rows = [dict(zip(FEATURES, row.tolist(), strict=True)) for row in env.question.rows]
    return [{name: value for name, value in row.items() if value} for row in rows]


def test_features_by_hand() -> None:
    """`a` emits 100 g and `b`, PUE included, 600 and 0 g by turns. Of 1000 s of work, 0.1 USD, 900
    are the second's, on 4 W; 2 GB to `b` take 20.5 s, 0.18 USD and 1 kWh at 200 g.
    """
    env = asking(pair())
    same = {"free_cores": 1.0, "free_memory": 1.0}
    in_a = {"intensity": 2 / 7, "intensity_ahead": 2 / 7, "core_price": 1.0, "core_speed": 1.0}
    in_b = {"intensity": 12 / 7, "intensity_ahead": 6 / 7, "core_price": 1 / 3, "core_speed": 0.5}
    hop = {"round_trip": 0.5, "transfer": np.log(1.5) / 8}
    row_a, row_b = seen(env)
    assert row_a == pytest.approx(in_a | same | {"home": 1.0})
    assert row_b == pytest.approx(in_b | same | hop)
    env.answer(0)
    env.step(*A, 512)
    assert env.time == 100.0
    there = {"leased_cores": 1.0, "home": 1.0, "workflow_here": 0.5, "transfer": 0.002 / 8}
    moved = {"round_trip": 0.5, "transfer": np.log(21.5) / 8, "egress": np.log(2.8)}
    moved |= {"transfer_carbon": np.log(1 + 200 / 0.35)}
    row_a, row_b = seen(env)
    assert row_a == pytest.approx(in_a | same | there, rel=2e-3)
    assert row_b == pytest.approx(in_b | same | moved)


def test_whoever_places_keeps_to_the_region() -> None:
    env = asking(pair())
    env.answer(1)
    assert [suits(env.state, node, 512) for node in range(2)] == [False, True]
    with pytest.raises(InputError, match="must not run in the region of"):
        env.step(*A, 512)
    env.step(*B, 512)
    env.answer(0)
    env.step(*A, 512)
    recorded = checked(env)
    (flow,) = recorded.workflows
    assert flow.chosen_regions == ("b", "a")
    wrong = (flow.model_copy(update={"chosen_regions": ("b", "c")}),)
    with pytest.raises(InputError, match="workflows.0.chosen_regions: region 'c' is unknown"):
        replayed(recorded.model_copy(update={"workflows": wrong}))


def test_who_is_asked_for_and_among_which_regions() -> None:
    """Of four functions the first may run in `a` alone, two not in `b`, of which one needs more
    memory than `c` has; the last may run anywhere. Then `c` goes down.
    """
    third = Region(links={"a": OUT, "b": OUT})
    kind = replace(CLUSTER.server_types[0], name="small", region="c", memory=256)
    types, regions = (*CLUSTER.server_types, kind), REGIONS | {"c": third}
    cluster = replace(CLUSTER, regions=regions, server_types=types)
    only, but = Regions(allowed=("a",)), Regions(disallowed=("b",))
    jobs = [
        functions(1_000, memory=memory, regions=(regions,))
        for memory, regions in [(256, only), (256, but), (512, but), (256, Regions())]
    ]
    env = asking(*jobs, cluster=cluster, changes=(Change(0.0, partial(take_down, server=2)),))
    masks = []
    while env.question:
        masks.append((env.question.subject, env.question.mask.tolist()))
        assert (env.question.rows.any(axis=1) == env.question.mask).all()
        env.answer(0)
    assert masks == [(1, [1, 0, 1]), (3, [1, 1, 1])]


def test_forecasts_look_as_far_ahead_as_is_declared() -> None:
    """300 g in the first hour and none in the second."""
    state = asking(pair(), cluster=replace(CLUSTER, forecast_hours=1.5)).state
    _, now, ahead = intensities(state, 1)
    assert ahead / now == pytest.approx(1 / 1.5)


def test_forecasts_err_as_much_as_is_declared() -> None:
    """Drawn once an hour in each region, from the seed of the episode."""
    state = asking(pair(), cluster=replace(CLUSTER, forecast_error=0.12)).state

    def errors(seed: int, minute: float = 0.0) -> np.ndarray:
        found = np.empty(4000)
        state.cluster["seed"] = seed
        for hour in range(len(found)):
            state.cluster["time"] = hour * 3600.0 + 60 * minute
            _, now, ahead = intensities(state, 0)
            found[hour] = ahead / now - 1.0
        return found

    drawn = errors(1)
    assert drawn.mean() == pytest.approx(0.0, abs=0.006)
    assert drawn.std() == pytest.approx(0.12, rel=0.05)
    assert errors(1, minute=59.0) == pytest.approx(drawn, abs=1e-6)
    assert abs(np.corrcoef(drawn, errors(2))[0, 1]) < 0.05


class Anywhere(ComposedScheduler):
    """Takes regions at random, and places by a rule, of its own or of the engine."""

    def __init__(self, order: str) -> None:
        parts = {"placement": {"name": "worst_fit"}, "memory": {"name": "required"}}
        super().__init__("anywhere", BaselineConfig(order={"name": order}, **parts))
        self.asked = (region_of(CLUSTER),)

    def choose(self, decision: Decision) -> int:
        if decision.kind == "region":
            return int(decision.rng.choice(np.flatnonzero(decision.rows["feasible"])))
        return super().choose(decision)


@pytest.mark.parametrize("order", ["submission", "fcfs", "sjf"])
def test_episodes_replay_also_where_servers_fail(order: str) -> None:
    chosen = set()
    for seed in range(8):
        rng, player = np.random.default_rng(seed), Anywhere(order)
        times = np.sort(rng.uniform(0.0, 3000.0, 5)).tolist()
        changes = (Change(800.0, partial(take_down, server=seed % 2)),)
        changes += (Change(2000.0, partial(bring_back, server=seed % 2)),)
        rules = Rules(player.order, player.fit)
        env = asking(*[pair(10**8)] * 5, times=times, rules=rules, changes=changes)
        play(env, player, Objective(time_weight=1, cost_weight=1), np.random.SeedSequence(seed))
        chosen |= {name for flow in checked(env).workflows for name in flow.chosen_regions or ()}
    assert chosen >= {"a", "b"}


def test_placers_see_grids_by_hand() -> None:
    """As the agent sees them, on each of the two nodes."""
    state = begun([0.0], [pair()], CLUSTER).state
    seen = np.zeros((2, len(NODE_FEATURES + REGION_FEATURES)), np.float32)
    write_nodes(state, forecast_placements(state, 512), np.zeros(2), seen)
    assert seen[:, -2:] == pytest.approx(np.array([[2, 2], [12, 6]]) / 7)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_placers_see_grids_where_they_differ(layout: str) -> None:
    hourly = (*TINY, "cluster.power.carbon_intensity_g_per_kwh=[100,50]")
    for told, differ in [(TINY, False), (WORLD, True), (hourly, True)]:
        config = world(*told, f"agents={layout}")
        for agent in World(config).layout.agents.values():
            assert (agent.item_features[-2:] == REGION_FEATURES) == differ
    api_test(ServerlessAEC(config), num_cycles=20)


@pytest.mark.parametrize(("told", "agents"), [(ALONE, ["region"]), (BESIDE, ["placer", "region"])])
def test_it_decides_alone_or_beside_who_places(told, agents) -> None:
    config = world(*told)
    assert list(World(config).layout.agents) == agents
    api_test(ServerlessAEC(config), num_cycles=50)


@pytest.mark.long
@pytest.mark.parametrize("told", [ALONE, BESIDE])
def test_it_is_trained_and_plays_in_evaluate(in_process, told) -> None:
    brief = ["budget.minutes=null", "budget.iterations=1", "held_out.episodes=2"]
    train, evaluate = in_process("train", training), in_process("evaluate", evaluation)
    done = train(*told, *brief, "algo=ppo", "hydra.run.dir=trained")
    assert done.code == 0, done.err
    world_of = [each for each in told if "agents" not in each]
    done = evaluate(*world_of, "policy=trained", "episodes=2", "record=1", "hydra.run.dir=run")
    assert done.code == 0, done.err
    episode = read_episode("run/episodes/trained_0_0000.json")
    assert any(flow.chosen_regions for flow in episode.workflows) and violations(episode) == []
    assert differences(replayed(episode), episode.expected) == []
    if told is ALONE:
        done = evaluate(*world_of[:-1], "policy=trained")
        assert "has no agent that places, it needs dispatch=queued" in done.err


def test_a_cluster_without_regions_has_nothing_to_choose() -> None:
    with pytest.raises(InputError, match="agents.region: a cluster with at least 2 regions"):
        World(world(*TINY, "agents=placer", "agents.region=true"))
