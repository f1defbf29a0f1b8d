"""The batch does decision by decision what single environments do."""

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.learn.agent import Observation
from env.learn.batch import Batch
from env.learn.kind import Turn
from env.learn.loops import NOBODY
from env.learn.multi_agent import ServerlessEnv
from env.learn.world import World
from tests.env.worlds import (
    LAYOUTS,
    STUDY,
    TENANTS,
    TINY,
    TRACE,
    with_gpu,
    with_queue,
    world,
)

AGENTS = [
    *((f"agents={layout}",) for layout in LAYOUTS),
    ("agents=hierarchical", "agents.memory_tiers=[1.0]"),
]
VARIATION = {
    "arrival_rate": [0.5, 2.0],
    "computation": [0.2, 1.0],
    "server_count": [0.0, 2.0],
    "hourly_rate": [0.5, 2.0],
    "load": 1000.0,
    "single": 0.3,
    "unvaried": 0.3,
}


def buffers(batch: Batch, turn: Turn) -> Observation:
    """Room for what all agents of a turn see."""
    return {part: np.full_like(rows, np.nan) for part, rows in turn.room(len(batch)).items()}


def random_actions(mask: np.ndarray, bids: int, rng: np.random.Generator) -> np.ndarray:
    """(R,) or (R, 2) actions that the masks (R, A) allow."""
    places = np.array([rng.choice(np.flatnonzero(row[bids:])) for row in mask])
    if not bids:
        return places
    offers = np.array([rng.choice(np.flatnonzero(row[:bids])) for row in mask])
    return np.stack([offers, places], axis=1)


WORLDS: dict[str, dict[str, Any]] = {
    "by the minute": {"lease": {"kind": "hourly", "step": 60.0}},
    "always paid": {"lease": {"kind": "always", "charged": True}},
    "free": {"lease": {"kind": "always", "charged": False}, "keep_alive": {"policy": "lru"}},
    "warm": {"keep_alive": {"policy": "fixed", "keep": 100.0}},
    "waiting": {"dispatch": {"kind": "queued", "patience": 0.0}, "keep_alive": {"policy": "lru"}},
    "patient": {"dispatch": {"kind": "queued", "patience": None}},
}


class Follower:
    """One `ServerlessEnv` that is given the actions of one row of a batch."""

    def __init__(self, config: dict[str, Any], environment: int) -> None:
        self.env = ServerlessEnv(config)
        self.env._stream = (7, environment)
        self.seen, _ = self.env.reset()
        self.running, self.steps = 0.0, 0

    def check_and_act(self, rows: list[tuple[str, Observation, Any]]) -> tuple[float, bool]:
        """Compares a turn's observations with those of the batch, and takes its actions."""
        assert list(self.seen) == [name for name, _, _ in rows]
        for name, observation, _ in rows:
            assert self.seen[name].keys() == observation.keys()
            for part in observation:
                np.testing.assert_array_equal(self.seen[name][part], observation[part])
        actions = {name: action for name, _, action in rows}
        self.seen, rewards, terminateds, _, infos = self.env.step(actions)
        done = terminateds["__all__"]
        self.running += next(iter(rewards.values()), 0.0)
        self.steps += 1
        if done:
            self.earned, self.running = self.running, 0.0
            self.turns, self.steps = self.steps, 0
            self.metrics = next(iter(infos.values()))["episode_metrics"]
            self.seen, _ = self.env.reset()
        return next(iter(rewards.values()), 0.0), done


@pytest.mark.parametrize("agents", AGENTS)
@pytest.mark.parametrize(("window", "relative"), [(0, False), (5, True)])
@pytest.mark.parametrize("varied", [False, True], ids=["fixed", "varied"])
def test_the_batch_is_the_environment(
    agents: tuple[str, ...], varied: bool, window: int, relative: bool
) -> None:
    groups = STUDY if varied else TINY
    own = f"agents.workflow_window={window}", f"agents.relative_reward={relative}"
    config = world(*groups, *agents, *own)
    if varied:
        config["variation"] = VARIATION
    check_batch(config)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", WORLDS)
def test_so_it_is_where_functions_wait_and_containers_stay_warm(name: str, layout: str) -> None:
    config = world(*STUDY, f"agents={layout}", "workload.container_cold_start=20.0")
    check_batch(config | WORLDS[name] | {"variation": VARIATION})


@pytest.mark.parametrize("name", ["by the minute", "waiting"])
def test_so_it_is_where_functions_need_named_resources(name: str) -> None:
    config = with_gpu(world(*TINY, "agents=placer")) | WORLDS[name]
    check_batch(config | {"variation": VARIATION})


QUEUED: dict[str, dict[str, Any]] = {
    "nothing paid": {"lease": {"kind": "always", "charged": False}},
    "always paid": {"lease": {"kind": "always", "charged": True}},
    "by the minute": {"lease": {"kind": "hourly", "step": 60.0}},
    "patient": {"dispatch": {"kind": "queued", "patience": 20.0}, "keep_alive": {"policy": "lru"}},
}


