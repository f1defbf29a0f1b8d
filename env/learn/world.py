"""The world that a configuration describes: cluster, workflows, arrivals, agents and objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, InstanceOf, model_validator

from env.base.errors import InputError
from env.base.schema import validated
from env.learn.actions import LARGEST_SEED
from env.learn.layouts import AgentsConfig, Layout
from env.learn.training_episodes import TrainingEpisodes, Variation
from env.score.reward import Objective
from env.sim.assembly.build import build
from env.sim.declared.aside import DecisionKind
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.keep_alive_policy import EcoLife, FaasCache, Fixed, Lru, NoKeepAlive
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.rules import Dispatch, Immediate, Lease, Queued, RuleGroups
from env.sim.declared.server_changes import NO_CHANGES, Changes, Recovery
from env.sim.events.choosing import play_to_choice
from env.sim.state.block import State
from env.sim.state.records import DONE
from env.workloads.source import funded_tenants


class WorldConfig(RuleGroups):
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
    # Many simulators side by side make no forecasts of idle times.
    keep_alive: Annotated[
        NoKeepAlive | Fixed | Lru | FaasCache | EcoLife, Field(discriminator="policy")
    ] = NoKeepAlive()
    changes: Changes = NO_CHANGES
    recovery: Recovery = Recovery()
    asked: tuple[InstanceOf[DecisionKind], ...] = ()

    @model_validator(mode="after")
    def _agents_of_a_queue_have_one(self) -> Self:
        queued = isinstance(self.dispatch, Queued)
        for part in ("queue", "tenants"):
            if getattr(self.agents, part) is not None and not queued:
                raise ValueError(
                    f"agents.{part}: dispatch=immediate has no central queue, allowed: "
                    "dispatch=queued"
                )
        if self.agents.scaler and self.lease.autoscale is None:
            raise ValueError("agents.scaler: lease.autoscale is null, allowed: lease=autoscaled")
        decides = self.asked or self.agents.scaler or self.agents.region
        if self.agents.layout == "asked" and not (decides and queued):
            raise ValueError("agents.layout: asked needs kinds of decision, and dispatch=queued")
        return self


class World(TrainingEpisodes):
    """What training environments are made of, and where their episodes come from.

    Args:
        config: see `WorldConfig`, in plain containers.

    Attributes:
        tenants: names of those that hold tickets, where agents split their currencies.
        rules: how it works; without an agent for it the central queue is first come, first served.
        layout: its agents and their turns; critics see the future of an episode.
        asked: kinds of decision beside the engine's own.

    Raises:
        InputError: a group does not validate, or tenants with agents hold no tickets.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        groups = validated(WorldConfig, dict(config), "world")
        super().__init__(dict(groups))
        self.objective, self.agents, self.seed = groups.objective, groups.agents, groups.seed
        self.asked = (*self.agents.asked(self.largest_cluster), *groups.asked)
        self.tenants = funded_tenants(groups.workload) if self.agents.tenants else ()
        if self.agents.tenants and not self.tenants:
            raise InputError(
                "agents.tenants: workload.tenants hold no tickets, allowed: a workload of "
                "workflows whose tenants do, such as workload=tickets"
            )
        rules = groups.rules_for(self.agents.order or FIRST_COME, self.agents.placement)
        self.rules = rules if self.agents.scaler else rules.with_all_servers
        made_of = self.agents, self.objective, self.largest_cluster, self.tenants, self.asked
        self.layout = Layout(*made_of)

    def undecided_end(self, workload: EpisodeWorkload) -> State | None:
        """The end of an episode in which agents have no choice; None where they have one."""
        state = build(Episode(workload, self.cluster, self.rules, asked=self.asked))
        queue = self.layout.environments(state, 0).queue[0]
        return state if play_to_choice(state, queue) == DONE else None
