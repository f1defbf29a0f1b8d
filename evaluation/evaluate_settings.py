"""Everything `evaluate.py` is told, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from agents.own_rule import RuleCode, code_in
from env.base.schema import Strict, distinct, short
from env.score.optimum import OptimumSettings
from env.sim.dispatch_settings import Queued
from env.sim.ordering import FIRST_COME
from env.sim.rules import HOURLY, Rules
from env.workloads.source import is_trace
from evaluation.contest import EpisodeCount
from evaluation.promise import Promise
from evaluation.statistics import StatisticsSettings
from run.ray_session import Address
from run.settings import WorldSettings

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Deadline = Annotated[float, Field(gt=0, le=1e9)]


def _named(entry: Any) -> str | RuleCode:
    """A baseline by its name, or a class of the user's own."""
    code = code_in(entry)
    if code is None:
        assert isinstance(entry, str)
        return entry
    return code


def _promises(keep: Any) -> tuple[Promise, ...]:
    """What is to be kept, by metric."""
    if keep is None:
        return ()
    if not isinstance(keep, Mapping):
        raise ValueError(f"a mapping {{METRIC: '<BOUND'}} is needed, found {short(keep)}")
    # A key may be a number, which is no metric.
    return tuple(Promise.of(str(metric), written) for metric, written in keep.items())


class RayAddress(Strict):
    """Where processes that play are (conf/evaluate.yaml)."""

    address: Address | None


class ReportSettings(Strict):
    """What is in report.html (conf/evaluate.yaml)."""

    episodes_mb: Annotated[float, Field(ge=0, le=1000)]


class EvaluateSettings(WorldSettings):
    """What `evaluate.py` is told; conf/evaluate.yaml explains each."""

    policy: tuple[str, ...]
    baselines: tuple[Annotated[str | RuleCode, BeforeValidator(_named)], ...]
    episodes: EpisodeCount
    seed: Annotated[tuple[Seed, ...], Field(min_length=1), AfterValidator(distinct)]
    sweep: Any = None  # checked by `scenarios_of`
    record: Annotated[int, Field(ge=0)]
    slo: Annotated[tuple[Deadline, ...], AfterValidator(distinct)]
    late: Deadline
    workers: Annotated[int, Field(ge=1, le=10_000)]
    ray: RayAddress
    keep: Annotated[tuple[Promise, ...], BeforeValidator(_promises)]
    minimise: str
    statistics: StatisticsSettings
    report: ReportSettings
    optimum: OptimumSettings | None
    agents: dict[str, Any] | None = None

    @property
    def sweeps_policy(self) -> bool:
        """Whether scenarios differ in the policy."""
        given = self.sweep if isinstance(self.sweep, list) else [self.sweep]
        return any(isinstance(each, Mapping) and "policy" in each for each in given)

    @property
    def in_copies(self) -> bool:
        """Whether references can play on in copies of the simulator."""
        cold = self.workload.get("container_cold_start", 0)
        hourly = self.lease == HOURLY and self.keep_alive.policy == "none"
        return hourly and not cold and not is_trace(self.workload) and self.rules.order is None

    @property
    def rules(self) -> Rules:
        """How the world works; schedulers have orders of their own."""
        rules = Rules(lease=self.lease, keep_alive=self.keep_alive)
        if not isinstance(self.dispatch, Queued):
            return rules
        return replace(rules, order=FIRST_COME, placement="asked", patience=self.dispatch.seconds)

    @field_validator("policy", mode="before")
    @classmethod
    def _policies(cls, policy: Any) -> Any:
        if policy is None:
            return []
        if isinstance(policy, str):
            return [policy]
        if isinstance(policy, list | tuple):
            return policy
        raise ValueError(f"{short(policy)} is found, a folder, a name or a list of them is allowed")

    @field_validator("baselines", mode="before")
    @classmethod
    def _one(cls, baselines: Any) -> Any:
        return [baselines] if isinstance(baselines, str) else baselines

    @field_validator("seed", mode="before")
    @classmethod
    def _several(cls, seed: Any) -> Any:
        if isinstance(seed, int) and not isinstance(seed, bool):
            return [seed]
        if isinstance(seed, list | tuple):
            return seed
        raise ValueError(f"{short(seed)} is found, a whole number or a list of them is allowed")
