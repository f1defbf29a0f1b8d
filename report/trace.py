"""Traces for Perfetto and chrome://tracing: `python -m report.trace EPISODE`.

The JSON of the Trace Event Format: a process a server, a thread a NUMA node, counters beside them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from env.base.files import written_whole
from report.episode_command import convert_episode
from report.timeline import PHASES, NodeUse, Timeline, read_timeline

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
    thread = 0
    for index, node in enumerate(timeline.nodes):
        process = servers.setdefault(node.server, len(servers) + 1)
        if node.node_id == 0:
            events.append(_named(process, 0, "process_name", node.server))
            events.append(_sorted(process, 0, "process_sort_index", process))
        containers = timeline.containers[timeline.containers["node"] == index]
        warm = timeline.warm[timeline.warm["node"] == index]
        for lane in range(max(1, node.lanes)):
            thread += 1  # numbers are unique over all processes, as those of an operating system
            events.append(_named(process, thread, "thread_name", _thread_name(node, lane)))
            events.append(_sorted(process, thread, "thread_sort_index", thread))
            for container in containers[containers["lane"] == lane]:
                events += _slices(process, thread, container, timeline)
            for idle in warm[warm["lane"] == lane]:
                events.append(_slice(process, thread, "warm and idle", idle["begin"], idle["end"]))
        events += _counters(process, node)
    waiting = timeline.central_queue()
    if len(waiting[0]) > 1:
        process = len(servers) + 1
        events.append(_named(process, 0, "process_name", "central queue"))
        events.append(_sorted(process, 0, "process_sort_index", process))
        events += _counter(process, "central queue", "functions", *waiting)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"episode": timeline.name},
    }


def write_trace(timeline: Timeline, path: Path) -> None:
    """Writes `trace_of` an episode; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(trace_of(timeline), separators=(",", ":")))


def write_traces(folder: Path) -> None:
    """Makes `traces/NAME.json` of every `episodes/NAME.json` of an evaluation.

    Raises:
        InputError: one line with the episode file and what is wrong with it.
    """
    traces = folder / "traces"
    for path in sorted((folder / "episodes").glob("*.json")):
        traces.mkdir(exist_ok=True)
        write_trace(read_timeline(path), traces / path.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return convert_episode(
        read_timeline,
        write_trace,
        module="report.trace",
        description="Make a trace for ui.perfetto.dev or chrome://tracing from an episode file.",
        made="trace",
        output=Path("trace.json"),
        arguments=arguments,
    )


def _thread_name(node: NodeUse, lane: int) -> str:
    name = f"NUMA node {node.node_id}"
    return name if lane == 0 else f"{name} ({lane + 1})"


def _slices(process: int, thread: int, container: np.void, timeline: Timeline) -> Iterator[Event]:
    """The container, then its phases."""
    whole = ("container", PHASES[0].begin, PHASES[-1].end)
    for name, begin, end in (whole, *PHASES):
        event = _slice(process, thread, name, container[begin], container[end])
        if name == "container":
            wf_id, fn_id = int(container["wf_id"]), int(container["fn_id"])
            event["name"] = (
                f"workflow {timeline.workflow_label(wf_id)} "
                f"function {timeline.function_label(wf_id, fn_id)}"
            )
            event["args"] = {
                "operations": int(container["computation"]),
                "memory required (MB)": int(container["memory_req"]),
                "memory given (MB)": int(container["memory_alloc"]),
                "parallelism": int(container["parallelism"]),
            }
            if timeline.tenants:
                event["args"]["tenant"] = timeline.tenants[wf_id]
            yield event
        elif event["dur"] > 0:
            yield event


def _slice(process: int, thread: int, name: str, begin: float, end: float) -> Event:
    start = _microseconds(begin)
    return {
        "name": name,
        "cat": name,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": start,
        "dur": _microseconds(end) - start,
    }


def _counters(process: int, node: NodeUse) -> Iterator[Event]:
    series = (
        ("CPU (%)", node.times, 100.0 * node.cpu),
        ("memory (%)", node.times, 100.0 * node.memory),
        ("queue", node.queue_times, node.queue),
    )
    for name, times, values in series:
        yield from _counter(process, f"NUMA node {node.node_id} {name}", name, times, values)


def _counter(
    process: int, name: str, key: str, times: np.ndarray, values: np.ndarray
) -> Iterator[Event]:
    for time, value in zip(times, values, strict=True):
        yield {
            "name": name,
            "ph": "C",
            "pid": process,
            "tid": 0,
            "ts": _microseconds(time),
            "args": {key: round(float(value), 3)},
        }


def _named(process: int, thread: int, kind: str, name: str) -> Event:
    return _metadata(process, thread, kind, {"name": name})


def _sorted(process: int, thread: int, kind: str, position: int) -> Event:
    return _metadata(process, thread, kind, {"sort_index": position})


def _metadata(process: int, thread: int, kind: str, arguments: dict[str, Any]) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "ts": 0, "args": arguments}


def _microseconds(seconds: float) -> int:
    return round(float(seconds) * 1e6)


if __name__ == "__main__":
    sys.exit(main())
