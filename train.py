"""Trains schedulers: `python train.py cluster=hetero_numa algo=ppo`. See `--help`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what takes time to import waits until all arguments are known to be good
    from omegaconf import DictConfig

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
    from run.training_start import world_of

    told = plain(config)
    settings = validated(TrainSettings, told, "train")
    if settings.resume is not None:
        check_resume(settings, settings.resume)
    world = world_of(settings)
    ServerlessEnv(world).close()
    EvaluatedWorld(world, settings.held_out)
    check_ray(settings.ray.address)
    check_teachers(settings, world)
    return partial(train if settings.tune is None else search, told, settings, world)


def train(
    told: dict[str, Any], settings: TrainSettings, world: dict[str, Any], folder: Path
) -> None:
    """One run, from its configuration to its results."""
    import ray

    from agents.learned.algorithms import build, policy_spaces, run_config, set_progress, warm_start
    from agents.learned.checkpoint import (
        RunState,
        find_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from agents.learned.evaluator import Evaluator
    from agents.learned.fault_tolerance import RunnersLost
    from agents.learned.run_files import tell_assumed, write_policy
    from agents.learned.run_log import RunLog, env_steps_of, measures_of
    from env.learn.multi_agent import ServerlessEnv, register
    from evaluation.held_out import HeldOut
    from run.command import StopOnSignals
    from run.hparams import compared
    from run.next_command import curves_command, evaluate_command
    from run.training_start import start_ray

    environment = ServerlessEnv(world)
    spaces = policy_spaces(environment, settings.agents.share_type_policy)

    # A new run, or one that goes on where a checkpoint was made.
    state, checkpoint = RunState(), None
    if settings.resume is not None:
        checkpoint = find_checkpoint(settings.resume)
        state, _ = load_checkpoint(checkpoint)

    tell_assumed(world, folder)
    held_out = HeldOut(world, settings.held_out)
    evaluator = Evaluator(held_out.evaluate, settings.held_out.share)
    print(f"rule:     {held_out.of_rule()}")
    print(f"curves:   {curves_command(folder)}", flush=True)
    start_ray(settings.ray)
    try:
        # Every Ray has a registry of its own, so in a sweep every run registers.
        register()
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
        with RunLog(folder, spaces, runners, state) as log, StopOnSignals() as stop:
            log.write_settings(compared(told))
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
                    write_policy(folder / "policy_best", algorithm, environment, settings, told)
                if state.seconds - saved >= 60 * settings.checkpoint.every_minutes:
                    write_policy(folder / "policy", algorithm, environment, settings, told)
                    save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
                    saved = state.seconds

            write_policy(folder / "policy", algorithm, environment, settings, told)
            save_checkpoint(algorithm, folder, state, told, settings.checkpoint.keep)
        found = evaluator.evaluate(algorithm, state)
        algorithm.stop()
    finally:
        ray.shutdown()
        environment.close()

    print(f"results:  {folder}")
    print(f"policy:   {held_out.of_policy(found)}")
    if lost is not None:
        raise SystemExit(f"error: {lost}; go on with resume={folder}")
    print(f"evaluate: {evaluate_command(told, policy=folder / 'policy')}")


def search(
    told: dict[str, Any], settings: TrainSettings, world: dict[str, Any], folder: Path
) -> None:
    """Many runs with values of their own (`tune=...`); the policies of the best one are kept."""
    import ray

    from agents.learned.algorithms import build, policy_networks, policy_spaces, run_config
    from agents.learned.run_files import tell_assumed, write_policy
    from agents.learned.tuning import run_trials
    from env.base.schema import validated
    from env.learn.multi_agent import ServerlessEnv, register
    from evaluation.held_out import HeldOut
    from report.table import console
    from report.trials import trials_table
    from run.next_command import curves_command, evaluate_command
    from run.settings import with_values
    from run.training_start import start_ray

    assert settings.tune is not None
    environment = ServerlessEnv(world)
    spaces = policy_spaces(environment, settings.agents.share_type_policy)

    tell_assumed(world, folder)
    held_out = HeldOut(world, settings.held_out)
    print(f"rule:     {held_out.of_rule()}")
    print(f"curves:   {curves_command(folder)}", flush=True)
    # A trial is a process of its own, beside its runners.
    start_ray(settings.ray, beside_runners=1)
    try:
        register()
        outcomes = run_trials(settings, told, world, held_out.evaluate, spaces, folder)
        best = outcomes[0]
        if best.checkpoint is None:
            raise SystemExit(f"error: no trial came to an end; {best.name}: {best.error}")

        # As the run it could have been: in this process, with the values that were best.
        chosen = with_values({**told, "tune": None}, best.values)
        chosen["ray"] |= {"num_env_runners": 0, "num_learners": 0}
        best_settings = validated(type(settings), chosen, "train")
        algorithm = build(run_config(best_settings, world, spaces, 0), best.checkpoint)
        write_policy(folder / "policy", algorithm, environment, best_settings, chosen)
        found = held_out.evaluate(policy_networks(algorithm))
        algorithm.stop()
    finally:
        ray.shutdown()
        environment.close()

    console().print(trials_table(outcomes, f"{len(outcomes)} trials, {settings.tune.scheduler}"))
    print(f"results:  {folder}")
    print(f"policy:   {held_out.of_policy(found)}")
    print(f"evaluate: {evaluate_command(told, policy=folder / 'policy')}")


if __name__ == "__main__":
    from run.python_flags import restart

    restart(same_hashes=True)
    from run.command import run

    run(prepared, "train")
