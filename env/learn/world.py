"""The world that a configuration describes: cluster, workflows, arrivals, agents and objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from env.base.errors import InputError
from env.base.schema import nearest, short, validated
from env.learn.actions import LARGEST_SEED, whole_number
from env.learn.layouts import AgentsConfig, Layout
from env.learn.variation import Variation
from env.score.metrics import episode_metrics
from env.score.reward import Objective, check_rates, check_world
from env.sim.block import State
from env.sim.cluster_file import cluster_from_config
from env.sim.dispatch_settings import DispatchConfig, Queued
from env.sim.hardware import ClusterConfig
from env.sim.keep_alive_policy import HybridHistogram, KeepAliveConfig, KeepAlivePolicy
from env.sim.ordering import FIRST_COME
from env.sim.records import INF
from env.sim.resources import holders
from env.sim.rules import Lease, Rules
from env.sim.workflow_template import WorkflowTemplate
from env.workloads.generator import EpisodeWorkload, WorkloadGenerator, training_seed
from env.workloads.source import workload_source
from env.workloads.traces.trace_samples import TraceGenerator

NEEDED = ("cluster", "workload", "agents", "objective", "seed")
MAY_BE_MISSING = ("workflow", "variation", "dispatch", "lease", "keep_alive")
"""Groups of a world: what stands for those that are missing, `World` says."""
VARIATION_KEY = 0
"""Last word of the spawn key of what varies an episode: its workload is drawn without."""


def check_groups(config: Mapping[str, Any]) -> None:
    """Refuses a configuration that lacks a group, or has one that there is not.

    Raises:
        InputError: see above.
    """
    if not isinstance(config, Mapping):
        raise InputError(f"world: a mapping of config groups is needed, found {short(config)}")
    for group in NEEDED:
        if group not in config:
            raise InputError(f"{group}: missing, required")
    for group in config:
        if group not in (*NEEDED, *MAY_BE_MISSING):
            raise InputError(
                f"{group}: unknown group, {nearest(str(group), (*NEEDED, *MAY_BE_MISSING))}"
            )


def kept_warm(config: Mapping[str, Any]) -> KeepAlivePolicy:
    """The keep-alive policy of a configuration, `none` if it has none.

    Raises:
        InputError: it needs forecasts, which many simulators side by side do not make.
    """
    told = {"keep_alive": config.get("keep_alive", {"policy": "none"})}
    policy = validated(KeepAliveConfig, told, "keep_alive").keep_alive
    if isinstance(policy, HybridHistogram):
        raise InputError("keep_alive: agents are trained with none, fixed, lru or faascache")
    return policy


class TrainingEpisodes:
    """Where training episodes come from: the configured world, or a variation of it.

    Args:
        config: plain mappings by config group: `cluster`, `workflow`, `workload`, and `variation`
            (may be missing: nothing varies).

    Attributes:
        cluster: as configured.
        generator: of episodes as they are configured.
        templates: the workflows that can arrive, at every factor on their computation; none of a
            trace, whose functions every episode draws anew.
        largest_cluster: with as many servers of every type as an episode can have.

    Raises:
        InputError: a group does not validate, or what may arrive fits no server.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.cluster = cluster_from_config(config["cluster"], "cluster")
        self.generator = workload_source(
            config.get("workflow", {}),
            config["workload"],
            self.cluster,
            config["workload"].get("seed"),
        )
        self.templates: tuple[WorkflowTemplate, ...] = ()
        if isinstance(self.generator, TraceGenerator):
            most = self.generator.check_training(self.cluster)
            self._held = np.array([[kind.memory >= most for kind in self.cluster.server_types]])
            check_rates(self.cluster)
        else:
            self.templates = self.generator.pools.training.templates
            check_world(self.templates, self.cluster)
            self._held = np.unique(holders(self.templates, self.cluster), axis=0)
        given = config.get("variation")
        self._variation = None if given is None else validated(Variation, given, "variation")
        self.largest_cluster = (
            self.cluster if self._variation is None else self._variation.largest(self.cluster)
        )
        if self._variation is not None:
            self._variation.check(self.cluster, self._held)
            if not isinstance(self.generator, TraceGenerator):
                self._variation.check_arrivals(self.generator.longest_arrivals)
            self._prepared = self._variation.prepare(self.templates)
            every = (template for at in self._prepared.values() for template in at.values())
            self.templates = tuple(dict.fromkeys((*self.templates, *every)))

    def draw(self, sequence: np.random.SeedSequence) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What arrives in a training episode, and the cluster it runs on."""
        varied = None
        if self._variation is not None:
            key = (*sequence.spawn_key, VARIATION_KEY)
            rng = np.random.default_rng(np.random.SeedSequence(sequence.entropy, spawn_key=key))
            varied = self._variation.draw(self.cluster, self._held, rng)
        rate, cluster = varied or (1.0, self.cluster)
        if isinstance(self.generator, TraceGenerator):
            return self.generator.training_episode(sequence, rate), cluster
        workload = self.generator.training_episode(sequence)
        if self._variation is not None and varied is not None:
            workload = self._variation.vary(workload, rate, cluster, self._prepared, rng)
        return replace(workload, known=self.templates), cluster


class World(TrainingEpisodes):
    """What training environments are made of, and where their episodes come from.

    Args:
        config: plain mappings by config group: `cluster`, `workflow`, `workload`, `agents`,
            `objective`, `seed`, that of the training episodes, and those that may be missing:
            `variation` (nothing varies), `dispatch` (at once), `lease` (by the hour) and
            `keep_alive` (none).

    Attributes:
        tenants: names of those that hold tickets, where agents split their currencies.
        rules: how it works; where no agent has a part in it, functions that wait centrally go first
            come, first served.

    Raises:
        InputError: a group does not validate, there is an agent `queue` but no central queue, or
            there are agents of tenants but no tenants with tickets, or no central queue.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        check_groups(config)
        super().__init__(config)
        self.objective = validated(Objective, config["objective"], "objective")
        self.agents = validated(AgentsConfig, config["agents"], "agents")
        told = {"dispatch": config["dispatch"]} if "dispatch" in config else {}
        dispatch = validated(DispatchConfig, told, "dispatch").dispatch
        queued = isinstance(dispatch, Queued)
        if self.agents.queue is not None and not queued:
            raise InputError(
                "agents.queue: dispatch=immediate has no central queue, allowed: null, or "
                "dispatch=queued"
            )
        self.tenants: tuple[str, ...] = ()
        if self.agents.tenants is not None:
            self.tenants = self._with_tickets(queued)
        self.rules = Rules(
            order=(self.agents.order or FIRST_COME) if queued else None,
            placement=self.agents.placement,
            patience=dispatch.seconds if isinstance(dispatch, Queued) else INF,
            lease=validated(Lease, config.get("lease", {}), "lease"),
            keep_alive=kept_warm(config),
        )
        self.seed = whole_number("seed", config["seed"], 0, LARGEST_SEED)

    def layout(self) -> Layout:
        """Its agents and their turns; critics see the future of an episode."""
        return Layout(
            self.agents, self.objective, self.largest_cluster, see_future=True, tenants=self.tenants
        )

    def metrics(self, state: State) -> dict[str, float]:
        """The `episode_metrics` that a finished episode has, without those that are NaN."""
        found = episode_metrics(state, self.objective, self.cluster.power)
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def _with_tickets(self, queued: bool) -> tuple[str, ...]:
        """Names of the tenants that hold tickets."""
        if not queued:
            raise InputError(
                "agents.tenants: dispatch=immediate has no central queue, allowed: dispatch=queued"
            )
        if not isinstance(self.generator, WorkloadGenerator) or self.generator.funding is None:
            raise InputError(
                "agents.tenants: workload.tenants hold no tickets, allowed: a workload of "
                "workflows whose tenants do, such as workload=tickets"
            )
        return tuple(self.generator.funding.tenants)

    def training_episode(
        self, seed: int, worker: int, environment: int, episode: int
    ) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What arrives in a training episode, and the cluster it runs on."""
        return self.draw(training_seed(seed, worker, environment, episode))
