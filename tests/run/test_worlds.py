"""Worlds and environments by the names of their choices, outside the commands."""

import json

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

import run.worlds
from env.learn.gym import SingleAgentEnv, SingleAgentVectorEnv
from tests.documents import refused_in_a_line
from tests.env import worlds
from tests.env.worlds import TINY

MODULE = "run.worlds:Serverless-v0"


def test_a_world_is_that_of_train() -> None:
    told = [*TINY, "agents=hierarchical", "objective.cost_weight=3", "seed=7"]
    found = run.worlds.world(*told)
    assert found["objective"]["cost_weight"] == 3
    assert found["seed"] == 7
    assert found["agents"]["layout"] == "hierarchical"
    # The test's own composes without what a command checks.
    bare = worlds.world(*told[:-1], seed=7)
    assert found["cluster"]["server_types"].keys() == bare["cluster"]["server_types"].keys()
    assert found.keys() == bare.keys()


def test_the_overrides_say_who_decides_and_else_placer_does() -> None:
    made = [
        gymnasium.make(MODULE, overrides=overrides).unwrapped
        for overrides in ([], TINY, ["agents=queue", "dispatch=queued"])
    ]
    assert [env.world.agents.layout for env in made] == ["placer", "placer", "queue"]
    by_experiment = gymnasium.make(MODULE, overrides=["experiment=hetero_numa_placer"]).unwrapped
    assert by_experiment.world.agents.memory_tiers == (1.0,)


def test_many_are_made_as_one_batch_unless_told_otherwise() -> None:
    envs = gymnasium.make_vec(MODULE, num_envs=3, overrides=[*TINY])
    assert isinstance(envs, SingleAgentVectorEnv)
    assert envs.num_envs == 3
    one_by_one = gymnasium.make_vec(
        MODULE, num_envs=3, vectorization_mode="sync", overrides=[*TINY]
    )
    assert one_by_one.observation_space == envs.observation_space
    assert one_by_one.action_space == envs.action_space


def test_a_specification_makes_the_same_environment() -> None:
    env = gymnasium.make(MODULE, overrides=[*TINY, "seed=3"])
    told = env.spec.to_json()
    assert json.loads(told)["kwargs"] == {"overrides": [*TINY, "seed=3"]}
    again = gymnasium.make(EnvSpec.from_json(told)).unwrapped
    assert isinstance(again, SingleAgentEnv)
    assert again.world.seed == 3


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["clutser=tiny"], "clutser: unknown key, did you mean 'cluster'?"),
        (["algo.epochs=3"], "algo.epochs: without effect, an environment does not train"),
        (["agents=hierarchical"], "agents: memory, placer, server_small, "),
        ("cluster=tiny", "overrides: a list of texts is needed, found 'cluster=tiny'"),
        ([1], "overrides: a list of texts is needed, found a list of 1"),
    ],
)
def test_bad_overrides_get_one_line(overrides: list[str], says: str) -> None:
    for make in (gymnasium.make, gymnasium.make_vec):
        with refused_in_a_line("", says):
            make(MODULE, overrides=overrides)
