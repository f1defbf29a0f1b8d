"""Who keeps what was promised: judged, in words, as a table, as a picture and as promise.json."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.table import Table

from agents.scheduler import Kind
from env.score.metrics import Metric
from evaluation.promise import LEAST_EPISODES, Promise, Verdict
from evaluation.statistics import UNKNOWN, Estimate, estimate
from report.charts import POINT, along, crosses
from report.digits import spread
from report.drawing import Spec
from report.summary import labelled
from report.table import plain_table
from report.vega import axis, by_name, layered, mark, tooltips, values, word

VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "kept": ("kept", "surely keep it"),
    "unsure": ("not sure", "cannot be told"),
    "unknown": ("no number", "have no number"),
    "broken": ("broken", "surely do not"),
}
"""What readers are told of a row, and of all such rows; of several promises the last one counts."""
COLOURS = {"kept": "#009E73", "not sure": "#E69F00", "broken": "#999999"}
"""Okabe and Ito's, as in palette.py."""
SHAPES = {"kept": "circle", "not sure": "diamond", "broken": "cross"}
"""Of points, for those who see no colours."""


@dataclass
class Judged:
    """One policy in one scenario."""

    scenario: str  # "" where nothing is swept
    policy: str
    kind: Kind
    means: tuple[Estimate, ...]  # of the promised metrics, in the order of the promises
    spent: Estimate  # mean of what is minimised
    more: Estimate  # that less what the best spends, paired; NaN where nobody is
    verdict: Verdict  # the worst of those of the promises

    def __str__(self) -> str:
        name = labelled(self.policy, self.kind)
        return f"{name} with {self.scenario}" if self.scenario else name


@dataclass(frozen=True)
class Judgement:
    """Who keeps the promises where."""

    promises: tuple[Promise, ...]
    minimised: str  # name of a metric
    metrics: Mapping[str, Metric]
    confidence: float
    rows: list[Judged]  # those that keep the promises first, the cheapest of them on top
    best: Judged | None  # the cheapest that surely keeps them, references aside

    @property
    def several(self) -> bool:
        """Whether there are scenarios, so that rows have to say theirs."""
        return any(row.scenario for row in self.rows)

    def numbers(self, row: Judged) -> str:
        """A row with its numbers."""
        names = (self.minimised, *(each.metric for each in self.promises))
        numbers = [
            f"{self.metrics[name].heading} {spread(mean, self.metrics[name].shown)}"
            for name, mean in zip(names, (row.spent, *row.means), strict=True)
        ]
        return ", ".join(dict.fromkeys((str(row), *numbers)))


def judge(
    results: pd.DataFrame,
    promises: Sequence[Promise],
    minimised: str,
    metrics: Mapping[str, Metric],
    confidence: float,
) -> Judgement:
    """Judges every policy in every scenario, by rows of results.parquet."""

    def mean_of(values: pd.Series) -> Estimate:
        numbers = values[np.isfinite(values)].to_numpy()
        return estimate(numbers, confidence) if len(numbers) >= LEAST_EPISODES else UNKNOWN

    in_order = results.sort_values(["seed", "episode"], kind="stable")
    episodes = dict(iter(in_order.groupby(["scenario", "policy"], sort=False)))
    rows, order = [], list(VERDICTS)
    for (scenario, policy), played in episodes.items():
        means = tuple(mean_of(played[each.metric]) for each in promises)
        verdicts = [each.verdict(mean) for each, mean in zip(promises, means, strict=True)]
        kind, worst = played["kind"].iloc[0], max(verdicts, key=order.index)
        spent = mean_of(played[minimised])
        rows.append(Judged(scenario, policy, kind, means, spent, UNKNOWN, worst))
    # What has no number is last.
    rows.sort(
        key=lambda row: (order.index(row.verdict), np.nan_to_num(row.spent.value, nan=np.inf))
    )
    answers = (row for row in rows if row.kind != "reference" and not math.isnan(row.spent.value))
    best = next((row for row in answers if row.verdict == "kept"), None)
    if best is not None:
        least = episodes[best.scenario, best.policy][minimised].to_numpy()
        for row in rows:
            row.more = mean_of(episodes[row.scenario, row.policy][minimised] - least)
    return Judgement(tuple(promises), minimised, metrics, confidence, rows, best)


