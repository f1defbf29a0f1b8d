"""One Ray for all tests of this folder: starting it takes seconds."""

from collections.abc import Iterator

import pytest
import ray
from ray.tune.registry import register_env

from agents.settings import RaySettings
from tests.agents.learned.toy_env import make
from train import start_ray

TOY = "Toy-v0"


@pytest.fixture(scope="session")
def toy() -> Iterator[str]:
    """Ray with two cores to give away; the name of the toy environment."""
    start_ray(ray_settings(num_cpus=2), 2)
    register_env(TOY, make)
    yield TOY
    ray.shutdown()


def ray_settings(**given: object) -> RaySettings:
    """In process, four environments, unless told otherwise."""
    defaults: dict[str, object] = {
        "address": None,
        "num_cpus": None,
        "num_env_runners": 0,
        "envs_per_runner": 4,
        "threads_per_runner": 1,
        "num_learners": 0,
        "threads_per_learner": 1,
        "restart_failed_runners": False,
        "wait_for_runners": 10.0,
        "runtime_env": {},
    }
    return RaySettings.model_validate(defaults | given)
