"""Agents that place under queued dispatch, in every layout: masks, features, rewards, batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from agents.order.funcsched import FuncSched
from env.learn.actions import Action
from env.learn.agent import Agent, Observation
from env.learn.layouts import AgentsConfig
from env.learn.queue_agent import QueueAgent
from env.learn.queue_env import QueueEnv
from env.learn.queue_places import PLACE_CONTEXT, PLACE_ITEM, PlacingTurns, choice_by_rule
from env.learn.turns import NODE_TURN, QUEUE_TURN, TYPE_TURN
from env.score.greedy_score import ScoreWeights
from env.sim.check.validate_queued import queued_violations
from env.sim.hardware import ClusterConfig, ServerType
from env.sim.keep_alive_policy import FaasCache, Lru
from env.sim.rules import KeepAlive, Rules
from env.workloads.traces.simulate import Simulation, simulate, stream
from env.workloads.traces.trace import REQUEST, Trace
from tests.env.learn.test_queue_agent import crowd, short_world
from tests.env.sim.test_queueing import profiles
from tests.env.worlds import sampling_with_masks

LAYOUTS = ("placer", "hierarchical", "server_types")
PLACED = "dispatch.queue_agent.placement=learned"
SMALL_SERVERS = tuple(
    f"+cluster.server_types.small.{key}={value}"
    for key, value in {
        "server_count": 2,
        "hourly_rate": 0.1,
        "cold_start_latency": 0.0,
        "numa_nodes_per_server": 2,
        "cores_per_numa_node": 2,
        "memory_mb_per_numa_node": 12288,
    }.items()
)
SETTINGS = QueueAgent(functions=3, starve_threshold=1e9, placement="learned")


def layout(name: str) -> AgentsConfig:
    bids = 4 if name == "server_types" else None
    score = ScoreWeights(finish=0, delay=0, rent=0)
    return AgentsConfig(layout=name, memory_tiers=(1.0,), bid_levels=bids, score=score)


def two_types(*memory: int) -> ClusterConfig:
    """A server of two nodes with 4 cores, and two of one node with 1 core."""
    large, small = memory
    return ClusterConfig(
        1_000_000,
        1e9,
        1e9,
        1e9,
        (
            ServerType("large", 1, 0.0, 0.0, 2, 4, large),
            ServerType("small", 2, 0.0, 0.0, 1, 1, small),
        ),
    )


def any_action(rng: np.random.Generator, agent: Agent, seen: Observation) -> Any:
    """One of those allowed."""
    bids = rng.choice(np.flatnonzero(seen["mask"][: agent.bids])) if agent.bids else 0
    place = rng.choice(np.flatnonzero(seen["mask"][agent.bids :]))
    return np.array([bids, place]) if agent.bids else int(place)


class Known(PlacingTurns):
    """Decides by agent and observation, and notes where functions go."""

    def __init__(self, name: str, cluster: ClusterConfig, act: Any) -> None:
        super().__init__(SETTINGS, layout(name), cluster, self.told)
        self.act_of = act

    def told(self, name: str, seen: Observation) -> Action:
        return self.act_of(self.agents[name], seen)


@pytest.mark.parametrize("keep_alive", [Lru(), FaasCache()])
@pytest.mark.parametrize("name", LAYOUTS)
def test_choosing_by_rule_is_funcsched_with_worst_fit(name: str, keep_alive: KeepAlive) -> None:
    cluster = two_types(4, 3)
    for seed in range(3):
        rule = Rules.always_up(FuncSched(starve_threshold=1e9), keep_alive, "worst_fit")
        expected = simulate(crowd(seed), cluster, rule)
        chosen = Rules.always_up(SETTINGS, keep_alive, chooser=Known(name, cluster, choice_by_rule))
        found = simulate(crowd(seed), cluster, chosen)
        assert len(set(expected.node)) == 4
        assert found.node.tolist() == expected.node.tolist()
        assert found.completion.tolist() == expected.completion.tolist()


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_choices_give_a_right_schedule_that_is_not_the_rule(name: str) -> None:
    cluster = two_types(4, 3)
    rng = np.random.default_rng(0)
    by_rule = simulate(crowd(0), cluster, Rules.always_up(FuncSched(starve_threshold=1e9), Lru()))
    turns = Known(name, cluster, lambda agent, seen: any_action(rng, agent, seen))
    runs = np.concatenate(
        list(stream(crowd(0), cluster, Rules.always_up(SETTINGS, Lru(), chooser=turns)))
    )
    assert len(runs) == 300
    assert queued_violations(runs, np.array([4, 4, 3, 3])) == []
    assert sorted(runs["node"].tolist()) != sorted(by_rule.node.tolist())


def allowed_nodes(simulation: Simulation, declared: int) -> list[int]:
    """From the records: where a function fits; only where it is warm, if it is anywhere."""
    state = simulation.state
    image = int(state.waiting[declared]["image"])
    need = int(state.images[image]["memory"])
    available = state.nodes["memory"] - state.nodes["allocated_memory"]
    fits = [node for node in range(len(state.nodes)) if available[node] >= need]
    idle = state.idle[: int(state.queue[0]["idle_used"])]
    warm = {
        int(each["node"]) for each in idle if each["number"] >= 0 and int(each["image"]) == image
    }
    return [node for node in fits if node in warm] or fits


@pytest.mark.parametrize("name", LAYOUTS)
def test_masks_allow_nodes_with_the_memory_and_warm_ones_first(name: str) -> None:
    cluster, rng = two_types(4, 3), np.random.default_rng(1)
    turns = PlacingTurns(SETTINGS, layout(name), cluster)
    queueing = Rules.always_up(SETTINGS, Lru(), chooser=turns)
    simulation = Simulation(crowd(2).profiles, cluster, queueing)
    first = {"server_large": 0, "server_small": 2}
    placed, warm, held = 0, 0, 0
    for _ in simulation.play(crowd(2)):
        if not simulation.choosing:
            continue
        expected: list[int] = []
        found: list[int] = []
        for turn in turns.turns:
            for index in turns.acting(turn):
                agent = turns.agents_of(turn)[index]
                seen = agent.blank_observation()
                turns.see(turn, index, simulation.state, seen)
                action = any_action(rng, agent, seen)
                turns.act(turn, index, simulation.state, action)
                if turn == QUEUE_TURN:
                    held += action == 3
                    if action < 3:
                        expected = allowed_nodes(simulation, turns._chosen)
                elif turn == TYPE_TURN:
                    types = {int(node >= 2) for node in expected}
                    assert set(np.flatnonzero(seen["mask"])) == types
                else:
                    begin = first.get(agent.name, 0)
                    rows = np.flatnonzero(seen["mask"][agent.bids :]) + begin
                    if not agent.bids or seen["mask"][: agent.bids].sum() > 1:
                        found += rows.tolist()
                    if turn == NODE_TURN:
                        expected = [node for node in expected if (node >= 2) == (begin == 2)]
        assert found == expected
        placed += bool(expected)
        warm += len(expected) == 1
        turns.finish(simulation.state)
    assert placed > 100 and warm > 20 and held > 10


def test_what_the_placer_sees_by_hand() -> None:
    """F1 (E 2 s, D 3 s, R 1) runs at 0 on a node of 2 MB and 2 cores; F2 (1 s, 4 s, 2) comes at 1.

    F1 holds one of 2 MB, so F2 fits the other node alone. F3 (1 s, 1 s, 1) at 1 fits both.
    """
    known = profiles((2.0, 3.0, 1), (1.0, 4.0, 2), (1.0, 1.0, 1))
    cluster = ClusterConfig(1_000_000, 1e9, 1e9, 1e9, (ServerType("s", 2, 0.0, 0.0, 1, 2, 2),))
    arrivals = np.array([(0.0, 0, 2.0), (1.0, 1, 1.0), (1.0, 2, 1.0)], REQUEST)
    seen: list[Observation] = []

    def act(agent: Agent, now: Observation) -> Any:
        if agent.name == "placer":
            seen.append({part: array.copy() for part, array in now.items()})
        return int(np.flatnonzero(now["mask"])[0])

    turns = Known("placer", cluster, act)
    trace = Trace(known, lambda: iter([arrivals]))
    found = simulate(trace, cluster, Rules.always_up(SETTINGS, Lru(), chooser=turns))
    assert found.node.tolist() == [0, 1, 0]
    assert found.completion.tolist() == pytest.approx([5.0, 5.0, 2.0])
    one, three, two = seen  # F3 before F2: (1 + 1) * 1 against (1 + 4) * 2

    def item(now: Observation, name: str) -> list[float]:
        return now["items"][:, PLACE_ITEM.index(name)].tolist()

    assert one["mask"].tolist() == [1, 1] and three["mask"].tolist() == [1, 1]
    assert two["mask"].tolist() == [0, 1]
    assert item(one, "by_rule") == [1, 0] and item(three, "by_rule") == [0, 1]
    assert item(three, "available") == [0.5, 1.0] and item(three, "left") == [0.0, 0.5]
    assert item(three, "load") == [0.5, 0.0] and item(three, "load_after") == [1.0, 0.5]
    assert item(two, "allowed") == [0, 1] and item(two, "free") == [0.0, 1.0]
    assert item(three, "seconds") == pytest.approx([np.log1p(2.0) / 8] * 2)
    assert two["context"][PLACE_CONTEXT.index("cold_start")] == pytest.approx(np.log1p(4.0) / 8)
    assert two["context"][PLACE_CONTEXT.index("memory")] == 1.0


def with_layout(name: str, *overrides: str) -> dict[str, Any]:
    """On two types of servers."""
    return short_world(PLACED, f"agents={name}", *SMALL_SERVERS, *overrides)


@pytest.mark.parametrize("name", LAYOUTS)
def test_rllib_accepts_it_and_all_earn_the_same(name: str) -> None:
    env = QueueEnv(with_layout(name))
    check_multiagent_environments(sampling_with_masks(env))
    observations, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    earned = dict.fromkeys(env.possible_agents, 0.0)
    over, held, acted = False, 0, set()
    while not over:
        actions = {
            agent: any_action(rng, env.members[agent], seen) for agent, seen in observations.items()
        }
        acted |= observations.keys()
        held += actions.get("queue") == 16
        observations, rewards, terminateds, _, infos = env.step(actions)
        for agent, reward in rewards.items():
            earned[agent] += reward
        over = terminateds["__all__"]
    cost = infos["queue"]["episode_metrics"]["J"]
    assert list(earned.values()) == pytest.approx([-cost] * len(earned))
    assert held > 0
    assert acted == set(env.possible_agents)


def rows_of(agents: Sequence[Agent], rows: int) -> Observation:
    blank = agents[0].blank_observation()
    return {part: np.ones((rows, *array.shape), np.float32) for part, array in blank.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_batch_decides_as_single_environments(name: str) -> None:
    """Every observation and reward of two environments, through the end of an episode of each."""
    config = with_layout(name, "trace.sampling.minutes=1")
    single = [QueueEnv(config) for _ in range(2)]
    batch = single[0].batch(2, single[0].world.seed, 0, 0)
    for index, env in enumerate(single):
        env._stream = (0, index)
    observations = [env.reset()[0] for env in single]
    rng = np.random.default_rng(0)
    blank_rows = 0
    while len(batch.ended) < 2:
        expected = np.zeros(2)
        for turn in batch.turns:
            agents = batch.agents_of(turn)
            acting = batch.acting(turn).reshape(2, -1)
            seen = rows_of(agents, acting.size)
            batch.observe(turn, seen)
            actions: list[Any] = []
            for row, index in enumerate(acting.ravel()):
                env = row // acting.shape[1]
                own = {part: column[row] for part, column in seen.items()}
                agent = agents[max(index, 0)]
                actions.append(any_action(rng, agent, own))
                if index < 0:
                    blank_rows += 1
                    assert own["items"].sum() == 0
                    continue
                for part, column in observations[env].pop(agent.name).items():
                    assert np.array_equal(column, own[part]), (turn, part)
            batch.act(turn, np.array(actions))
            for env in range(2):
                took = {
                    agents[index].name: actions[env * acting.shape[1] + place]
                    for place, index in enumerate(acting[env])
                    if index >= 0
                }
                if took:
                    observations[env], reward, over, *_ = single[env].step(took)
                    expected[env] += reward.get("queue", 0.0)
                    if over["__all__"]:
                        observations[env] = single[env].reset()[0]
        rewards, _ = batch.step()
        assert rewards.tolist() == expected.tolist()
    assert blank_rows > 0
