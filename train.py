"""Trains schedulers: `python train.py cluster=hetero_numa algo=ppo`. See `--help`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    from omegaconf import DictConfig

    from agents.learned.evaluator import Evaluate, Evaluated
    from agents.learned.fault_tolerance import RunnersLost
    from run.settings import TrainSettings


def prepared(config: DictConfig) -> Callable[[Path], None]:
    """A training, or a search by many, which is to be given the folder of its results.

    Raises:
        InputError: it cannot be trained.
    """
    from agents.learned.run_files import check_resume, check_teachers
    from env.base.schema import validated
    from env.learn.multi_agent import ServerlessEnv
    from evaluation.held_out import EvaluatedWorld
    from run.command import plain
    from run.ray_session import check_ray
    from run.settings import TrainSettings

    told = plain(config)
    settings = validated(TrainSettings, told, "train")
    if settings.resume is not None:
        check_resume(settings, settings.resume)
    world = settings.world()
    ServerlessEnv(world).close()
    EvaluatedWorld(world, settings.held_out)
    check_ray(settings.ray.address)
    check_teachers(settings, world)
    return partial(train, told, settings, world)


def train(
    told: dict[str, Any], settings: TrainSettings, world: dict[str, Any], folder: Path
) -> None:
    """One run, or a search by many (`tune=...`), from its configuration to its results."""
    import ray

    from agents.learned.run_files import tell_assumed
    from env.learn.multi_agent import register
    from evaluation.held_out import HeldOut
    from run.command import StopOnSignals
    from run.hparams import compared
    from run.next_command import curves_command, evaluate_command
    from run.ray_session import start_ray

    tell_assumed(world, folder)
    held_out = HeldOut(world, settings.held_out)
    print(f"baseline: {held_out.of_rule()}")
    print(f"curves:   {curves_command(folder)}", flush=True)
    # A trial of a search is a process of its own, beside its runners.
    start_ray(settings.ray, beside_runners=0 if settings.tune is None else 1)
    try:
        # Every Ray has a registry of its own, so in a sweep every run registers.
        register()
        shown, evaluate = compared(told), held_out.evaluate
        if settings.tune is None:
            stop = StopOnSignals()
            found, lost = learn(told, shown, world, evaluate, folder, stop)
        else:
            from agents.learned.tuning import search

            one = partial(learn, world=world, evaluate=evaluate)
            found, lost = search(settings, told, shown, one, folder), None
    finally:
        ray.shutdown()

    print(f"results:  {folder}")
    print(f"policy:   {held_out.of_policy(found)}")
    if lost is not None:
        raise SystemExit(f"error: {lost}; go on with resume={folder}")
    print(f"evaluate: {evaluate_command(told, policy=folder / 'policy')}")


def learn(
    told: dict[str, Any],
    shown: dict[str, Any],
    world: dict[str, Any],
    evaluate: Evaluate,
    folder: Path,
    stopping: AbstractContextManager[Any],
    report: Callable[[Evaluated, float], None] = lambda found, progress: None,
) -> tuple[Evaluated, RunnersLost | None]:
    """The loop of a training: sample, learn, evaluate now and then, keep what was learned.

    Args:
        told: the composed configuration.
        shown: of it, what TensorBoard tells runs apart by.
        world: what the environment is built from.
        evaluate: has policies play the held-out episodes.
        folder: of the run.
        stopping: within it, what it gives says whether the run was `asked` to stop.
        report: is called after every evaluation, with the share of the budget that is used; it may
            not return.

    Returns:
        What the policy comes to at the end, and the error of runners that were lost, if they were.
    """
    from agents.learned.algorithms import build, policy_spaces, run_config, set_progress
    from agents.learned.checkpoint import (
        RunState,
        find_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from agents.learned.cloning import warm_start
    from agents.learned.evaluator import Evaluator
    from agents.learned.fault_tolerance import RunnersLost
    from agents.learned.run_files import write_policy
    from agents.learned.run_log import RunLog, env_steps_of, measures_of
    from env.base.schema import validated
    from env.learn.multi_agent import ServerlessEnv
    from run.settings import TrainSettings

    settings = validated(TrainSettings, told, "train")
    environment = ServerlessEnv(world)
    spaces = policy_spaces(environment, settings.agents.share_type_policy)

    # A new run, or one that goes on where a checkpoint was made.
    state, checkpoint = RunState(), None
    if settings.resume is not None:
        checkpoint = find_checkpoint(settings.resume)
        state = load_checkpoint(checkpoint).state

    started = time.monotonic() - state.seconds
    algorithm = build(run_config(settings, world, spaces, state.iteration), checkpoint)
    if checkpoint is None:
        # Before any reward, what a hand-written scheduler would do.
        for policy, share in warm_start(algorithm, settings, world).items():
            print(f"warm start: {policy} repeats {share:.1%} of held-out decisions")
    evaluator = Evaluator(evaluate, settings.held_out.share)
    saved = state.seconds
    progress = settings.budget.progress(state.seconds, state.iteration)
    lost: RunnersLost | None = None
    runners = settings.ray.num_env_runners
    with RunLog(folder, spaces, runners, state, shown) as log, stopping as stop:
        while progress < 1 and not stop.asked:
            # Learning rate and entropy fall with the share of the budget that is used.
            set_progress(algorithm, progress)

            # Sample a batch, learn from it.
            began = time.monotonic() - started
            try:
                result = algorithm.train()
            except RunnersLost as error:
                lost = error
                break

            # Count what was done, and now and then see what it is worth.
            state.iteration += 1
            state.env_steps += env_steps_of(result)
            state.seconds = time.monotonic() - started
            measures = measures_of(result, state.seconds - began)
            progress = settings.budget.progress(state.seconds, state.iteration)
            if progress >= 1 or evaluator.is_due(state):
                measures |= evaluator.evaluate(algorithm, state)._asdict()
            log.write(measures, state, progress)

            # Keep what shall outlive a crash.
            if state.is_best:
                write_policy(folder / "policy_best", algorithm, environment, told)
            if state.seconds - saved >= 60 * settings.checkpoint.every_minutes:
                write_policy(folder / "policy", algorithm, environment, told)
                save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
                saved = state.seconds
            if state.evaluated == state.iteration and progress < 1:
                report(evaluator.evaluate(algorithm, state), progress)

        write_policy(folder / "policy", algorithm, environment, told)
        save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
    found = evaluator.evaluate(algorithm, state)
    algorithm.stop()
    environment.close()
    report(found, progress)
    return found, lost


if __name__ == "__main__":
    from run.python_flags import restart_with_same_hashes

    restart_with_same_hashes()
    from run.command import run

    run(prepared, "train")
