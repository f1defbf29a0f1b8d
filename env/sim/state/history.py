"""The history of an episode: an entry for all that happens, where somebody listens.

The engine appends entries to `State.history`, and stops for them to be taken before that is full.
Nobody listens to what is played in a copy. Runs, warm periods and leases are readings of the
entries.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.sim.state.block import State
from env.sim.state.records import DOWN, INF

DISPATCHED: Final = 0  # a function gets a container
ENDED: Final = 1  # it leaves that
WARM: Final = 2  # a container is idle from now on
COLD: Final = 3  # it is used, or removed
LEASED: Final = 4  # a lease begins or is extended
CONDITION: Final = 5  # a server is in service, draining or down from now on

ROOM: Final = 1 << 10
"""Entries that there is room for beyond those of one event."""

# A function's time in one container: a reading of two entries.
RUN = np.dtype(
    [
        ("wf_id", np.int64),  # in a trace the number of the request
        ("fn_id", np.int64),
        ("declared", np.int64),  # function of a trace
        ("node", np.int64),
        ("memory_alloc", np.int64),
        ("computation", np.int64),  # operations that it had left when it was dispatched
        ("warm", np.int64),  # 1: in a warm container
        ("joined", np.int64),  # number of its joining the queue for this run; one count, with the
        ("dispatched", np.int64),  # number of its dispatch: who has the smaller one came first
        ("submission_time", np.float64),
        ("joined_time", np.float64),
        ("dispatch_time", np.float64),
        ("start_time", np.float64),
        ("end_time", np.float64),
        ("outcome", np.int64),  # COMPLETED, PREEMPTED or KILLED
        ("queueing_time", np.float64),  # seconds, as are the next
        ("server_start_time", np.float64),
        ("cold_start_time", np.float64),
        ("data_transfer_time", np.float64),
        ("execution_time", np.float64),
    ]
)

# Fields of a RUN, and what they are called in the entry of its dispatch, in that of its end, and in
# both: expected at the dispatch, spared at the end.
AT_DISPATCH: Final = {
    **{name: name for name in ("wf_id", "fn_id", "declared", "node", "computation", "joined")},
    **{name: name for name in ("joined_time", "submission_time")},
    **{"memory_alloc": "memory", "warm": "flag", "dispatched": "number", "dispatch_time": "time"},
}
AT_END: Final = {"start_time": "start_time", "end_time": "time", "outcome": "flag"}
SPENT: Final = {
    "server_start_time": "server_start",
    "cold_start_time": "cold_start",
    "data_transfer_time": "transfer",
}


def listening(state: State) -> State:
    """The state with room for entries; those that it has stay."""
    history = np.zeros(ROOM + most_entries(state), state.history.dtype)
    history[: len(state.history)] = state.history
    state = state.replaced(history=history)
    state.cluster["listens"] = 1
    return state


@compiled
def most_entries(state: State):
    """Entries of one event: it may end all containers, remove all idle ones, renew all leases."""
    return 2 * len(state.containers) + len(state.idle) + 2 * len(state.servers)


@compiled
def next_entry(state: State, kind: int):
    """Index of a new entry of this moment, which belongs to the caller."""
    entry = state.cluster[0].entries
    state.cluster[0].entries = entry + 1
    state.history[entry].kind = kind
    state.history[entry].time = state.cluster[0].time
    return entry


@compiled_apart
def note_dispatch(state: State, index, node, server_start, cold_start, transfer) -> None:
    """A function gets a container: the seconds of what comes before its start."""
    entry, history, functions = next_entry(state, DISPATCHED), state.history, state.functions
    function = state.containers[index].function
    history[entry].wf_id = functions[function].wf_id
    history[entry].fn_id = functions[function].fn_id
    history[entry].declared = functions[function].declared
    history[entry].node = node
    history[entry].memory = state.containers[index].memory_alloc
    history[entry].computation = functions[function].remaining_computation
    history[entry].submission_time = functions[function].submission_time
    history[entry].server_start = server_start
    history[entry].cold_start = cold_start
    history[entry].transfer = transfer
    history[entry].joined_time = functions[function].joined_time
    history[entry].number = state.containers[index].dispatch
    history[entry].joined = history[entry].flag = 0
    if len(state.images) > 0:
        history[entry].wf_id = state.requests[function].wf_id
        history[entry].joined = state.requests[function].number
        history[entry].flag = state.requests[function].warm


@compiled_apart
def note_end(state: State, index: int, outcome: int) -> None:
    """A function leaves its container: the seconds that were spared of what comes before its start.

    One that is killed before its start is said to start when it ends. Of what it was spared the
    data come last; a server that another function had started is not told apart.
    """
    entry, history, containers = next_entry(state, ENDED), state.history, state.containers
    function, time = containers[index].function, history[entry].time
    history[entry].number = containers[index].dispatch
    started = state.functions[function].start_time
    history[entry].start_time = started
    history[entry].flag = outcome
    left = transfer = cold_start = 0.0
    if not started <= time:
        history[entry].start_time = time
        left = max(0.0, containers[index].creation_time - time)
        transfer = min(left, containers[index].data_transfer_time)
        if len(state.images) > 0:
            cold_start = min(left - transfer, state.requests[function].cold_start)
    history[entry].server_start = left - transfer - cold_start
    history[entry].cold_start = cold_start
    history[entry].transfer = transfer


@compiled
def note_idle(state: State, kind: int, index: int) -> None:
    """An idle container is WARM from now on, or COLD."""
    if state.cluster[0].listens == 1:
        entry, history = next_entry(state, kind), state.history
        history[entry].node = state.idle[index].node
        history[entry].image = state.idle[index].image
        history[entry].memory = state.idle[index].memory
        history[entry].number = state.idle[index].number


@compiled
def note_lease(state: State, server: int, starts, begin: float, end: float, rent: float) -> None:
    """A server, which `starts` or is up (0), is leased from `begin` to `end` (s) for USD."""
    if state.cluster[0].listens == 1:
        entry, history = next_entry(state, LEASED), state.history
        history[entry].node = server
        history[entry].flag = starts
        history[entry].start_time = begin
        history[entry].end_time = end
        history[entry].rent = rent


@compiled
def note_condition(state: State, server: int, condition: int) -> None:
    """A server has another condition from now on."""
    if state.cluster[0].listens == 1:
        entry, history = next_entry(state, CONDITION), state.history
        history[entry].node = server
        history[entry].flag = condition
        history[entry].number = state.cluster[0].events


def runs_of(history: np.ndarray) -> np.ndarray:
    """RUN records of all that has left its container, in the order of their ends."""
    kind, number = history["kind"], history["number"]
    begun, ended = np.flatnonzero(kind == DISPATCHED), np.flatnonzero(kind == ENDED)
    begun = begun[np.searchsorted(number[begun], number[ended])]
    runs = np.zeros(len(ended), RUN)
    # Field by field: copies of whole entries take eight times as long.
    for name, field in AT_DISPATCH.items():
        runs[name] = history[field][begun]
    for name, field in AT_END.items():
        runs[name] = history[field][ended]
    for name, field in SPENT.items():
        runs[name] = np.maximum(0.0, history[field][begun] - history[field][ended])
    runs["queueing_time"] = runs["dispatch_time"] - runs["joined_time"]
    runs["execution_time"] = runs["end_time"] - runs["start_time"]
    return runs


def warm_periods_of(history: np.ndarray) -> np.ndarray:
    """The entries of idle containers, in the order in which they became idle.

    Their `end_time` is when each was used or removed; inf while it is warm.
    """
    warm, cold = history[history["kind"] == WARM], history[history["kind"] == COLD]
    ends = dict(zip(cold["number"].tolist(), cold["time"].tolist(), strict=True))
    warm["end_time"] = [ends.get(number, INF) for number in warm["number"].tolist()]
    return warm


def leases_of(history: np.ndarray) -> list[tuple[int, float, float, float]]:
    """(server, begin, end, rent) of each time that a server was up, in s and USD.

    Where a server goes down its lease ends.
    """
    leases: dict[int, list[tuple[int, float, float, float]]] = {}
    fields = ["kind", "time", "node", "flag", "start_time", "end_time", "rent"]
    entries = history[(history["kind"] == LEASED) | (history["kind"] == CONDITION)]
    for kind, time, server, flag, begin, end, rent in entries[fields].tolist():
        earlier = leases.setdefault(server, [])
        if kind == LEASED and (flag or not earlier):
            earlier.append((server, begin, end, rent))
        elif kind == LEASED:
            _, begin, _, paid = earlier.pop()
            earlier.append((server, begin, end, paid + rent))
        elif flag == DOWN and earlier and earlier[-1][2] > time:
            earlier[-1] = (server, earlier[-1][1], time, earlier[-1][3])
    return [lease for server in sorted(leases) for lease in leases[server]]
