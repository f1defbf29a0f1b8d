"""Samples of traces: what a group `workload` with a `source` describes, ready to be played.

The samples are those of FuncSched (Journal of Computer Research and Development 60(9), 2023), which
takes them from FaasCache (ASPLOS 2021).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.images import Images
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.queue_records import EARLIER
from env.workloads.assumptions import Summary, in_words, summary
from env.workloads.generator import turns_seed
from env.workloads.traces.azure import Azure2019, Azure2021, AzureLike
from env.workloads.traces.profiles import ProfileRules, annotate_functions, largest_memory
from env.workloads.traces.trace import (
    REQUEST,
    REQUESTS_KEY,
    SAMPLE_KEY,
    SECONDS_PER_MINUTE,
    FunctionProfiles,
    Invocations,
    Recording,
)

TRAINING_SEEDS = 2**32
"""Seeds of training episodes start here; those of evaluations are below."""
ATTEMPTS = 100
"""Windows in which nothing arrives, before training is refused."""
SHORTEST_NAME = 8
"""Characters of a tenant's name, of the 64 that the source has."""
SampleKind = Literal["representative", "rare", "random"]
QUARTILES = 4


class Sampling(Strict):
    """Which part of a trace is played; conf/workload/sampling/default.yaml explains each key.

    The frequency of invocation is that of the whole trace. The requests of a smaller ratio are
    among those of a larger one.
    """

    kind: SampleKind
    functions: int = Field(ge=1, le=10_000_000)
    start: int = Field(ge=0, le=10_000_000)
    minutes: int = Field(ge=1, le=10_000_000)
    history: int | None = Field(ge=0, le=10_000_000)
    ratio: float = Field(gt=0, le=1)
    compression: int = Field(ge=1, le=10_000)

    @property
    def length(self) -> int:
        """Minutes of the trace that the window takes."""
        return self.minutes * self.compression

    @property
    def end(self) -> int:
        """Minutes from the begin of the trace to the end of the window."""
        return self.start + self.length


class TraceConfig(Strict):
    """Single functions and requests for them; conf/workload/azure2019.yaml explains each key."""

    seed: int = Field(ge=0, lt=2**32)
    source: Annotated[Azure2019 | Azure2021 | AzureLike, Field(discriminator="kind")]
    sampling: Sampling
    annotation: ProfileRules
    tenants: Literal["owner", "app"] | None = None
    container_cold_start: ClassVar[float] = 0.0  # each function has its own


@dataclass(frozen=True)
class TraceSample:
    """A sample, ready to be played; it may be endless.

    Each call of `requests` or `history` gives an iterator over the same requests from the
    beginning: chunks of `REQUEST` records of any length, ascending in time.

    Attributes:
        profiles: of the functions.
        requests: what is played, from time 0.
        history: requests of the same functions before, at negative times: what a policy may have
            learnt from.
        report: what became of the trace, a line to print.
        tenants: the tenant of each function; empty: there are no tenants.
        turns_seed: of the draws of an order in which tenants take turns.
    """

    profiles: FunctionProfiles
    requests: Callable[[], Iterator[np.ndarray]]
    history: Callable[[], Iterator[np.ndarray]] = lambda: iter(())
    report: str = ""
    tenants: tuple[str, ...] = ()
    turns_seed: int = 0

    def episode(self, core_speed: int) -> EpisodeWorkload:
        """The window as workflows of one function each, with the work that is drawn."""
        profiles = self.profiles
        templates = profiles.templates(core_speed)
        requests = np.concatenate([np.zeros(0, REQUEST), *self.requests()])
        functions = requests["function"].tolist()
        work = profiles.operations(requests["function"], requests["duration"], core_speed)
        # Each tenant has one ticket.
        grants = {"tenants": {name: {"tickets": 1.0} for name in self.tenants}}
        return EpisodeWorkload(
            arrival_times=tuple(requests["time"].tolist()),
            templates=tuple(templates[function] for function in functions),
            work=tuple(work.tolist()),
            images=Images.by_name(templates, profiles.cold_start, self.earlier),
            tenants=tuple(self.tenants[function] for function in functions) if self.tenants else (),
            funding=validated(Funding, grants, "workload.tenants") if self.tenants else None,
            turns_seed=self.turns_seed,
        )

    def earlier(self) -> np.ndarray:
        """EARLIER (K,), the executions of the history, which are taken to begin on arrival."""
        requests = np.concatenate([np.zeros(0, REQUEST), *self.history()])
        executions = np.zeros(len(requests), EARLIER)
        executions["image"], executions["begin"] = requests["function"], requests["time"]
        executions["end"] = requests["time"] + requests["duration"]
        return executions


