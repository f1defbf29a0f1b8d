"""The loop that keeps the plan of a workflow up to date, hour by hour in simulated time.

It is that of Caribou's design document, "Component Interaction". Plans are estimated from what is
declared, in place of what was measured: a run at full speed, in which nothing waits for cores, for
servers to start, or for a container.
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

import numpy as np

from agents.deployment.inputs import GIGABYTE, HOURS, DeploymentSettings, Inputs, calls_of
from agents.deployment.plan import DeploymentPlan, daily_plan
from agents.deployment.problem import Solver
from env.base.errors import InputError
from env.base.schema import validated
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.power import JOULES_PER_KWH, MB_PER_GB
from env.sim.declared.resources import holders
from env.sim.declared.rules import Lease
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.block import State
from env.sim.state.draws import FORECAST, normal
from env.sim.state.records import HOUR
from env.sim.view.raw_env import RawEnv
from env.workloads.code.configuration import Configuration, Constraints

HOUR_0 = datetime(1970, 1, 1, tzinfo=UTC)
"""Of episodes; plans expire by the calendar."""
SECONDS_PER_DAY = HOURS * HOUR


def nodes_of(template: WorkflowTemplate) -> tuple[str, ...]:
    """What plans call its functions: by their names, or by number where these do not differ."""
    names, count = template.function_names, template.function_count
    return names if len(set(names)) == count else tuple(map(str, range(count)))


def forecast(state: State, time: float) -> np.ndarray:
    """(24, R) gCO2e/kWh by hour of the day, of the 24 hours from that of a time on.

    They are forecast with the error of env/sim/events/carbon.py. Hour 0 is midnight.
    """
    cluster, first = state.cluster[0], int(time // HOUR)
    hours = int((time + cluster["begin_time"]) // HOUR) + np.arange(HOURS)
    found = np.empty((HOURS, len(state.regions)))
    for region, grid in enumerate(state.regions):
        error = cluster["forecast_error"] * normal(cluster["seed"], FORECAST + region, first)
        coming = state.intensity["grams"][grid["first_hour"] + hours % grid["hours"]]
        found[hours % HOURS, region] = coming * max(0.0, 1.0 + error)
    return found


class InCluster(Inputs):
    """Inputs of a workflow, in the regions of the cluster of an episode.

    In each region the fastest servers that hold a function count. A second of it costs what is paid
    per use or, where servers are leased, its share of their cores. It takes the electricity of busy
    cores and of its memory.

    Args:
        env: the episode.
        workflow: what is planned for.

    Raises:
        InputError: a function must not run at home, or no server there holds it.
    """

    def __init__(self, env: RawEnv, workflow: WorkflowTemplate) -> None:
        cluster = env.cluster_config
        self.nodes, self.regions = nodes_of(workflow), tuple(cluster.regions)
        self.home, self.intensity = int(env.state.cluster["home"][0]), forecast(env.state, 0.0)
        self._run(cluster, env.rules.lease, workflow)
        for node in np.flatnonzero(~self.permitted[:, self.home]):
            where = f"cannot run in {self.regions[self.home]}, which is home"
            raise InputError(f"{workflow.label}: {self.nodes[node]} {where}")

        pairs = [(one, other) for one in self.regions for other in self.regions]
        links = {pair: cluster.link(*pair) for pair in pairs}
        each_egress = [link.egress for link in links.values()]
        self.egress = np.reshape(each_egress, (len(self.regions), -1))
        self.kwh_per_gb = cluster.transfer_kwh_per_gb * (1.0 - np.eye(len(self.regions)))
        self.order, self.edges = np.array(workflow.topological_order()), calls_of(workflow)
        of_clients = len(self.edges) - len(workflow.edges)
        self.probability = np.append(workflow.probability, np.ones(of_clients))
        data_bytes = np.append(workflow.data_bytes, np.zeros(of_clients))
        self.gigabytes = data_bytes / GIGABYTE
        self.transfers = [
            {pair: [link.round_trip + size / link.bandwidth] for pair, link in links.items()}
            for size in data_bytes.tolist()
        ]

    def _run(self, cluster: ClusterConfig, lease: Lease, workflow: WorkflowTemplate) -> None:
        """Where nodes may run, and what that takes of time, money and energy."""
        self.permitted = np.zeros((len(self.nodes), len(self.regions)), np.bool_)
        seconds, self.usd_per_s, self.kwh_per_s = np.zeros((3, *self.permitted.shape))
        fits, memory = holders([workflow], cluster), workflow.memory_req / MB_PER_GB
        for at in np.ndindex(self.permitted.shape):
            threads, gigabytes = int(workflow.parallelism[at[0]]), memory[at[0]]
            speeds = {
                kind: cluster.speed_of(kind) * min(threads, kind.cpu)
                for kind, holds in zip(cluster.server_types, fits[at[0]], strict=True)
                if holds and kind.count and kind.region == self.regions[at[1]]
            }
            if not speeds:
                continue
            kind = max(speeds, key=lambda each: speeds[each])
            cores = min(threads, kind.cpu)
            self.permitted[at], seconds[at] = True, workflow.computation[at[0]] / speeds[kind]
            if lease.use:
                price = getattr(lease.use.gb_second, kind.architecture)
                self.usd_per_s[at] = gigabytes * price * cluster.price_of(kind)
            elif not lease.is_free:
                self.usd_per_s[at] = cores / kind.cores * cluster.rate_of(kind) / HOUR
            if power := cluster.power_in(kind.region):
                watts = cores * power.busy_core_w + gigabytes * power.memory_w_per_gb
                self.kwh_per_s[at] = watts * power.pue / JOULES_PER_KWH
        self.executions = seconds[:, :, None].tolist()
        request = lease.use.request if lease.use else 0.0
        self.request = np.array([request * each.price for each in cluster.regions.values()])


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
        self._next_check = 0.0
        self._counts_from = -float(self._state.cluster["begin_time"][0])  # a midnight

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
        if active < 0 or self._moment(time) >= self._plans[active].expiry_time:
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
        how = self._solver, settings, int(self._rng.integers(2**32)), self._moment(time)
        self._staged = time + settings.redeployment, daily_plan(self._inputs, self._given, *how)
        self._counts_from += SECONDS_PER_DAY * ((time - self._counts_from) // SECONDS_PER_DAY + 1)

    def _moment(self, time: float) -> datetime:
        return HOUR_0 + timedelta(seconds=time + float(self._state.cluster["begin_time"][0]))
