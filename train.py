"""Trains schedulers: `python train.py cluster=hetero_numa algo=ppo`. See `--help`."""

import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from env.base.errors import InputError
from env.base.schema import validated
from evaluation.queued_evaluation import make_keep_alive
from run.command import StopOnSignals, plain, run, same_world
from run.dispatch_settings import Queued
from run.ray_session import check_address, connect
from run.settings import RaySettings, TrainSettings, with_values

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from env.learn.multi_agent import ServerlessEnv
    from env.learn.queue_env import QueueEnv

# Ray, RLlib and PyTorch take seconds to import: functions do so where they need them, so that a
# slip in a command is answered at once.


def train(config: DictConfig) -> None:
    """One run, from its configuration to its results."""
    import ray

    from agents.learned.algorithms import (
        build,
        policy_spaces,
        run_config,
        set_progress,
        warm_start,
    )
    from agents.learned.checkpoint import (
        RunState,
        find_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from agents.learned.fault_tolerance import RunnersLost
    from agents.learned.run_log import RunLog, count
    from env.learn.environments import make_environment, register_environments

    told = plain(config)
    settings = validated(TrainSettings, told, "train")
    folder = Path(HydraConfig.get().runtime.output_dir)
    world = world_of(settings)
    environment = make_environment(world)
    spaces = policy_spaces(environment, settings.agents.share_type_policy)

    # A new run, or one that goes on where a checkpoint was made.
    state, checkpoint = RunState(), None
    if settings.resume is not None:
        checkpoint = find_checkpoint(settings.resume)
        state, _ = load_checkpoint(checkpoint)

    tell_assumed(world, folder)
    print(f"curves:   tensorboard --logdir {folder}", flush=True)
    start_ray(settings.ray)
    try:
        # Every Ray has a registry of its own, so in a sweep every run registers.
        register_environments()
        started = time.monotonic() - state.seconds
        algorithm = build(run_config(settings, world, spaces, state.iteration), checkpoint)
        if checkpoint is None:
            # Before any reward, what a hand-written scheduler would do.
            shared, seed = settings.agents.share_type_policy, algorithm.config.seed
            agreement = warm_start(algorithm, settings.algo, world, shared, seed)
            for policy, share in agreement.items():
                print(f"warm start: {policy} repeats {share:.1%} of held-out decisions")
        saved = state.seconds
        progress = settings.budget.progress(state.seconds, state.iteration)
        lost: RunnersLost | None = None
        runners = settings.ray.num_env_runners
        with (
            RunLog(folder, environment.metrics, spaces, runners) as log,
            StopOnSignals() as stop,
        ):
            log.write_settings(compared(told))
            while progress < 1 and not stop.asked:
                # Learning rate and entropy fall with the share of the budget that is used.
                set_progress(algorithm, progress)

                # Sample a batch, learn from it.
                try:
                    result = algorithm.train()
                except RunnersLost as error:
                    lost = error
                    break

                # Count what was done, and tell.
                seconds = time.monotonic() - started
                measures, best = count(result, state, seconds, settings.checkpoint.best_over)
                progress = settings.budget.progress(state.seconds, state.iteration)
                log.write(measures, state, progress)

                # Keep what shall outlive a crash.
                if best:
                    write_policy(folder / "policy_best", algorithm, environment, settings, told)
                if seconds - saved >= 60 * settings.checkpoint.every_minutes:
                    write_policy(folder / "policy", algorithm, environment, settings, told)
                    save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
                    saved = seconds

            write_policy(folder / "policy", algorithm, environment, settings, told)
            save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
        algorithm.stop()
    finally:
        ray.shutdown()
        environment.close()

    print(f"results:  {folder}")
    if lost is not None:
        raise SystemExit(f"error: {lost}; go on with resume={folder}")
    print(f"evaluate: python evaluate.py {evaluated_by(settings)}policy={folder / 'policy'}")


def tell_assumed(world: dict[str, Any], folder: Path) -> None:
    """Says what is assumed of the workflows that are drawn, and keeps it in assumptions.json."""
    from env.base.files import written_whole
    from env.sim.cluster_file import cluster_from_config
    from env.workloads.assumptions import printed
    from env.workloads.templates import assumed_of

    if "workflow" not in world:  # requests of a trace are drawn instead
        return
    speed = cluster_from_config(world["cluster"], "cluster").single_core_speed
    assumptions = assumed_of(world["workflow"], speed, "training")
    for line in printed(assumptions):
        print(line)
    if assumptions:
        with written_whole(folder / "assumptions.json") as temporary:
            temporary.write_text(json.dumps(assumptions, indent=2))


def evaluated_by(settings: TrainSettings) -> str:
    """What evaluate.py has to be told besides a policy."""
    if isinstance(settings.dispatch, Queued):
        return "experiment=funcsched_orders "
    return same_world()


def compared(told: dict[str, Any]) -> dict[str, Any]:
    """What runs side by side in TensorBoard are told apart by."""
    options = HydraConfig.get().runtime.choices
    names = {group: options[group] for group in ("cluster", "workflow", "workload")}
    values = ("seed", "agents", "objective", "variation", "dispatch", "algo")
    return names | {key: told[key] for key in values}


def search(config: DictConfig) -> None:
    """Many runs with values of their own (`tune=...`); the policies of the best one are kept."""
    import ray
    from rich.console import Console

    from agents.learned.algorithms import build, policy_spaces, run_config
    from agents.learned.tuning import run_trials
    from env.learn.environments import make_environment, register_environments
    from report.table import PLAIN_WIDTH
    from report.trials import trials_table

    told = plain(config)
    settings = validated(TrainSettings, told, "train")
    assert settings.tune is not None
    folder = Path(HydraConfig.get().runtime.output_dir)
    world = world_of(settings)
    environment = make_environment(world)
    spaces = policy_spaces(environment, settings.agents.share_type_policy)

    tell_assumed(world, folder)
    print(f"curves:   tensorboard --logdir {folder}", flush=True)
    # A trial is a process of its own, beside its runners.
    start_ray(settings.ray, beside_runners=1)
    try:
        register_environments()
        outcomes = run_trials(settings, told, world, environment.metrics, spaces, folder)
        best = outcomes[0]
        if best.checkpoint is None:
            raise SystemExit(f"error: no trial came to an end; {best.name}: {best.error}")

        # As the run it could have been: in this process, with the values that were best.
        chosen = with_values({**told, "tune": None}, best.values)
        chosen["ray"] |= {"num_env_runners": 0, "num_learners": 0}
        found = validated(TrainSettings, chosen, "train")
        algorithm = build(run_config(found, world, spaces, 0), best.checkpoint)
        write_policy(folder / "policy", algorithm, environment, found, chosen)
        algorithm.stop()
    finally:
        ray.shutdown()
        environment.close()

    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    console.print(trials_table(outcomes, f"{len(outcomes)} trials, {settings.tune.scheduler}"))
    print(f"results:  {folder}")
    print(f"evaluate: python evaluate.py {evaluated_by(settings)}policy={folder / 'policy'}")


def start(config: DictConfig) -> None:
    """One run, or a search of many."""
    if config.get("tune") is None:
        train(config)
    else:
        search(config)


def check(config: DictConfig) -> None:
    """Refuses what cannot be trained, before anything is started or written."""
    settings = validated(TrainSettings, plain(config), "train")
    if settings.resume is not None:
        check_resume(settings, settings.resume)
    from env.learn.environments import make_environment

    world = world_of(settings)
    make_environment(world).close()
    check_address(settings.ray.address)
    if isinstance(settings.dispatch, Queued):
        return
    for key in ("teacher", "warm_start"):
        searched = settings.tune.space.get(key) if settings.tune is not None else None
        named = {f"algo.{key}": (getattr(settings.algo, key, None),)}
        if searched is not None:
            named[f"tune.space.{key}"] = searched.extremes
        for where, teachers in named.items():
            for teacher in filter(None, teachers):
                from agents.learned.cloning import check_teacher

                check_teacher(where, teacher, world)


def world_of(settings: TrainSettings) -> dict[str, Any]:
    """What the environment is built from, in plain containers: they travel to Ray's workers."""
    if isinstance(settings.dispatch, Queued):
        return queue_world_of(settings, settings.dispatch)
    from env.workloads.templates import WorkflowConfig

    told = settings.model_dump(mode="json")
    workflow = validated(WorkflowConfig, told["workflow"], "workflow").with_absolute_paths()
    return {
        **{
            key: told[key]
            for key in ("cluster", "workload", "agents", "objective", "variation", "seed")
        },
        "workflow": workflow.model_dump(mode="json", by_alias=True),
    }


def queue_world_of(settings: TrainSettings, dispatch: Queued) -> dict[str, Any]:
    """The same under queued dispatch; see `QueueWorld`."""
    told = settings.model_dump(mode="json")
    return {
        **{key: told[key] for key in ("cluster", "trace", "agents", "seed")},
        **{key: told["dispatch"][key] for key in ("queue_agent", "samples")},
        "keep_alives": [make_keep_alive(name).model_dump() for name in dispatch.keep_alives],
    }


def check_resume(settings: TrainSettings, path: str) -> None:
    """Refuses a checkpoint whose networks are not those of this configuration."""
    from agents.learned.checkpoint import environment_of, find_checkpoint, load_checkpoint
    from env.learn.environments import env_name

    checkpoint = find_checkpoint(path)
    state, before = load_checkpoint(checkpoint)
    told = settings.model_dump(mode="json")
    # Older runs know one kind of dispatch.
    before = {"dispatch": {"kind": "immediate"}, **before}
    for group, keys in (
        ("dispatch", tuple({"kind", "queue_agent"} & told["dispatch"].keys())),
        ("agents", tuple(told["agents"])),
        ("algo", ("name", "hidden", "network", "message_rounds")),
    ):
        for key in keys:
            had = before.get(group)
            if not isinstance(had, dict):
                raise InputError(f"resume: '{checkpoint}' has no {group} in its configuration")
            if had.get(key, told[group][key]) != told[group][key]:
                raise InputError(
                    f"resume: {group}.{key} is {told[group][key]}, '{checkpoint}' was made with "
                    f"{had[key]}: give the same"
                )
    trained_in, here = environment_of(checkpoint), env_name(world_of(settings))
    if trained_in != here:
        raise InputError(
            f"resume: '{checkpoint}' was made in the environment {trained_in}, this is {here}, in "
            "which agents may see or earn something else: train anew; its policies can still be "
            "evaluated"
        )
    if not settings.agents.share_type_policy:
        types, had = (list(config["cluster"]["server_types"]) for config in (told, before))
        if set(types) != set(had):
            raise InputError(
                f"resume: cluster.server_types are {', '.join(types)}, '{checkpoint}' has policies "
                f"of {', '.join(had)}: give the same, since agents.share_type_policy is false"
            )
    if settings.budget.progress(state.seconds, state.iteration) >= 1:
        raise InputError(
            f"resume: '{checkpoint}' has done {state.iteration} iterations in "
            f"{state.seconds / 60:.1f} minutes, which is all of budget: give a larger one"
        )


def start_ray(settings: RaySettings, beside_runners: int = 0) -> None:
    """Starts or joins Ray for a run.

    Args:
        settings: of the run.
        beside_runners: cores that it needs of Ray besides one for each runner and learner.

    Raises:
        InputError: there is no Ray at the address, or it has fewer cores.
    """
    import ray
    import torch

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    # RLlib registers its vectorised environment anew in every run of a sweep.
    warnings.filterwarnings("ignore", message=".*Overriding environment")
    # More threads than one fight over busy cores.
    torch.set_num_threads(1)
    connect(settings.address, settings.num_cpus, settings.runtime_env)
    found = ray.cluster_resources().get("CPU", 0)
    cores = settings.num_env_runners + settings.num_learners + beside_runners
    if cores > found:
        # Ray would wait for more, silently.
        ray.shutdown()
        raise InputError(
            f"ray.num_env_runners {settings.num_env_runners} and ray.num_learners "
            f"{settings.num_learners} need {cores} cores, Ray has {found:g}"
        )


def write_policy(
    folder: Path,
    algorithm: "Algorithm",
    environment: "ServerlessEnv | QueueEnv",
    settings: TrainSettings,
    config: dict[str, Any],
) -> None:
    """Writes the policy as it is now, in the form that evaluation and sharing use."""
    from agents.learned.algorithms import policy_spaces, policy_weights
    from agents.learned.policy_file import features_of, save_policy
    from agents.learned.set_policy import policy_sizes

    spaces = policy_spaces(environment, settings.agents.share_type_policy)
    save_policy(
        folder,
        weights=policy_weights(algorithm),
        sizes={
            name: policy_sizes(
                *pair,
                settings.algo.hidden,
                settings.algo.network,
                settings.algo.message_rounds,
            )
            for name, pair in spaces.items()
        },
        features=features_of(environment.members),
        layout=settings.layout,
        memory_tiers=settings.agents.memory_tiers,
        objective=settings.objective.model_dump(),
        config=config,
    )


if __name__ == "__main__":
    run(start, "train", check)
