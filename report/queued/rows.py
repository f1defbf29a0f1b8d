"""Rows of results.parquet under queued dispatch: one a case and seed."""

import pyarrow as pa

from agents.queued_evaluation import CaseRow, QueuedEvaluation
from report.results import Layout, StoredRow

CASE = ("sample", "ratio", "keep_alive", "order")
"""Columns of a case."""


class StoredCase(StoredRow):
    """`CaseRow` as `unfinished.jsonl` holds it."""

    sample: str
    ratio: float
    keep_alive: str
    order: str
    seed: int
    completion_quantiles: list[float]


COLUMNS = {
    "sample": pa.string(),
    "ratio": pa.float64(),
    "keep_alive": pa.string(),
    "order": pa.string(),
    "seed": pa.int64(),
    "completion_quantiles": pa.list_(pa.float64()),
}


def queued_layout(evaluation: QueuedEvaluation) -> Layout[CaseRow]:
    """The rows of an evaluation."""
    return Layout(CaseRow, StoredCase, COLUMNS, evaluation.metrics)
