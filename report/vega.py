"""What all charts of the report have in common, as Vega-Lite specifications in plain containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from report.drawing import Spec

HEIGHT = 320
"""Pixels of charts without a row a policy."""
TEXTS = ("policy", "kind", "tenant", "part", "node", "what", "verdict", "scenario")
"""Fields that are no numbers."""


def quantity(field: str, **options: Any) -> Spec:
    """What a channel shows: a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def word(field: str, **options: Any) -> Spec:
    """What a channel shows: a field of names."""
    return {"field": field, "type": "nominal", **options}


def by_name(field: str, looks: Mapping[str, Any]) -> Spec:
    """A field of names: how each of them looks, without a legend."""
    scale = {"domain": list(looks), "range": list(looks.values())}
    return word(field, legend=None, scale=scale)


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
