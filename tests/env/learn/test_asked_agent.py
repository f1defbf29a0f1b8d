"""Agents of own kinds of decision: copies, given workloads, code that changes."""

import copy

import numpy as np

from env.base.jit import _names, compiled
from env.learn.decisions import applying
from env.learn.multi_agent import ServerlessEnv
from env.workloads.generator import WorkloadGenerator
from tests.env.worlds import world
from tests.strangers.test_new_decision import RETIRE, WORLD


def asked(layout: str) -> ServerlessEnv:
    return ServerlessEnv(world(*WORLD, f"agents.layout={layout}") | {"asked": (RETIRE,)})


def test_copies_are_asked_as_the_original() -> None:
    env = asked("asked")
    seen, _ = env.reset(seed=1)
    other = copy.deepcopy(env)
    for _ in range(2):
        assert list(seen) == ["retire"]
        seen, *rest = env.step({"retire": 0})
        there, *those = other.step({"retire": 0})
        np.testing.assert_equal(there, seen)
        np.testing.assert_equal(those[:2], rest[:2])


def test_a_given_workload_is_played() -> None:
    env = asked("asked")
    assert isinstance(env.world.generator, WorkloadGenerator)
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
