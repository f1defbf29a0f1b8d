"""Rows of results.parquet under queued dispatch: one a case and seed."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from agents.queued_evaluation import CaseRow
from env.metrics import Metric
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


def queued_layout(metrics: Mapping[str, Metric[Any]]) -> Layout[CaseRow]:
    """Rows with these metrics, see `queued_metrics`."""
    return Layout(CaseRow, StoredCase, COLUMNS, metrics)
