"""A search for good settings: many trainings under Ray Tune, each as `train.py` would do it.

Tune sees how a trial compares with the best rule in held-out episodes, and how much of its budget
is used: that is the time in which the scheduler counts.
"""

import csv
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import BasicVariantGenerator

from agents.learned.evaluator import Evaluated
from agents.learned.run_log import LINE_EVERY
from env.base.files import table_row, written_whole
from env.base.schema import validated
from run.settings import Choices, Range, TrainSettings

TRIALS = "trials"
"""The folder in a run's: one of every trial, each that of a training."""
USED = "budget_percent"
"""What a trial reports to Tune beside `Evaluated`."""


class Outcome(NamedTuple):
    """What came of a trial.

    Attributes:
        name: of the trial and its folder.
        values: what it had of the space searched; none if it could not begin.
        found: of the policy at its end; None if it could not begin.
        used: percent of its budget.
        error: the last line of what it failed with.
    """

    name: str
    values: Mapping[str, Any]
    found: Evaluated | None
    used: float
    error: str | None

    @property
    def difference(self) -> float:
        """Percent of J, to the rule in held-out episodes; NaN if it could not begin."""
        return math.nan if self.found is None else self.found.difference


class Progress(tune.Callback):
    """Prints how the search goes, after a trial has ended and now and then meanwhile."""

    def __init__(self, trials: int) -> None:
        self._trials = trials
        self._last_line = time.monotonic()

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """After an evaluation of a trial."""
        if time.monotonic() - self._last_line >= LINE_EVERY:
            self.on_trial_complete(iteration, trials, trial)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """After the end of a trial."""
        self._last_line = time.monotonic()
        ended = sum(each.is_finished() for each in trials)
        best = min(each.last_result.get("difference", math.inf) for each in trials)
        print(
            f"{ended} of {self._trials} trials ended  best J against the rule so far {best:+.1f}%",
            flush=True,
        )


def run_trials(
    settings: TrainSettings,
    told: dict[str, Any],
    shown: Mapping[str, Any],
    learn: Callable[..., Any],
    folder: Path,
) -> list[Outcome]:
    """Runs all trials; `trials.csv` and the folder `trials` hold what came of them.

    Args:
        settings: of the run; its `tune` is the search.
        told: the composed configuration.
        shown: of it, what TensorBoard tells runs apart by.
        learn: a training, that of train.py in a world of its own.
        folder: of the run.

    Returns:
        All trials, the lowest difference first.
    """
    search = settings.tune
    assert search is not None
    # Curves are written by each training, under the names that all runs use.
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    # Tune's older output, which keeps silent at verbose=0.
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    # A trial is told of one core, and has one thread.
    alone = {"threads_per_runner": 1, "threads_per_learner": 1}
    single = {**told, "tune": None, "ray": {**told["ray"], **alone}}

    def trial(values: dict[str, Any], learn: Callable[..., Any]) -> None:
        """One training, with values of its own."""

        def report(found: Evaluated, progress: float) -> None:
            tune.report({**found._asdict(), USED: 100 * min(progress, 1.0)})

        torch.set_num_threads(1)
        config = {**single, "algo": {**single["algo"], **values}}
        place = folder / TRIALS / tune.get_context().get_trial_name()
        place.mkdir(parents=True, exist_ok=True)
        learn(
            config,
            validated(TrainSettings, config, "train"),
            {**shown, **values},
            folder=place,
            stopping=nullcontext(SimpleNamespace(asked=False)),
            report=report,
        )

    processes = 1 + settings.ray.num_env_runners + settings.ray.num_learners
    tuner = tune.Tuner(
        tune.with_resources(
            tune.with_parameters(trial, learn=learn),
            tune.PlacementGroupFactory([{"CPU": 1.0}] * processes),
        ),
        param_space={key: _distribution(values) for key, values in search.space.items()},
        tune_config=tune.TuneConfig(
            metric="difference",
            mode="min",
            num_samples=search.trials,
            search_alg=BasicVariantGenerator(
                max_concurrent=search.parallel, random_state=settings.seed
            ),
            scheduler=ASHAScheduler(
                time_attr=USED,
                max_t=100,
                grace_period=search.first_cut,
                reduction_factor=search.reduction,
            ),
            trial_name_creator=_name,
            trial_dirname_creator=_name,
        ),
        run_config=tune.RunConfig(
            name=TRIALS,
            storage_path=str(folder),
            verbose=0,
            callbacks=[Progress(search.trials)],
        ),
    )
    outcomes = sorted(
        (_outcome(result) for result in tuner.fit()),
        key=lambda each: (each.found is None, each.difference),
    )
    write_outcomes(outcomes, list(search.space), folder / f"{TRIALS}.csv")
    return outcomes


def write_outcomes(outcomes: Sequence[Outcome], searched: Sequence[str], path: Path) -> None:
    """All trials as a table of comma-separated values, those searched among them."""
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["trial", "difference_percent", USED, *searched, "error"])
        for each in outcomes:
            values = [each.values.get(key) for key in searched]
            row = [each.name, each.difference, each.used, *values, each.error or ""]
            table.writerow(table_row(row))


def _distribution(searched: Range | Choices) -> Any:
    if isinstance(searched, Choices):
        return tune.choice(list(searched.choices))
    if searched.whole:
        # Tune leaves the upper end out.
        draw = tune.lograndint if searched.log else tune.randint
        return draw(int(searched.low), int(searched.high) + 1)
    return (tune.loguniform if searched.log else tune.uniform)(searched.low, searched.high)


def _name(trial: Any) -> str:
    return f"trial_{trial.trial_id.split('_')[-1]}"


def _outcome(result: Any) -> Outcome:
    measured = result.metrics or {}
    known = [measured[name] for name in Evaluated._fields if name in measured]
    return Outcome(
        name=Path(result.path).name,
        values=result.config or {},  # None if it could not begin
        found=Evaluated(*known) if known else None,
        used=measured.get(USED, 0.0),
        error=None if result.error is None else str(result.error).strip().splitlines()[-1],
    )
