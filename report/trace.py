"""Traces for Perfetto and chrome://tracing: `python -m report.trace EPISODE`.

The JSON of the Trace Event Format: a process a server, a thread a NUMA node, counters beside them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from env.base.files import written_whole
from report.episode_command import command
from report.timeline import PHASES, Timeline, read_timeline

Event = dict[str, Any]
"""One event of the format."""


def trace_of(timeline: Timeline) -> dict[str, Any]:
    """An episode as a trace.

    Slices of one thread have to lie within each other, so containers that run at the same time on
    a NUMA node are on threads of their own: `NUMA node 0`, `NUMA node 0 (2)`, ... A container is a
    slice from its submission to its completion with its phases inside; where it is preempted, one
    for each run. Idle containers are slices of their own.

    Returns:
        An object of the Trace Event Format (Google, "Trace Event Format"); times are whole
        microseconds of simulated time, so that rounding does not move a phase out of its container.
    """
    events: list[Event] = []
    servers: dict[str, int] = {}
    threads: dict[tuple[int, int], tuple[int, int]] = {}  # by node and lane, with the process
    for index, node in enumerate(timeline.nodes):
        process = servers.setdefault(node.server, len(servers) + 1)
        if node.node_id == 0:
            events += _named("process", process, 0, node.server)
        called = f"NUMA node {node.node_id}"
        for lane in range(max(1, node.lanes)):
            # Numbers are unique over all processes, as those of an operating system.
            threads[index, lane] = process, len(threads) + 1
            events += _named(
                "thread", *threads[index, lane], f"{called} ({lane + 1})" if lane else called
            )
        for name, times, values in (
            ("CPU (%)", node.times, 100.0 * node.cpu),
            ("memory (%)", node.times, 100.0 * node.memory),
            ("queue", *timeline.in_phase("waiting", index)),
        ):
            events += _counter(process, f"{called} {name}", name, times, values)
    for container in timeline.containers.to_dict("records"):
        events += _slices(*threads[container["node"], container["lane"]], container, timeline)
    for idle in timeline.warm.to_dict("records"):
        thread = threads[idle["node"], idle["lane"]]
        events.append(_slice(*thread, "warm and idle", idle["begin"], idle["end"]))
    times, waiting = timeline.in_phase("central queue")
    if len(times) > 1:
        process = len(servers) + 1
        events += _named("process", process, 0, "central queue")
        events += _counter(process, "central queue", "functions", times, waiting)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"episode": timeline.name},
    }


def write_trace(timeline: Timeline, path: Path) -> None:
    """Writes `trace_of` an episode; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(trace_of(timeline), separators=(",", ":")))


def _slices(
    process: int, thread: int, container: Mapping[str, Any], timeline: Timeline
) -> list[Event]:
    """The container, then its phases."""
    wf_id, fn_id = container["wf_id"], container["fn_id"]
    args = {
        "operations": container["computation"],
        "memory required (MB)": container["memory_req"],
        "memory given (MB)": container["memory_alloc"],
        "parallelism": container["parallelism"],
    }
    if timeline.tenants:
        args["tenant"] = timeline.tenants[wf_id]
    workflow, function = timeline.workflow_label(wf_id), timeline.function_label(wf_id, fn_id)
    called = {"name": f"workflow {workflow} function {function}", "args": args}
    whole, *parts = (
        _slice(process, thread, name, container[begin], container[end])
        for name, begin, end in (("container", PHASES[0].begin, PHASES[-1].end), *PHASES)
    )
    return [whole | called, *(part for part in parts if part["dur"] > 0)]


def _slice(process: int, thread: int, name: str, begin: float, end: float) -> Event:
    lasts = _microseconds(end) - _microseconds(begin)
    return _event("X", name, process, thread, begin, cat=name, dur=lasts)


def _counter(
    process: int, name: str, key: str, times: np.ndarray, values: np.ndarray
) -> list[Event]:
    return [
        _event("C", name, process, 0, time, args={key: round(float(value), 3)})
        for time, value in zip(times, values, strict=True)
    ]


def _named(what: str, process: int, thread: int, name: str) -> list[Event]:
    """Events that name a process or thread, and say where it stands."""
    place = process if what == "process" else thread
    return [
        _event("M", f"{what}_name", process, thread, 0.0, args={"name": name}),
        _event("M", f"{what}_sort_index", process, thread, 0.0, args={"sort_index": place}),
    ]


def _event(kind: str, name: str, process: int, thread: int, seconds: float, **more: Any) -> Event:
    at = {"pid": process, "tid": thread, "ts": _microseconds(seconds)}
    return {"name": name, "ph": kind, **at, **more}


def _microseconds(seconds: float) -> int:
    return round(float(seconds) * 1e6)


main = command(
    "trace",
    read_timeline,
    write_trace,
    Path("trace.json"),
    "Make a trace for ui.perfetto.dev or chrome://tracing from an episode file.",
)

if __name__ == "__main__":
    main()
