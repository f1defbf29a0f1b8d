"""Episodes: arrivals plus workflows, drawn for training or held out for evaluation."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict, TenantName, Weight, nearest, short
from env.sim.declared.bounds import LONGEST
from env.sim.declared.episode import EpisodeWorkload
from env.sim.declared.funding import BASE, Funding, Grant
from env.sim.declared.images import Images
from env.sim.declared.workflow_template import WorkflowTemplate
from env.tickets.rights import Tickets
from env.workloads.arrivals import Arrivals
from env.workloads.templates import PoolName, WorkflowConfig, template_pools

TRAINING_KEY, EVALUATION_KEY = 0, 1
"""First word of every spawn key: no seed makes the two kinds of episodes meet."""
TURNS_KEY = 1
"""Last word of the spawn key of what orders draw; 0 is that of what varies an episode."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST)]


class Tenant(Strict):
    """Whose workflows arrive.

    Attributes:
        share: of the workflows, relative to the others.
        active: seconds, [from, until): workflows of it arrive only then; None: always.
        tickets: its right to the cluster; None: it has none.
        currency: of these tickets.
        workflows: tickets that a workflow gets in the currency of the tenant, by its name or its
            entry in the mix; all others get one.
    """

    share: Weight
    active: Annotated[tuple[Seconds, Seconds] | None, ASCENDING] = None
    tickets: Tickets | None = None
    currency: TenantName = BASE
    workflows: dict[str, Tickets] = Field(default_factory=dict)


def _with_share(tenant: Any) -> Any:
    """A number alone is a share."""
    return tenant if isinstance(tenant, Mapping | Tenant) else {"share": tenant}


class WorkloadConfig(Strict):
    """When workflows arrive, and whose they are; the files of conf/workload explain each key."""

    seed: int = Field(ge=0)
    arrivals: Arrivals
    tenants: dict[TenantName, Annotated[Tenant, BeforeValidator(_with_share)]] = Field(
        default_factory=dict
    )
    currencies: dict[TenantName, Grant] = Field(default_factory=dict)
    container_cold_start: float = Field(default=0.0, ge=0, le=1e6)

    @cached_property
    def funding(self) -> Funding | None:
        """The tickets of the tenants; None where none has any."""
        held = [name for name, tenant in self.tenants.items() if tenant.tickets is not None]
        if not held:
            if self.currencies:
                raise InputError("currencies: no tenant has tickets, which they are units of")
            return None
        for name in self.tenants:
            if name not in held:
                raise InputError(f"tenants.{name}: has no tickets, but {short(held[0])} has")
        grants = {
            name: {"tickets": tenant.tickets, "currency": tenant.currency}
            for name, tenant in self.tenants.items()
        }
        return Funding.model_validate({"tenants": grants, "currencies": self.currencies})

    @model_validator(mode="after")
    def _funded(self) -> Self:
        self.funding  # noqa: B018 - raises what is wrong with it
        return self


def training_seed(seed: int, worker: int, env: int, episode: int) -> np.random.SeedSequence:
    """Seed of one training episode: another for every worker, environment and episode number."""
    return np.random.SeedSequence(seed, spawn_key=(TRAINING_KEY, worker, env, episode))


def evaluation_seed(seed: int, index: int) -> np.random.SeedSequence:
    """Seed of the held-out episode number `index`; no training episode has it."""
    return np.random.SeedSequence(seed, spawn_key=(EVALUATION_KEY, index))


def turns_seed(episode: np.random.SeedSequence) -> int:
    """Seed of the draws of an order in which tenants take turns."""
    key = (*episode.spawn_key, TURNS_KEY)
    drawn = np.random.SeedSequence(episode.entropy, spawn_key=key).generate_state(1, np.uint64)
    return int(drawn[0])


class WorkloadGenerator:
    """Draws episodes.

    Attributes:
        config: the group `workload`.
        pools: of workflows.

    Raises:
        InputError: a workflow cannot be made, or a tenant gives tickets to one that is none.
    """

    def __init__(
        self, workflow_config: WorkflowConfig, workload_config: WorkloadConfig, core_speed: int
    ) -> None:
        self.pools = template_pools(workflow_config, core_speed)
        self.config = workload_config
        cold_start = workload_config.container_cold_start
        self._images = {
            name: Images.by_name(pool.templates, cold_start) for name, pool in self.pools.items()
        }
        names = {
            name
            for pool in self.pools.values()
            for template, entry in pool.entries.items()
            for name in (template.name, entry)
        }
        for tenant, declared in workload_config.tenants.items():
            for name in sorted(declared.workflows.keys() - names):
                raise InputError(
                    f"workload.tenants.{tenant}.workflows: no workflow is called {short(name)}, "
                    f"{nearest(name, sorted(names))}"
                )

    def training_episode(self, seed_sequence: np.random.SeedSequence) -> EpisodeWorkload:
        """An episode of the training pool, see `training_seed`."""
        return self._episode("training", seed_sequence)

    def evaluation_templates(self, index: int) -> tuple[WorkflowTemplate, ...]:
        """All workflows that can arrive in held-out episodes."""
        return self.pools["evaluation"].templates

    def evaluation_episode(self, index: int) -> EpisodeWorkload:
        """Held-out episode number `index`: always the same for the config's seed."""
        return self._episode("evaluation", evaluation_seed(self.config.seed, index))

    def _episode(self, name: PoolName, seed_sequence: np.random.SeedSequence) -> EpisodeWorkload:
        pool = self.pools[name]
        rng = np.random.default_rng(seed_sequence)
        arrival_times, begin_hour = self.config.arrivals.draw(rng)
        templates = pool.draw(rng, len(arrival_times))
        # Last, so that arrivals and workflows are the same with any tenants.
        tenants = self._tenants(rng, np.array(arrival_times))
        tickets = []
        for tenant, template in zip(tenants, templates, strict=False):
            amounts = self.config.tenants[tenant].workflows
            tickets.append(amounts.get(template.name, amounts.get(pool.entries[template], 1.0)))
        return EpisodeWorkload(
            arrival_times,
            templates,
            tenants,
            images=self._images[name],
            funding=self.config.funding,
            turns_seed=turns_seed(seed_sequence),
            tickets=tuple(tickets),
            begin_hour=begin_hour,
        )

    def _tenants(self, rng: np.random.Generator, times: np.ndarray) -> tuple[str, ...]:
        names = list(self.config.tenants)
        if not names:
            return ()
        shares = np.zeros((len(names), len(times)))
        for row, tenant in zip(shares, self.config.tenants.values(), strict=True):
            begin, end = tenant.active or (0.0, math.inf)
            row[(begin <= times) & (times < end)] = tenant.share
        nobody = times[shares.sum(axis=0) == 0]
        if len(nobody):
            what = f"nobody is active at {nobody[0]:g} s, when one arrives"
            raise InputError(f"workload.tenants: {what}")
        # As one draws of fixed shares: a number of each workflow, in the shares of its time.
        reached = np.cumsum(shares / shares.sum(axis=0), axis=0)
        drawn = (reached / reached[-1] <= rng.random(len(times))).sum(axis=0)
        return tuple(names[number] for number in drawn.tolist())
