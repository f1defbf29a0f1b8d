"""The charts of the page as files: figures/*.png and *.svg."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env.base.files import written_whole
from report.charts import SHOWN
from report.drawing import Spec, draw
from report.summary import Summary

WIDTH = 640
"""Pixels of a chart."""
MOST_LETTERS = 100
"""Of the name of a scenario, in that of its folder."""
TITLES = {
    "difference": "Paired difference in J",
    "ranking": "Mean J",
    "improvement": "Probability of improvement",
    "profiles": "Performance profiles",
    "parts": "Where the time of functions goes",
    "deadlines": "Deadlines met",
    "cold-starts": "Cold starts of servers",
    "promise": "What was promised",
    "sweep": "Against what was swept",
    "shares": "Core-seconds received and entitled to",
}
"""Of charts of whose names they are not made."""
CONFIG: Spec = {
    "background": "white",
    "view": {"stroke": None},
    "title": {"anchor": "start", "frame": "group", "fontSize": 14, "subtitleColor": "#5a646e"},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "axisX": {"labelOverlap": "parity", "labelSeparation": 6, "labelFlush": False},
    "axisXQuantitative": {"tickCount": 7},
    "legend": {"title": None, "labelLimit": 0, "symbolLimit": 0, "symbolOpacity": 1},
}


def _with_legends(tree: Any, summary: Summary) -> Any:
    """A copy of a chart in which what has names has a legend, of those that are there."""
    if isinstance(tree, list):
        return [_with_legends(each, summary) for each in tree]
    if not isinstance(tree, Mapping):
        return tree
    copied = {key: _with_legends(each, summary) for key, each in tree.items() if key != "autosize"}
    if copied.get("type") == "nominal" and copied.get("legend", ()) is None:
        kinds = list(dict.fromkeys(summary.kinds.values()))
        values = {"policy": {"expr": SHOWN}, "kind": kinds}.get(copied["field"])
        copied["legend"] = {"values": values} if values else {}
    return copied


def folder_of(place: int, scenario: str) -> str:
    """Of the figures of a scenario, readable and not too long."""
    return f"{place:02}_{re.sub(r'[^A-Za-z0-9_.=+-]+', '_', scenario)[:MOST_LETTERS]}"


def write_figures(
    figures: Mapping[str, tuple[Spec, str]], summary: Summary, folder: Path
) -> list[Path]:
    """Writes <name>.png and <name>.svg of charts and returns the .png files; or `NotDrawn`.

    Args:
        figures: by name a chart of the page, and which scenario or episode it shows; "" for all.
        summary: of the evaluation.
        folder: made if it is missing.
    """
    drawn: dict[str, Spec] = {}
    for name, (chart, where) in figures.items():
        place = Path(name).name
        title = TITLES.get(place.rstrip("-0123456789"), place.replace("-", " ").capitalize())
        subtitle = [text for text in (where, summary.title) if text]
        spec = {**_with_legends(chart, summary), "config": CONFIG}
        spec["title"] = {"text": title, "subtitle": subtitle}
        if spec.get("width") == "container":
            spec["width"] = WIDTH
        for parameter in spec.get("params", []):
            if parameter["name"] == SHOWN:
                parameter["value"] = summary.shown
        drawn[name] = spec
    for name, picture in draw(drawn).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for ending, content in picture.items():
            with written_whole(path.with_name(f"{path.name}.{ending}")) as temporary:
                temporary.write_bytes(content)
    return [folder / f"{name}.png" for name in figures]
