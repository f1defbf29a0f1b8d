"""Evaluation under queued dispatch: orders and keep-alive policies, all on the same requests.

What arrives is a trace of single functions or, without one, workflows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from agents.baseline import make_queueing
from agents.command import CONF
from agents.dispatch import Queued
from agents.interval import Interval, interval
from env.keep_alive import KeepAlivePolicy
from env.queueing import Requests, check_memory, simulate
from env.reward import check_world
from env.schema import Strict, nearest, validated
from env.sim.cluster_file import cluster_from_config
from env.sim.controller import Images, Queueing
from env.sim.errors import InputError
from env.sim.queued_env import QueuedEnv
from env.workloads.generator import WorkloadConfig, WorkloadGenerator
from env.workloads.templates import WorkflowConfig
from env.workloads.trace import FunctionProfiles, Trace
from env.workloads.trace_samples import (
    TraceConfig,
    TraceReport,
    sample_recording,
)

WORKFLOWS = "workflows"
"""What tables call the sample when workflows arrive."""

Row = dict[str, float]


@dataclass(frozen=True)
class Case:
    """What is compared: one order under one keep-alive policy, on one load."""

    sample: str
    ratio: float
    keep_alive: str
    order: str


@dataclass(frozen=True, eq=False)
class Played:
    """One case with one seed.

    Attributes:
        case: what was played.
        seed: with which.
        row: metrics by name: means over the requests, times in seconds.
        completions: (K,) seconds, completion times.
    """

    case: Case
    seed: int
    row: Row
    completions: np.ndarray


class KeepAliveFile(Strict):
    """What is in a file of conf/keep_alive."""

    keep_alive: KeepAlivePolicy


def make_keep_alive(name: str) -> KeepAlivePolicy:
    """The policy of a file of conf/keep_alive.

    Raises:
        InputError: the name is unknown, or the file does not validate.
    """
    folder = CONF / "keep_alive"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise InputError(f"dispatch.keep_alives: '{name}' is unknown, {nearest(name, known)}")
    found = OmegaConf.to_container(OmegaConf.load(folder / f"{name}.yaml"))
    return validated(
        KeepAliveFile, {"keep_alive": found}, f"conf/keep_alive/{name}.yaml"
    ).keep_alive


class QueuedEvaluation:
    """All cases of a configuration, checked.

    Attributes:
        reports: of each sample that has been played, at its last ratio and seed.

    Args:
        config: as composed, in plain containers.

    Raises:
        InputError: something in it cannot be evaluated.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.settings = settings = validated(Queued, config["dispatch"], "dispatch")
        self.cluster = cluster_from_config(config["cluster"], "cluster")
        self.rules: dict[tuple[str, str], Queueing] = {
            (keep_alive, order): make_queueing(order, make_keep_alive(keep_alive))
            for keep_alive in settings.keep_alives
            for order in settings.orders
        }
        if config["policy"] is not None:
            # PyTorch takes seconds to import; other orders do without.
            from agents.learned.queue_order import LearnedOrder

            learned = LearnedOrder(config["policy"], self.cluster)
            for keep_alive in settings.keep_alives:
                rules = learned.queueing(make_keep_alive(keep_alive))
                self.rules[keep_alive, learned.name] = rules
        self.reports: dict[str, TraceReport] = {}
        self.trace: TraceConfig | None = None
        self.generators: dict[int, WorkloadGenerator] = {}
        if config.get("trace") is not None:
            self.trace = validated(TraceConfig, config["trace"], "trace")
            self.recording = self.trace.source.read(self.trace.annotation.min_duration)
            self._check_samples(self.trace)
        else:
            self.episodes = int(config["episodes"])
            self._make_generators(config)

    @property
    def cases(self) -> list[Case]:
        """In the order of the configuration."""
        loads = [(WORKFLOWS, 1.0)]
        if self.trace is not None:
            samples = self.settings.samples.items()
            loads = [(name, ratio) for name, sample in samples for ratio in sample.ratios]
        return [Case(*load, *rule) for load in loads for rule in self.rules]

    def play(self) -> Iterator[Played]:
        """Plays every case with every seed."""
        if self.trace is None:
            yield from self._play_workflows()
        else:
            yield from self._play_trace(self.trace)

    def _play_trace(self, trace: TraceConfig) -> Iterator[Played]:
        for name, sample in self.settings.samples.items():
            for ratio in sample.ratios:
                for seed in self.settings.seeds:
                    config = sample.of(trace, ratio, seed)
                    found = sample_recording(self.recording, config)
                    self.reports[name] = found.report
                    window = _drawn_once(found.window)
                    for (keep_alive, order), rules in self.rules.items():
                        requests = simulate(window, self.cluster, rules, history=found.history)
                        yield Played(
                            Case(name, ratio, keep_alive, order),
                            seed,
                            self._request_metrics(requests, window.profiles),
                            requests.completion,
                        )

    def _play_workflows(self) -> Iterator[Played]:
        for seed, generator in self.generators.items():
            for (keep_alive, order), rules in self.rules.items():
                parts: list[dict[str, np.ndarray]] = []
                for episode in range(self.episodes):
                    workload = generator.evaluation_episode(episode)
                    images = Images.by_name(workload.templates, self.settings.cold_start)
                    env = QueuedEnv(
                        workload.arrival_times, workload.templates, self.cluster, rules, images
                    )
                    parts.append(_workflow_times(env))
                times = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
                row = self._means(times)
                yield Played(
                    Case(WORKFLOWS, 1.0, keep_alive, order), seed, row, times["completion"]
                )

    def _request_metrics(self, requests: Requests, profiles: FunctionProfiles) -> Row:
        alone = (profiles.execution + profiles.cold_start)[requests.function]
        row = self._means(
            {
                "completion": requests.completion,
                "queueing": requests.queueing,
                "cold_start": requests.cold_start,
                "execution": requests.execution,
                "cold": requests.cold_start > 0,
                "preemptions": requests.preemptions,
            }
        )
        met = {
            f"slo_{k:g}": float((requests.completion <= k * alone).mean())
            for k in self.settings.slo
        }
        return {"requests": float(len(alone)), **row, **met}

    def _means(self, times: Mapping[str, np.ndarray]) -> Row:
        late = float((times["completion"] > self.settings.late).mean())
        median = float(np.median(times["completion"]))
        means = {key: float(values.mean()) for key, values in times.items()}
        return {**means, "completion_median": median, "late": late}

    def _check_samples(self, trace: TraceConfig) -> None:
        """What a sample draws of its functions is the same at every ratio."""
        for name, sample in self.settings.samples.items():
            for seed in self.settings.seeds:
                found = sample_recording(self.recording, sample.of(trace, sample.ratios[0], seed))
                profiles = found.window.profiles
                try:
                    check_memory(profiles.names, profiles.memory, self.cluster)
                except InputError as error:
                    where = f"dispatch.samples.{name}, seed {seed}"
                    raise InputError(f"{where}: {error}") from None

    def _make_generators(self, config: Mapping[str, Any]) -> None:
        workflow = validated(WorkflowConfig, config["workflow"], "workflow")
        workload = validated(WorkloadConfig, config["workload"], "workload")
        for seed in self.settings.seeds:
            self.generators[seed] = WorkloadGenerator(
                workflow, workload.model_copy(update={"seed": seed}), self.cluster.single_core_speed
            )
            check_world(self.generators[seed].pools.evaluation.templates, self.cluster)


