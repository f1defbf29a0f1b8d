"""Rows of results.parquet under queued dispatch: one a case and seed."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field, field_validator

from env.score.metrics import Metric
from evaluation.queued_evaluation import SHARES, CaseRow
from evaluation.results import Layout, StoredRow

CASE = ("sample", "ratio", "keep_alive", "order")
"""Columns of a case."""


class StoredCase(StoredRow):
    """`CaseRow` as `unfinished.jsonl` holds it."""

    sample: str
    ratio: float
    keep_alive: str
    order: str
    seed: int
    completion_quantiles: Annotated[
        list[float], Field(min_length=len(SHARES), max_length=len(SHARES))
    ]

    @field_validator("metrics")
    @classmethod
    def _completed(cls, metrics: dict[str, float]) -> dict[str, float]:
        completion = metrics.get("completion", math.inf)
        if not 0 < completion < math.inf:
            raise ValueError(f"completion is {completion}, allowed: finite and above 0")
        return metrics


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
