"""What plans in the simulator are estimated from: what is declared, in place of what was measured.

That is a run at full speed: nothing waits for cores, for servers to start, or for a container.
"""

import numpy as np

from agents.deployment.inputs import GIGABYTE, HOURS, Inputs, calls_of
from env.base.errors import InputError
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.power import JOULES_PER_KWH, MB_PER_GB
from env.sim.declared.resources import holders
from env.sim.declared.rules import Lease
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.block import State
from env.sim.state.draws import FORECAST, normal
from env.sim.state.records import HOUR
from env.sim.view.raw_env import RawEnv


def nodes_of(template: WorkflowTemplate) -> tuple[str, ...]:
    """What plans call its functions: by their names, or by number where these do not differ."""
    names, count = template.function_names, template.function_count
    return names if len(set(names)) == count else tuple(map(str, range(count)))


def forecast(state: State, time: float) -> np.ndarray:
    """(24, R) gCO2e/kWh by hour of the day, of the 24 hours from that of a time on.

    They are forecast with the error of env/sim/events/carbon.py. Time 0 is midnight.
    """
    cluster, first = state.cluster[0], int(time // HOUR)
    hours, found = first + np.arange(HOURS), np.empty((HOURS, len(state.regions)))
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
