"""The environment as its users meet it: spaces, masks, returns, seeds, ends, other libraries."""

import copy
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test
from ray.rllib.env.env_context import EnvContext
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from agents.baseline import make_baselines
from agents.scheduler import play as schedule
from env.base.jit import _names, compiled
from env.learn.aec import ServerlessAEC
from env.learn.decisions import Decisions, applying
from env.learn.kind import Observation
from env.learn.multi_agent import ServerlessEnv
from env.learn.placing import row_of
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.episode import EpisodeWorkload
from env.sim.view.raw_env import RawEnv
from tests.env.learn.test_actions import refused
from tests.env.learn.test_batch import random_actions
from tests.env.learn.test_tenant_agents import Act, chain, played
from tests.env.worlds import LAYOUTS, STUDY, TENANTS, TINY, TRACE, gym_mask, with_queue, world
from tests.strangers.test_new_decision import RETIRE, WORLD


def at_random(env: ServerlessEnv, seed: int) -> Act:
    """Any action that the mask allows, of what its space contains."""
    rng = np.random.default_rng(seed)

    def act(name: str, seen: Observation) -> Any:
        bids = env.members[name].bids
        assert env.get_observation_space(name).contains(seen)
        assert seen["mask"][bids:].any() and seen["mask"][: bids or None].any()
        return random_actions(seen["mask"][None], bids, rng)[0]

    return act


