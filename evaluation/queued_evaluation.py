"""Evaluation under queued dispatch: orders and keep-alive policies, all on the same requests.

What arrives is a trace of single functions or, without one, workflows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.baseline import make_rules
from env.base.errors import InputError
from env.base.schema import validated
from env.score.metrics import Metric
from env.score.reward import check_world
from env.sim.cluster_file import cluster_from_config
from env.sim.records import COMPLETED, PREEMPTED
from env.sim.rules import Images, Rules
from env.sim.view.raw_env import RawEnv
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from env.workloads.traces.simulate import Requests, check_memory, simulate
from env.workloads.traces.trace import FunctionProfiles, Trace
from env.workloads.traces.trace_samples import (
    TraceConfig,
    TraceReport,
    TraceSample,
    sample_recording,
)
from evaluation.fingerprint import fingerprint, fingerprint_of_samples
from evaluation.queued_metrics import Times, queued_metrics
from run.dispatch_settings import Queued, make_keep_alive

WORKFLOWS = "workflows"
"""What tables call the sample when workflows arrive."""

LEARNED = "learned"
"""What tables call the order that a policy is."""

SHARES = np.linspace(0.0, 1.0, 201)[1:]
"""Of completion times, at which their distribution is kept."""


@dataclass(frozen=True)
class Case:
    """What is compared: one order under one keep-alive policy, on one load."""

    sample: str
    ratio: float
    keep_alive: str
    order: str


Task = tuple[Case, int]
"""One case with one seed."""


@dataclass(frozen=True)
class CaseRow:
    """What became of one case with one seed: a row of results.parquet.

    Attributes:
        sample, ratio, keep_alive, order: the case.
        seed: with which it was played.
        metrics: by the names of `queued_metrics`.
        completion_quantiles: seconds, completion times at `SHARES`, ascending.
    """

    sample: str
    ratio: float
    keep_alive: str
    order: str
    seed: int
    metrics: dict[str, float]
    completion_quantiles: list[float]

    @property
    def case(self) -> Case:
        """What was played."""
        return Case(self.sample, self.ratio, self.keep_alive, self.order)

    @property
    def key(self) -> Task:
        """What no other row has."""
        return self.case, self.seed


class QueuedEvaluation:
    """All cases of a configuration, checked; processes that play get copies.

    Attributes:
        reports: of each sample, at its last ratio and seed; none of workflows.
        workload_sha256: a hash of what arrives.

    Args:
        config: as composed, in plain containers.

    Raises:
        InputError: something in it cannot be evaluated.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.settings = settings = validated(Queued, config["dispatch"], "dispatch")
        self.cluster = cluster_from_config(config["cluster"], "cluster")
        self.rules: dict[tuple[str, str], Rules] = {
            (keep_alive, order): make_rules(order, make_keep_alive(keep_alive))
            for keep_alive in settings.keep_alives
            for order in settings.orders
        }
        if config["policy"] is not None:
            # PyTorch takes seconds to import; other orders do without.
            from agents.learned.queue_order import LearnedOrder

            learned = LearnedOrder(config["policy"], self.cluster)
            for keep_alive in settings.keep_alives:
                rules = learned.rules(make_keep_alive(keep_alive))
                self.rules[keep_alive, LEARNED] = rules
        self.reports: dict[str, TraceReport] = {}
        self.trace: TraceConfig | None = None
        if config.get("trace") is not None:
            self.trace = trace = validated(TraceConfig, config["trace"], "trace")
            self.recording = trace.source.read(trace.annotation.min_duration)
            self._drawn: tuple[object, TraceSample] | None = None
            self.workload_sha256 = fingerprint_of_samples(self.recording, self._samples(trace))
        else:
            self.episodes = int(config["episodes"])
            self.cold_start = validated(
                WorkloadConfig, config["workload"], "workload"
            ).container_cold_start
            self.generators = self._make_generators(config)
            self.workload_sha256 = fingerprint(
                generator.evaluation_episode(episode)
                for generator in self.generators.values()
                for episode in range(self.episodes)
            )

    @property
    def cases(self) -> list[Case]:
        """In the order of the configuration."""
        loads = [(WORKFLOWS, 1.0)]
        if self.trace is not None:
            samples = self.settings.samples.items()
            loads = [(name, ratio) for name, sample in samples for ratio in sample.ratios]
        return [Case(*load, *rule) for load in loads for rule in self.rules]

    @property
    def tasks(self) -> list[Task]:
        """All that has to be played, what arrives together one after the other."""
        loads: dict[tuple[str, float], list[Case]] = {}
        for case in self.cases:
            loads.setdefault((case.sample, case.ratio), []).append(case)
        seeds = self.settings.seeds
        return [(case, seed) for cases in loads.values() for seed in seeds for case in cases]

    @property
    def metrics(self) -> dict[str, Metric[Times]]:
        """Every metric of a row, by name."""
        return queued_metrics(self.settings, self.trace is not None)

    def play(self, task: Task) -> CaseRow:
        """Plays one case with one seed."""
        case, seed = task
        rules = self.rules[case.keep_alive, case.order]
        if self.trace is None:
            times = self._play_workflows(self.generators[seed], rules)
        else:
            sample = self._sample(self.trace, case, seed)
            requests = simulate(sample.window, self.cluster, rules, history=sample.history)
            times = _request_times(requests, sample.window.profiles)
            if not len(times["completion"]):
                raise InputError(
                    f"dispatch.samples.{case.sample}: nothing arrives at ratio {case.ratio:g} with "
                    f"seed {seed}, a higher ratio is needed"
                )
        quantiles = np.quantile(times["completion"], SHARES, method="inverted_cdf")
        return CaseRow(
            **vars(case),
            seed=seed,
            metrics={name: metric.compute(times) for name, metric in self.metrics.items()},
            completion_quantiles=quantiles.tolist(),
        )

    def _sample(self, trace: TraceConfig, case: Case, seed: int) -> TraceSample:
        """What arrives; kept until something else does, for drawing it can take seconds."""
        key = case.sample, case.ratio, seed
        if self._drawn is None or self._drawn[0] != key:
            config = self.settings.samples[case.sample].of(trace, case.ratio, seed)
            found = sample_recording(self.recording, config)
            self._drawn = key, replace(found, window=_drawn_once(found.window))
        return self._drawn[1]

    def _play_workflows(self, generator: WorkloadGenerator, rules: Rules) -> Times:
        parts: list[Times] = []
        for episode in range(self.episodes):
            workload = generator.evaluation_episode(episode)
            images = Images.by_name(workload.templates, self.cold_start)
            env = RawEnv(
                workload.arrival_times, workload.templates, self.cluster, rules=rules, images=images
            )
            parts.append(_workflow_times(env))
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _samples(self, trace: TraceConfig) -> Iterator[FunctionProfiles]:
        """The functions of each sample with each seed, checked; the same ones at every ratio."""
        for name, sample in self.settings.samples.items():
            for seed in self.settings.seeds:
                config = sample.of(trace, sample.ratios[-1], seed)
                found = sample_recording(self.recording, config, f"dispatch.samples.{name}")
                profiles = found.window.profiles
                try:
                    check_memory(profiles.names, profiles.memory, self.cluster)
                except InputError as error:
                    where = f"dispatch.samples.{name}, seed {seed}"
                    raise InputError(f"{where}: {error}") from None
                self.reports[name] = found.report
                yield profiles

    def _make_generators(self, config: Mapping[str, Any]) -> dict[int, WorkloadGenerator]:
        workflow = validated(WorkflowConfig, config["workflow"], "workflow")
        workload = validated(WorkloadConfig, config["workload"], "workload")
        generators = {}
        for seed in self.settings.seeds:
            generators[seed] = WorkloadGenerator(
                workflow, workload.model_copy(update={"seed": seed}), self.cluster.single_core_speed
            )
            check_world(generators[seed].pools.evaluation.templates, self.cluster)
        return generators


