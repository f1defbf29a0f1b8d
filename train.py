"""Trains schedulers: `python train.py cluster=hetero_numa algo=ppo`. See `--help`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    from agents.learned.env_runner import RunnersLost
    from agents.learned.evaluator import Evaluate, Evaluated
    from run.command import Job, Program
    from run.settings import TrainSettings


def prepared(job: Job) -> Program:
    """The training of a job, or its search by many trainings.

    Raises:
        InputError: it cannot be trained.
    """
    from agents.learned.checkpoint import check_resume
    from agents.learned.cloning import check_teachers
    from env.base.schema import validated
    from env.learn.multi_agent import ServerlessEnv
    from evaluation.held_out import EvaluatedWorld
    from run.ray_session import check_ray
    from run.settings import TrainSettings

    settings = validated(TrainSettings, job.config, "train")
    if settings.resume is not None:
        check_resume(settings, settings.resume)
    world = settings.world()
    ServerlessEnv(world).close()
    EvaluatedWorld(world, settings.held_out)
    check_ray(settings.ray.address)
    check_teachers(settings, world)
    return partial(train, job.config, settings, world)


def train(
    config: dict[str, Any], settings: TrainSettings, world: dict[str, Any], folder: Path
) -> None:
    """One run, or a search by many (`tune=...`), from its configuration to its results."""
    import ray

    from agents.learned.run_log import tell_assumed
    from env.learn.multi_agent import register
    from evaluation.held_out import HeldOut
    from run.command import stop_on_signals
    from run.hparams import compared
    from run.next_command import curves_command, evaluate_command
    from run.ray_session import start_ray

    tell_assumed(world, folder)
    held_out = HeldOut(world, settings.held_out)
    print(f"baseline: {held_out.of_rule()}")
    print(f"curves:   {curves_command(folder)}", flush=True)
    # A trial of a search is a process of its own, beside its runners.
    start_ray(settings.ray, beside_runners=0 if settings.tune is None else 1)
    lost: RunnersLost | None = None
    try:
        # Every Ray has a registry of its own, so in a sweep every run registers.
        register()
        one = partial(learn, world=world, evaluate=held_out.evaluate)
        if settings.tune is None:
            result, lost = one(config, settings, compared(config), folder, stop_on_signals())
        else:
            from agents.learned.tuning import search

            result = search(settings, config, compared(config), one, folder)
    finally:
        ray.shutdown()

    print(f"results:  {folder}")
    print(f"policy:   {held_out.of_policy(result)}")
    if lost is not None:
        raise SystemExit(f"error: {lost}; go on with resume={folder}")
    print(f"evaluate: {evaluate_command(config, policy=folder / 'policy')}")


def learn(
    config: dict[str, Any],
    settings: TrainSettings,
    shown: dict[str, Any],
    folder: Path,
    stopping: AbstractContextManager[Any],
    report: Callable[[Evaluated, float], None] = lambda result, progress: None,
    *,
    world: dict[str, Any],
    evaluate: Evaluate,
) -> tuple[Evaluated, RunnersLost | None]:
    """The loop of a training: sample, learn, evaluate now and then, keep what was learned.

    Args:
        config: the composed configuration, which `settings` are made of.
        settings, folder: of the run.
        shown: what TensorBoard tells runs apart by.
        stopping: yields an object whose `asked` says whether the run shall stop.
        report: is called after every evaluation, with the share of the budget that is used; it may
            not return.

    Returns:
        The evaluation at the end, and the error if all runners were lost.
    """
    from agents.learned import algorithms, checkpoint
    from agents.learned.cloning import warm_start
    from agents.learned.env_runner import RunnersLost
    from agents.learned.evaluator import Evaluator
    from agents.learned.run_log import RunLog, env_steps_of, measures_of
    from env.learn.multi_agent import ServerlessEnv

    environment = ServerlessEnv(world)
    spaces = algorithms.policy_spaces(environment, settings.agents.share_type_policy)

    # A new run, or one that goes on where a checkpoint was made.
    state, stored = checkpoint.RunState(), None
    if settings.resume is not None:
        stored = checkpoint.find_checkpoint(settings.resume)
        state = checkpoint.load_checkpoint(stored).state

    started = time.monotonic() - state.seconds
    built_from = algorithms.run_config(settings, world, spaces, state.iteration)
    algorithm = algorithms.build(built_from, stored)
    if stored is None:
        # Before any reward, what a hand-written scheduler would do.
        for policy, share in warm_start(algorithm, settings, world).items():
            print(f"warm start: {policy} repeats {share:.1%} of held-out decisions")
    evaluator = Evaluator(evaluate, settings.held_out.share)

    def save() -> None:
        algorithms.write_policy(folder / "policy", algorithm, environment, config)
        checkpoint.save_checkpoint(algorithm, folder, state, config, settings.checkpoint.keep)

    saved = state.seconds
    progress = settings.budget.progress(state.seconds, state.iteration)
    lost: RunnersLost | None = None
    runners = settings.ray.num_env_runners
    with RunLog(folder, spaces, runners, state, shown) as log, stopping as stop:
        while progress < 1 and not stop.asked:
            # Learning rate and entropy fall with the share of the budget that is used.
            algorithms.set_progress(algorithm, progress)

            # Sample a batch, learn from it.
            began = time.monotonic() - started
            try:
                trained = algorithm.train()
            except RunnersLost as error:
                lost = error
                break

            # Count what was done, and now and then see what it is worth.
            state.iteration += 1
            state.env_steps += env_steps_of(trained)
            state.seconds = time.monotonic() - started
            measures = measures_of(trained, state.seconds - began)
            progress = settings.budget.progress(state.seconds, state.iteration)
            if progress >= 1 or evaluator.is_due(state):
                measures |= evaluator.evaluate(algorithm, state)._asdict()
            log.write(measures, state, progress)

            # Keep what shall outlive a crash.
            if state.is_best:
                algorithms.write_policy(folder / "policy_best", algorithm, environment, config)
            if state.seconds - saved >= 60 * settings.checkpoint.every_minutes:
                save()
                saved = state.seconds
            if state.evaluated == state.iteration and progress < 1:
                report(evaluator.evaluate(algorithm, state), progress)

        save()
    result = evaluator.evaluate(algorithm, state)
    algorithm.stop()
    environment.close()
    report(result, progress)
    return result, lost


if __name__ == "__main__":
    # RLlib goes through sets of policy names, so Python's hashes decide which network draws its
    # first weights first: with other hashes the same seed would give other numbers.
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)
    from run.command import run

    run(prepared, "train")
