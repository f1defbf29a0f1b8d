"""Layouts: actions and the placement they come to, both ways."""

from typing import Any

import numpy as np
import pytest

from env.learn.layouts import Layout, Placement
from env.learn.multi_agent import ServerlessEnv
from tests.env.worlds import LAYOUTS, TINY, world


def played(layout: Layout, turns: list[dict[str, Any]]) -> Placement | dict[str, Any]:
    for actions in turns:
        turn = layout.act(actions)
    return turn


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_actions_of_a_placement_come_to_it(name: str) -> None:
    environment = ServerlessEnv(world(*TINY, f"agents={name}"))
    environment.reset(seed=3)
    random = np.random.default_rng(0)
    env, layout = environment.raw_env, environment.layout
    assert env is not None
    tried = 0
    while not env.done:
        memory_req = env.current_function.memory_req
        for node, memory in enumerate(env.state.nodes["memory"]):
            for ratio in layout.tiers:
                placement = Placement(node, int(np.ceil(ratio * memory_req)))
                if placement.memory_alloc > memory:
                    continue
                observations = layout.start()
                turns = layout.actions_of(placement)
                assert turns[0].keys() == observations.keys()
                assert played(layout, turns) == placement
                tried += 1
        node = int(random.integers(len(env.state.nodes)))
        env.step(*env.place_of(node), memory_req)
    assert tried > 100
