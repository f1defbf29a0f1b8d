"""Actions that are not allowed are refused wherever they enter, and change nothing."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from env.base.errors import InputError
from env.learn.actions import NO_PLACE
from env.learn.aec import ServerlessAEC
from env.learn.batch import Batch
from env.learn.multi_agent import ServerlessEnv
from tests.env.learn.test_batch import buffers, random_actions
from tests.env.worlds import LAYOUTS, SECOND_TYPE, STUDY, TINY, TRACE, gym_mask, with_queue, world

MAKERS = {
    **{name: partial(ServerlessEnv, world(*STUDY, f"agents={name}")) for name in LAYOUTS},
    **{
        f"queue_{name}": partial(ServerlessEnv, world(*TRACE, *with_queue(name), SECOND_TYPE))
        for name in LAYOUTS
    },
    "queue": partial(ServerlessEnv, world(*TRACE)),
}
NO_INTEGERS: list[Any] = [None, "1", 1.0, 10**30]
FAR: list[Any] = [-2, 10**6]


def allowed(env: ServerlessEnv, seen: dict[str, Any]) -> dict[str, Any]:
    return {
        name: env.action_spaces[name].sample(gym_mask(env.members[name], own["mask"]))
        for name, own in seen.items()
    }


def unlike(env: ServerlessEnv, name: str, own: Any, action: Any) -> list[tuple[Any, str]]:
    """Actions that are not allowed, and what is said of them."""
    agent, mask = env.members[name], own["mask"]
    strange, masked = [*NO_INTEGERS, [[0]]], [*FAR, *np.flatnonzero(mask == 0)[:2].tolist()]
    if agent.bids:
        bids, places = mask[: agent.bids], mask[agent.bids :]
        strange += [[action[0], each] for each in NO_INTEGERS]
        strange += [[each, action[1]] for each in NO_INTEGERS] + [action.astype(float), True]
        masked = [[action[0], each] for each in FAR] + [[each, action[1]] for each in FAR]
        masked += [[int(bid), action[1]] for bid in np.flatnonzero(bids == 0)[:2]]
        if bids.all():
            masked += [[1, NO_PLACE], *([1, int(at)] for at in np.flatnonzero(places == 0)[:2])]
    said = [(each, f"is not in {env.action_spaces[name]}") for each in strange]
    return said + [(each, f"{np.array(each).tolist()} is not possible") for each in masked]


def refused(act: Callable[[Any], Any], action: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        act(action)
    message = str(caught.value)
    assert said in message and "\n" not in message and len(message) < 300


def same(one: Any, other: Any) -> None:
    np.testing.assert_equal(one, other)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_refused_changes_nothing(name: str) -> None:
    """One environment meets all that is wrong, another one never: they go the same way."""
    tried, plain = MAKERS[name](), MAKERS[name]()
    refused(tried.step, {}, "no episode is being played, call reset() first")
    refused(lambda given: tried.reset(options=given), {"workloa": 1}, "did you mean 'workload'?")
    refused(lambda given: tried.reset(options=given), {"workload": 1}, "options: workload: ")
    seen, expected = tried.reset(seed=1)[0], plain.reset(seed=1)[0]
    masks = 0
    for _ in range(100):
        actions = allowed(tried, seen)
        first, *others = actions
        refused(tried.step, None, "are due, found None")
        refused(tried.step, {}, f"actions: those of {first}")
        idle = [name for name in tried.possible_agents if name not in seen]
        for each in (*idle, "nobody"):
            refused(tried.step, {**actions, each: 0}, f"found {', '.join([*actions, each])}")
        if others:
            less = {name: action for name, action in actions.items() if name != others[-1]}
            refused(tried.step, less, f"those of {', '.join(actions)} are due")
        for agent, own in seen.items():
            for wrong_one, said in unlike(tried, agent, own, actions[agent]):
                refused(tried.step, {**actions, agent: wrong_one}, said)
                masks += "not possible" in said
        seen, *rest = tried.step(actions)
        expected, *those = plain.step(actions)
        same(seen, expected)
        same(rest[:2], those[:2])
    assert masks > 0


def test_a_seed_that_is_none_changes_nothing() -> None:
    tried, plain = MAKERS["placer"](), MAKERS["placer"]()
    for env in (tried, plain):
        env.reset(seed=4)
    for wrong in (-1, "abc", np.nan, 1.5, True, 2**64):
        refused(lambda given: tried.reset(seed=given), wrong, "seed: a whole number from 0 to ")
    same(tried.reset(), plain.reset())
    same(tried.reset(seed=np.int64(4)), plain.reset(seed=4))


@pytest.mark.parametrize("name", ["server_types", "queue_hierarchical"])
def test_copies_go_on_alike(name: str) -> None:
    env = MAKERS[name]()
    pickle.loads(pickle.dumps(env))
    seen, _ = env.reset(seed=3)
    for _ in range(10):
        seen, *_ = env.step(allowed(env, seen))
    others = copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    for _ in range(10):
        actions = allowed(env, seen)
        seen, *rest = env.step(actions)
        for other in others:
            there, *those = other.step(actions)
            same(seen, there)
            same(rest[:2], those[:2])


def test_agents_that_act_in_turn_are_asked_again() -> None:
    env = ServerlessAEC(world(*STUDY, "agents=server_types"))
    refused(env.step, [0, 0], "step: no episode is being played")
    refused(lambda given: env.reset(options=given), {"worklod": 1}, "did you mean 'workload'?")
    env.reset(seed=0)
    first = env.agent_selection
    refused(env.step, [8, 0], f"{first}: [8, 0] is not possible, allowed: bids 0, 1")
    for name in env.possible_agents[:-1]:
        assert env.agent_selection == name
        env.step([0, NO_PLACE])
    refused(env.step, [0, NO_PLACE], "or -1 of a bid of 0 that does not win")
    assert env.agent_selection == first
    copied = copy.copy(env)
    for each in (env, copied):
        for _ in env.possible_agents:
            each.step([1, 0])
    same(env.observe(first), copied.observe(first))
    assert env._env.raw_env.decisions == copied._env.raw_env.decisions == 1


def test_an_action_may_be_written_over_once_it_is_taken() -> None:
    env = ServerlessAEC(world(*TINY, "agents=server_types"))
    env.reset(seed=0)
    _, second = env.possible_agents
    action = np.array([0, 0])
    env.step(action)
    action[0] = 7
    env.step(action)  # so the first type has bid 0, and the second wins
    functions = env._env.raw_env.workload.workflows[0].functions
    assert [f"server_{one.place[0]}" for one in functions if one.place] == [second]


def test_a_batch_needs_a_number_of_environments_and_a_seed_for_each() -> None:
    world = MAKERS["placer"]().world
    for wrong in (0, 1.5, True, "2", 10_001):
        said = "environments: a whole number from 1 to 10000 is needed, found "
        refused(lambda given: Batch(world, given, 0, 0), wrong, said)
    batch, plain = (Batch(world, np.int64(2), 0, 0) for _ in range(2))
    for wrong, said in (
        ([1], "seed: 2 seeds are needed, found 1"),
        ([1, "a"], "seed: a whole number from 0 to "),
    ):
        refused(batch.restart, wrong, said)
    batch.restart([3, None])
    plain.restart([3, None])
    same(batch.get_state()["drawn"], plain.get_state()["drawn"])


@pytest.mark.parametrize("name", ["placer", "server_types", "queue_hierarchical"])
def test_a_batch_refuses_what_is_not_allowed(name: str) -> None:
    env = MAKERS[name]()
    batch, plain = (Batch(env.world, 2, 0, 0) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(6):
        for turn in batch.turns:
            agents, seen, other = turn.agents, buffers(batch, turn), buffers(plain, turn)
            act, bids = partial(batch.act, turn), agents[0].bids
            batch.observe(turn, seen)
            plain.observe(turn, other)
            acting = batch.acting[turn]
            same(seen, other)
            masks = seen["mask"].copy()
            seen["mask"][:] = 1.0  # the caller's own
            good = random_actions(masks, bids, rng)
            for wrong in (good.astype(float), good.astype(bool), good[:-1], None):
                refused(act, wrong, f"integers of shape {good.shape} are needed")
            for row in np.flatnonzero(acting >= 0):
                whose = f"environment {row * 2 // len(acting)}: {agents[acting[row]].name}: "
                may_bid = not bids or masks[row, 1]
                masked = np.flatnonzero(masks[row, bids:] == 0)[:1].tolist() if may_bid else []
                for value in [-2, 10**6, 2**62, *masked]:
                    wrong = good.copy()
                    wrong[row] = [1, value] if bids else value
                    refused(act, wrong, f"{whose}{wrong[row].tolist()} is not possible")
            batch.act(turn, good.astype(np.int16))
            plain.act(turn, good)
        same(batch.step(), plain.step())
