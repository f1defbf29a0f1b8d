"""Training episodes: those of the configured world, or varied in load, work, servers and prices.

Policies that meet other loads or clusters than they were trained on have to have seen a range of
them. Evaluation never varies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict, validated
from env.score.reward import check_rates, check_world
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.declared.images import Images
from env.sim.declared.resources import holders
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.generator import training_seed
from env.workloads.source import workload_source
from env.workloads.traces.trace_samples import TraceGenerator

VARIATION_KEY = 0
"""Last word of the spawn key of what varies an episode: its workload is drawn without."""
# Rates are divided by: what is less comes to 0 in some product.
LEAST_RATE = 1e-6
Factor = Annotated[float, Field(ge=0, le=1000)]
RateFactor = Annotated[float, Field(ge=LEAST_RATE, le=1000)]
Factors = Annotated[tuple[Factor, Factor], ASCENDING]
RateFactors = Annotated[tuple[RateFactor, RateFactor], ASCENDING]
Share = Annotated[float, Field(gt=0, le=1)]
# Share of so many draws of servers that must do, as draws are repeated until one does.
LEAST_CHANCE, DRAWS = 0.01, 1000


class Variation(Strict):
    """Config group `variation`. Factors are drawn anew for every training episode; default: none.

    A pair is [low, high].
    """

    arrival_rate: RateFactors = (1.0, 1.0)  # factor on it, log-uniform
    # Factors on the computation of all functions, of which one is drawn; every workflow is prepared
    # at each of them once.
    computation: Annotated[tuple[Share, ...], Field(min_length=1, max_length=10)] = (1.0,)
    server_count: Factors = (1.0, 1.0)  # factor on that of every server type, uniform; rounded
    hourly_rate: RateFactors = (1.0, 1.0)  # factor on that of every server type, log-uniform
    # Share of the varied episodes in which the first workflow arrives alone.
    single: Annotated[float, Field(ge=0, le=1)] = 0.0
    # The most work that may arrive, as a share of what all cores do until the last arrival;
    # arrivals of a varied episode that ask for more are slowed down to it.
    load: RateFactor = 1.0
    unvaried: Annotated[float, Field(ge=0, le=1)] = 1.0  # share of episodes left as configured


class TrainingEpisodes:
    """Where training episodes come from.

    Args:
        config: plain mappings by config group: `cluster`, `workflow`, `workload`, and `variation`
            (may be missing or None: nothing varies).

    Attributes:
        cluster: as configured.
        generator: of episodes as they are configured.
        templates: the workflows that can arrive, at every factor on their computation; none of a
            trace, whose functions every episode draws anew.
        images: of their functions.
        largest_cluster: with as many servers of every type as an episode can have.

    Raises:
        InputError: a group does not validate, or what may arrive fits no server, or too few of the
            drawn clusters.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.cluster = cluster_from_config(config["cluster"], "cluster")
        workload = config["workload"]
        self.generator = workload_source(
            config.get("workflow", {}), workload, self.cluster, workload.get("seed")
        )
        given = config.get("variation") or {}
        self._variation = variation = validated(Variation, given, "variation")
        pool: tuple[WorkflowTemplate, ...] = ()
        if isinstance(self.generator, TraceGenerator):
            most = self.generator.check_training(self.cluster)
            self._held = np.array([[kind.memory >= most for kind in self.cluster.server_types]])
            check_rates(self.cluster)
        else:
            pool = self.generator.pools["training"].templates
            check_world(pool, self.cluster)
            self._held = np.unique(holders(pool, self.cluster), axis=0)
        possible = len(self._drawn_counts(np.random.default_rng(0), DRAWS)) / DRAWS
        if variation.unvaried < 1 and possible < LEAST_CHANCE:
            low, high = variation.server_count
            raise InputError(
                f"variation.server_count: [{low:g}, {high:g}] leaves no server that holds some "
                f"function in {1 - possible:.1%} of the draws: allow more"
            )
        self._at = {
            factor: {template: _scaled(template, factor) for template in pool}
            for factor in variation.computation
        }
        every = (template for at in self._at.values() for template in at.values())
        self.templates = tuple(dict.fromkeys((*pool, *every)))
        self.images = Images.by_name(self.templates, self.generator.config.container_cold_start)
        varied = variation.server_count[1] if variation.unvaried < 1 else 1.0
        high = max(1.0, varied) if variation.unvaried > 0 else varied
        kinds = self.cluster.server_types
        types = (replace(kind, count=max(1, round(high * kind.count))) for kind in kinds)
        self.largest_cluster = replace(self.cluster, server_types=tuple(types))

    def training_episode(
        self, seed: int, worker: int, environment: int, episode: int
    ) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What arrives in a training episode, and the cluster it runs on; see `training_seed`."""
        sequence = training_seed(seed, worker, environment, episode)
        key = (*sequence.spawn_key, VARIATION_KEY)
        rng = np.random.default_rng(np.random.SeedSequence(sequence.entropy, spawn_key=key))
        rate, cluster = 1.0, self.cluster
        varies = rng.random() >= self._variation.unvaried
        if varies:
            rate = float(np.exp(rng.uniform(*np.log(self._variation.arrival_rate))))
            cluster = self._varied_cluster(rng)
        if isinstance(self.generator, TraceGenerator):
            return self.generator.training_episode(sequence, rate), cluster
        workload = self.generator.training_episode(sequence)
        if varies:
            workload = self._varied(workload, rate, cluster, rng)
        return replace(workload, images=self.images), cluster

    def _drawn_counts(self, rng: np.random.Generator, draws: int) -> np.ndarray:
        """Drawn counts of all server types, of those draws that leave a server to each function."""
        counts = [kind.count for kind in self.cluster.server_types]
        factors = rng.uniform(*self._variation.server_count, (draws, len(counts)))
        drawn = np.rint(factors * counts).astype(int)
        held = np.any(self._held & (drawn > 0)[:, None], axis=2)
        return drawn[np.all(held, axis=1)]

    def _varied_cluster(self, rng: np.random.Generator) -> ClusterConfig:
        """Drawn counts and rates of all server types."""
        kinds, (low, high) = self.cluster.server_types, np.log(self._variation.hourly_rate)
        rates = np.exp(rng.uniform(low, high, len(kinds))) * [kind.hourly_rate for kind in kinds]
        counts = self._drawn_counts(rng, 1)
        while not len(counts):
            counts = self._drawn_counts(rng, 1)
        drawn = zip(kinds, counts[0].tolist(), rates.tolist(), strict=True)
        types = (replace(kind, count=count, hourly_rate=rate) for kind, count, rate in drawn)
        return replace(self.cluster, server_types=tuple(types))

    def _varied(
        self,
        workload: EpisodeWorkload,
        rate: float,
        cluster: ClusterConfig,
        rng: np.random.Generator,
    ) -> EpisodeWorkload:
        """A workload at another rate, of other work, and no more than the cluster is to bear."""
        variation = self._variation
        at = self._at[variation.computation[rng.integers(len(variation.computation))]]
        some = slice(1 if rng.random() < variation.single else None)
        times = [time / rate for time in workload.arrival_times[some]]
        templates = tuple(at[template] for template in workload.templates[some])
        slower = max(1.0, _load(times, templates, cluster) / variation.load)
        return replace(
            workload,
            arrival_times=tuple(time * slower for time in times),
            templates=templates,
            tenants=workload.tenants[some],
            tickets=workload.tickets[some],
        )


def _scaled(template: WorkflowTemplate, factor: float) -> WorkflowTemplate:
    computation = np.maximum(1, np.rint(template.computation * factor))
    return template if factor == 1.0 else replace(template, computation=computation)


def _load(
    times: Sequence[float], templates: Sequence[WorkflowTemplate], cluster: ClusterConfig
) -> float:
    """All work over what all cores do until the last arrival; 0 if everything arrives at once."""
    work = sum(int(template.computation.sum()) for template in templates)
    capacity = sum(
        kind.count * kind.cores * cluster.speed_of(kind) for kind in cluster.server_types
    )
    return work / (capacity * times[-1]) if times[-1] > 0 else 0.0
