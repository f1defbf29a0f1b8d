"""Plays traces of any length under queued dispatch: `simulate` keeps all, `Simulation` nothing.

A single function is a workflow of one function. Requests come in chunks, and records are recycled:
memory is bounded by what waits and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from env.base.errors import InputError
from env.sim.assembly.build import build
from env.sim.assembly.go_on import go_on
from env.sim.assembly.new_state import reset
from env.sim.assembly.with_rules import larger, room_for_timers, with_more_warm
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.events.engine import play
from env.sim.events.submissions import schedule_arrival
from env.sim.node.idle_forecast import learn
from env.sim.node.keep_alive import keep_warm
from env.sim.queue.central_queue import CHOSEN
from env.sim.state.block import State
from env.sim.state.history import DISPATCHED, RUN, listening, runs_of
from env.sim.state.records import ARRIVING, COMPLETED, ENTRY, NONE
from env.workloads.traces.trace import FunctionProfiles
from env.workloads.traces.trace_samples import TraceSample

CHUNK = 4096
"""Requests that are given to the simulator at a time; they wait there until they arrive."""
SLOTS = (
    *("workflows", "tracked", "slot_of", "scratch"),
    *("functions", "submitted", "completed", "requests"),
)
"""Arrays with an entry for each slot of a trace, whose workflows have one function."""


@dataclass(frozen=True, eq=False)
class Requests:
    """What became of K requests, in the order of the trace. Every array is (K,).

    Attributes:
        queueing: seconds in the central queue, after preemptions too.
        cold_start: seconds of all its cold starts.
        completion: seconds from arrival to end, the completion time of the literature.
        node: NUMA node of its last run.
        preemptions: how often it was taken off a node.
    """

    queueing: np.ndarray
    cold_start: np.ndarray
    completion: np.ndarray
    node: np.ndarray
    preemptions: np.ndarray

    @classmethod
    def of(cls, runs: np.ndarray) -> Requests:
        """Of the RUN records of a finished trace."""
        count = int(runs["wf_id"].max(initial=-1)) + 1

        def total(field: str) -> np.ndarray:
            return np.bincount(runs["wf_id"], runs[field], count)

        starts = np.bincount(runs["wf_id"], minlength=count)
        ends = runs[runs["outcome"] == COMPLETED]
        ends = ends[np.argsort(ends["wf_id"])]
        return cls(
            queueing=total("queueing_time"),
            cold_start=total("cold_start_time"),
            completion=ends["end_time"] - ends["submission_time"],
            node=ends["node"],
            preemptions=starts - 1,
        )


def simulate(
    trace: TraceSample,
    cluster: ClusterConfig,
    rules: Rules,
    warm: Sequence[tuple[int, int]] = (),
) -> np.ndarray:
    """Plays a finite trace to its end; returns RUN records in the order of their ends.

    Args:
        trace: the requests; from its history idle times are learned.
        cluster: the hardware.
        rules: how the world works; functions wait centrally.
        warm: containers that are warm at time 0, (NUMA node, function) each.

    Raises:
        InputError: a function needs more memory than any NUMA node has.
    """
    simulation = Simulation(trace.profiles, cluster, rules)
    for node, function in warm:
        simulation.keep_warm(node, function)
    if simulation.state.idle_times.shape[1]:  # the policy remembers idle times
        learn(simulation.state, trace.earlier())
    return np.concatenate([np.zeros(0, RUN), *simulation.play(trace.requests)])


def with_slots(state: State, slots: int) -> State:
    """The state of a trace in the midst of its episode, with more slots for active requests."""
    known = len(state.workflows)
    # The ring of free slots is laid out from its beginning, the new ones behind it.
    ring = np.roll(state.free_slots, -int(state.cluster[0]["first_free_slot"]))
    free = ring[: int(state.cluster[0]["free_slots"])]
    grown = {name: larger(getattr(state, name), slots) for name in SLOTS}
    grown["containers"] = larger(state.containers, slots + 1)
    grown["free_slots"] = larger(np.concatenate([free, np.arange(known, slots)]), slots)
    state = state.replaced(**grown, timers=room_for_timers(state, grown))
    if state.cluster[0]["listens"]:
        state = listening(state)
    state.cluster["first_free_slot"] = 0
    state.cluster["free_slots"] += slots - known
    state.workflows["wf_id"][known:] = NONE
    state.functions["node"][known:] = NONE
    state.requests["run"][known:] = NONE
    return state


class Simulation:
    """A trace being played, which may be endless.

    Attributes:
        state: the records; replaced by larger ones when more requests are active than
            there are slots.
    """

    def __init__(
        self,
        profiles: FunctionProfiles,
        cluster: ClusterConfig,
        rules: Rules,
        tenants: Sequence[str] = (),
        funding: Funding | None = None,
        seed: int = 0,
        listens: bool = True,
    ) -> None:
        """Nothing has arrived.

        Args:
            profiles: of the functions.
            cluster: the hardware.
            rules: how the world works; functions wait centrally.
            tenants: whose each function is; empty: nobody is told apart.
            funding: the tickets of the tenants; None where nobody holds any.
            seed: of what the order draws.
            listens: whether `play` yields what has run.

        Raises:
            InputError: see `simulate`; or a tenant without tickets.
        """
        asks = rules.placement == "asked" or rules.options()[0]["order"] == CHOSEN
        if rules.order is None or asks:
            raise InputError(
                "rules: a trace is played with an order other than 'chosen', and a placement other "
                "than 'asked'"
            )
        self._profiles = profiles
        self._speed = cluster.single_core_speed
        templates = profiles.templates(self._speed)
        # As if each function was asked for once.
        every = EpisodeWorkload(
            (0.0,) * len(templates),
            templates,
            tuple(tenants) if funding is not None else (),
            images=Images.by_name(templates, profiles.cold_start),
            funding=funding,
            turns_seed=seed,
        )
        episode = Episode(every, cluster, rules)
        self._tenant_of = np.array(episode.owners)
        self.state = build(episode).replaced(arrivals=np.zeros(0, ARRIVING))
        reset(self.state)
        self.state = with_slots(self.state, max(CHUNK, len(templates)))
        if listens:
            self.state = listening(self.state)
        self._running = np.zeros(0, ENTRY)
        self.state.queue["first_number"] = 0
        self.state.queue["more_arrivals"] = 1
        self._given = 0

    def keep_warm(self, node: int, function: int) -> None:
        """A container of a function is idle on a NUMA node at time 0."""
        memory = int(self._profiles.memory[function])
        until = float(self.state.images[function]["keep_until"])
        if self.state.queue[0]["idle_used"] == len(self.state.idle):
            self.state = with_more_warm(self.state)
        keep_warm(self.state, node, function, memory, 0.0, until)

    def play(self, requests: Callable[[], Iterator[np.ndarray]]) -> Iterator[np.ndarray]:
        """Plays all requests; yields RUN records, once for each chunk, if it listens."""
        for chunk in requests():
            for first in range(0, len(chunk), CHUNK):
                self._give(chunk[first : first + CHUNK])
                yield from self._play_on()
        self.state.queue["more_arrivals"] = 0
        yield from self._play_on()

    def _play_on(self) -> Iterator[np.ndarray]:
        """Up to the end of what has been given."""
        taken: list[np.ndarray] = []
        go_on(self, play(self.state), taken.append)
        if not self.state.cluster[0]["listens"]:
            return
        history = np.concatenate([self._running, *taken])
        runs = runs_of(history)
        begun = history[history["kind"] == DISPATCHED]
        self._running = begun[~np.isin(begun["number"], runs["dispatched"])]
        yield runs

    def _give(self, chunk: np.ndarray) -> None:
        """The next arrivals, with a free slot for each of them."""
        if int(self.state.cluster[0]["free_slots"]) < len(chunk):
            slots = 2 * len(self.state.workflows)
            self.state = with_slots(self.state, slots)
        arrivals = np.zeros(len(chunk), ARRIVING)
        arrivals["time"] = chunk["time"]
        arrivals["template"] = chunk["function"]
        arrivals["tenant"], arrivals["tickets"] = self._tenant_of[chunk["function"]], 1.0
        arrivals["computation"] = self._profiles.operations(
            chunk["function"], chunk["duration"], self._speed
        )
        self.state = self.state.replaced(arrivals=arrivals)
        self.state.queue["first_number"] += self._given
        self.state.cluster["arrivals_left"] = self._given = len(chunk)
        schedule_arrival(self.state, 0)
