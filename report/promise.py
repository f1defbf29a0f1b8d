"""Who keeps what was promised: judged, in words, as a table, as a picture and as promise.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from agents.scheduler import Kind
from env.base.files import written_whole
from env.score.metrics import Metric
from evaluation.promise import LEAST_EPISODES, Promise, Verdict
from evaluation.statistics import UNKNOWN, Estimate, count_needed, estimate
from report.charts import crossed, crosses
from report.digits import about, low_of, spread
from report.drawing import Spec
from report.summary import labelled
from report.summary_files import without_nan
from report.table import plain_table
from report.vega import axis, by_name, layered, mark, tooltips, values, word

MOST_NAMED = 5
"""Of those that are as good, in a sentence."""
VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "kept": ("kept", "surely keep it"),
    "unsure": ("not sure", "cannot be told"),
    "broken": ("broken", "surely do not"),
    "unknown": ("no number", "have no number"),
}
"""In the order of tables: what readers are told of a row, and of all such rows."""
SEVERITY: tuple[Verdict, ...] = ("kept", "unsure", "unknown", "broken")
"""Of several promises the last of these verdicts counts."""
COLOURS = {"kept": "#009E73", "not sure": "#E69F00", "broken": "#999999"}
"""Okabe and Ito's, as in palette.py."""
SHAPES = {"kept": "circle", "not sure": "diamond", "broken": "cross"}
"""Of points, for those who see no colours."""


@dataclass
class Judged:
    """One policy in one scenario, "" where nothing is swept.

    Attributes:
        means: of the promised metrics, in the order of the promises.
        spent: mean of what is minimised.
        more: that less what the best spends, a mean of paired differences; NaN where nobody is.
        verdict: the worst of those of the promises.
    """

    scenario: str
    policy: str
    kind: Kind
    means: tuple[Estimate, ...]
    spent: Estimate
    more: Estimate
    verdict: Verdict

    def __str__(self) -> str:
        name = labelled(self.policy, self.kind)
        return f"{name} with {self.scenario}" if self.scenario else name


@dataclass(frozen=True)
class Judgement:
    """Who keeps the promises where.

    Attributes:
        minimised: name of a metric.
        rows: those that keep them first, the cheapest of them on top.
        best: the cheapest that surely keeps them, references aside; None where there is none.
        perhaps: the cheapest whose means keep them while an interval does not, references aside, if
            it is cheaper than `best`; None where there is none.
        settling: of how many episodes in all the intervals of `perhaps` would about keep them, were
            means and spread to stay; None where there is no `perhaps`, or no end of episodes.
    """

    promises: tuple[Promise, ...]
    minimised: str
    metrics: Mapping[str, Metric[Any]]
    rows: tuple[Judged, ...]
    best: Judged | None
    perhaps: Judged | None
    settling: int | None
    confidence: float

    @property
    def several(self) -> bool:
        """Whether there are scenarios, so that rows have to say theirs."""
        return any(row.scenario for row in self.rows)


def judge(
    results: pd.DataFrame,
    promises: Sequence[Promise],
    minimised: str,
    metrics: Mapping[str, Metric[Any]],
    confidence: float,
) -> Judgement:
    """Judges every policy in every scenario, by rows of results.parquet."""

    def mean_of(values: pd.Series) -> Estimate:
        known = values[np.isfinite(values)].to_numpy()
        return estimate(known, confidence) if len(known) >= LEAST_EPISODES else UNKNOWN

    in_order = results.sort_values(["seed", "episode"], kind="stable")
    episodes = dict(iter(in_order.groupby(["scenario", "policy"], sort=False)))
    rows = []
    for (scenario, policy), own in episodes.items():
        means = tuple(mean_of(own[each.metric]) for each in promises)
        verdicts = [each.verdict(mean) for each, mean in zip(promises, means, strict=True)]
        kind, worst = own["kind"].iloc[0], max(verdicts, key=SEVERITY.index)
        spent = mean_of(own[minimised])
        rows.append(Judged(scenario, policy, kind, means, spent, UNKNOWN, worst))
    # Stable, and False comes before True: what has no number is last.
    rows.sort(key=lambda row: (math.isnan(row.spent.value), row.spent.value))
    rows.sort(key=lambda row: list(VERDICTS).index(row.verdict))
    answers = [row for row in rows if row.kind != "reference" and not math.isnan(row.spent.value)]
    best = next((row for row in answers if row.verdict == "kept"), None)
    if best is not None:
        answers = [row for row in answers if row.spent.value < best.spent.value]
        least = episodes[best.scenario, best.policy][minimised].to_numpy()
        for row in rows:
            row.more = mean_of(episodes[row.scenario, row.policy][minimised] - least)
    likely = (row for row in answers if row.verdict == "unsure" and _by_means(row, promises))
    perhaps, settling = next(likely, None), None
    if perhaps is not None:
        own = episodes[perhaps.scenario, perhaps.policy]
        settling = _settling(perhaps, promises, own, confidence)
    return Judgement(
        tuple(promises), minimised, metrics, tuple(rows), best, perhaps, settling, confidence
    )