@pytest.mark.parametrize("layout", [*LAYOUTS, "queue"])
@pytest.mark.parametrize("name", QUEUED)
def test_so_it_is_where_an_agent_says_who_goes_next(name: str, layout: str) -> None:
    """On one or two small servers of varied prices, so that functions wait."""
    shared = (*TINY, *with_queue(layout), "workload.container_cold_start=5.0")
    config = world(*shared, "dispatch=queued", "workload.arrivals.mean_gap=5")
    config["agents"]["workflow_window"] = 0 if layout == "queue" else 3
    config["cluster"]["server_types"]["small"]["server_count"] = 0
    config["variation"] = VARIATION | {"server_count": [1.0, 2.0], "single": 0.0}
    check_batch(config | QUEUED[name], nobody=layout != "queue")


@pytest.mark.parametrize(
    ("dispatch", "layout"),
    [
        *(("queued", layout) for layout in [*LAYOUTS, "queue"]),
        *(("immediate", layout) for layout in LAYOUTS),
    ],
)
def test_so_it_is_on_a_trace(dispatch: str, layout: str) -> None:
    """Whose functions every episode draws anew; as it varies, there are one to three servers."""
    choosing = dispatch == "queued"
    agents = with_queue(layout) if choosing else (f"agents={layout}",)
    config = world(*TRACE, *agents, f"dispatch={dispatch}", "workload.sampling.ratio=0.3")
    config["variation"] |= {"server_count": [0.5, 1.5], "arrival_rate": [0.3, 1.0]}
    check_batch(config, nobody=choosing and layout != "queue")


@pytest.mark.parametrize("mechanism", ["stride", "lottery"])
def test_so_it_is_where_agents_split_the_currencies_of_tenants(mechanism: str) -> None:
    config = world(*TENANTS, f"agents.tenants.mechanism={mechanism}")
    check_batch(config | {"variation": VARIATION | {"server_count": [1.0, 2.0]}})


def test_so_it_is_where_tenants_hold_tickets_and_agents_place() -> None:
    config = world(*TENANTS, "agents=placer")
    config["objective"]["fairness_weight"] = 1.0
    check_batch(config)


def check_batch(config: dict[str, Any], nobody: bool = False) -> None:
    """Some episodes of a batch at random, beside as many single environments.

    Args:
        config: of the world.
        nobody: whether there are turns at which some environments have nobody to act.
    """
    rng = np.random.default_rng(0)
    batch = Batch(World(config), environments=3, seed=config["seed"], worker=7)
    followers = [Follower(config, environment) for environment in range(3)]
    ended = idle = 0
    while ended < 6:
        expected, over = np.zeros(3), np.zeros(3, bool)
        for turn in batch.turns:
            seen = buffers(batch, turn)
            batch.observe(turn, seen)
            asked = turn.agents
            actions = random_actions(seen["mask"], asked[0].bids, rng)
            acting = batch.acting(turn)
            batch.act(turn, actions)
            per_environment = len(actions) // 3
            for environment, follower in enumerate(followers):
                rows = range(environment * per_environment, (environment + 1) * per_environment)
                own = [
                    (
                        asked[acting[row]].name,
                        {part: column[row] for part, column in seen.items()},
                        actions[row],
                    )
                    for row in rows
                    if acting[row] != NOBODY
                ]
                if own:
                    expected[environment], over[environment] = follower.check_and_act(own)
                else:
                    blank = asked[0].blank_observation()
                    for part in blank:
                        np.testing.assert_array_equal(seen[part][rows[0]], blank[part])
                    idle += 1
        rewards, done = batch.step()
        np.testing.assert_array_equal(rewards, expected)
        np.testing.assert_array_equal(done, over)
        for environment in np.flatnonzero(done):
            episode = batch.ended.pop(0)
            np.testing.assert_equal(episode.metrics, followers[environment].metrics)
            agents = len(batch.layout.agents)
            assert episode.turns == followers[environment].turns
            assert episode.earned == pytest.approx(agents * followers[environment].earned)
            ended += 1
    assert (idle > 0) == nobody


