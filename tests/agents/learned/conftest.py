"""One Ray for tests that follow each other: starting it takes seconds."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
import torch
from pydantic import TypeAdapter
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env

from agents.learned.algorithms import build, policy_spaces, run_config
from env.learn.multi_agent import register
from run.ray_session import start_ray
from run.settings import AlgoSettings, RaySettings, TrainSettings
from tests.agents.learned.toy_env import ToyEnv, make
from tests.env.worlds import composed

TOY = "Toy-v0"
Started = Callable[..., Any]
"""Takes settings of `algo`, a world and what else `config_of` takes, or a checkpoint."""


@pytest.fixture(autouse=True)
def registered() -> None:
    """What was registered with a Ray that another test has ended is gone with it."""
    register()
    register_env(TOY, make)


@pytest.fixture
def toy(registered: None) -> str:
    """The name of the toy environment; Ray runs, with two cores to give away, and goes on to."""
    if not ray.is_initialized():
        start_ray(ray_settings(num_cpus=2), 2)
    return TOY


def algo(name: str, **changed: Any) -> dict[str, Any]:
    """Settings of conf/algo, with small networks."""
    settings: dict[str, Any] = composed(f"algo={name}", name="train")["algo"]
    return settings | {"hidden": [32, 32]} | changed


PPO_SETTINGS = algo(
    "ppo",
    sampler="rllib",
    batch_size=640,
    minibatch_size=128,
    epochs=4,
    learning_rate=3e-3,
    gae_lambda=0.95,
)


def ray_settings(**given: object) -> RaySettings:
    """Those of conf/ray/local.yaml, but four environments and no threads, unless told otherwise."""
    alone = {"envs_per_runner": 4, "threads_per_runner": 1, "threads_per_learner": 1}
    return RaySettings.model_validate(composed(name="train")["ray"] | alone | given)


def config_of(
    settings: dict[str, Any],
    world: dict[str, Any],
    environment: str = TOY,
    made: Callable[[dict[str, Any]], MultiAgentEnv] = ToyEnv,
    *,
    shared: bool = True,
    seed: int = 5,
    **ray: Any,
) -> Any:
    """RLlib's configuration of a training by these settings of `algo`, on the toy or another."""
    parts = TrainSettings.model_construct(
        algo=TypeAdapter(AlgoSettings).validate_python(settings),
        ray=ray_settings(**ray),
        agents=SimpleNamespace(share_type_policy=shared),
        seed=seed,
    )
    config = run_config(parts, world, policy_spaces(made(world), shared))
    return config.environment(environment).debugging(seed=seed)


@pytest.fixture
def started(toy: str) -> Iterator[Started]:
    """Builds algorithms, and stops them however a test ends."""
    algorithms: list[Any] = []

    def start(*given: Any, checkpoint: Path | None = None, **others: Any) -> Any:
        algorithms.append(build(config_of(*given, **others), checkpoint))
        return algorithms[-1]

    yield start
    for algorithm in algorithms:
        algorithm.stop()


def same(first: Any, second: Any) -> bool:
    """Whether two nested states hold the same numbers."""
    if isinstance(first, torch.nn.Module):
        first, second = first.state_dict(), second.state_dict()
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(np.array_equal(np.asarray(first), np.asarray(second)))
