"""Layouts: a row of a placement and the actions by which agents choose it, both ways."""

import numpy as np
import pytest

from env.learn.decisions import Decisions
from env.learn.multi_agent import ServerlessEnv
from env.learn.placing import row_of
from tests.env.worlds import LAYOUTS, TINY, world


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_actions_for_a_row_choose_it(name: str) -> None:
    environment = ServerlessEnv(world(*TINY, f"agents={name}"))
    environment.reset(seed=3)
    random = np.random.default_rng(0)
    assert environment.raw_env is not None
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
