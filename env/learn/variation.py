"""How training episodes differ from the configured world: in their load, work, servers and prices.

Policies that meet other loads or clusters than they were trained on have to have seen a range of
them. Evaluation never varies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate

# Rates are divided by: what is less comes to 0 in some product.
LEAST_RATE = 1e-6
Factor = Annotated[float, Field(ge=0, le=1000)]
RateFactor = Annotated[float, Field(ge=LEAST_RATE, le=1000)]
Factors = Annotated[tuple[Factor, Factor], ASCENDING]
RateFactors = Annotated[tuple[RateFactor, RateFactor], ASCENDING]
Share = Annotated[float, Field(gt=0, le=1)]
# Share of the draws of servers that must do, as draws are repeated until one does.
LEAST_CHANCE = 0.01

Prepared = Mapping[float, Mapping[WorkflowTemplate, WorkflowTemplate]]
"""By factor on the computation, what each configured template comes to."""


class Variation(Strict):
    """Config group `variation`. Factors are drawn anew for every training episode; default: none.

    Attributes:
        arrival_rate: [low, high], the factor on the rate of arrivals, log-uniform.
        computation: factors on the computation of all functions of an episode, of which one is
            drawn; at most 10, as every workflow is prepared at each of them once.
        server_count: [low, high], the factor on the count of every server type, uniform for each;
            counts are rounded to whole servers.
        hourly_rate: [low, high], the factor on every server type's rate, log-uniform for each.
        single: share of the varied episodes in which the first workflow arrives alone.
        load: the most work that may arrive, as a share of what all cores do until the last arrival;
            arrivals of a varied episode that ask for more are slowed down to it.
        unvaried: share of the episodes that are left as configured.
    """

    arrival_rate: RateFactors = (1.0, 1.0)
    computation: Annotated[tuple[Share, ...], Field(min_length=1, max_length=10)] = (1.0,)
    server_count: Factors = (1.0, 1.0)
    hourly_rate: RateFactors = (1.0, 1.0)
    single: Annotated[float, Field(ge=0, le=1)] = 0.0
    load: RateFactor = 1.0
    unvaried: Annotated[float, Field(ge=0, le=1)] = 1.0

    def check(self, cluster: ClusterConfig, held: np.ndarray) -> None:
        """Refuses counts that hardly ever leave a server for each function; arguments as of `draw`.

        Raises:
            InputError: for one of them less than `LEAST_CHANCE` of the draws do.
        """
        low, high = self.server_count
        # A factor above 0.5 / count leaves one.
        gone = [
            float(np.interp(0.5 / kind.count, (low, high), (0.0, 1.0))) if kind.count else 1.0
            for kind in cluster.server_types
        ]
        none = np.where(held, gone, 1.0).prod(axis=1).max()
        if self.unvaried < 1 and 1 - none < LEAST_CHANCE:
            raise InputError(
                f"variation.server_count: [{low:g}, {high:g}] leaves no server that holds some "
                f"function in {none:.1%} of the draws: allow more"
            )

    def largest(self, cluster: ClusterConfig) -> ClusterConfig:
        """The cluster with as many servers of every type as an episode can have."""
        configured, varied = float(self.unvaried > 0), float(self.unvaried < 1)
        high = max(configured, varied * self.server_count[1])
        counts = [max(1, round(high * kind.count)) for kind in cluster.server_types]
        return _varied(cluster, counts, [kind.hourly_rate for kind in cluster.server_types])

    def prepare(self, templates: Sequence[WorkflowTemplate]) -> Prepared:
        """The templates at every factor on their computation."""
        prepared: dict[float, dict[WorkflowTemplate, WorkflowTemplate]] = {}
        for factor in self.computation:
            prepared[factor] = at = {template: template for template in templates}
            for template in templates if factor != 1.0 else ():
                computation = np.maximum(1, np.rint(template.computation * factor))
                at[template] = dataclasses.replace(template, computation=computation)
        return prepared

    def draw(
        self, cluster: ClusterConfig, held: np.ndarray, rng: np.random.Generator
    ) -> tuple[float, ClusterConfig] | None:
        """The factor on the rate of arrivals and the cluster of an episode; None: as configured.

        Args:
            cluster: as configured; that of the episode holds every function.
            held: bool (K, types), by whom functions are held: rows of `holders`.
            rng: of the draws.
        """
        if rng.random() < self.unvaried:
            return None
        kinds = cluster.server_types
        rate = float(np.exp(rng.uniform(*np.log(self.arrival_rate))))
        low, high = np.log(self.hourly_rate)
        rates = np.exp(rng.uniform(low, high, len(kinds))) * [kind.hourly_rate for kind in kinds]
        while True:
            factors = rng.uniform(*self.server_count, len(kinds))
            counts = np.rint(factors * [kind.count for kind in kinds]).astype(int)
            if held[:, counts > 0].any(axis=1).all():
                return rate, _varied(cluster, counts.tolist(), rates.tolist())

    def vary(
        self,
        workload: EpisodeWorkload,
        rate: float,
        cluster: ClusterConfig,
        prepared: Prepared,
        rng: np.random.Generator,
    ) -> EpisodeWorkload:
        """The load of an episode, from what the configuration draws and what `draw` has drawn."""
        times = tuple(time / rate for time in workload.arrival_times)
        at = prepared[self.computation[rng.integers(len(self.computation))]]
        templates = tuple(at[template] for template in workload.templates)
        some = slice(1 if rng.random() < self.single else None)
        times, templates = times[some], templates[some]
        slower = max(1.0, _load(times, templates, cluster) / self.load)
        return dataclasses.replace(
            workload,
            arrival_times=tuple(time * slower for time in times),
            templates=templates,
            tenants=workload.tenants[some],
            tickets=workload.tickets[some],
        )


def _load(
    times: Sequence[float], templates: Sequence[WorkflowTemplate], cluster: ClusterConfig
) -> float:
    """All work over what all cores do until the last arrival; 0 if everything arrives at once."""
    work = sum(int(template.computation.sum()) for template in templates)
    capacity = sum(
        kind.count * kind.cores * (kind.single_core_speed or cluster.single_core_speed)
        for kind in cluster.server_types
    )
    return work / (capacity * times[-1]) if times[-1] > 0 else 0.0


def _varied(cluster: ClusterConfig, counts: Sequence[int], rates: Sequence[float]) -> ClusterConfig:
    """The cluster with so many servers of each type, at so many USD an hour."""
    types = tuple(
        dataclasses.replace(kind, count=count, hourly_rate=rate)
        for kind, count, rate in zip(cluster.server_types, counts, rates, strict=True)
    )
    return dataclasses.replace(cluster, server_types=types)
