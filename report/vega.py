"""The parts that all charts of the report are made of, as Vega-Lite specifications in dicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from report.drawing import Spec

HEIGHT = 320
"""Pixels of charts without a row a policy."""
TEXTS = ("policy", "kind", "tenant", "part", "node", "what", "verdict", "scenario")
"""Fields that are no numbers."""
STEPS = {"interpolate": "step-after", "strokeWidth": 2}
"""The look of lines whose values hold until the next one."""
LOG_FROM = 5.0
"""Axes are logarithmic where the largest value is this many times the smallest."""
MOST_STEPS = 1000.0
"""Where it is more than this, ticks are at 1, 10, 100, ... alone."""


def quantity(field: str, **options: Any) -> Spec:
    """What a channel shows: a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def word(field: str, **options: Any) -> Spec:
    """What a channel shows: a field of names."""
    return {"field": field, "type": "nominal", **options}


def by_name(field: str, looks: Mapping[str, Any], legend: Spec | None = None) -> Spec:
    """A field of names: how each of them looks."""
    scale = {"domain": list(looks), "range": list(looks.values())}
    return word(field, legend=legend, scale=scale)


def tooltips(*fields: str, **titles: str) -> list[Spec]:
    """Text as it is, numbers to three digits; what has a title of its own is text."""
    return [
        word(field)
        if field in TEXTS
        else quantity(field, title=field.replace("_", " "), format=",.3~r")
        for field in fields
    ] + [word(field, title=title) for field, title in titles.items()]


def mark(kind: str, look: Spec, **channels: Any) -> Spec:
    """A chart, or a layer of one, of marks of one kind: their look, and what they show."""
    return {"mark": {"type": kind, **look}, "encoding": channels}


def values(rows: pd.DataFrame) -> Spec:
    """Rows as the data of a chart or a layer."""
    return {"values": rows.to_dict("records")}


def parameters(**named: Any) -> list[Spec]:
    """Parameters of a chart with what they are at first."""
    return [{"name": name, "value": value} for name, value in named.items()]


def on_page(spec: Spec, height: int = HEIGHT) -> Spec:
    """A chart as wide as its place on the page."""
    autosize = {"type": "fit-x", "contains": "padding"}
    return {**spec, "width": "container", "height": height, "autosize": autosize}


def layered(layers: Sequence[Spec], rows: pd.DataFrame, height: int = HEIGHT, **more: Any) -> Spec:
    """A chart of layers that are drawn of the same rows, as wide as its place on the page."""
    return on_page({"data": values(rows), "layer": list(layers), **more}, height)


def is_wide(values: pd.Series) -> bool:
    """Whether values lie so far apart that their axis is logarithmic."""
    return 0 < LOG_FROM * min(values) <= max(values)


def axis(field: str, title: str, values: pd.Series, padding: int = 16, **options: Any) -> Spec:
    """A field along an axis; where `values` are wide it is logarithmic, with ticks at 1, 2, 5, ...

    Around the values of an axis that is not logarithmic are `padding` pixels.
    """
    if not is_wide(values):
        linear = {"zero": False, "nice": True, "padding": padding}
        return quantity(field, title=title, scale=linear, **options)
    low, high = min(values), max(values)
    steps = (1,) if high / low > MOST_STEPS else (1, 2, 5)
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    shown = {"values": [tick for tick in ticks if low <= tick <= high], "format": ",~g"}
    scale = {"type": "log", "nice": False, "padding": 24}
    return quantity(field, title=title, scale=scale, **{"axis": shown} | options)


def on_axis(low: pd.Series, values: pd.Series) -> pd.Series:
    """Where intervals are drawn from: a logarithmic axis of `values` has no 0."""
    return low.clip(lower=values.min() / 2) if is_wide(values) else low
