"""Everything an evaluation under queued dispatch leaves beside its rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from env.base.schema import validated
from evaluation.queued_metrics import queued_metrics
from report.queued.figures import draw_figure
from report.queued.page import write_report
from report.queued.summary import means, queued_table, summarise, write_summary
from report.tensorboard import write_events
from run.dispatch_settings import Queued
from run.hparams import flattened


def write_files(folder: Path, run: Mapping[str, Any], results: pd.DataFrame) -> Table:
    """Writes summaries, the figure, TensorBoard events and the report; returns what is printed.

    Args:
        folder: of the evaluation.
        run: run.json.
        results: from `evaluation.results.read_results`.
    """
    config = run["config"]
    settings = validated(Queued, config["dispatch"], "dispatch")
    kind = trace_kind(run)
    metrics = queued_metrics(settings, of_requests=kind is not None)
    summary = summarise(results, metrics, settings.orders[0], title(run))
    write_summary(folder, summary)
    picture = draw_figure(summary, results, settings, folder / "figures")
    told = {
        "policy": config["policy"],
        "trace": kind,
        "dispatch": {
            key: config["dispatch"][key] for key in ("orders", "keep_alives", "seeds", "samples")
        },
    }
    write_events(folder, means(summary), [picture], flattened(told))
    write_report(folder)
    return queued_table(summary)


def trace_kind(run: Mapping[str, Any]) -> str | None:
    """Of the trace's source; None where workflows arrive."""
    trace = run["config"].get("trace")
    return None if trace is None else str(trace["source"]["kind"])


def title(run: Mapping[str, Any]) -> str:
    """What was played, and with which seeds."""
    seeds = run["seeds"]
    of = ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
    if trace_kind(run) is not None:
        return f"requests of single functions, {of}"
    episodes = run["episodes"]
    count = "1 episode" if episodes == 1 else f"{episodes} episodes"
    return f"workflows in the central queue, {count} of {of}"