def _drawn_once(trace: Trace) -> Trace:
    """The same requests, kept: several orders play them."""
    chunks = list(trace.requests())
    return Trace(trace.profiles, lambda: iter(chunks))


def _workflow_times(env: QueuedEnv) -> dict[str, np.ndarray]:
    """Of every workflow of a played episode: (W,) arrays, means over its functions among them."""
    runs = env.runs
    ends = runs[runs["finished"] == 1]
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
        "preemptions": np.bincount(runs["wf_id"][runs["finished"] == 0], minlength=len(arrivals)),
    }


Summary = list[tuple[Case, dict[str, Interval]]]
"""Per case an interval over seeds for each metric, and for `speedup` over the first order."""


def summarise_cases(rows: Mapping[Case, Sequence[Row]], first: str) -> Summary:
    """Intervals over seeds.

    `speedup` is the mean completion time under the order `first` over that of the case, both with
    the same seed: the geometric mean over seeds, its interval that of the mean logarithm.

    Args:
        rows: of every case, in the order of the seeds.
        first: order that the others are compared to.
    """
    summary: Summary = []
    for case, own in rows.items():
        others = rows[Case(case.sample, case.ratio, case.keep_alive, first)]
        ratios = [a["completion"] / b["completion"] for a, b in zip(others, own, strict=True)]
        logs = interval(np.log(ratios).tolist())
        speedup = Interval(*np.exp([logs.mean, logs.ci_low, logs.ci_high]).tolist())
        means = {key: interval([row[key] for row in own]) for key in own[0]}
        summary.append((case, {"speedup": speedup, **means}))
    return summary


def by_case(played: Sequence[Played]) -> dict[Case, list[Row]]:
    """Rows of each case, in the order in which they were played."""
    rows: dict[Case, list[Row]] = defaultdict(list)
    for each in played:
        rows[each.case].append(each.row)
    return dict(rows)