class TraceGenerator:
    """Draws episodes of a trace, as `WorkloadGenerator` does of workflows.

    Args:
        config: the group `workload`.
        core_speed: operations per second of the cluster's reference core.

    Raises:
        InputError: the trace cannot be used, or the window is not in it.
    """

    def __init__(self, config: TraceConfig, core_speed: int) -> None:
        self.recording = _read(config.source, config.annotation.min_duration)
        self.config = config
        self._core_speed = core_speed
        minutes, sampling = self.recording.invocations.minutes, config.sampling
        if sampling.end > minutes:
            raise InputError(
                f"workload.sampling: the window is minutes {sampling.start} to {sampling.end} of "
                f"the trace, {self.recording.source} has {minutes}"
            )

    def sample(self, index: int) -> TraceSample:
        """What arrives in the held-out episode number `index`.

        Number 0 has the seed of the configuration, all others a seed that is drawn with it.

        Raises:
            InputError: nothing arrives.
        """
        seed = self.config.seed
        if index > 0:
            seed = int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
        sample = sample_recording(self.recording, self.config.model_copy(update={"seed": seed}))
        if next(sample.requests(), None) is None:
            ratio = self.config.sampling.ratio
            raise _nothing_arrives(ratio, f"episode {index} of seed {self.config.seed}")
        return sample

    def check_training(self, cluster: ClusterConfig) -> int:
        """Refuses what training episodes cannot be drawn from.

        Every episode has a seed of its own, so what counts is the most memory that any seed gives.

        Returns:
            the most memory that a function may need, MB.

        Raises:
            InputError: a window is not over when the evaluated one begins, or a function may be
                given more memory than any NUMA node has.
        """
        start, length = self.config.sampling.start, self.config.sampling.length
        if start < length:
            raise InputError(
                f"workload.sampling: start is {start} min, training plays windows of {length} min "
                f"before it: allowed: at least {length}"
            )
        memory = largest_memory(self.recording, self.config.annotation)
        largest = int(np.argmax(memory))
        if memory[largest] > cluster.largest_node_memory:
            raise InputError(
                f"workload.annotation: function '{self.recording.names[largest]}' needs "
                f"{memory[largest]} MB, the largest NUMA node has {cluster.largest_node_memory}"
            )
        return int(memory[largest])

    def training_episode(
        self, seed_sequence: np.random.SeedSequence, rate: float = 1.0
    ) -> EpisodeWorkload:
        """An episode that no evaluation has, with another seed and another window.

        Args:
            seed_sequence: see `training_seed`.
            rate: factor on `sampling.ratio`, which comes to 1 at most.

        Raises:
            InputError: nothing arrives.
        """
        rng = np.random.default_rng(seed_sequence)
        sampling = self.config.sampling
        ratio = min(1.0, rate * sampling.ratio)
        for _ in range(ATTEMPTS):
            start = int(rng.integers(sampling.start - sampling.length + 1))
            window = sampling.model_copy(update={"start": start, "ratio": ratio})
            seed = TRAINING_SEEDS + int(rng.integers(2**32))
            config = self.config.model_copy(update={"seed": seed, "sampling": window})
            episode = sample_recording(self.recording, config).episode(self._core_speed)
            if episode.templates:
                return episode
        raise _nothing_arrives(ratio, f"{ATTEMPTS} windows before start {sampling.start}")

    def evaluation_templates(self, index: int) -> tuple[WorkflowTemplate, ...]:
        """All functions that can be asked for in the held-out episode number `index`."""
        return self.sample(index).profiles.templates(self._core_speed)

    def evaluation_episode(self, index: int) -> EpisodeWorkload:
        """Held-out episode number `index`: always the same for the config's seed."""
        return self.sample(index).episode(self._core_speed)


def _nothing_arrives(ratio: float, where: str) -> InputError:
    what = f"nothing arrives at ratio {ratio:g} in {where}, a higher ratio is needed"
    return InputError(f"workload.sampling: {what}")


def assumed_of_trace(workload: Mapping[str, Any]) -> Summary:
    """What training draws from a trace with, by the group `workload` in plain containers."""
    config = validated(TraceConfig, workload, "workload")
    recording = _read(config.source, config.annotation.min_duration)
    _, drawn = annotate_functions(recording, config.annotation, config.seed)
    counts = Counter(functions=len(recording.names)) + Counter(recording.counts) + drawn
    return summary([{recording.source: counts}])