def _by_means(row: Judged, promises: Sequence[Promise]) -> bool:
    """Whether the means alone keep all promises."""
    return all(each.kept_by(mean.value) for each, mean in zip(promises, row.means, strict=True))


def _settling(
    row: Judged, promises: Sequence[Promise], episodes: pd.DataFrame, confidence: float
) -> int | None:
    """How many episodes it takes until every interval of a row ends before its bound."""
    counts = []
    for promise, mean in zip(promises, row.means, strict=True):
        if promise.verdict(mean) == "unsure":
            known = np.isfinite(episodes[promise.metric])
            gap = abs(promise.bound - mean.value)
            count = count_needed(mean, int(known.sum()), gap, confidence)
            # Some episodes have no such number.
            counts.append(math.inf if count is None else math.ceil(count / known.mean()))
    return None if math.inf in counts else int(max(counts))


def shown(judgement: Judgement) -> pd.DataFrame:
    """The rows as readers see them."""
    spent = judgement.metrics[judgement.minimised]
    rows = []
    for row in judgement.rows:
        cells = {"promise": VERDICTS[row.verdict][0], "scenario": row.scenario}
        cells["policy"] = labelled(row.policy, row.kind)
        for promise, mean in zip(judgement.promises, row.means, strict=True):
            cells[str(promise)] = spread(mean, judgement.metrics[promise.metric].shown)
        cells[spent.heading] = spread(row.spent, spent.shown)
        rows.append(cells | {"more": spread(row.more, spent.shown, sign="+")})
    unused = [*["scenario"] * (not judgement.several), *["more"] * (judgement.best is None)]
    return pd.DataFrame(rows).drop(columns=unused)


def promise_table(judgement: Judgement) -> Table:
    """`shown` in the terminal: names stay whole, numbers go on in the next line."""
    table, rows = plain_table(), shown(judgement)
    for heading in rows:
        whole = heading in ("promise", "scenario", "policy")
        table.add_column(heading.replace(" ", "\n", 1), no_wrap=whole, overflow="fold")
    if judgement.several:  # a swept key a line, as names are long
        rows["scenario"] = rows["scenario"].str.replace(" ", "\n")
    for row in rows.itertuples(index=False, name=None):
        table.add_row(*(cell.replace(" [", "\n[") for cell in row))
    return table


def answer(judgement: Judgement) -> list[str]:
    """What the promises come to, in sentences, the answer first."""
    promised = " and ".join(map(str, judgement.promises))
    by_verdict = {each: [row for row in judgement.rows if row.verdict == each] for each in VERDICTS}
    interval = f"the whole {judgement.confidence:.0%} interval"
    kept, best, perhaps = by_verdict["kept"], judgement.best, judgement.perhaps
    lines = []
    if best is not None:
        told = _numbers(best, judgement)
        lines.append(f"Cheapest that surely keeps {promised}, with {interval}: {told}.")
        alike = [str(row) for row in kept if row is not best and row.more.ci_low <= 0]
        if alike:
            more = f"; and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
            lines.append(f"Not surely dearer: {'; '.join(alike[:MOST_NAMED])}{more}.")
    elif any(row.kind != "reference" for row in kept):
        lines.append(f"{promised} is kept, but {judgement.minimised} has no number here.")
    else:
        lines.append(f"Nobody surely keeps {promised}, with {interval}.")
    if perhaps is not None:
        settled = "It is too close for any number of episodes to settle"
        if judgement.settling is not None:
            settled = f"About {about(judgement.settling)} episodes in all would settle it"
        lines.append(
            f"{'Perhaps' if best is None else 'Perhaps cheaper'}: {_numbers(perhaps, judgement)}. "
            f"The mean keeps it, the interval does not. {settled}."
        )
    counts = (f"{len(rows)} {VERDICTS[each][1]}" for each, rows in by_verdict.items() if rows)
    who = "pairs of scenario and scheduler" if judgement.several else "schedulers"
    all_of = f"Of {len(judgement.rows)} {who} {', '.join(counts)}"
    return [*lines, f"{all_of} ({judgement.confidence:.0%} intervals)."]


