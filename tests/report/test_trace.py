"""Traces obey the Trace Event Format and say what happened in the episode."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from report.timeline import Timeline, read_timeline
from report.trace import main, trace_of
from tests.episodes import GOLDEN
from tests.recorded_worlds import world

CHAIN, MEMORY_WAITING = GOLDEN[1], GOLDEN[3]
METADATA = {"name": str, "sort_index": int}
"""Of processes and threads."""


def check_format(trace: dict[str, Any]) -> None:
    """The rules of the JSON object format for the kinds of events that are used here."""
    assert isinstance(trace["traceEvents"], list)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    slices = defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event["ts"], int) and event["ts"] >= 0
        match event["ph"]:
            case "M":
                key = event["name"].removeprefix("process_").removeprefix("thread_")
                assert isinstance(event["args"][key], METADATA[key])
            case "C":
                assert event["args"]
                assert all(isinstance(value, int | float) for value in event["args"].values())
            case "X":
                assert isinstance(event["dur"], int) and event["dur"] >= 0
                slices[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
            case other:
                pytest.fail(f"{other} is not a kind of event that is used")
    # Slices of a thread lie within each other or apart; viewers drop others.
    for of_thread in slices.values():
        open_until: list[int] = []
        for begin, duration in sorted(of_thread, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or begin + duration <= open_until[-1]
            open_until.append(begin + duration)


def named(trace: dict[str, Any], kind: str) -> dict[int, list[str]]:
    """Names of processes or threads, by process."""
    names = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["name"] == kind:
            names[event["pid"]].append(event["args"]["name"])
    return dict(names)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_format_is_kept(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "trace.json"
    main([str(path), "-o", str(target)])
    check_format(json.loads(target.read_text()))
    assert capsys.readouterr().out == f"trace: {target}\n"


def test_other_worlds_tell_queue_cold_starts_and_warm_containers_apart() -> None:
    timeline = Timeline(world("rr", keep_alive="lru", patience=30.0), "world")
    trace = json.loads(json.dumps(trace_of(timeline), allow_nan=False))
    check_format(trace)
    phases = {event["cat"] for event in trace["traceEvents"] if event["ph"] == "X"}
    starts = {"server cold start", "container cold start", "transfer"}
    assert phases == {"container", "central queue", *starts, "running", "warm and idle"}
    assert ["central queue"] in named(trace, "process_name").values()
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    waiting = [each["args"]["functions"] for each in counters if each["name"] == "central queue"]
    assert waiting[0] == waiting[-1] == 0 and max(waiting) > 1


def test_processes_are_servers_and_threads_numa_nodes() -> None:
    trace = trace_of(read_timeline(CHAIN))
    assert list(named(trace, "process_name").values()) == [["small 0"], ["large 0"]]
    first, second = "NUMA node 0", "NUMA node 1"
    assert list(named(trace, "thread_name").values()) == [[first, second], [first]]


def test_the_phases_of_a_container_in_microseconds() -> None:
    """Submitted after 1 s, the server up after 2 s, memory free after 12 s, done after 20 s."""
    events = trace_of(read_timeline(MEMORY_WAITING))["traceEvents"]
    (whole,) = [event for event in events if event["name"] == "workflow 1 function 0"]
    assert whole["args"]["memory given (MB)"] == 1024
    inside = [
        (event["name"], event["ts"], event["dur"])
        for event in events
        if event["ph"] == "X" and event["tid"] == whole["tid"] and event is not whole
    ]
    assert inside == [
        ("server cold start", 1_000_000, 1_000_000),
        ("waiting", 2_000_000, 10_000_000),
        ("running", 12_000_000, 8_000_000),
    ]


def test_counters_of_cpu_memory_and_queue() -> None:
    events = trace_of(read_timeline(MEMORY_WAITING))["traceEvents"]
    counters = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            (value,) = event["args"].values()
            counters[event["name"]].append((event["ts"], value))
    names = {f"NUMA node 0 {what}" for what in ("CPU (%)", "memory (%)", "queue")}
    assert set(counters) == names
    waiting = [(0, 0), (2_000_000, 1), (3_000_000, 2), (12_000_000, 1), (13_000_000, 0)]
    assert counters["NUMA node 0 queue"] == waiting
    assert counters["NUMA node 0 CPU (%)"][-1][1] == 0