def play(env: ServerlessEnv, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """One random episode: returns by agent, and metrics."""
    earned, metrics, _ = played(env, at_random(env, seed), seed=seed)
    refused(env.step, {}, "step: the episode is over, call reset() first")
    return earned, metrics


@pytest.mark.parametrize("objective", ["balanced", "cost", "carbon"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [TINY, STUDY], ids=["tiny", "study"])
def test_every_agents_return_is_minus_j_less_the_time_weight(size, layout, objective):
    config = world(*size, f"agents={layout}", f"objective={objective}")
    env = ServerlessEnv(config)
    returns, metrics = play(env, seed=5)
    weights = config["objective"]
    terms = (
        weights["time_weight"] * metrics["slowdown"],
        weights["cost_weight"] * metrics["cost_ratio"],
    )
    assert (metrics["J"] == pytest.approx(sum(terms))) == (objective != "carbon")
    for name in env.possible_agents:
        assert returns[name] == pytest.approx(-(metrics["J"] - weights["time_weight"]), abs=1e-6)


@pytest.mark.parametrize("objective", ["balanced", "cost"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_relative_rewards_count_in_what_the_greedy_rule_comes_to(layout, objective):
    rule = make_baselines(["greedy_objective_tuned"])[0]
    config = world(*STUDY, f"agents={layout}", f"objective={objective}")
    score = rule._config.placement.of(Objective(**config["objective"])).model_dump()
    config["agents"] = {**config["agents"], "relative_reward": True, "score": score}
    env = ServerlessEnv(config)
    returns, metrics = play(env, seed=5)
    workload, cluster = env.world.training_episode(5, 0, 0, 0)
    alone = RawEnv(workload.arrival_times, workload.templates, cluster)
    schedule(alone, rule, env.objective, np.random.SeedSequence(0))
    reference = episode_metrics(alone.state, env.objective)["J"]
    gained = config["objective"]["time_weight"] - metrics["J"]
    assert list(returns.values()) == pytest.approx([gained / reference] * len(returns), abs=1e-9)
    # Whatever rewards count in, it is told.
    config["agents"]["relative_reward"] = False
    _, absolute = play(ServerlessEnv(config), seed=5)
    for told in (metrics, absolute):
        assert told["J_relative"] == pytest.approx(told["J"] / reference)


def test_a_bad_world_gets_one_line():
    config = world(*TINY)
    descending = config["agents"] | {"memory_tiers": [1.0, 0.5]}
    for changed, message in (
        ({"leese": {}}, "world: leese: unknown key, did you mean 'lease'"),
        ({"agents": descending}, "agents.memory_tiers: found [1.0, 0.5], ascending"),
    ):
        refused(ServerlessEnv, config | changed, message)


def test_a_workload_of_ones_own_takes_no_episode_of_the_stream():
    env, plain = (ServerlessEnv(world(*TINY)) for _ in "ab")
    workload, _ = env.world.training_episode(7, 0, 0, 0)
    env.reset(seed=3)
    plain.reset(seed=3)
    env.reset(options={"workload": workload})
    (seen, _), (wanted, _) = env.reset(), plain.reset()
    np.testing.assert_equal(seen, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_node_without_the_memory_is_masked(layout):
    """tiny's `small` nodes have less memory than `wide`'s: a large function can only go there."""
    config = world(*TINY, f"agents={layout}")
    env = ServerlessEnv(config)
    kinds = config["cluster"]["server_types"].values()
    small, largest = sorted(kind["memory_mb_per_numa_node"] for kind in kinds)
    assert largest > small
    template = chain(1.0, memory=largest)
    for seed in range(5):
        workload = EpisodeWorkload((0.0,), (template,))
        played(env, at_random(env, seed), options={"workload": workload})
        (function,) = env.raw_env.workload.workflows[0].functions
        kind = config["cluster"]["server_types"][function.place[0]]
        assert function.memory_alloc <= kind["memory_mb_per_numa_node"]


def test_highest_bid_wins_and_ties_go_to_the_first_type():
    env = ServerlessEnv(world(*TINY, "agents=server_types"))
    names = env.possible_agents
    for bids, winner in (((0, 7), 1), ((7, 0), 0), ((3, 3), 0), ((0, 0), 0)):
        env.reset(seed=0)
        function = env.raw_env.current_function
        env.step({name: np.array([bid, 2]) for name, bid in zip(names, bids, strict=True)})
        assert f"server_{function.place[0]}" == names[winner]


@pytest.mark.parametrize("tiers", [[0.5, 0.75, 1.0], [1.0]])
def test_hierarchical_agents_act_in_turn(tiers):
    """Nobody is asked for the only memory tier."""
    env = ServerlessEnv(world(*TINY, "agents=hierarchical", f"agents.memory_tiers={tiers}"))
    observations, _ = env.reset(seed=0)
    function = env.raw_env.current_function
    second = env.possible_agents[-1]
    actions = {"memory": 2, "placer": 1, second: 0}
    if len(tiers) == 1:
        del actions["memory"]
    for name, action in actions.items():
        assert list(observations) == [name]
        observations, rewards, *_ = env.step({name: action})
        assert set(rewards) == (set(env.possible_agents) if name == second else set())
    assert list(observations) == list(actions)[:1]
    assert f"server_{function.place[0]}" == second
    assert function.memory_alloc == function.memory_req


def sampling_with_masks(env: ServerlessEnv) -> ServerlessEnv:
    """The same, with spaces that sample under the masks of its reset: RLlib's check gives none."""
    reset = env.reset

    def noted(**given: Any) -> Any:
        seen, infos = reset(**given)
        for name, own in seen.items():
            mask, space = gym_mask(env.members[name], own["mask"]), env.action_spaces[name]
            space.sample = partial(type(space).sample, space, mask=mask)
        return seen, infos

    env.reset = noted
    return env


WORLDS = {
    **{layout: (*TINY, f"agents={layout}") for layout in LAYOUTS},
    **{f"queue {layout}": (*TRACE, *with_queue(layout)) for layout in LAYOUTS},
    "queue": TRACE,
    "tenants": (*TENANTS, "workload.arrivals.workflows=[5,8]"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_rllib_and_pettingzoo_accept_it(name):
    config = world(*WORLDS[name])
    check_multiagent_environments(sampling_with_masks(ServerlessEnv(config)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(ServerlessAEC(config), num_cycles=30)


@pytest.mark.parametrize("name", WORLDS)
def test_same_seed_same_episode(name):
    config = world(*WORLDS[name])
    env = ServerlessEnv(config)
    first, again, other = (play(env, seed=seed)[0] for seed in (3, 3, 4))
    assert first == again != other
    seed_test(lambda: ServerlessAEC(config), num_cycles=60)


def drawn(worker: int, count: int, seed: int | None) -> list[Any]:
    """What the environments of one of RLlib's runners play first, which seeds them so."""
    made = [ServerlessEnv(EnvContext(world(*TINY), worker_index=worker)) for _ in range(count)]
    for index, env in enumerate(made):
        env.reset(seed=None if seed is None else seed + worker + index)
    return [env.raw_env.arrival_times for env in made]


@pytest.mark.parametrize("seed", [None, 5])
def test_rllibs_environments_play_different_episodes(seed):
    """Those of one runner, of two of them, and of a runner that evaluates."""
    evaluated = None if seed is None else seed + 1_000_000
    every = [*drawn(1, 3, seed), *drawn(2, 3, seed), *drawn(1, 3, evaluated)]
    assert len(set(every)) == len(every)
    assert (drawn(1, 3, seed) == every[:3]) == (seed is not None)


def test_pettingzoo_bidders_earn_the_same():
    config = world(*TINY, "agents=server_types")
    env = ServerlessAEC(config)
    env.reset(seed=1)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    for name in env.agent_iter():
        observation, reward, terminated, _, info = env.last()
        returns[name] += reward
        if terminated:
            metrics = info["episode_metrics"]
            env.step(None)
            continue
        env.step(env.action_space(name).sample(observation["action_mask"]))
    assert returns == pytest.approx(
        dict.fromkeys(returns, -(metrics["J"] - config["objective"]["time_weight"])), abs=1e-6
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_actions_for_a_row_choose_it(name: str) -> None:
    environment = ServerlessEnv(world(*TINY, f"agents={name}"))
    environment.reset(seed=3)
    random = np.random.default_rng(0)
    env, layout = environment.raw_env.fork(), environment.layout
    decisions = Decisions.of(layout, env.state)
    (kind,) = layout.kinds
    tried = 0
    while not env.done:
        memory_req = env.current_function.memory_req
        for node, memory in enumerate(env.state.nodes["memory"]):
            for ratio in layout.tiers:
                given = int(np.ceil(ratio * memory_req))
                if given > memory:
                    continue
                row = row_of(layout.tiers, memory_req, node, given)
                actions = [each for turn in decisions.actions_for(kind, row) for each in turn]
                assert decisions.ask(env.state, kind, lambda *_, left=actions: left.pop(0)) == row
                assert not actions
                tried += 1
        node = int(random.integers(len(env.state.nodes)))
        env.step(*env.place_of(node), memory_req)
    assert tried > 100


def retiring() -> ServerlessEnv:
    """With an agent of a kind of decision of its own."""
    return ServerlessEnv(world(*WORLD, "agents.layout=asked") | {"asked": (RETIRE,)})


def test_copies_are_asked_as_the_original() -> None:
    env = retiring()
    seen, _ = env.reset(seed=1)
    other = copy.deepcopy(env)
    for _ in range(2):
        assert list(seen) == ["retire"]
        seen, *rest = env.step({"retire": 0})
        there, *those = other.step({"retire": 0})
        np.testing.assert_equal(there, seen)
        np.testing.assert_equal(those[:2], rest[:2])


def test_a_given_workload_is_played() -> None:
    env = retiring()
    seen, _ = env.reset(options={"workload": env.world.generator.evaluation_episode(0)})
    assert list(seen) == ["retire"]


def test_loops_over_the_code_of_others_are_compiled_anew() -> None:
    """No cache can know that it has changed."""

    @compiled
    def apply(state, envs, env):
        return 0

    loop = applying(apply)
    assert any(name.startswith("tests.") for name in _names(loop.py_func))
    assert not loop._cache.cache_path
