"""What a training goes on from, and the policy that it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from env.base.errors import InputError
from env.base.schema import validated
from run.run_folder import ASSUMPTIONS, first_difference
from run.settings import TRAINING_WORLD, TrainSettings

if TYPE_CHECKING:  # they take seconds to import
    from ray.rllib.algorithms.algorithm import Algorithm

    from env.learn.multi_agent import ServerlessEnv

NETWORKS = ("name", "hidden", "network", "message_rounds")
"""Settings of every algorithm without which its checkpoints are for other networks."""


def check_resume(settings: TrainSettings, path: str) -> None:
    """Refuses a checkpoint whose networks, world or held-out episodes are not those told now.

    Raises:
        InputError: they are not, the key is named; or the checkpoint is damaged, or has used all of
            the budget.
    """
    from agents.learned.checkpoint import STATE, find_checkpoint, load_checkpoint
    from env.learn.multi_agent import ENV_NAME

    checkpoint = find_checkpoint(path)
    stored = load_checkpoint(checkpoint)
    state = stored.state
    if stored.environment != ENV_NAME:
        raise InputError(
            f"resume: '{checkpoint}' was made in the environment {stored.environment}, this is "
            f"{ENV_NAME}, in which agents may see or earn something else: train anew; its policies "
            "can still be evaluated"
        )
    told = settings.model_dump(mode="json")
    where = f"resume: '{checkpoint / STATE}': config"
    # Groups that an older run did not know are as they are now.
    before = validated(TrainSettings, {**told, **stored.config}, where).model_dump(mode="json")
    differing = first_difference(_lasting(before), _lasting(told))
    if differing is not None:
        key, old, new = differing
        raise InputError(
            f"resume: {key} is {new}, '{checkpoint}' was made with {old}: give the same"
        )
    if settings.budget.progress(state.seconds, state.iteration) >= 1:
        raise InputError(
            f"resume: '{checkpoint}' has done {state.iteration} iterations in "
            f"{state.seconds / 60:.1f} minutes, which is all of budget: give a larger one"
        )


def _lasting(told: Mapping[str, Any]) -> dict[str, Any]:
    """Without which the networks do not fit, or the best policy so far was so elsewhere."""
    return {
        **{group: told[group] for group in TRAINING_WORLD},
        "algo": {key: told["algo"].get(key) for key in NETWORKS},
        "held_out": {**told["held_out"], "share": None},
    }


def check_teachers(settings: TrainSettings, world: Mapping[str, Any]) -> None:
    """Refuses teachers that cannot play in the world, those that a search chooses from too."""
    named = {}
    for key in ("teacher", "warm_start"):
        named[f"algo.{key}"] = (getattr(settings.algo, key, None),)
        if settings.tune is not None and key in settings.tune.space:
            named[f"tune.space.{key}"] = settings.tune.space[key].extremes
    for where, teachers in named.items():
        for teacher in filter(None, teachers):
            from agents.learned.cloning import check_teacher

            check_teacher(where, teacher, world)


def write_policy(
    folder: Path,
    algorithm: Algorithm,
    environment: ServerlessEnv,
    settings: TrainSettings,
    config: dict[str, Any],
) -> None:
    """Writes the policy as it is now, in the form that evaluation and sharing use."""
    from agents.learned.algorithms import policy_networks
    from agents.learned.policy_file import features_of, save_policy

    save_policy(
        folder,
        networks=policy_networks(algorithm),
        features=features_of(environment.members),
        layout=settings.agents.layout,
        memory_tiers=settings.agents.memory_tiers,
        objective=settings.objective.model_dump(),
        config=config,
    )


def tell_assumed(world: dict[str, Any], folder: Path) -> None:
    """Says what is assumed of what arrives, and keeps it in `ASSUMPTIONS`."""
    from env.base.files import written_whole
    from env.sim.declared.hardware import cluster_from_config
    from env.workloads.assumptions import printed
    from env.workloads.source import is_trace
    from env.workloads.templates import assumed_of
    from env.workloads.traces.trace_samples import assumed_of_trace

    if is_trace(world["workload"]):
        assumptions = assumed_of_trace(world["workload"])
    else:
        speed = cluster_from_config(world["cluster"], "cluster").single_core_speed
        assumptions = assumed_of([(world["workflow"], speed)], "training")
    for line in printed(assumptions):
        print(line)
    if assumptions:
        with written_whole(folder / ASSUMPTIONS) as temporary:
            temporary.write_text(json.dumps(assumptions, indent=2))
