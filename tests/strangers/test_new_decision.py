"""A new kind of decision in one file: take a server out of service, or not, when it is idle."""

from pathlib import Path

import numpy as np
from pettingzoo.test import api_test

from agents.learned.algorithms import build
from env.base.jit import compiled
from env.learn.aec import ServerlessAEC
from env.learn.gym import SingleAgentEnv, SingleAgentVectorEnv
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from env.sim.check.validate import violations
from env.sim.declared.aside import DecisionKind
from env.sim.episode.episode_file import read_episode
from env.sim.episode.replay import differences, replayed
from env.sim.events.endings import drain
from env.sim.state.records import IN_SERVICE, NONE
from evaluate import prepared
from tests.agents.learned.conftest import config_of
from tests.agents.learned.test_algorithms import SETTINGS
from tests.commands import InProcess
from tests.env.worlds import TINY, world

WORLD = (*TINY, "dispatch=queued", "workload.arrivals.mean_gap=30")


@compiled
def due(state, after):
    left = len(state.servers) - state.cluster[0].out_of_service
    for server in range(after + 1, len(state.servers)):
        idle = state.servers[server].container_count == 0 and state.servers[server].ready_time > 0.0
        if idle and state.servers[server].condition == IN_SERVICE and left > 1:
            return server
    return NONE


@compiled
def fill(state, server, rows, mask):
    rows[1, 0] = 1.0
    rows[:, 1] = state.servers[server].hourly_rate
    rows[:, 2] = state.queue[0].waiting
    mask[:] = 1.0


@compiled
def apply(state, server, row):
    if row == 1:
        drain(state, server)


RETIRE = DecisionKind("retire", ("out", "hourly_rate", "waiting"), 2, due, fill, apply)
RULE = """
from tests.strangers.test_new_decision import RETIRE
class Thrifty:
    asked = [RETIRE]
    def reset(self, env, objective, seed): pass
    def choose(self, decision):
        late = decision.kind == "retire" and decision.env.decisions > 3
        return int(decision.rows["out" if late else "feasible"].argmax())
"""


def test_an_agent_decides_in_every_form_of_environment() -> None:
    agents = {**world(*WORLD)["agents"], "layout": "asked"}
    config = world(*WORLD) | {"agents": agents, "asked": (RETIRE,)}
    api_test(ServerlessAEC(config), num_cycles=50)
    one, many = SingleAgentEnv(config), SingleAgentVectorEnv(config, 3)
    seen, all_seen, ended = one.reset(seed=1)[0], many.reset(seed=1)[0], False
    while not ended:
        np.testing.assert_array_equal(all_seen["item_features"][0], seen["item_features"])
        seen, _, ended, *_ = one.step(1)
        all_seen, *_ = many.step(many.action_masks()[:, 1])
    algorithm = build(config_of(SETTINGS["ppo"], config, ENV_NAME, ServerlessEnv), None)
    assert algorithm.train()["env_runners"]["num_env_steps_sampled"] > 0
    algorithm.stop()


def test_a_rule_decides_in_evaluate_and_its_episode_replays(
    in_process: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(RULE)
    told = [*WORLD, "episodes=2", "record=1", "baselines=[mine.py:Thrifty]", "hydra.run.dir=run"]
    assert in_process("evaluate", prepared)(*told).code == 0
    episode = read_episode(tmp_path / "run" / "episodes" / "Thrifty_0_0000.json")
    assert {change.condition for change in episode.changes} == {"draining"}
    assert violations(episode) == [] and differences(replayed(episode), episode.expected) == []
