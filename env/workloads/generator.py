"""Episodes: arrivals plus workflows, drawn for training or held out for evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from env.base.schema import Strict, TenantName, Weight
from env.sim.hardware import ClusterConfig
from env.sim.rules import DEFAULT_RULES, NOTHING_EARLIER, Images, Rules
from env.sim.view.raw_env import RawEnv
from env.sim.workflow_template import WorkflowTemplate
from env.workloads.arrivals import Arrivals
from env.workloads.templates import TemplatePool, WorkflowConfig, template_pools
from env.workloads.traces.trace import Trace, earlier

TRAINING_KEY, EVALUATION_KEY = 0, 1
"""First word of every spawn key: what keeps the two kinds of episodes apart for any seed."""


class WorkloadConfig(Strict):
    """Config group `workload`: when workflows arrive, and whose they are.

    Attributes:
        seed: of the episodes.
        arrivals: the arrival process, told by its `kind`.
        tenants: share of the workflows of every tenant, relative to the others; empty: nobody is
            told apart.
        container_cold_start: seconds until a new container of a function has started on a server
            that is up.
    """

    seed: int = Field(ge=0)
    arrivals: Arrivals
    tenants: dict[TenantName, Weight] = Field(default_factory=dict)
    container_cold_start: float = Field(default=0.0, ge=0, le=1e6)


@dataclass(frozen=True)
class EpisodeWorkload:
    """What arrives in one episode.

    Attributes:
        arrival_times: seconds, one for each workflow.
        templates: the workflow that arrives at each of them.
        tenants: whose each workflow is; empty where nobody is told apart.
        work: operations of each workflow's only function, where they are drawn; else empty.
        cold_start: seconds until a new container has started, by function name or of all.
        known: workflows that may arrive later and belong to images, too; empty: those that arrive.
        history: requests of them before time 0, of which a keep-alive policy may know.
    """

    arrival_times: tuple[float, ...]
    templates: tuple[WorkflowTemplate, ...]
    tenants: tuple[str, ...] = ()
    work: tuple[int, ...] = ()
    cold_start: Mapping[str, float] | float = 0.0
    known: tuple[WorkflowTemplate, ...] = ()
    history: Trace | None = None

    def images(self, rules: Rules) -> Images | None:
        """Of all functions, None in a world in which it does not matter."""
        if rules.order is None and not rules.keeps_warm and self.cold_start == 0.0:
            return None
        images = Images.by_name(self.known or self.templates, self.cold_start)
        remembers = rules.keep_alive.history[1] > 0
        if self.history is None or not remembers:
            return images
        chunks = [earlier(chunk) for chunk in self.history.requests()]
        return replace(images, earlier=np.concatenate([NOTHING_EARLIER, *chunks]))

    def env(
        self,
        cluster: ClusterConfig,
        rules: Rules = DEFAULT_RULES,
        seed: int | None = None,
        record: bool = False,
    ) -> RawEnv:
        """The episode on a cluster in a world of these rules; arguments as of `RawEnv`."""
        return RawEnv(
            self.arrival_times,
            self.templates,
            cluster,
            seed,
            record,
            tenants=self.tenants,
            rules=rules,
            images=self.images(rules),
            work=self.work,
        )


def training_seed(seed: int, worker: int, env: int, episode: int) -> np.random.SeedSequence:
    """Seed of one training episode: its own for every worker, environment and episode number."""
    return np.random.SeedSequence(seed, spawn_key=(TRAINING_KEY, worker, env, episode))


def evaluation_seed(seed: int, index: int) -> np.random.SeedSequence:
    """Seed of the held-out episode number `index`; no training episode has it."""
    return np.random.SeedSequence(seed, spawn_key=(EVALUATION_KEY, index))


class WorkloadGenerator:
    """Draws episodes.

    Args:
        workflow_config: the group `workflow`.
        workload_config: the group `workload`.
        core_speed: operations per second of the cluster's reference core.

    Raises:
        InputError: a workflow cannot be made.
    """

    def __init__(
        self, workflow_config: WorkflowConfig, workload_config: WorkloadConfig, core_speed: int
    ) -> None:
        self.pools = template_pools(workflow_config, core_speed)
        self._config = workload_config

    @property
    def most_workflows(self) -> int:
        """The most workflows that an episode can have."""
        return self._config.arrivals.most

    @property
    def longest_arrivals(self) -> float:
        """Seconds until the last arrival, see `RandomArrivals.longest`."""
        return self._config.arrivals.longest

    @property
    def container_cold_start(self) -> float:
        """Seconds until a new container of any function has started."""
        return self._config.container_cold_start

    def training_episode(self, seed_sequence: np.random.SeedSequence) -> EpisodeWorkload:
        """An episode of the training pool, see `training_seed`."""
        return self._episode(self.pools.training, seed_sequence)

    def evaluation_templates(self, index: int) -> tuple[WorkflowTemplate, ...]:
        """All workflows that can arrive in held-out episodes."""
        return self.pools.evaluation.templates

    def evaluation_episode(self, index: int) -> EpisodeWorkload:
        """Held-out episode number `index`: always the same for the config's seed."""
        return self._episode(self.pools.evaluation, evaluation_seed(self._config.seed, index))

    def _episode(
        self, pool: TemplatePool, seed_sequence: np.random.SeedSequence
    ) -> EpisodeWorkload:
        rng = np.random.default_rng(seed_sequence)
        arrival_times = self._config.arrivals.draw(rng)
        templates = pool.draw(rng, len(arrival_times))
        # Last, so that arrivals and workflows are the same whoever they belong to.
        tenants = self._tenants(rng, len(arrival_times))
        cold_start = self._config.container_cold_start
        return EpisodeWorkload(arrival_times, templates, tenants, cold_start=cold_start)

    def _tenants(self, rng: np.random.Generator, count: int) -> tuple[str, ...]:
        names = list(self._config.tenants)
        if not names:
            return ()
        shares = np.array(list(self._config.tenants.values()))
        chosen = rng.choice(len(names), size=count, p=shares / shares.sum())
        return tuple(names[position] for position in chosen)
