"""`python train.py tune=...` as users run it."""

import csv
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.learned.checkpoint import find_checkpoint
from agents.learned.policy_file import load_policy
from agents.learned.tuning import _row
from tests.test_train import BRIEF, call


@pytest.mark.long
def test_a_search_leaves_a_table_curves_and_the_best_policy(tmp_path: Path) -> None:
    done = call(
        *BRIEF,
        "tune=asha",
        "tune.trials=2",
        "tune.parallel=2",
        "tune.first_cut=100",
        "budget.iterations=2",
        "+tune.space.epochs={low: 1, high: 3}",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("outputs/*/*")
    with (run / "trials.csv").open() as file:
        trials = list(csv.DictReader(file))
    assert len(trials) == 2
    assert float(trials[0]["difference_percent"]) <= float(trials[1]["difference_percent"])
    assert {trial["budget_percent"] for trial in trials} == {"100.0"}
    rates = {trial["learning_rate"] for trial in trials}
    assert len(rates) == 2
    assert {trial["epochs"] for trial in trials} <= {"1", "2", "3"}
    # The table, the best first.
    assert done.stdout.index(trials[0]["trial"]) < done.stdout.rindex(trials[1]["trial"])

    for trial in trials:
        folder = run / "trials" / trial["trial"]
        events = EventAccumulator(str(folder))
        events.Reload()
        assert len(events.Scalars("entropy/memory")) == 2
        assert "_hparams_/session_start_info" in events.summary_metadata
        # Any trial can go on as a run of its own.
        find_checkpoint(folder)

    policy = load_policy(run / "policy").description
    assert str(policy.config["algo"]["learning_rate"]) == trials[0]["learning_rate"]
    assert policy.config["tune"] is None


def test_a_trial_that_could_not_begin_is_in_the_table() -> None:
    error = "Traceback:\nclip does not fit"
    failed = SimpleNamespace(metrics=None, config=None, error=error)
    row = _row("trial_1", failed, ["clip"])
    assert (row["trial"], row["clip"], row["error"]) == ("trial_1", None, "clip does not fit")
    assert math.isnan(row["difference_percent"])
