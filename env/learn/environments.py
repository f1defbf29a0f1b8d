"""Which environment a world is played in, and the name under which RLlib knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.tune.registry import register_env

from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from env.learn.queue_env import QUEUE_ENV_NAME, QueueEnv


def env_name(world: Mapping[str, Any]) -> str:
    """Of the environment that is made from a world: of `World`, or of `QueueWorld`."""
    return QUEUE_ENV_NAME if "queue_agent" in world else ENV_NAME


def make_environment(world: Mapping[str, Any]) -> ServerlessEnv | QueueEnv:
    """An environment of this process.

    Raises:
        InputError: a group of the world does not validate.
    """
    return QueueEnv(world) if env_name(world) == QUEUE_ENV_NAME else ServerlessEnv(world)


def register_environments() -> None:
    """Tells RLlib, as importing the environments does: every Ray has a registry of its own."""
    register_env(ENV_NAME, ServerlessEnv)
    register_env(QUEUE_ENV_NAME, QueueEnv)
