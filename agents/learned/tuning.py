"""A search for good settings: many trainings under Ray Tune, each as `train.py` would do it.

A trial is one training with values of its own. Tune sees how it compares with the best rule in
held-out episodes, and how much of its budget is used: that is the time in which the schedulers
count.
"""

import csv
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from ray import tune
from ray.rllib.algorithms.algorithm import Algorithm
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining, TrialScheduler
from ray.tune.search import BasicVariantGenerator

from agents.learned.algorithms import PolicySpaces, build, run_config, set_progress, warm_start
from agents.learned.checkpoint import RunState, load_checkpoint, write_checkpoint
from agents.learned.evaluator import Evaluate, Evaluator
from agents.learned.run_log import LINE_EVERY, Curves, env_steps_of, measures_of
from env.base.files import table_row, written_whole
from env.base.schema import validated
from run.settings import PBTSettings, TrainSettings, TuneSettings, Values, with_values

TRIALS = "trials"
"""The folder in a run's: one of every trial, with curves and checkpoint, and Tune's own files."""
# What a trial reports to Tune.
DIFFERENCE = "difference_percent"
USED = "budget_percent"
MEASURES = "measures"
STATE = "state"


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes:
        name: of the trial and its folder.
        values: what it had of the space searched, at its end; none if it could not begin.
        difference: percent of J, to the rule in held-out episodes; NaN if it could not begin.
        used: percent of its budget.
        error: the last line of what it failed with.
        checkpoint: where its training ended.
    """

    name: str
    values: Mapping[str, Any]
    difference: float
    used: float
    error: str | None
    checkpoint: Path | None


class Training(tune.Trainable):
    """A trial: one iteration of training is one step of it."""

    def setup(
        self,
        config: dict[str, Any],
        told: dict[str, Any],
        world: dict[str, Any],
        evaluate: Evaluate,
        spaces: PolicySpaces,
    ) -> None:
        """The run that the values make of the configuration; not begun yet."""
        torch.set_num_threads(1)
        self._world, self._spaces = world, spaces
        self._algorithm: Algorithm | None = None
        self._told, self._evaluate = told, evaluate
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Another run in the same process: that saves the seconds in which one starts."""
        self.cleanup()
        self._told = with_values(self._told, new_config)
        self._settings = validated(TrainSettings, self._told, "train")
        self._state = RunState()
        self._evaluator = Evaluator(self._evaluate, self._settings.held_out.share)
        return True

    def step(self) -> dict[str, Any]:
        """An iteration of training, as in `train.py`."""
        settings, state = self._settings, self._state
        if self._algorithm is None:
            algorithm = self._start(None)
            shared, seed = settings.agents.share_type_policy, algorithm.config.seed
            warm_start(algorithm, settings.algo, self._world, shared, seed)
        else:
            algorithm = self._algorithm
        started = time.monotonic()
        set_progress(algorithm, self._progress())
        result = algorithm.train()
        took = time.monotonic() - started
        state.iteration += 1
        state.env_steps += env_steps_of(result)
        state.seconds += took
        measures = measures_of(result, took)
        if self._progress() >= 1 or self._evaluator.is_due(state):
            measures |= self._evaluator.evaluate(algorithm, state)._asdict()
            state.seconds += time.monotonic() - started - took
        progress = self._progress()
        return {
            DIFFERENCE: state.difference,
            USED: 100 * min(progress, 1.0),
            MEASURES: measures,
            STATE: state.model_dump(),
            "done": progress >= 1,
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """A checkpoint like those of `train.py`, which can be resumed."""
        write_checkpoint(self._algorithm, Path(checkpoint_dir), self._state, self._told)

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Goes on from this trial's checkpoint, or from that of a better one."""
        self.cleanup()
        path = Path(checkpoint_dir).absolute()
        self._state, _ = load_checkpoint(path)
        self._start(path)

    def cleanup(self) -> None:
        """Stops the runners."""
        if self._algorithm is not None:
            self._algorithm.stop()
            self._algorithm = None

    def _start(self, checkpoint: Path | None) -> Algorithm:
        config = run_config(self._settings, self._world, self._spaces, self._state.iteration)
        self._algorithm = build(config, checkpoint)
        return self._algorithm

    def _progress(self) -> float:
        return self._settings.budget.progress(self._state.seconds, self._state.iteration)


class SearchLog(tune.Callback):
    """Writes the curves of every trial, and tells how the search goes."""

    def __init__(
        self,
        folder: Path,
        policies: Sequence[str],
        search: TuneSettings,
    ) -> None:
        self._folder = folder / TRIALS
        self._policies = policies
        self._search = search
        self._curves: dict[str, Curves] = {}
        self._last_line = time.monotonic()

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """Writes an iteration of a trial."""
        if str(trial) not in self._curves:
            folder = self._folder / str(trial)
            folder.mkdir(parents=True, exist_ok=True)
            self._curves[str(trial)] = Curves(folder, self._policies, RunState())
        self._curves[str(trial)].write(result[MEASURES], RunState(**result[STATE]))
        if time.monotonic() - self._last_line >= LINE_EVERY:
            self._tell(trials)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Writes what came of a trial."""
        curves = self._curves.pop(str(trial), None)
        if curves is not None:
            curves.write_values(trial.config)
            curves.close()
        self._tell(trials)

    def _tell(self, trials: list[Any]) -> None:
        self._last_line = time.monotonic()
        ended = sum(trial.is_finished() for trial in trials)
        results = {str(trial): trial.last_result for trial in trials}
        known = {name: each[DIFFERENCE] for name, each in results.items() if DIFFERENCE in each}
        best = min(known, key=known.__getitem__, default=None)
        told = "-" if best is None else f"{known[best]:+.1f}% ({best})"
        line = f"{ended} of {self._search.trials} trials ended  best J against the rule so far"
        print(f"{line} {told}", flush=True)


def run_trials(
    settings: TrainSettings,
    told: dict[str, Any],
    world: dict[str, Any],
    evaluate: Evaluate,
    spaces: PolicySpaces,
    folder: Path,
) -> list[Outcome]:
    """Runs all trials; `trials.csv` and the folder `trials` hold what came of them.

    Args:
        settings: of the run; its `tune` is the search.
        told: the composed configuration.
        world: what the environment is built from.
        evaluate: has policies play the held-out episodes.
        spaces: of every policy.
        folder: of the run.

    Returns:
        All trials, the lowest difference first.
    """
    assert settings.tune is not None
    # Curves are written here, under the names that all runs use.
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    # Tune's older output, which keeps silent at verbose=0.
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    # A trial is told of one core, and has one thread.
    alone = {"threads_per_runner": 1, "threads_per_learner": 1}
    single = {**told, "tune": None, "ray": {**told["ray"], **alone}}
    trainable = tune.with_parameters(
        Training, told=single, world=world, evaluate=evaluate, spaces=dict(spaces)
    )
    bundles: list[dict[str, float]] = [{"CPU": 1}] * (
        1 + settings.ray.num_env_runners + settings.ray.num_learners
    )
    tuner = tune.Tuner(
        tune.with_resources(trainable, tune.PlacementGroupFactory(bundles)),
        param_space={key: _drawn(values) for key, values in settings.tune.space.items()},
        tune_config=tune.TuneConfig(
            metric=DIFFERENCE,
            mode="min",
            num_samples=settings.tune.trials,
            search_alg=BasicVariantGenerator(
                max_concurrent=settings.tune.parallel, random_state=settings.seed
            ),
            scheduler=_scheduler(settings.tune),
            reuse_actors=True,
            trial_name_creator=_name,
            trial_dirname_creator=_name,
        ),
        run_config=tune.RunConfig(
            name=TRIALS,
            storage_path=str(folder.absolute()),
            verbose=0,
            callbacks=[SearchLog(folder, list(spaces), settings.tune)],
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
        ),
    )
    outcomes = sorted((_outcome(result) for result in tuner.fit()), key=_rank)
    write_outcomes(outcomes, list(settings.tune.space), folder / f"{TRIALS}.csv")
    return outcomes


def write_outcomes(outcomes: Sequence[Outcome], searched: Sequence[str], path: Path) -> None:
    """All trials as a table of comma-separated values, those searched among them."""
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["trial", DIFFERENCE, USED, *searched, "error"])
        for each in outcomes:
            values = [each.values.get(key) for key in searched]
            row = [each.name, each.difference, each.used, *values, each.error or ""]
            table.writerow(table_row(row))


def _scheduler(search: TuneSettings) -> TrialScheduler:
    if isinstance(search, PBTSettings):
        return PopulationBasedTraining(
            time_attr=USED,
            perturbation_interval=search.exchange_every,
            quantile_fraction=search.exchanged,
            hyperparam_mutations={key: _drawn(values) for key, values in search.space.items()},
            custom_explore_fn=partial(_within, search=search),
        )
    return ASHAScheduler(
        time_attr=USED,
        max_t=100,
        grace_period=search.first_cut,
        reduction_factor=search.reduction,
    )


def _within(config: dict[str, Any], search: PBTSettings) -> dict[str, Any]:
    """Changed values, kept in the ranges searched."""
    for key, values in search.space.items():
        if values.range is not None:
            low, high = values.range
            config[key] = min(max(config[key], low), high)
    return config


def _drawn(values: Values) -> Any:
    """Tune's distribution of a setting."""
    if values.range is None:
        return tune.choice(list(values.choices or ()))
    low, high = values.range
    if values.whole:
        # Tune leaves the upper end out.
        return (tune.lograndint if values.log else tune.randint)(low, high + 1)
    return (tune.loguniform if values.log else tune.uniform)(low, high)


def _name(trial: Any) -> str:
    return f"trial_{trial.trial_id.split('_')[-1]}"


def _outcome(result: Any) -> Outcome:
    measured = result.metrics or {}
    error = None if result.error is None else str(result.error).strip().splitlines()[-1]
    return Outcome(
        name=Path(result.path).name,
        values=result.config or {},  # None if it could not begin
        difference=measured.get(DIFFERENCE, float("nan")),
        used=measured.get(USED, 0.0),
        error=error,
        checkpoint=None if result.checkpoint is None else Path(result.checkpoint.path),
    )


def _rank(outcome: Outcome) -> tuple[bool, float]:
    """Trials with a policy first."""
    unknown = outcome.difference != outcome.difference or outcome.checkpoint is None
    return (unknown, 0.0 if unknown else outcome.difference)