@lru_cache(maxsize=8)
def _read(source: Azure2019 | Azure2021 | AzureLike, min_duration: float) -> Recording:
    """Read once in a process: scenarios of one evaluation sample the same trace."""
    return source.read(min_duration)


def sample_recording(recording: Recording, config: TraceConfig) -> TraceSample:
    """A sample of a trace that is read already; the window is in it."""
    sampling, seed, invocations = config.sampling, config.seed, recording.invocations
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SAMPLE_KEY,)))
    frequencies = invocations.count(0, invocations.minutes)
    sample = recording.select(choose_functions(frequencies, sampling.kind, sampling.functions, rng))
    profiles, counts = annotate_functions(sample, config.annotation, seed)
    minutes = partial(play, sample.invocations, sampling, seed=seed)
    begin = 0 if sampling.history is None else max(0, sampling.start - sampling.history)
    return TraceSample(
        profiles,
        requests=partial(minutes, sampling.start, sampling.end),
        history=partial(minutes, begin, sampling.start),
        report=_report(recording, sample, sampling, counts),
        tenants=_tenants(sample, config.tenants),
        turns_seed=turns_seed(np.random.SeedSequence(seed)),
    )


def _tenants(sample: Recording, kind: str | None) -> tuple[str, ...]:
    """Tenant of each function: as many first characters of its name as make all names differ."""
    if kind is None:
        return ()
    if kind not in sample.groups:
        allowed = ", ".join(sample.groups) or "null"
        raise InputError(f"workload.tenants: {sample.source} says no {kind}, allowed: {allowed}")
    names = sample.groups[kind]
    length = SHORTEST_NAME
    while len({name[:length] for name in names}) < len(set(names)):
        length += 1
    return tuple(name[:length] for name in names)


def _report(
    recording: Recording, sample: Recording, sampling: Sampling, counts: Counter[str]
) -> str:
    """What became of a trace: functions, requests before downsampling, cores they keep busy."""
    requests = sample.invocations.count(sampling.start, sampling.end)
    work = float(requests @ sample.invocations.mean_duration)
    seconds = sampling.minutes * SECONDS_PER_MINUTE
    text = (
        f"{recording.source}: {len(sample.names)} of {len(recording.names)} functions, "
        f"{requests.sum()} requests in {seconds:g} s, of which a share of {sampling.ratio:g} "
        f"keeps {sampling.ratio * work / seconds:.3g} cores busy"
    )
    if assumed := Counter(recording.counts) + counts:
        text += f"; {in_words(assumed)}"
    return text


def choose_functions(
    invocations: np.ndarray, kind: SampleKind, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Positions of the sampled functions, ascending; all of them, where there are not more.

    Functions are ranked by `invocations`, int64 (F,), equal ones in a drawn order; the quartiles
    are quarters of that ranking. What does not divide by four goes to the rarer quartiles.
    """
    everyone = len(invocations)
    if count >= everyone:
        return np.arange(everyone)
    shuffled = rng.permutation(everyone)
    ranking = shuffled[np.argsort(invocations[shuffled], kind="stable")]
    if kind == "rare":
        return np.sort(ranking[:count])
    if kind == "random":
        return np.sort(rng.choice(everyone, count, replace=False))
    quartiles = np.array_split(ranking, QUARTILES)
    counts = map(len, np.array_split(np.arange(count), QUARTILES))
    parts = [
        rng.choice(quartile, part, replace=False)
        for quartile, part in zip(quartiles, counts, strict=True)
    ]
    return np.sort(np.concatenate(parts))


def play(
    invocations: Invocations, sampling: Sampling, first: int, last: int, seed: int
) -> Iterator[np.ndarray]:
    """Requests of the minutes from `first` up to `last` of a trace, made a minute at a time.

    The draws of a minute depend on the seed and its number alone: a request is the same in every
    window. Time 0 is the begin of the window.

    Yields:
        `REQUEST` arrays, ascending in time; before the window time is negative.
    """
    for number in range(first, last):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(REQUESTS_KEY, number)))
        requests = invocations.minute(number, rng)
        requests = requests[rng.random(len(requests)) < sampling.ratio]
        requests["time"] -= sampling.start * SECONDS_PER_MINUTE
        requests["time"] /= sampling.compression
        if len(requests):
            yield requests
