"""The world that a configuration describes: cluster, workflows, arrivals, agents and objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, InstanceOf, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.learn.actions import LARGEST_SEED
from env.learn.layouts import AgentsConfig, Layout
from env.learn.variation import UNVARIED, Variation
from env.score.metrics import episode_metrics
from env.score.reward import Objective, check_rates, check_world
from env.sim.assembly.build import build
from env.sim.declared.aside import DecisionKind
from env.sim.declared.dispatch_settings import Dispatch, Immediate, Queued
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import HybridHistogram, KeepAlivePolicy, NoKeepAlive
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.resources import holders
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.choosing import play_to_choice
from env.sim.state.block import State
from env.sim.state.records import DONE, INF
from env.workloads.generator import training_seed
from env.workloads.source import workload_source
from env.workloads.traces.trace_samples import TraceGenerator

VARIATION_KEY = 0
"""Last word of the spawn key of what varies an episode: its workload is drawn without."""


class WorldConfig(Strict):
    """What a `World` is made of: config groups, and the seed of the training episodes."""

    cluster: dict[str, Any]
    workload: dict[str, Any]
    agents: AgentsConfig
    objective: Objective
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)]
    workflow: dict[str, Any] = Field(default_factory=dict)
    variation: Variation | None = None
    dispatch: Dispatch = Immediate(kind="immediate")
    lease: Lease = Lease()
    keep_alive: KeepAlivePolicy = NoKeepAlive()
    asked: tuple[InstanceOf[DecisionKind], ...] = ()

    @model_validator(mode="after")
    def _without_forecasts(self) -> Self:
        # Many simulators side by side make none.
        if isinstance(self.keep_alive, HybridHistogram):
            raise ValueError("keep_alive: agents are trained with none, fixed, lru or faascache")
        return self

    @model_validator(mode="after")
    def _agents_of_a_queue_have_one(self) -> Self:
        for part in ("queue", "tenants"):
            if getattr(self.agents, part) is not None and not isinstance(self.dispatch, Queued):
                raise ValueError(
                    f"agents.{part}: dispatch=immediate has no central queue, allowed: "
                    "dispatch=queued"
                )
        alone = self.agents.layout == "asked"
        if alone and not (self.asked and isinstance(self.dispatch, Queued)):
            raise ValueError("agents.layout: asked needs kinds of decision, and dispatch=queued")
        return self


class TrainingEpisodes:
    """Where training episodes come from: the configured world, or a variation of it.

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
            self.templates = self.generator.pools["training"].templates
            check_world(self.templates, self.cluster)
            self._held = np.unique(holders(self.templates, self.cluster), axis=0)
        given = config.get("variation") or UNVARIED
        self._variation = validated(Variation, given, "variation")
        self._variation.check(self.cluster, self._held)
        self.largest_cluster = self._variation.largest(self.cluster)
        self._prepared = self._variation.prepare(self.templates)
        every = (template for at in self._prepared.values() for template in at.values())
        self.templates = tuple(dict.fromkeys((*self.templates, *every)))
        self.images = Images.by_name(self.templates, self.generator.config.container_cold_start)

    def draw(self, sequence: np.random.SeedSequence) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What arrives in a training episode, and the cluster it runs on."""
        key = (*sequence.spawn_key, VARIATION_KEY)
        rng = np.random.default_rng(np.random.SeedSequence(sequence.entropy, spawn_key=key))
        varied = self._variation.draw(self.cluster, self._held, rng)
        rate, cluster = varied or (1.0, self.cluster)
        if isinstance(self.generator, TraceGenerator):
            return self.generator.training_episode(sequence, rate), cluster
        workload = self.generator.training_episode(sequence)
        if varied is not None:
            workload = self._variation.vary(workload, rate, cluster, self._prepared, rng)
        return replace(workload, images=self.images), cluster


class World(TrainingEpisodes):
    """What training environments are made of, and where their episodes come from.

    Args:
        config: see `WorldConfig`, in plain containers.

    Attributes:
        tenants: names of those that hold tickets, where agents split their currencies.
        rules: how it works; where no agent has a part in it, functions that wait centrally go first
            come, first served.
        layout: its agents and their turns; critics see the future of an episode.
        asked: kinds of decision beside the engine's own.

    Raises:
        InputError: a group does not validate, there is an agent `queue` but no central queue, or
            there are agents of tenants but no tenants with tickets, or no central queue.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        groups = validated(WorldConfig, dict(config), "world")
        super().__init__(dict(groups))
        self.objective, self.agents, self.seed = groups.objective, groups.agents, groups.seed
        self.asked = groups.asked
        self.tenants: tuple[str, ...] = ()
        if self.agents.tenants is not None:
            funding = getattr(self.generator.config, "funding", None)
            if funding is None:
                raise InputError(
                    "agents.tenants: workload.tenants hold no tickets, allowed: a workload of "
                    "workflows whose tenants do, such as workload=tickets"
                )
            self.tenants = tuple(funding.tenants)
        queued = groups.dispatch if isinstance(groups.dispatch, Queued) else None
        self.rules = Rules(
            order=(self.agents.order or FIRST_COME) if queued else None,
            placement=self.agents.placement,
            patience=queued.seconds if queued else INF,
            lease=groups.lease,
            keep_alive=groups.keep_alive,
        )
        self.layout = Layout(
            self.agents, self.objective, self.largest_cluster, self.tenants, self.asked
        )

    def undecided_end(self, workload: EpisodeWorkload, cluster: ClusterConfig) -> State | None:
        """The end of an episode in which agents have no choice; None where they have one."""
        state = build(Episode(workload, cluster, self.rules, asked=self.asked))
        (queue,) = self.layout.sights(1, 0).queue
        return state if play_to_choice(state, queue) == DONE else None

    def metrics(self, state: State) -> dict[str, float]:
        """The `episode_metrics` that a finished episode has, without those that are NaN."""
        metrics = episode_metrics(state, self.objective, self.cluster.power)
        return {name: value for name, value in metrics.items() if not math.isnan(value)}

    def training_episode(
        self, seed: int, worker: int, environment: int, episode: int
    ) -> tuple[EpisodeWorkload, ClusterConfig]:
        """What arrives in a training episode, and the cluster it runs on."""
        return self.draw(training_seed(seed, worker, environment, episode))
