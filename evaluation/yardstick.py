"""What hand-written schedulers come to in training episodes: what agents have to beat."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from agents.baseline import make_baselines
from agents.scheduler import Scheduler, play
from env.base.errors import InputError
from env.learn.world import World
from env.score.metrics import FinishedEpisode
from env.sim.ordering import FIRST_COME
from evaluation.contest import SCHEDULER_KEY, rules_of
from run.settings import YardstickSettings

NO_RUNNER = 2**32 - 1
"""In place of a runner's number: no runner has these episodes."""


class Yardstick(NamedTuple):
    """The best of the schedulers, and its mean J."""

    name: str
    J: float


def hand_written(
    settings: YardstickSettings, queued: bool, funded: bool = False
) -> list[Scheduler]:
    """Who plays.

    Args:
        settings: their names.
        queued: whether functions wait centrally.
        funded: whether there are tenants that take turns by their tickets.

    Raises:
        InputError: one is unknown, is a reference, or does not work in this world.
    """
    key = "yardstick.baselines"
    try:
        schedulers = make_baselines(settings.baselines, queued, funded=funded)
    except InputError as error:
        raise InputError(f"{key}: {str(error).removeprefix('baselines: ')}") from None
    for scheduler in schedulers:
        if scheduler.kind == "reference":
            raise InputError(f"{key}: '{scheduler.name}' is a reference, a baseline is needed")
    return schedulers


def best_rule(config: Mapping[str, Any], settings: YardstickSettings) -> Yardstick:
    """Has schedulers play the same training episodes.

    Args:
        config: of the world, as `World` takes it.
        settings: who plays, and how many episodes.

    Raises:
        InputError: see `hand_written`.
    """
    world = World(config)
    queued = world.rules.order is not None
    # Agents that choose have no part in this.
    rules = replace(world.rules, order=FIRST_COME) if queued else world.rules
    schedulers = hand_written(settings, queued, bool(world.tenants))
    total = dict.fromkeys((scheduler.name for scheduler in schedulers), 0.0)
    for number in range(settings.episodes):
        workload, cluster = world.training_episode(world.seed, NO_RUNNER, 0, number)
        for scheduler in schedulers:
            env = workload.env(cluster, rules_of(rules, scheduler))
            draws = np.random.SeedSequence(world.seed, spawn_key=(SCHEDULER_KEY, number))
            play(env, scheduler, world.objective, draws)
            total[scheduler.name] += FinishedEpisode(env.state, world.objective, cluster.power).J
    best = min(total, key=total.__getitem__)
    return Yardstick(best, total[best] / settings.episodes)


def told_yardstick(config: Mapping[str, Any], settings: YardstickSettings | None) -> float | None:
    """Prints what `best_rule` finds, and returns its J; None where nobody is to play."""
    if settings is None:
        return None
    best = best_rule(config, settings)
    varied = ", which vary" if config["variation"]["unvaried"] < 1 else ""
    print(
        f"rule:     {best.name}, the best of {len(settings.baselines)}, comes to J {best.J:.4g} in "
        f"{settings.episodes} training episodes{varied}; agents explore while they train, so J is "
        "not that of evaluate.py",
        flush=True,
    )
    return best.J
