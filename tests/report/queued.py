"""Queued evaluations with numbers of our choice, for tests of the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from env.base.schema import validated
from evaluation.queued_evaluation import SHARES, CaseRow
from evaluation.queued_metrics import queued_metrics
from evaluation.queued_rows import queued_layout
from evaluation.results import ResultsWriter, describe
from run.dispatch_settings import Queued
from tests.test_funcsched import small

SEEDS = (1, 2)
RATIOS = (0.1, 1.0)


def finished_queued(
    folder: Path, means: Mapping[str, Sequence[float]], *overrides: str
) -> dict[str, Any]:
    """Writes run.json, which is returned, and results.parquet of an evaluation into a new folder.

    Args:
        folder: to be made.
        means: by order, the mean completion time with each of two seeds at a ratio of 1; at 0.1 it
            is a tenth of that. Of 100 requests, half are done after half the mean, the others after
            one and a half times the mean.
        overrides: of the configuration.
    """
    folder.mkdir(parents=True)
    orders = f"dispatch.orders=[{','.join(means)}]"
    config = small("funcsched_distribution", orders, "dispatch.figure=ratios", *overrides)
    settings = validated(Queued, config["dispatch"], "dispatch")
    metrics = queued_metrics(settings, of_requests=True)
    run = describe(config, settings.seeds, 1, "w", "python evaluate.py", None)
    run["samples"] = {"representative": "a line about the sample"}
    rows = [
        row(order, ratio, seed, mean * ratio, list(metrics))
        for ratio in RATIOS
        for order, own in means.items()
        for seed, mean in zip(SEEDS, own, strict=True)
    ]
    cases = list(dict.fromkeys(each.case for each in rows))
    with ResultsWriter(folder, run, cases, queued_layout(metrics)) as writer:
        writer.add([(each, None) for each in rows])
        writer.finish()
    return run


def row(order: str, ratio: float, seed: int, mean: float, names: Sequence[str]) -> CaseRow:
    """A row; deadlines are met by 9 in 10 requests, what is not set is 0."""
    set_here = {
        "requests": 100.0,
        "completion": mean,
        "completion_median": mean / 2,
        "queueing": mean / 2,
        "cold_start": mean / 4,
        "execution": mean / 4,
    }
    metrics = {name: 0.9 if name.startswith("slo_") else set_here.get(name, 0.0) for name in names}
    times = np.where(SHARES <= 0.5, 0.5 * mean, 1.5 * mean).tolist()
    return CaseRow("representative", ratio, "lru", order, seed, metrics, times)
