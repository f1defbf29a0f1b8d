"""What a training goes on from, and the policy that it leaves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm

from agents.learned.algorithms import policy_networks
from agents.learned.checkpoint import STATE, find_checkpoint, load_checkpoint
from agents.learned.cloning import demonstrate
from agents.learned.policy_file import features_of, save_policy
from env.base.errors import InputError, located
from env.base.files import written_whole
from env.base.schema import validated
from env.learn.multi_agent import ENV_NAME, ServerlessEnv
from env.sim.declared.hardware import cluster_from_config
from env.workloads.assumptions import printed
from env.workloads.source import is_trace
from env.workloads.templates import assumed_of
from env.workloads.traces.trace_samples import assumed_of_trace
from run.composing import TRAINING_WORLD
from run.run_folder import ASSUMPTIONS, first_difference
from run.settings import TrainSettings, extremes


def check_resume(settings: TrainSettings, path: str) -> None:
    """Refuses a checkpoint of other networks, another world or other held-out episodes.

    Raises:
        InputError: it is one, the key is named; or it is damaged, or has used all of the budget.
    """
    checkpoint = find_checkpoint(path)
    stored = load_checkpoint(checkpoint)
    state = stored.state
    if stored.environment != ENV_NAME:
        raise InputError(
            f"resume: '{checkpoint}' was made in the environment {stored.environment}, this is "
            f"{ENV_NAME}, in which agents may see or earn something else: train anew; its policies "
            "can still be evaluated"
        )
    now = settings.model_dump(mode="json")
    where = f"resume: '{checkpoint / STATE}': config"
    # Groups that an older run did not have are as they are now.
    before = validated(TrainSettings, {**now, **stored.config}, where).model_dump(mode="json")
    differing = first_difference(_lasting(before), _lasting(now))
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


def _lasting(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without which the networks do not fit, or the best policy so far was so elsewhere."""
    networks = ("name", "hidden", "network", "message_rounds")
    return {
        **{group: config[group] for group in TRAINING_WORLD},
        "algo": {key: config["algo"].get(key) for key in networks},
        "held_out": {**config["held_out"], "share": None},
    }


def check_teachers(settings: TrainSettings, world: Mapping[str, Any]) -> None:
    """Refuses teachers that cannot be cloned, as far as their first decisions show.

    Those that a search chooses from, too.

    Raises:
        InputError: there is no such baseline, or agents cannot do what it does.
    """
    space = {} if settings.tune is None else settings.tune.space
    for key in ("teacher", "warm_start"):
        teachers = {f"algo.{key}": [getattr(settings.algo, key, None)]}
        if key in space:
            teachers[f"tune.space.{key}"] = [*extremes(space[key])]
        for where, names in teachers.items():
            for name in filter(None, names):
                with located(where):
                    demonstrate(name, 1, world)


def write_policy(
    folder: Path, algorithm: Algorithm, environment: ServerlessEnv, config: dict[str, Any]
) -> None:
    """Writes the policy as it is now, in the form that evaluation and sharing use."""
    save_policy(
        folder,
        networks=policy_networks(algorithm),
        features=features_of(environment.members),
        layout=environment.layout.config.layout,
        memory_tiers=environment.layout.tiers,
        objective=environment.objective.model_dump(),
        config=config,
    )


def tell_assumed(world: dict[str, Any], folder: Path) -> None:
    """Says what is assumed of what arrives, and keeps it in `ASSUMPTIONS`."""
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
