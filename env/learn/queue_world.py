"""Episodes in which the agent `queue` learns: samples of a trace, before those of evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.learn.agent import Agent, Observation
from env.learn.layouts import AgentsConfig
from env.learn.queue_agent import CRITIC, QUEUE_METRICS, QueueAgent, QueueReference, QueueTurns
from env.learn.queue_places import new_turns
from env.learn.turns import QUEUE_TURN
from env.sim.cluster_file import cluster_from_config
from env.sim.hardware import ClusterConfig
from env.sim.keep_alive_policy import KeepAlivePolicy
from env.sim.rules import KeepAlive, Rules
from env.workloads.generator import training_seed
from env.workloads.traces.profiles import largest_memory
from env.workloads.traces.simulate import Simulation, check_memory, stream
from env.workloads.traces.trace import REQUEST, FunctionProfiles, Trace
from env.workloads.traces.trace_samples import SampleSettings, TraceConfig, sample_recording

HELD_OUT_SEEDS = 2**32
"""Seeds of traces in training start here; those of evaluations are below."""
ATTEMPTS = 100
"""Episodes without a choice that are passed over before the world is refused."""
Taken = tuple[int, int, Any]
"""Turn, index of the agent, action."""


class QueueWorldConfig(Strict):
    """What a `QueueWorld` is made of besides `cluster` and `trace`.

    Attributes:
        queue_agent: settings of the agent.
        agents: the layout of those who place, if `queue_agent.placement` is `learned`.
        keep_alives: policies; an episode has one of them.
        samples: of the trace, by name; an episode plays one of them, at one of its ratios.
        seed: of the training episodes.
    """

    queue_agent: QueueAgent
    agents: AgentsConfig
    keep_alives: tuple[KeepAlivePolicy, ...]
    samples: dict[str, SampleSettings]
    seed: int


class CompletionTimes:
    """The sum of all completion times so far, which is the integral of the requests present.

    Args:
        arrivals: (K,) seconds, ascending.
        ends: seconds, ascending; of all requests, or of those that have ended.
    """

    def __init__(self, arrivals: np.ndarray, ends: np.ndarray) -> None:
        self._arrivals, self._ends = arrivals, ends
        self._arrived, self._ended = (
            np.concatenate([[0.0], np.cumsum(times)]) for times in (arrivals, ends)
        )

    def until(self, time: float) -> tuple[float, int]:
        """Seconds up to a time, and how many requests are present then."""
        arrived = int(np.searchsorted(self._arrivals, time, side="right"))
        ended = int(np.searchsorted(self._ends, time, side="right"))
        present = arrived - ended
        return present * time - self._arrived[arrived] + self._ended[ended], present


@dataclass(frozen=True, eq=False)
class QueueWorkload:
    """What arrives in an episode.

    Attributes:
        profiles: of the functions.
        requests: REQUEST (K,), ascending in time.
        history: requests before, from which idle times are learned.
        keep_alive: how long containers stay warm.
    """

    profiles: FunctionProfiles
    requests: np.ndarray
    history: Trace
    keep_alive: KeepAlive

    @property
    def trace(self) -> Trace:
        """The requests."""
        return Trace(self.profiles, lambda: iter([self.requests]))


class QueueEpisode:
    """One episode: whoever acts at a turn decides, and all earn what completion times rise.

    A decision is `act` for all who are `acting` at each of the `turns`, then `step`.

    The reference is what comes of `funcsched`, in full: its sum of completion times is the unit of
    rewards. So the return of an episode is -J, and J the mean completion time over that of the
    reference.

    Args:
        workload: what arrives.
        cluster: the hardware.
        settings: of the agent `queue`.
        layout: who places, None: the agent's rule.

    Attributes:
        done: whether it is over.
        decisions: so far.
        taken: all actions so far.
    """

    def __init__(
        self,
        workload: QueueWorkload,
        cluster: ClusterConfig,
        settings: QueueAgent,
        layout: AgentsConfig | None = None,
    ) -> None:
        def rules(chooser: QueueTurns) -> Rules:
            return Rules.always_up(settings, workload.keep_alive, settings.rule, chooser)

        arrivals = workload.requests["time"]
        reference = rules(QueueReference(settings))
        played = stream(workload.trace, cluster, reference, history=workload.history)
        ends = np.concatenate([runs["end_time"] for runs in played])
        self._unit = float(ends.sum() - arrivals.sum())
        self._reference = CompletionTimes(arrivals, np.sort(ends))
        self._arrivals = CompletionTimes(arrivals, np.zeros(0))
        self._count = len(arrivals)
        self._times = arrivals
        self._turns = new_turns(settings, layout, cluster)
        self._simulation = Simulation(workload.profiles, cluster, rules(self._turns))
        self._simulation.learn(workload.history)
        self._play = self._simulation.play(workload.trace)
        self._sums = dict.fromkeys(("completion", "queueing", "cold_start"), 0.0)
        self._ended, self._sum_of_ends = 0, 0.0
        self._cost = 0.0
        self.decisions = 0
        self.done = False
        self.taken: list[Taken] = []
        self._play_on()

    @property
    def turns(self) -> tuple[int, ...]:
        """Of a decision."""
        return self._turns.turns

    def agents_of(self, turn: int) -> list[Agent]:
        """Who can act at a turn."""
        return self._turns.agents_of(turn)

    def acting(self, turn: int) -> list[int]:
        """Who of `agents_of(turn)` does act."""
        return self._turns.acting(turn)

    def see(self, turn: int, agent: int, out: Observation) -> None:
        """Writes the observation of one who acts, the critic's part included."""
        self._turns.see(turn, agent, self._simulation.state, out)
        time = self.time
        cost, present = self._cost_until(time)
        reference, present_there = self._reference.until(time)
        critic = out["critic"]
        critic[CRITIC.reference_left] = 1.0 - reference / self._unit
        critic[CRITIC.lead] = np.clip((cost - reference) / self._unit, -10.0, 10.0)
        critic[CRITIC.active] = np.log1p(present) / 5.0
        critic[CRITIC.active_over_reference] = np.log((1.0 + present) / (1.0 + present_there))
        critic[CRITIC.requests_left] = (
            1.0 - np.searchsorted(self._times, time, side="right") / self._count
        )
        critic[CRITIC.requests_in_all] = np.log1p(self._count) / 10.0

    def act(self, turn: int, agent: int, action: Any) -> None:
        """Takes the action of one who acts: checked, an integer or a bid and a place."""
        self._turns.act(turn, agent, self._simulation.state, action)
        self.taken.append((turn, agent, action))

    def replay(self, taken: Sequence[Taken], in_turn: bool) -> None:
        """Goes where another episode of the same workload is, from the begin.

        Args:
            taken: what was taken there.
            in_turn: whether turns of the last decision are still to be taken.
        """
        for number, (turn, agent, action) in enumerate(taken):
            if number > 0 and turn == QUEUE_TURN:
                self.step()
            self.act(turn, agent, action)
        if taken and not in_turn:
            self.step()

    def step(self) -> float:
        """Does what was decided and plays on to the next choice, or to the end.

        Returns:
            the reward.
        """
        self._turns.finish(self._simulation.state)
        self.decisions += 1
        self._play_on()
        before = self._cost
        self._cost = (
            self._sums["completion"] if self.done else self._cost_until(self.time)[0]
        ) / self._unit
        return before - self._cost

    @property
    def time(self) -> float:
        """Seconds since the begin."""
        return float(self._simulation.state.cluster[0]["time"])

    @property
    def metrics(self) -> dict[str, float]:
        """Of an episode that is over, by the names in `QUEUE_METRICS`."""
        means = {key: total / self._count for key, total in self._sums.items()}
        reference = self._unit / self._count
        own = {"J": means["completion"] / reference, "reference": reference, **means}
        own |= {"requests": self._count, "decisions": self.decisions}
        return {name: float(own[name]) for name in QUEUE_METRICS}

    def _cost_until(self, time: float) -> tuple[float, int]:
        """As `CompletionTimes.until`, of what the agent has made of the requests."""
        arrived, present = self._arrivals.until(time)
        return arrived + self._sum_of_ends - self._ended * time, present - self._ended

    def _play_on(self) -> None:
        for runs in self._play:
            self._add(runs)
            if self._simulation.choosing:
                return
        self.done = True

    def _add(self, runs: np.ndarray) -> None:
        if not len(runs):
            return
        self._ended += len(runs)
        self._sum_of_ends += float(runs["end_time"].sum())
        self._sums["completion"] += float((runs["end_time"] - runs["submission_time"]).sum())
        self._sums["queueing"] += float(runs["queueing_time"].sum())
        self._sums["cold_start"] += float(runs["cold_start_time"].sum())


