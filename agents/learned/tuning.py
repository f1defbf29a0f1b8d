"""A search for good settings: many trainings under Ray Tune, each as `train.py` would do it.

Tune sees how a trial compares with the best rule in held-out episodes, and the share of the budget
that it has used, which is the time of Tune's scheduler.
"""

import math
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import torch
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import BasicVariantGenerator

from agents.learned.evaluator import Evaluated
from env.base.files import written_whole
from run.settings import Choices, Range, TrainSettings

TRIALS = "trials"
"""The folder in a run's: one of every trial, each that of a training."""
USED = "budget_percent"
"""What a trial reports to Tune beside `Evaluated`."""


def search(
    settings: TrainSettings,
    config: dict[str, Any],
    shown: Mapping[str, Any],
    learn: Callable[..., Any],
    folder: Path,
) -> Evaluated:
    """Runs all trials and keeps the policy of the best; `trials.csv` has a row for each.

    Args:
        settings, config, folder: of the run, checked and as composed; `tune` is the search.
        shown: the part of it by which TensorBoard tells runs apart.
        learn: a training, that of train.py in a world of its own.

    Returns:
        What the policy of the best trial comes to.

    Raises:
        SystemExit: no trial came to an end.
    """
    tuned = settings.tune
    assert tuned is not None
    # Curves are written by each training, under the names that all runs use.
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    # A trial plans with one core, and has one thread.
    alone = {"threads_per_runner": 1, "threads_per_learner": 1}
    single = {**config, "tune": None, "ray": {**config["ray"], **alone}}

    def trial(values: dict[str, Any], learn: Callable[..., Any]) -> None:
        """One training, with values of its own."""

        def report(evaluated: Evaluated, progress: float) -> None:
            tune.report({**evaluated._asdict(), USED: 100 * min(progress, 1.0)})

        torch.set_num_threads(1)
        place = folder / TRIALS / tune.get_context().get_trial_name()
        place.mkdir(parents=True, exist_ok=True)
        tried = {**single, "algo": {**single["algo"], **values}}
        never = nullcontext(SimpleNamespace(asked=False))
        learn(tried, TrainSettings.model_validate(tried), {**shown, **values}, place, never, report)

    processes = 1 + settings.ray.num_env_runners + settings.ray.num_learners
    fields = type(settings.algo).model_fields
    tuner = tune.Tuner(
        tune.with_resources(
            tune.with_parameters(trial, learn=learn),
            tune.PlacementGroupFactory([{"CPU": 1.0}] * processes),
        ),
        param_space={
            key: _distribution(values, whole=fields[key].annotation is int)
            for key, values in tuned.space.items()
        },
        tune_config=tune.TuneConfig(
            metric="difference",
            mode="min",
            num_samples=tuned.trials,
            search_alg=BasicVariantGenerator(
                max_concurrent=tuned.parallel, random_state=settings.seed
            ),
            scheduler=ASHAScheduler(
                time_attr=USED,
                max_t=100,
                grace_period=tuned.first_cut,
                reduction_factor=tuned.reduction,
            ),
            trial_name_creator=_name,
            trial_dirname_creator=_name,
        ),
        run_config=tune.RunConfig(name=TRIALS, storage_path=str(folder), verbose=1),
    )
    results = {Path(result.path).name: result for result in tuner.fit()}
    rows = [_row(name, result, list(tuned.space)) for name, result in results.items()]
    trials = pd.DataFrame(rows, dtype=object).sort_values("difference_percent")
    with written_whole(folder / f"{TRIALS}.csv") as temporary:
        trials.to_csv(temporary, index=False)
    best = trials.iloc[0]
    if math.isnan(best.difference_percent):
        raise SystemExit(f"error: no trial came to an end; {best.trial}: {best.error}")
    place = folder / TRIALS / best.trial
    # A trial that was stopped early has no other.
    policy = place / "policy" if (place / "policy").is_dir() else place / "policy_best"
    shutil.copytree(policy, folder / "policy")
    measured = results[best.trial].metrics or {}
    return Evaluated(**{name: measured[name] for name in Evaluated._fields})


def _distribution(searched: Range | Choices, whole: bool) -> Any:
    if isinstance(searched, Choices):
        return tune.choice(list(searched.choices))
    if whole:
        # Tune leaves the upper end out.
        draw = tune.lograndint if searched.log else tune.randint
        return draw(int(searched.low), int(searched.high) + 1)
    return (tune.loguniform if searched.log else tune.uniform)(searched.low, searched.high)


def _name(trial: Any) -> str:
    return f"trial_{trial.trial_id.split('_')[-1]}"


def _row(name: str, result: tune.Result, searched: list[str]) -> dict[str, Any]:
    """A row of trials.csv."""
    measured, values = result.metrics or {}, result.config or {}  # None if it could not begin
    return {
        "trial": name,
        "difference_percent": measured.get("difference", math.nan),
        USED: measured.get(USED, math.nan),
        **{key: values.get(key) for key in searched},
        "error": "" if result.error is None else str(result.error).strip().splitlines()[-1],
    }
