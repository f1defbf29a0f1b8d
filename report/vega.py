"""What all charts of the report have in common, as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

alt.data_transformers.disable_max_rows()  # the page holds what it shows, however much that is

Spec = dict[str, Any]
"""A Vega-Lite specification as plain containers."""
VERSION = alt.SCHEMA_VERSION.rpartition(".")[0]
"""Of Vega-Lite that altair writes for."""

HEIGHT = 320
"""Pixels of charts without a row a policy."""
TEXTS = ("policy", "kind", "tenant", "part", "node", "what", "verdict", "scenario")
"""Fields that are no numbers."""


def tooltips(*fields: str, **titles: str) -> list[alt.Tooltip]:
    """Text as it is, numbers to three digits; what has a title of its own is text."""
    return [
        alt.Tooltip(f"{field}:N")
        if field in TEXTS
        else alt.Tooltip(f"{field}:Q", title=field.replace("_", " "), format=",.3~r")
        for field in fields
    ] + [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def by_name(channel: type, field: str, looks: Mapping[str, Any]) -> Any:
    """A field along `channel` (`alt.Color`, ...): how each of its names looks, without a legend."""
    scale = alt.Scale(domain=list(looks), range=list(looks.values()))
    return channel(f"{field}:N", legend=None, scale=scale)


def spec_of(chart: alt.TopLevelMixin, height: int) -> Spec:
    """`chart` as wide as its place on the page."""
    spec: Spec = chart.properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    ).to_dict()
    del spec["config"]  # the page has its own, light and dark
    del spec["$schema"]  # an address on the web, which nobody needs
    return spec
