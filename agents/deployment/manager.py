"""The loop that keeps the plan of a workflow up to date, hour by hour in simulated time.

It is that of Caribou's design document, "Component Interaction".
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

import numpy as np

from agents.deployment.in_cluster import InCluster, forecast
from agents.deployment.inputs import HOURS, DeploymentSettings
from agents.deployment.plan import DeploymentPlan, daily_plan
from agents.deployment.problem import Solver
from env.base.schema import validated
from env.sim.declared.power import MB_PER_GB
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.records import HOUR
from env.sim.view.raw_env import RawEnv
from env.workloads.code.configuration import Configuration, Constraints

TIME_0 = datetime(1970, 1, 1, tzinfo=UTC)
"""Of episodes; plans expire by the calendar."""
SECONDS_PER_DAY = HOURS * HOUR


def solves_a_day(tokens: float, settings: DeploymentSettings) -> int:
    """As many plans for a day as tokens buy: a divisor of 24, at most `solves_per_day`."""
    price, most = settings.tokens_per_solve, settings.solves_per_day
    counts = (count for count in range(1, most + 1) if HOURS % count == 0)
    return max((count for count in counts if count * price <= tokens), default=0)


class DeploymentManager:
    """Update checker and solver manager of a workflow, and its staging and active plans.

    Each hour it is checked whether the workflow is to be solved: if it has no plan that holds; if
    intensities are forecast otherwise than for its plan; or if tokens buy more plans a day. Calls
    earn GB * s of tokens; a solve leaves nothing of them, and those of its day count no more. The
    plan is staged, and active from the first check on at which it has been deployed. Until then,
    and after it has expired, the workflow is at home.

    Args:
        env: the episode, of whose arrivals a check counts those before it.
        template: the workflow.
        constraints, solver, settings: of plans.
        rng: of what they draw.
    """

    def __init__(
        self,
        env: RawEnv,
        template: WorkflowTemplate,
        constraints: Constraints,
        solver: Solver,
        settings: DeploymentSettings,
        rng: np.random.Generator,
    ) -> None:
        self._state, self._inputs = env.state, InCluster(env, template)
        given = {
            "workflow_name": template.name,
            "workflow_version": "",
            "home_region": self._inputs.regions[self._inputs.home],
            "regions_and_providers": {"allowed_regions": self._inputs.regions},
            "constraints": constraints,
        }
        self._given = validated(Configuration, given, "cluster")
        self._solver, self._settings, self._rng = solver, settings, rng
        arrivals = zip(env.arrival_times, env.workflow_templates, strict=True)
        self._calls = np.sort([time for time, called in arrivals if called is template])
        seconds = np.array(self._inputs.executions)[:, self._inputs.home, 0]
        self._tokens_of_call = float((template.memory_req / MB_PER_GB * seconds).sum())
        self._begins: list[float] = []
        self._plans: list[DeploymentPlan] = []
        self._staged: tuple[float, DeploymentPlan] | None = None
        self._next_check = self._counts_from = 0.0

    def plan_at(self, time: float) -> DeploymentPlan | None:
        """The plan of what arrives at a time, whatever was asked before; None: home."""
        while self._next_check <= time:
            self._check(self._next_check)
            self._next_check += HOUR
        return self._active(time)

    def tokens(self, time: float) -> float:
        """What calls have earned since the day after the last solve."""
        first, end = np.searchsorted(self._calls, [self._counts_from, time])
        return float(max(0, end - first)) * self._tokens_of_call

    def _active(self, time: float) -> DeploymentPlan | None:
        active = bisect_right(self._begins, time) - 1
        if active < 0 or _moment(time) >= self._plans[active].expiry_time:
            return None
        return self._plans[active]

    def _check(self, time: float) -> None:
        if self._staged is not None:
            deployed, plan = self._staged
            if deployed > time:
                return
            self._begins.append(time)
            self._plans.append(plan)
            self._staged = None
        present, intensity, needed = self._active(time), forecast(self._state, time), 1
        if present is not None:
            unchanged = np.array_equal(intensity, self._inputs.intensity)
            needed = len(present.hours) + unchanged
        count = solves_a_day(self.tokens(time), self._settings)
        if count < needed:
            return
        self._inputs.intensity = intensity
        settings = self._settings.model_copy(update={"solves_per_day": count})
        how = self._solver, settings, int(self._rng.integers(2**32)), _moment(time)
        self._staged = time + settings.redeployment, daily_plan(self._inputs, self._given, *how)
        self._counts_from = (time // SECONDS_PER_DAY + 1) * SECONDS_PER_DAY


def _moment(time: float) -> datetime:
    return TIME_0 + timedelta(seconds=time)
