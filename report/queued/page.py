"""report.html of an evaluation under queued dispatch, made from the files in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from env.base.files import parse_json, read_bytes
from evaluation.queued_evaluation import SHARES, Case
from evaluation.queued_rows import CASE
from evaluation.results import read_results, read_run
from report import palette
from report.charts import styles, wrapped
from report.page import render
from report.queued import charts
from report.queued.summary import pooled_quantiles, shown
from report.vega import Spec


def write_report(folder: Path) -> Path:
    """Makes `report.html` of a finished evaluation.

    Args:
        folder: with run.json, summary.json and results.parquet.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    run = read_run(folder, "report")
    file = folder / "summary.json"
    summary = parse_json(read_bytes(file, inside=folder), str(file))
    cells = cells_of(summary)
    orders = list(dict.fromkeys(cells["order"]))
    loads = cells[["load", "panel", "sample", "ratio"]].drop_duplicates()
    # The busiest load of the first sample is where orders differ most.
    opened = loads[loads["sample"] == loads["sample"].iloc[0]].sort_values("ratio").iloc[-1]
    ranked = [
        (load, _ranked(rows, "completion")["order"].tolist())
        for load, rows in cells.groupby("load", sort=False)
    ]
    by_order = {
        (_load(case), case["order"]): {key: shown(cell) for key, cell in case["metrics"].items()}
        for case in summary["cases"]
    }
    return render(
        folder,
        "queued.html",
        run,
        _charts(cells, orders, read_results(folder)),
        {"loads": loads[["load", "panel"]].to_dict("records")},
        title=summary["title"],
        first=summary["first"],
        confidence=summary["confidence"],
        metrics=summary["metrics"],
        orders=orders,
        loads=loads["load"].tolist(),
        opened=opened["load"],
        best=dict(ranked)[opened["load"]][0],
        ranked=ranked,
        cells=by_order,
        lines=styles(orders),
        parts=palette.PARTS,
    )


def cells_of(summary: Mapping[str, Any]) -> pd.DataFrame:
    """A row a case and metric of summary.json.

    Columns are those of the case, `load` and `panel` (what the page calls them), `label`, `metric`,
    `mean`, `ci_low`, `ci_high`, `low` (the same as `ci_low`, but not below 0, as no metric is), and
    `place` among the orders on the load, 0 the best.
    """
    rows = pd.DataFrame(
        {
            **{name: case[name] for name in CASE},
            "load": _load(case),
            "panel": f"{case['sample']}, {case['keep_alive']}",
            "label": wrapped(case["order"]),
            "metric": metric,
            **cell,
        }
        for case in summary["cases"]
        for metric, cell in case["metrics"].items()
        if cell["mean"] is not None
    )
    signs = {each["name"]: -1 if each["better"] == "higher" else 1 for each in summary["metrics"]}
    worse = rows["mean"] * rows["metric"].map(signs)
    places = worse.groupby([rows["load"], rows["metric"]]).rank(method="first").astype(int) - 1
    return rows.assign(place=places, low=rows["ci_low"].clip(lower=0.0))


def _load(case: Mapping[str, Any]) -> str:
    return f"{case['sample']}, {case['ratio']:g}, {case['keep_alive']}"


def _ranked(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == metric].sort_values("place")


def _charts(cells: pd.DataFrame, orders: list[str], results: pd.DataFrame) -> dict[str, Spec]:
    """All charts, by the id of their place on the page."""
    of_load = ["load", "order", "metric", "label", "place", "mean", "ci_low", "ci_high", "low"]
    drawn = {
        "ranking": charts.ranking(cells[of_load], orders),
        "parts": charts.parts(_parts(cells), len(orders)),
        "completion-cdf": charts.completion_cdf(_distributions(results), orders),
    }
    if cells["ratio"].nunique() > 1:
        of_panel = ["panel", "ratio", "order", "metric", "mean", "ci_low", "ci_high", "low"]
        drawn["against-ratio"] = charts.against_ratio(cells[of_panel], orders)
    met = cells[cells["metric"].str.startswith("slo_")]
    if len(met):
        deadlines = met["metric"].str.removeprefix("slo_").astype(float)
        columns = ["load", "order", "deadline", "mean", "ci_low", "ci_high", "low"]
        drawn["deadlines"] = charts.deadlines_met(met.assign(deadline=deadlines)[columns], orders)
    return drawn


def _parts(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.parts`, orders placed by their completion time."""
    names = list(palette.PARTS)
    places = cells[cells["metric"] == "completion"][["load", "order", "place"]]
    rows = cells[cells["metric"].isin(names)].drop(columns="place").merge(places)
    rows = rows.assign(number=rows["metric"].map(names.index))
    rows = rows.rename(columns={"metric": "part", "mean": "seconds"})
    return rows[["load", "order", "label", "place", "part", "number", "seconds"]]


def _distributions(results: pd.DataFrame) -> pd.DataFrame:
    """Rows for `charts.completion_cdf`."""
    found = []
    for key, rows in results.groupby(list(CASE), sort=False):
        case = vars(Case(*key))
        at = pooled_quantiles(rows).round(4)
        found.append(
            pd.DataFrame(
                {"load": _load(case), "order": case["order"], "completion": at, "share": SHARES}
            )
        )
    return pd.concat(found)