def _drawn_once(trace: Trace) -> Trace:
    """The same requests, kept: several orders play them."""
    chunks = list(trace.requests())
    return Trace(trace.profiles, lambda: iter(chunks))


def _request_times(requests: Requests, profiles: FunctionProfiles) -> Times:
    """Of every request of a played window: (K,) arrays; `alone` is E + D of its function."""
    return {
        "completion": requests.completion,
        "queueing": requests.queueing,
        "cold_start": requests.cold_start,
        "execution": requests.execution,
        "preemptions": requests.preemptions,
        "alone": (profiles.execution + profiles.cold_start)[requests.function],
    }


def _workflow_times(env: RawEnv) -> Times:
    """Of every workflow of a played episode: (W,) arrays, means over its functions among them."""
    runs = env.runs
    ends, cut = (runs[runs["outcome"] == outcome] for outcome in (COMPLETED, PREEMPTED))
    arrivals = env.state.arrivals
    finish = np.zeros(len(arrivals))
    np.maximum.at(finish, ends["wf_id"], ends["end_time"])
    completion = finish - arrivals["time"]
    critical_path = env.state.templates["critical_path"][arrivals["template"]]

    def per_function(field: str) -> np.ndarray:
        functions = np.bincount(ends["wf_id"], minlength=len(arrivals))
        return np.bincount(ends["wf_id"], ends[field], len(arrivals)) / functions

    return {
        "completion": completion,
        "slowdown": completion / critical_path,
        "queueing": per_function("queueing_time"),
        "cold_start": per_function("cold_start_time"),
        "execution": per_function("execution_time"),
        "preemptions": np.bincount(cut["wf_id"], minlength=len(arrivals)),
    }