def shown(judgement: Judgement) -> pd.DataFrame:
    """The rows as readers see them."""
    spent = judgement.metrics[judgement.minimised]
    rows = []
    for row in judgement.rows:
        cells = {"promise": VERDICTS[row.verdict][0]}
        if judgement.several:
            cells["scenario"] = row.scenario
        cells["policy"] = labelled(row.policy, row.kind)
        for promise, mean in zip(judgement.promises, row.means, strict=True):
            cells[str(promise)] = spread(mean, judgement.metrics[promise.metric].shown)
        cells[spent.heading] = spread(row.spent, spent.shown)
        if judgement.best is not None:
            cells["more"] = spread(row.more, spent.shown, sign="+")
        rows.append(cells)
    return pd.DataFrame(rows)


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
    interval = f"the whole {judgement.confidence:.0%} interval"
    rows, best = judgement.rows, judgement.best
    if best is not None:
        first = (
            f"Cheapest that surely keeps {promised}, with {interval}: {judgement.numbers(best)}."
        )
    elif any(row.kind != "reference" and row.verdict == "kept" for row in rows):
        first = f"{promised} is kept, but {judgement.minimised} has no number here."
    else:
        first = f"Nobody surely keeps {promised}, with {interval}."
    by_verdict = Counter(row.verdict for row in rows)
    counts = [f"{by_verdict[each]} {VERDICTS[each][1]}" for each in VERDICTS if by_verdict[each]]
    who = "pairs of scenario and scheduler" if judgement.several else "schedulers"
    all_of = f"Of {len(rows)} {who} {', '.join(counts)}"
    return [first, f"{all_of} ({judgement.confidence:.0%} intervals)."]


def promise_charts(judgement: Judgement) -> dict[str, Spec]:
    """What is spent against each promised metric, by the id of its place on the page."""
    charts = {}
    for place, promise in enumerate(judgement.promises):
        rows = [
            {
                "policy": labelled(row.policy, row.kind),
                "scenario": row.scenario,
                "verdict": VERDICTS[row.verdict][0],
                "best": row is judgement.best,
                **along("x", row.spent),
                **along("y", row.means[place]),
            }
            for row in judgement.rows
            if row.verdict != "unknown" and np.isfinite(row.spent.value + row.means[place].value)
        ]
        if rows:
            charts[f"promise-{place}"] = _chart(pd.DataFrame(rows), promise, judgement)
    return charts


def _chart(rows: pd.DataFrame, promise: Promise, judgement: Judgement) -> Spec:
    """A point a scheduler and scenario, and the bound as a line."""
    spent, promised = (
        judgement.metrics[name].heading for name in (judgement.minimised, promise.metric)
    )
    x = axis("x", spent, rows["x"])
    y = axis("y", promised, pd.concat([rows["y"], pd.Series([promise.bound])]))
    at = {"x": x, "y": y, "color": by_name("verdict", COLOURS)}
    rows, rules = crosses(rows, **at)
    bound = {"data": {"values": [{"y": promise.bound, "text": str(promise)}]}}
    beside = {"align": "right", "dy": -6, "fontSize": 11}
    tooltip = tooltips("verdict", "policy", "scenario", y_spread=promised, x_spread=spent)
    ring = {"size": 220, "strokeWidth": 2, "color": COLOURS["kept"]}
    layers = [
        bound | mark("rule", {"strokeDash": [4, 4]}, y=y),
        bound | mark("text", beside, x={"value": "width"}, y=y, text=word("text")),
        *rules,
        mark("point", POINT, **at, shape=by_name("verdict", SHAPES), tooltip=tooltip),
    ]
    if rows["best"].any():  # a layer without rows is complained of
        best = {"data": values(rows[rows["best"]])}
        layers.append(best | mark("point", ring, x=x, y=y))
    return layered(layers, rows)