class QueueWorld:
    """Where the episodes of the agent `queue` come from.

    Each draws a sample, a ratio, a keep-alive policy, a seed that no evaluation has, and a window
    that ends before the one of that sample begins.

    Args:
        config: plain mappings `cluster`, `trace`, `queue_agent`, `agents`, `samples` and
            `keep_alives`, and `seed`, that of the training episodes.

    Attributes:
        agent: settings of the agent `queue`.
        layout: of those who place, None: a rule does.
        cluster: the hardware.
        seed: of the training episodes.

    Raises:
        InputError: a group does not validate, a sample has no minutes before its window, or
            ones that are not in the trace, or a function may be given more memory than any NUMA
            node has.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        keys = QueueWorldConfig.model_fields
        told = validated(QueueWorldConfig, {key: config[key] for key in keys}, "dispatch")
        self.cluster = cluster_from_config(config["cluster"], "cluster")
        self.agent, self.seed = told.queue_agent, told.seed
        self.layout = told.agents if self.agent.placement == "learned" else None
        self._keep_alives = told.keep_alives
        self._samples = list(told.samples.values())
        self._trace = validated(TraceConfig, config["trace"], "trace")
        self._recording = self._trace.source.read(self._trace.annotation.min_duration)
        for name, sample in told.samples.items():
            length = self._trace.sampling.minutes * sample.compression
            if sample.start < length:
                raise InputError(
                    f"dispatch.samples.{name}: start is {sample.start} min, training plays windows "
                    f"of {length} min before it: allowed: at least {length}"
                )
            last = sample.of(self._trace, 1.0, self.seed, sample.start - length).sampling
            minutes = self._recording.invocations.minutes
            last.check_window(self._recording.source, minutes, f"dispatch.samples.{name}")
        self._check_memory()

    def new_turns(self) -> QueueTurns:
        """Of one episode."""
        return new_turns(self.agent, self.layout, self.cluster)

    def training_episode(
        self, seed: int, worker: int, environment: int, episode: int
    ) -> QueueEpisode:
        """An episode with at least one choice.

        Raises:
            InputError: there is none.
        """
        sequence = training_seed(seed, worker, environment, episode)
        rng = np.random.default_rng(sequence)
        for _ in range(ATTEMPTS):
            workload = self._draw(rng)
            if len(workload.requests):
                found = QueueEpisode(workload, self.cluster, self.agent, self.layout)
                if not found.done:
                    return found
        raise InputError(
            f"dispatch.samples: of {ATTEMPTS} episodes none has a choice, ratios are too low for "
            "the cluster"
        )

    def _check_memory(self) -> None:
        """Every episode has a seed of its own, so what counts is the most that any seed gives."""
        rules = self._trace.annotation
        try:
            check_memory(
                self._recording.names, largest_memory(self._recording, rules), self.cluster
            )
        except InputError as error:
            raise InputError(
                f"trace.annotation: with memory_factor {rules.memory_factor[1]:g} and max_memory "
                f"{rules.max_memory:g} {error}"
            ) from None

    def _draw(self, rng: np.random.Generator) -> QueueWorkload:
        sample = self._samples[rng.integers(len(self._samples))]
        ratio = sample.ratios[rng.integers(len(sample.ratios))]
        keep_alive = self._keep_alives[rng.integers(len(self._keep_alives))]
        length = self._trace.sampling.minutes * sample.compression
        begin = int(rng.integers(sample.start - length + 1))
        seed = HELD_OUT_SEEDS + int(rng.integers(2**32))
        config = sample.of(self._trace, ratio, seed, begin)
        found = sample_recording(self._recording, config)
        requests = list(found.window.requests())
        return QueueWorkload(
            found.window.profiles,
            np.concatenate(requests) if requests else np.zeros(0, REQUEST),
            found.history,
            keep_alive,
        )
