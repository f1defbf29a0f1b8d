"""The Gantt chart of an episode as a PNG: `python -m report.gantt EPISODE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from env.base.files import written_whole
from env.base.schema import printable
from report import palette
from report.drawing import draw
from report.episode_command import convert_episode
from report.figures import CONFIG
from report.timeline import PHASES, Timeline, read_timeline
from report.vega import Spec

WIDTH, LOWEST, HIGHEST = 900, 60, 2400
"""Of the chart, in pixels."""
ROW = 14
"""Pixels of a row, as long as the chart is not higher than `HIGHEST`."""
LONGEST = 100
"""Characters of a name."""
RUNNING, WARM = "running (colour of the workflow)", "warm and idle"
KEYS = palette.PHASES | {RUNNING: palette.SERIES[0], WARM: palette.WARM}
"""Colours in the legend."""


def gantt_of(timeline: Timeline) -> Spec:
    """The chart: a band a NUMA node, in it a row for each container at a time."""
    rows = [max(1, node.lanes) for node in timeline.nodes]
    edges = np.concatenate([[0], np.cumsum(rows)])
    names = [f"{shown(node.server)} · NUMA {node.node_id}" for node in timeline.nodes]
    middles = [f"{middle:.1f}" for middle in (edges[:-1] + edges[1:]) / 2]
    y = alt.Y(
        "top:Q",
        title=None,
        scale=alt.Scale(domain=[0, int(edges[-1])], reverse=True, nice=False),
        axis=alt.Axis(
            values=list(map(float, middles)),
            labelExpr="names[format(datum.value, '.1f')]",
            labelLimit=0,
            labelPadding=6,
            ticks=False,
            grid=False,
        ),
    )
    x = alt.X(
        "begin:Q",
        title="time (s)",
        scale=alt.Scale(domain=[0, timeline.end], nice=False),
        axis=alt.Axis(grid=False),
    )
    workflows = {f"workflow {place}": colour for place, colour in enumerate(palette.SERIES)}
    colours = KEYS | workflows
    legend = alt.Legend(orient="bottom", columns=len(KEYS), values=list(KEYS))
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    bars = (
        alt.Chart(_bars(timeline, edges))
        # With an outline, what is shorter than a pixel is still seen.
        .mark_rect(stroke=alt.ExprRef("scale('fill', datum.fill)"), strokeWidth=0.7)
        .encode(
            x, y, alt.X2("end"), alt.Y2("bottom"), alt.Fill("fill:N", legend=legend, scale=scale)
        )
    )
    servers = ["black" if node.node_id == 0 else "silver" for node in timeline.nodes]
    between = alt.Chart(pd.DataFrame({"top": edges[:-1], "colour": servers}))
    lines = between.mark_rule().encode(y, alt.Color("colour:N", scale=None))
    chart = alt.layer(lines, bars).add_params(
        alt.param("names", value=dict(zip(middles, names, strict=True)))
    )
    count = f"{len(timeline.containers)} containers, coloured by workflow"
    height = int(np.clip(ROW * edges[-1], LOWEST, HIGHEST))
    sized = chart.properties(width=WIDTH, height=height, title=f"{shown(timeline.name)}: {count}")
    return {**sized.to_dict(), "config": CONFIG}


def _bars(timeline: Timeline, edges: np.ndarray) -> pd.DataFrame:
    """begin, end (s), top, bottom (rows) and fill of every bar; nodes begin at `edges`."""
    containers, warm = timeline.containers, timeline.warm
    parts = [(containers, *phase, palette.PHASE_HEIGHTS[phase.name]) for phase in PHASES]
    found = []
    for records, name, begin, end, height in [
        *parts,
        (warm, WARM, "begin", "end", palette.WARM_HEIGHT),
    ]:
        middle = edges[records["node"]] + records["lane"] + 0.5
        fill: str | list[str] = name
        if name == "running":
            fill = [f"workflow {wf_id % len(palette.SERIES)}" for wf_id in records["wf_id"]]
        bars = {"begin": records[begin], "end": records[end], "fill": fill}
        bars |= {"top": middle - height / 2, "bottom": middle + height / 2}
        found.append(pd.DataFrame(bars))
    # What comes first in the life of a container is short and drawn last, so that it is seen.
    return pd.concat(found[::-1]).query("end > begin")


def shown(name: str) -> str:
    """A name from a file: control characters spelt out, a long end cut off."""
    text = printable(name)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def draw_gantt(timeline: Timeline, path: Path) -> None:
    """Writes `gantt_of` an episode as a .png file, which appears whole or not at all.

    Raises:
        NotDrawn: see there.
    """
    picture = draw({"gantt": gantt_of(timeline)})["gantt"]["png"]
    with written_whole(path) as temporary:
        temporary.write_bytes(picture)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return convert_episode(
        read_timeline,
        draw_gantt,
        module="report.gantt",
        description="Draw the Gantt chart of an episode file as a PNG.",
        made="picture",
        output=Path("gantt.png"),
        arguments=arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