def play(batch: Batch, decisions: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random decisions; everything that was observed and earned."""
    record = []
    for _ in range(decisions):
        for turn in batch.turns:
            seen = buffers(batch, turn)
            batch.observe(turn, seen)
            record += seen.values()
            batch.act(turn, random_actions(seen["mask"], turn.agents[0].bids, rng))
        record += list(batch.step())
    return record


def placing(layout: str) -> dict[str, Any]:
    own = "agents.workflow_window=3", "agents.relative_reward=true"
    return world(*TINY, f"agents={layout}", *own) | {"variation": VARIATION}


RESUMED = {
    **{layout: partial(placing, layout) for layout in LAYOUTS},
    "queue": partial(world, *TRACE, "workload.sampling.ratio=0.3"),
    "tenants": partial(world, *TENANTS),
    "queue and placer": partial(world, *TRACE, *with_queue("placer")),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_batch_goes_on_exactly_from_its_state(name: str) -> None:
    config = RESUMED[name]()
    one, other = (Batch(World(config), environments=4, seed=1, worker=0) for _ in range(2))
    play(one, 20, np.random.default_rng(1))
    state = pickle.loads(pickle.dumps(one.get_state()))
    wanted = play(one, 30, np.random.default_rng(2))
    other.set_state(state)
    found = play(other, 30, np.random.default_rng(2))
    assert all(np.array_equal(a, b) for a, b in zip(wanted, found, strict=True))
    assert len(pickle.dumps(state)) < one.nbytes / 7


def test_varied_episodes_differ_in_load_work_and_servers() -> None:
    shared = world("cluster=hetero_numa", "workflow=study", "workload=tenants", "agents=placer")
    config = {**shared, "variation": VARIATION}
    given = World(config)
    plain = World({**config, "variation": None})
    rates, counts, shares, unvaried, single = [], [], [], 0, 0
    for episode in range(60):
        workload, cluster = given.training_episode(0, 0, 0, episode)
        base, _ = plain.training_episode(0, 0, 0, episode)
        arrived = len(workload.templates)
        assert arrived in (1, len(base.templates))
        single += arrived == 1
        assert workload.tenants == base.tenants[:arrived]
        assert len(workload.arrival_times) == arrived
        rates.append(base.arrival_times[arrived - 1] / workload.arrival_times[-1])
        counts.append(tuple(kind.count for kind in cluster.server_types))
        same = workload.arrival_times == base.arrival_times and workload.templates == base.templates
        unvaried += cluster == given.cluster and same
        pairs = list(zip(workload.templates, base.templates[:arrived], strict=True))
        share = 0.2 if pairs[0][0] is not pairs[0][1] else 1.0
        for template, whole in pairs:
            # Whole operations; but for the work, it is the same workflow.
            np.testing.assert_allclose(template.computation, share * whole.computation, atol=0.5)
            np.testing.assert_array_equal(template.edges, whole.edges)
            np.testing.assert_array_equal(template.memory_req, whole.memory_req)
        shares.append(share)
        assert cluster.largest_node_memory >= max(t.memory_req.max() for t in given.templates)
    assert 0.5 <= min(rates) < 0.7
    assert 1.5 < max(rates) <= 2.0
    assert len(set(counts)) > 30
    assert any(0 in count for count in counts)
    assert 8 <= unvaried <= 30
    assert 5 <= single <= 22  # 0.3 of the varied
    assert 10 <= shares.count(0.2) <= 35
    most = [kind.count for kind in given.largest_cluster.server_types]
    assert (np.max(counts, axis=0) <= most).all()


def test_draws_that_leave_no_server_are_refused() -> None:
    config = world(*STUDY, "agents=placer")
    with pytest.raises(InputError, match=r"^variation.server_count: \[0, 0.01\] leaves no server"):
        World({**config, "variation": VARIATION | {"server_count": [0.0, 0.01]}})


def test_a_server_with_what_a_function_needs_is_drawn() -> None:
    """Of two types, the one with the gpu is there in every episode, the other not in all."""
    config = with_gpu(world(*TINY, "agents=placer"))
    given = World({**config, "variation": VARIATION | {"unvaried": 0.0}})
    counts = [
        [kind.count for kind in given.training_episode(0, 0, 0, episode)[1].server_types]
        for episode in range(100)
    ]
    assert np.min(counts, axis=0).tolist() == [0, 1]


def test_no_varied_episode_asks_for_more_than_the_load() -> None:
    variation = VARIATION | {"unvaried": 0.0, "single": 0.0}
    config = world(*STUDY, "agents=placer")
    free = World({**config, "variation": variation})
    bound = World({**config, "variation": variation | {"load": 0.2}})
    slowed = 0
    for episode in range(40):
        asked, cluster = free.training_episode(0, 0, 0, episode)
        workload, same = bound.training_episode(0, 0, 0, episode)
        assert same == cluster
        for slowed_one, asked_one in zip(workload.templates, asked.templates, strict=True):
            assert slowed_one.name == asked_one.name
            np.testing.assert_array_equal(slowed_one.computation, asked_one.computation)
        work = sum(template.computation.sum() for template in asked.templates)
        done = sum(
            kind.count * kind.numa_nodes * kind.cpu * kind.single_core_speed
            if kind.single_core_speed
            else kind.count * kind.numa_nodes * kind.cpu * cluster.single_core_speed
            for kind in cluster.server_types
        )
        load = work / done / asked.arrival_times[-1]
        slower = max(1.0, load / 0.2)
        assert workload.arrival_times == pytest.approx([t * slower for t in asked.arrival_times])
        slowed += slower > 1.0
    assert 5 < slowed < 35