def _numbers(row: Judged, judgement: Judgement) -> str:
    """Who it is, with its numbers."""
    named = [judgement.minimised, *(promise.metric for promise in judgement.promises)]
    metrics = [judgement.metrics[name] for name in named]
    numbers = (
        f"{metric.heading} {spread(mean, metric.shown)}"
        for metric, mean in zip(metrics, (row.spent, *row.means), strict=True)
    )
    return ", ".join(dict.fromkeys((str(row), *numbers)))


def promise_charts(judgement: Judgement) -> dict[str, Spec]:
    """What is spent against each promised metric, by the id of its place on the page."""
    return {
        f"promise-{place}": _chart(rows, promise, judgement)
        for place, promise in enumerate(judgement.promises)
        if len(rows := _points(judgement, place))
    }


def _points(judgement: Judgement, place: int) -> pd.DataFrame:
    """policy, scenario, verdict, best; spent and mean, each with _low, _high and as it is shown.

    Rows that lack a number are left out.
    """
    points = []
    for row in judgement.rows:
        point = {
            "policy": labelled(row.policy, row.kind),
            "scenario": row.scenario,
            "verdict": VERDICTS[row.verdict][0],
            "best": row is judgement.best,
        }
        for name, each in (("spent", row.spent), ("mean", row.means[place])):
            ends = {f"{name}_low": low_of(each), f"{name}_high": each.ci_high}
            point |= {name: each.value, **ends, f"shown_{name}": spread(each)}
        if row.verdict != "unknown" and not math.isnan(row.spent.value):
            points.append(point)
    return pd.DataFrame(points)


def _chart(rows: pd.DataFrame, promise: Promise, judgement: Judgement) -> Spec:
    """A point a scheduler and scenario, and the bound as a line; see `_points` for the rows."""
    named = {"spent": judgement.minimised, "mean": promise.metric}
    titles = {name: judgement.metrics[metric].heading for name, metric in named.items()}
    x, _, rows = crossed(rows, titles)
    y = axis("mean", titles["mean"], pd.concat([rows["mean"], pd.Series([promise.bound])]))
    at = {"x": x, "y": y, "color": by_name("verdict", COLOURS)}
    bound = {"data": {"values": [{"mean": promise.bound, "text": str(promise)}]}}
    beside = {"align": "right", "dy": -6, "fontSize": 11}
    told = {f"shown_{name}": titles[name] for name in ("mean", "spent")}
    tooltip = tooltips("verdict", "policy", "scenario", **told)
    point, ring = {"filled": True, "size": 70, "opacity": 0.9}, {"size": 220, "strokeWidth": 2}
    layers = [
        bound | mark("rule", {"strokeDash": [4, 4]}, y=y),
        bound | mark("text", beside, x={"value": "width"}, y=y, text=word("text")),
        *crosses(**at),
        mark("point", point, **at, shape=by_name("verdict", SHAPES), tooltip=tooltip),
    ]
    if rows["best"].any():  # a layer without rows is complained of
        best = {"data": values(rows[rows["best"]])}
        layers.append(best | mark("point", ring | {"color": COLOURS["kept"]}, x=x, y=y))
    return layered(layers, rows)


def write_promises(folder: Path, judgement: Judgement) -> None:
    """Writes `promise.json`."""
    tree = asdict(replace(judgement, metrics={}))
    tree = {
        "keep": {each.metric: f"{each.comparator}{each.bound:g}" for each in judgement.promises},
        "minimise": judgement.minimised,
        "confidence": judgement.confidence,
        **{key: tree[key] for key in ("best", "perhaps", "settling", "rows")},
    }
    with written_whole(folder / "promise.json") as temporary:
        temporary.write_text(json.dumps(without_nan(tree), indent=2, allow_nan=False) + "\n")
