"""The Gantt chart of an episode as a PNG: `python -m report.gantt EPISODE`."""

from pathlib import Path

import numpy as np
import pandas as pd

from env.base.files import written_whole
from env.base.schema import printable
from report import palette
from report.drawing import draw
from report.episode_charts import NODES, WORKFLOWS, box, outlined
from report.episode_command import command
from report.figures import CONFIG
from report.timeline import PHASES, Timeline, read_timeline
from report.vega import Spec, by_name, mark, parameters, quantity, values, word

WIDTH, LOWEST, HIGHEST = 900, 60, 2400
"""Of the chart, in pixels."""
ROW = 14
"""Pixels of a row, as long as the chart is not higher than `HIGHEST`."""
RUNNING, WARM = "running (colour of the workflow)", "warm and idle"
KEYS = palette.PHASES | {RUNNING: palette.SERIES[0], WARM: palette.WARM}
"""Colours in the legend."""


def gantt_of(timeline: Timeline) -> Spec:
    """The chart: a band a NUMA node, in it a row for each container at a time."""
    edges = np.cumsum([0, *(max(1, node.lanes) for node in timeline.nodes)])
    names = [f"{printable(node.server)} · NUMA {node.node_id}" for node in timeline.nodes]
    middles = [f"{middle:.1f}" for middle in (edges[:-1] + edges[1:]) / 2]
    x = quantity("begin", title="time (s)", axis={"grid": False})
    x["scale"] = {"domain": [0, timeline.end], "nice": False}
    y = quantity("top", title=None)
    y["scale"] = {"domain": [0, int(edges[-1])], "reverse": True, "nice": False}
    y["axis"] = NODES | {"labelLimit": 300, "labelPadding": 6, "values": list(map(float, middles))}
    keys = KEYS | (palette.CHANGES if len(timeline.outages) else {})
    legend = {"orient": "bottom", "columns": len(KEYS), "values": list(keys)}
    fill = by_name("fill", keys | WORKFLOWS, legend)
    servers = ["black" if node.node_id == 0 else "silver" for node in timeline.nodes]
    between = pd.DataFrame({"top": edges[:-1], "colour": servers})
    lines = mark("rule", {}, y=y, color=word("colour", scale=None))
    bars = mark("rect", outlined("fill"), **box(x, y), fill=fill)
    count = len(timeline.containers)
    title = f"{printable(timeline.name)}: {count} containers, coloured by workflow"
    return {
        "title": {"text": title, "limit": WIDTH},
        "width": WIDTH,
        "height": int(np.clip(ROW * edges[-1], LOWEST, HIGHEST)),
        "params": parameters(names=dict(zip(middles, names, strict=True))),
        "layer": [
            {"data": values(_bars(timeline, edges)), **bars},
            {"data": values(between), **lines},
        ],
        "config": CONFIG,
    }


def _bars(timeline: Timeline, edges: np.ndarray) -> pd.DataFrame:
    """begin, end (s), top, bottom (rows) and fill of every bar; nodes begin at `edges`."""
    tables = []
    for rows, name, begin, end, height in (
        *((timeline.containers, *phase, palette.PHASE_HEIGHTS[phase.name]) for phase in PHASES),
        (timeline.warm, WARM, "begin", "end", palette.WARM_HEIGHT),
    ):
        bars = pd.DataFrame({"begin": rows[begin], "end": rows[end], "fill": name})
        if name == "running":
            bars["fill"] = [f"workflow {wf_id % len(WORKFLOWS)}" for wf_id in rows["wf_id"]]
        middle = edges[rows["node"]] + rows["lane"] + 0.5
        tables.append(bars.assign(top=middle - height / 2, bottom=middle + height / 2))
    killed = timeline.containers[timeline.containers["killed"]]
    middle, end = edges[killed["node"]] + killed["lane"] + 0.5, killed["completion_time"]
    marks = pd.DataFrame({"begin": end - palette.KILLED_SHARE * timeline.end, "end": end})
    tables.insert(0, marks.assign(fill="killed", top=middle - 0.5, bottom=middle + 0.5))
    out = timeline.outages
    spans = pd.DataFrame({"begin": out["begin"], "end": out["end"], "fill": out["condition"]})
    tables.append(spans.assign(top=edges[out["node"]], bottom=edges[out["node"] + out["nodes"]]))
    # What comes first in the life of a container is short and drawn last, so that it is seen.
    return pd.concat(tables[::-1]).query("end > begin")


def draw_gantt(timeline: Timeline, path: Path) -> None:
    """Writes `gantt_of` an episode as a .png file, whole or not at all; or `NotDrawn`."""
    picture = draw({"gantt": gantt_of(timeline)})["gantt"]["png"]
    with written_whole(path) as temporary:
        temporary.write_bytes(picture)


main = command(
    "picture",
    read_timeline,
    draw_gantt,
    Path("gantt.png"),
    "Draw the Gantt chart of an episode file as a PNG.",
)

if __name__ == "__main__":
    main()
