"""The batch does decision by decision what single environments do."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.learn.batch import Batch
from env.learn.kind import NOBODY, Observation, Turn
from env.learn.multi_agent import ServerlessEnv
from env.learn.world import World
from tests.env.worlds import STUDY, TENANTS, TINY, TRACE, with_gpu, with_queue, world

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


QUEUED = {"dispatch": {"kind": "queued", "patience": 20.0}, "keep_alive": {"policy": "lru"}}


def placing(size: tuple[str, ...], layout: str, *overrides: str, **groups: Any) -> dict[str, Any]:
    return world(*size, f"agents={layout}", *overrides) | {"variation": VARIATION} | groups


def choosing(layout: str, **groups: Any) -> dict[str, Any]:
    """On one or two small servers of varied prices, so that functions wait."""
    shared = (*TINY, *with_queue(layout), "workload.container_cold_start=5.0")
    config = world(*shared, "dispatch=queued", "workload.arrivals.mean_gap=5")
    config["agents"]["workflow_window"] = 0 if layout == "queue" else 3
    config["cluster"]["server_types"]["small"]["server_count"] = 0
    config["variation"] = VARIATION | {"server_count": [1.0, 2.0], "single": 0.0}
    return config | groups


def tracing(dispatch: str, *overrides: str) -> dict[str, Any]:
    """Whose functions every episode draws anew; as it varies, there are one to three servers."""
    own = "workload.sampling.ratio=0.3", f"dispatch={dispatch}"
    config = world(*TRACE, *overrides, *own)
    config["variation"] |= {"server_count": [0.5, 1.5], "arrival_rate": [0.3, 1.0]}
    return config


FAILING = {
    "changes": {
        "kind": "random",
        "failures": {"shape": 1.0, "scale": 300.0},
        "repairs": {"shape": 0.5, "scale": 60.0},
    },
    "recovery": {"retries": 3, "backoff": {"wait": 5.0, "jitter": 0.5}},
}
LOSING = FAILING | {"recovery": {"retries": 2, "data_durability": "server", "checkpoint": 10.0}}
SPOT = {"trace": "conf/lease/spot_example.json", "share": 0.5, "price": 0.3, "notice": 30.0}
REGIONS = ("cluster=aws_regions", *STUDY[1:])
USE = {"request": 1e-4, "gb_second": {"x86_64": 1e-3, "arm64": 1e-3}, "free_requests": 5}
PER_USE = {"kind": "always", "charged": False, "use": USE}
WINDOW = "agents.workflow_window=5", "agents.relative_reward=true"
COLD = "workload.container_cold_start=20.0"
WORLDS: dict[str, dict[str, Any]] = {
    "placer": world(*TINY, "agents=placer"),
    "varied placer": placing(STUDY, "placer", *WINDOW),
    "hierarchical": placing(STUDY, "hierarchical", *WINDOW),
    "one tier": world(*TINY, "agents=hierarchical", "agents.memory_tiers=[1.0]"),
    "bidders": placing(STUDY, "server_types", *WINDOW),
    "free": placing(STUDY, "placer", COLD, lease={"kind": "always", "charged": False}),
    "waiting": placing(STUDY, "server_types", COLD, **QUEUED),
    "failing": placing(TINY, "hierarchical", **FAILING),
    "failing, data lost": choosing("placer", **QUEUED, **LOSING),
    "failing traces": tracing("queued", *with_queue("server_types")) | FAILING,
    "regions": placing(REGIONS, "hierarchical", "objective=carbon", lease=PER_USE),
    "spot": placing(STUDY, "placer", lease={"kind": "hourly", "step": 60.0, "spot": SPOT}),
    "with gpus": with_gpu(placing(TINY, "placer", lease={"kind": "hourly", "step": 60.0})),
    "queue": choosing("queue", lease={"kind": "always", "charged": True}),
    "queue and placer": choosing("placer", **QUEUED),
    "queue and hierarchical": choosing("hierarchical"),
    "trace": tracing("immediate", "agents=placer"),
    "trace with queue": tracing("queued", *with_queue("server_types")),
    "tenants": world(*TENANTS) | {"variation": VARIATION | {"server_count": [1.0, 2.0]}},
    "placer for tenants": world(*TENANTS, "agents=placer", "objective.fairness_weight=1.0"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_environments_side_by_side_are_what_they_are_alone(name: str) -> None:
    """Six episodes of a batch at random, beside as many environments that are given its actions."""
    config, rng = WORLDS[name], np.random.default_rng(0)
    batch = Batch(World(config), environments=3, seed=config["seed"], worker=7)
    alone = [ServerlessEnv(config) for _ in range(3)]
    for environment, env in enumerate(alone):
        env._stream = (7, environment)
    seen = [env.reset()[0] for env in alone]
    ended = idle = 0
    while ended < 6:
        expected, over, metrics = np.zeros(3), np.zeros(3, bool), {}
        for turn in batch.turns:
            rows = buffers(batch, turn)
            batch.observe(turn, rows)
            actions = random_actions(rows["mask"], turn.agents[0].bids, rng)
            given: list[dict[str, Any]] = [{} for _ in alone]
            for row, who in enumerate(batch.acting[turn]):
                environment, own = row // turn.together, {part: rows[part][row] for part in rows}
                if who == NOBODY:
                    np.testing.assert_equal(own, turn.agents[0].blank_observation())
                    idle += 1
                    continue
                name = turn.agents[who].name
                np.testing.assert_equal(seen[environment].pop(name), own)
                given[environment][name] = actions[row]
            batch.act(turn, actions)
            for environment, acts in enumerate(given):
                if acts:
                    assert not seen[environment]
                    seen[environment], rewards, ends, _, infos = alone[environment].step(acts)
                    expected[environment] = next(iter(rewards.values()), 0.0)
                    over[environment] = ends["__all__"]
                    metrics[environment] = [each["episode_metrics"] for each in infos.values()]
        rewards, done = batch.step()
        np.testing.assert_array_equal(rewards, expected)
        np.testing.assert_array_equal(done, over)
        for environment in np.flatnonzero(done):
            episode, agents = batch.ended.pop(0), len(batch.layout.agents)
            assert episode.environment == environment
            assert metrics[environment] == [episode.metrics] * agents
            seen[environment], _ = alone[environment].reset()
            ended += 1
    assert (idle > 0) == (len(batch.layout.kinds) > 1)


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


def test_nobody_sees_a_call_before_it_is_drawn() -> None:
    """At time 0 two functions are placed, of which one calls three others or not."""
    second = {"computation": 1_000_000, "memory": 512, "parallelism": 1}
    mix = {
        "functions": {name: second for name in "abcde"},
        "edges": [{"from": "a", "to": to, "bytes": 9, "probability": 0.5} for to in "cde"],
    }
    config = world(*TINY, "agents.workflow_window=4")
    config["workflow"] = config["workflow"] | {"mix": {"w": mix}}
    given = World(config)
    drawn, _ = given.training_episode(0, 0, 0, 0)
    workload = replace(drawn, arrival_times=(0.0,), templates=drawn.templates[:1])
    seen: list[list[bytes]] = [[], [], []]
    for seed in range(8):
        batch, rng = Batch(given, environments=1, seed=0, worker=0), np.random.default_rng(0)
        batch.restart(workload=replace(workload, turns_seed=seed))
        for decision in range(3):
            for turn in batch.turns:
                rows = buffers(batch, turn)
                batch.observe(turn, rows)
                rows.pop("critic")  # it alone may know the future
                seen[decision].append(b"".join(each.tobytes() for each in rows.values()))
                batch.act(turn, random_actions(rows["mask"], turn.agents[0].bids, rng))
            batch.step()
    assert [len(set(each)) == len(batch.turns) for each in seen] == [True, True, False]


RESUMED = ["hierarchical", "bidders", "queue", "queue and placer", "trace with queue", "tenants"]


@pytest.mark.parametrize("name", RESUMED)
def test_a_batch_goes_on_exactly_from_its_state(name: str) -> None:
    one, other = (Batch(World(WORLDS[name]), environments=4, seed=1, worker=0) for _ in range(2))
    play(one, 20, np.random.default_rng(1))
    state = pickle.loads(pickle.dumps(one.get_state()))
    wanted = play(one, 30, np.random.default_rng(2))
    other.set_state(state)
    found = play(other, 30, np.random.default_rng(2))
    assert all(np.array_equal(a, b) for a, b in zip(wanted, found, strict=True))
    assert len(pickle.dumps(state)) < sum(each.block.nbytes for each in one.states) / 7


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
            kind.count * kind.cores * (kind.single_core_speed or cluster.single_core_speed)
            for kind in cluster.server_types
        )
        load = work / done / asked.arrival_times[-1]
        slower = max(1.0, load / 0.2)
        assert workload.arrival_times == pytest.approx([t * slower for t in asked.arrival_times])
        slowed += slower > 1.0
    assert 5 < slowed < 35
