"""Worlds by the names of their choices, as train.py is given them, and environments in them.

`gymnasium.make("run.worlds:Serverless-v0", overrides=["cluster=tiny"])` imports this module, which
registers the environments of env/learn/gym.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gymnasium import Env, register
from gymnasium.vector import VectorEnv
from hydra import initialize_config_dir

from env.base.errors import InputError
from env.base.schema import short, validated
from run.command import CONF
from run.composing import TRAINING_WORLD, Scenario, composed, plain
from run.effect import check_effect
from run.settings import TrainSettings


def world(*overrides: str) -> dict[str, Any]:
    """The world that train.py trains in with arguments such as `cluster=tiny`.

    Environments are built from it; it is in plain containers.

    Raises:
        InputError: an override is none, has no effect on a world, or comes to what is not allowed.
    """
    with initialize_config_dir(str(CONF), version_base="1.3"):
        hydra, typed = composed("train", overrides)
        config = plain(hydra)
        settings = validated(TrainSettings, config, "train")
        check_effect("train", [Scenario("", {}, config, typed)])
    for override in typed:
        key = override.key_or_group
        if re.split("[./]", key)[0] not in (*TRAINING_WORLD, "seed", "experiment"):
            raise InputError(f"{key}: without effect, an environment does not train")
    return settings.world()


def single_agent_env(overrides: Sequence[str] = (), render_mode: str | None = None) -> Env:
    """One environment in the world of the overrides; `agents=placer` unless they say otherwise."""
    from env.learn.gym import SingleAgentEnv

    _check_render_mode(render_mode, None, "ansi")
    return SingleAgentEnv(world(*_of_one_agent(overrides)))


def single_agent_vector_env(
    num_envs: int, overrides: Sequence[str] = (), render_mode: str | None = None
) -> VectorEnv:
    """A batch of `num_envs` such environments, in compiled calls."""
    from env.learn.gym import SingleAgentVectorEnv

    _check_render_mode(render_mode, None)
    return SingleAgentVectorEnv(world(*_of_one_agent(overrides)), num_envs)


def _check_render_mode(given: Any, *allowed: str | None) -> None:
    if given not in allowed:
        # After a TypeError Stable-Baselines3 tries without one.
        modes = ", ".join(map(str, allowed))
        raise TypeError(f"render_mode: {short(given)} is unknown, allowed: {modes}")


def _of_one_agent(overrides: Sequence[str]) -> list[str]:
    """The overrides, and who decides if none of them says so."""
    if not isinstance(overrides, list | tuple) or not all(isinstance(o, str) for o in overrides):
        raise InputError(f"overrides: a list of texts is needed, found {short(overrides)}")
    chosen = any(each.startswith(("agents=", "experiment=")) for each in overrides)
    return list(overrides) if chosen else ["agents=placer", *overrides]


register(
    "Serverless-v0",
    entry_point="run.worlds:single_agent_env",
    vector_entry_point="run.worlds:single_agent_vector_env",
)
