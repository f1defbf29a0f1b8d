"""A new kind of decision in one file: take a server out of service, or not, when it is idle."""

from pettingzoo.test import api_test

from agents.learned.algorithms import build
from env.base.jit import compiled
from env.learn.aec import ServerlessAEC
from env.learn.gym import SingleAgentEnv, SingleAgentVectorEnv
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from env.sim.declared.aside import DecisionKind
from env.sim.episode.episode_file import read_episode
from env.sim.events.endings import drain
from env.sim.state.records import IN_SERVICE, NONE
from evaluate import prepared
from tests.agents.learned.conftest import config_of
from tests.agents.learned.test_algorithms import SETTINGS
from tests.env.worlds import TINY, world
from tests.episodes import assert_sound

WORLD = (*TINY, "dispatch=queued", "workload.arrivals.mean_gap=30")


@compiled
def due(state, after):
    left = len(state.servers) - state.cluster[0].out_of_service
    for server in range(after + 1, len(state.servers)):
        own = state.servers[server]
        idle = own.container_count == 0 and own.ready_time > 0.0 and own.condition == IN_SERVICE
        if idle and left > 1:
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


class Thrifty:
    asked = (RETIRE,)

    def reset(self, env, objective, seed):
        pass

    def choose(self, decision):
        late = decision.kind == "retire" and decision.env.decisions > 3
        return decision.rows["out" if late else "feasible"].argmax()


def test_an_agent_decides_in_every_form_of_environment() -> None:
    config = world(*WORLD, "agents.layout=asked") | {"asked": (RETIRE,)}
    api_test(ServerlessAEC(config), num_cycles=50)
    one, many = SingleAgentEnv(config), SingleAgentVectorEnv(config, 3)
    one.reset(seed=1), many.reset(seed=1)
    for _ in range(3):
        seen, all_seen = one.step(0)[0], many.step([0, 0, 0])[0]
        assert (all_seen["item_features"][0] == seen["item_features"]).all()
    algorithm = build(config_of(SETTINGS["ppo"], config, ENV_NAME, ServerlessEnv), None)
    assert algorithm.train()["env_runners"]["num_env_steps_sampled"] > 0


def test_a_rule_decides_in_evaluate_and_its_episode_replays(in_process) -> None:
    told = [*WORLD, "episodes=2", "record=1", f"baselines=[{__file__}:Thrifty]"]
    assert in_process("evaluate", prepared)(*told, "hydra.run.dir=run").code == 0
    episode = read_episode("run/episodes/Thrifty_0_0000.json")
    assert {change.condition for change in episode.changes} == {"draining"}
    assert_sound(episode)
