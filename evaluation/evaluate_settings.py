"""The settings of `evaluate.py`, checked."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from agents.own_rule import RuleCode, code_in
from env.base.schema import Strict, distinct, short
from env.score.optimum import OptimumSettings
from env.sim.declared.ordering import FIRST_COME
from env.sim.declared.rules import HOURLY, Rules
from env.workloads.source import is_trace
from evaluation.promise import Promise
from evaluation.statistics import StatisticsSettings
from run.settings import Address, WorldSettings

Seed = Annotated[int, Field(ge=0, lt=2**32)]
Deadline = Annotated[float, Field(gt=0, le=1e9)]
Baseline = Annotated[str | RuleCode, BeforeValidator(lambda entry: code_in(entry) or str(entry))]
"""One of those by its name, or a class of the user's own."""


def _listed(given: Any) -> Any:
    """One alone as a list, nothing as an empty one."""
    if given is None:
        return []
    alone = isinstance(given, str | int) and not isinstance(given, bool)
    return [given] if alone else given


def _promises(keep: Any) -> tuple[Promise, ...]:
    """What is to be kept, by metric."""
    if keep is None:
        return ()
    if not isinstance(keep, Mapping):
        raise ValueError(f"a mapping {{METRIC: '<BOUND'}} is needed, found {short(keep)}")
    # A key may be a number, which is no metric.
    return tuple(Promise.of(str(metric), written) for metric, written in keep.items())


LISTED = BeforeValidator(_listed)


class RayAddress(Strict):
    """Where processes that play are (conf/evaluate.yaml)."""

    address: Address | None


class ReportSettings(Strict):
    """What is in report.html (conf/evaluate.yaml)."""

    episodes_mb: Annotated[float, Field(ge=0, le=1000)]


class EvaluateSettings(WorldSettings):
    """The settings of `evaluate.py`; conf/evaluate.yaml explains each."""

    policy: Annotated[tuple[str, ...], LISTED]
    baselines: Annotated[tuple[Baseline, ...], LISTED]
    episodes: Annotated[int, Field(ge=1, le=100_000)]
    seed: Annotated[tuple[Seed, ...], LISTED, Field(min_length=1), AfterValidator(distinct)]
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
        fixed = not self.rules.servers_change and self.rules.order is None
        return hourly and not cold and not is_trace(self.workload) and fixed

    @property
    def rules(self) -> Rules:
        """How the world works; schedulers have orders of their own."""
        return self.rules_for(FIRST_COME, "asked")
