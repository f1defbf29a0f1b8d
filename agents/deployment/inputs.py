"""What plans are estimated from: a workflow in its regions, with samples of what was measured.

This is the InputManager of Caribou's design document, which loads what its tables have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from agents.deployment.settings import DeploymentSettings
from env.base.errors import InputError
from env.base.schema import listed
from env.sim.declared.regions import Regions, permitted_regions
from env.sim.declared.workflow_template import WorkflowTemplate

TABLES = REGIONS, PROVIDERS, CARBON, PERFORMANCE, WORKFLOWS = (
    *("available_regions_table", "provider_region_table", "carbon_region_table"),
    *("performance_region_table", "workflow_instance_table"),
)
"""Those that plans need."""
Tables = Mapping[str, Mapping[str, Any]]
"""Rows by table and key, with the fields of the design document."""
Pair = tuple[str, str]
"""The regions from which and to which."""
BySize = Mapping[float, Sequence[float]]
"""Seconds of transfers by GB."""

HOURS = 24
GIGABYTE = 1e9
"""Bytes, of transfers."""
MB_PER_GB = 1024
"""Of memory, as it is billed."""
SECONDS_PER_HOUR = 3600
TAIL_ONE_IN = 10
"""How many latencies are one of the tail, so that it is the 95th percentile of them."""
CLIENT = -1
"""Who calls a function that no other calls."""


def drawn(samples: Sequence[float], draws: np.ndarray) -> np.ndarray:
    """A sample for each draw from [0, 1); the same draw has the same rank among any samples."""
    return np.sort(samples)[(draws * len(samples)).astype(np.int64)]


@dataclass(frozen=True)
class Transfers:
    """Along an edge; what was not measured takes a latency, and some seconds for each GB.

    `sizes` are the GB of each transfer that was measured.
    """

    measured: Mapping[Pair, BySize]
    unmeasured: Mapping[Pair, tuple[Sequence[float], float]]
    sizes: Sequence[float]

    def seconds(self, pair: Pair, gigabytes: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Of K transfers (K,); what was measured of a size holds for all it is the nearest to."""
        by_size = self.measured.get(pair)
        if not by_size:
            latency, seconds_per_gb = self.unmeasured[pair]
            return drawn(latency, draws) + seconds_per_gb * gigabytes
        nearest = np.abs(np.subtract.outer(gigabytes, list(by_size))).argmin(axis=1)
        seconds = np.empty(len(draws))
        for kind, samples in enumerate(by_size.values()):
            seconds[nearest == kind] = drawn(samples, draws[nearest == kind])
        return seconds


class Inputs:
    """A workflow in its regions: N nodes, E edges, R regions.

    Where nothing was measured of a node in a region, its runs are those at home, by the relative
    performance of both. Where nothing was measured of a call between two regions, their latency
    counts, and the seconds that its bytes take; of a start hop, what it takes at home and the
    latency from there. Of conditional calls the measured probability counts, if there is one. The
    gCO2e/GB of carbon_region_table are not used, for they do not tell hours apart, nor what is free
    at first.

    Attributes:
        nodes, regions: names.
        home: the region where clients are.
        permitted: bool (N, R), where a node may run.
        order: nodes, each behind those that call it.
        edges: int64 (E, 2) caller, maybe `CLIENT`, and called; those to one node side by side.
        probability: (E,) that the caller makes the call.
        transfers: along each edge.
        executions: seconds of each node in each region.
        request, usd_per_s, egress: (R,), (N, R), (R, R) USD: of a run, a second of it, a GB.
        kwh_per_s, kwh_per_gb: (N, R), (R, R) energy of a second of a run, and of a GB.
        intensity: (24, R) gCO2e/kWh by hour of the day.

    Args:
        tables: as collectors fill them, with functions by the names they have in the workflow.
        workflow, version: what is planned for.
        home: region where clients are.
        declared: where functions may run, by their names; without, in all regions.
        settings: numbers that no table has.

    Raises:
        InputError: a row is missing, or nothing was measured at home, or a function must not run
            there.
    """

    def __init__(
        self,
        tables: Tables,
        workflow: WorkflowTemplate,
        version: str,
        home: str,
        declared: Mapping[str, Regions],
        settings: DeploymentSettings,
    ) -> None:
        self.nodes, available = workflow.function_names, tuple(tables[REGIONS])
        allowed = []
        for node in self.nodes:
            where = declared.get(node, Regions())
            allowed.append(permitted_regions(available, where.allowed, where.disallowed))
            if home not in allowed[-1]:
                may = listed(allowed[-1]) or "no region"
                raise InputError(f"{workflow.label}: {node} may run in {may}, home is {home}")
        regions = tuple(region for region in available if any(region in each for each in allowed))
        self.regions, self.home = regions, regions.index(home)
        self.permitted = np.array([[region in each for region in regions] for each in allowed])
        providers, carbon, performance = (
            [_row(tables, name, region) for region in regions]
            for name in (PROVIDERS, CARBON, PERFORMANCE)
        )
        self._price(providers, workflow.memory_req, settings)
        self.intensity = np.transpose(
            [row.get("hourly", [row["carbon_intensity"]] * HOURS) for row in carbon]
        )
        self._unmeasured = {
            (one, other): latency_of(row["transmission_latency"][other])
            for one, row in zip(regions, performance, strict=True)
            for other in regions
        }
        key = f"{workflow.name}-{version}"
        measured = _row(tables, WORKFLOWS, key)
        instances, hops = measured["instance_summary"], measured["start_hop_summary"]
        executed = {name: instances.get(name, {}).get("executions", {}) for name in self.nodes}
        for what, found in {**executed, "start_hop_summary": hops}.items():
            if not found.get(home):
                raise InputError(f"{WORKFLOWS}: {key}: {what}: nothing of the home region, {home}")
        speed = np.array([row["relative_performance"] for row in performance])
        slower = dict(zip(regions, (speed[self.home] / speed).tolist(), strict=True))
        self.executions = [
            [each.get(region) or [slower[region] * s for s in each[home]] for region in regions]
            for each in executed.values()
        ]

        self.order = np.array(workflow.topological_order())
        first = set(self.order.tolist()).difference(workflow.edges[:, 1].tolist())
        hop = self._start_hop(_pairs({home: hops}), home)
        edges = [(node, CLIENT, 1.0, hop) for node in first]
        for at, (source, target) in enumerate(workflow.edges.tolist()):
            call = instances[self.nodes[source]]["to_instance"].get(self.nodes[target], {})
            probability = float(workflow.probability[at])
            if probability < 1:
                probability = call.get("invocation_probability", probability)
            pairs = _pairs(call.get("regions_to_regions", {}))
            sizes = _sizes(pairs) or [workflow.data_bytes[at] / GIGABYTE]
            along = Transfers(pairs, self._unmeasured, sizes)
            edges.append((target, source, probability, along))
        edges.sort(key=lambda edge: edge[0])
        self.edges = np.array([(source, target) for target, source, *_ in edges])
        self.probability = np.array([probability for *_, probability, _ in edges])
        self.transfers = [along for *_, along in edges]

    def _price(
        self,
        providers: Sequence[Mapping[str, Any]],
        memory: np.ndarray,
        settings: DeploymentSettings,
    ) -> None:
        """What seconds and GB take, of money and energy, of functions with this memory (N,), MB."""
        of_requests, of_compute = (
            np.array([row["execution_cost"][cost][settings.architecture] for row in providers])
            for cost in ("invocation_cost", "compute_cost")
        )
        self.request, self.usd_per_s = of_requests, np.outer(memory / MB_PER_GB, of_compute)
        self.kwh_per_s = np.transpose([kwh_per_s(row, memory, settings) for row in providers])
        self.egress = np.array(
            [
                [usd_per_gb(row, one, other) for other in self.regions]
                for one, row in zip(self.regions, providers, strict=True)
            ]
        )
        free = np.eye(len(self.regions), dtype=bool) & (not settings.transfer_within_region)
        self.kwh_per_gb = np.where(free, 0.0, settings.transfer_kwh_per_gb)

    def _start_hop(self, measured: dict[Pair, BySize], home: str) -> Transfers:
        """From clients to each region; where it was not measured, samples are added up in a row."""
        found = dict(measured)
        for region in self.regions:
            far = cycle(self._unmeasured[home, region][0])
            at_home = measured[home, home].items()
            beyond = {size: [each + next(far) for each in times] for size, times in at_home}
            found.setdefault((home, region), beyond)
        return Transfers(found, self._unmeasured, _sizes(measured))


def kwh_per_s(
    provider: Mapping[str, Any], memory: np.ndarray, settings: DeploymentSettings
) -> np.ndarray:
    """Energy of a second with so much memory (MB), as far as carbon is emitted for it.

    Power is in kW, of a vCPU and of a GB. An idle and a busy vCPU differ in the published code.
    """
    average = provider["average_cpu_power"]
    idle, busy = (provider.get(f"{which}_cpu_power", average) for which in ("min", "max"))
    cpu = idle + settings.utilisation * (busy - idle)
    of_memory = provider["average_memory_power"] * memory / MB_PER_GB
    power = cpu * memory / settings.memory_per_vcpu + of_memory
    return power / SECONDS_PER_HOUR * (1 - provider["cfe"]) * provider["pue"]


def usd_per_gb(provider: Mapping[str, Any], region: str, other: str) -> float:
    """What a provider takes for a GB from its region to another; what stays there is free."""
    costs = provider["transmission_cost"]
    same = region.split(":")[0] == other.split(":")[0]
    away = costs["provider_data_transfer" if same else "global_data_transfer"]
    return 0.0 if region == other else costs.get("to_region", {}).get(other, away)


def latency_of(measured: Mapping[str, Any]) -> tuple[Sequence[float], float]:
    """Samples with this average and tail, and seconds per GB; the published code has samples."""
    average, tail = (measured.get(f"{which}_latency", 0.0) for which in ("average", "tail"))
    usual = max(0.0, (TAIL_ONE_IN * average - tail) / (TAIL_ONE_IN - 1))
    samples = [*[usual] * (TAIL_ONE_IN - 1), tail]
    return measured.get("latency_distribution", samples), measured.get("seconds_per_gb", 0.0)


def _row(tables: Tables, name: str, key: str) -> Mapping[str, Any]:
    if key not in tables[name]:
        has = listed(sorted(tables[name])) or "no rows"
        raise InputError(f"{name}: no row '{key}', the table has {has}")
    return tables[name][key]


def _pairs(measured: Mapping[str, Any]) -> dict[Pair, BySize]:
    """Transfers by both regions and GB, which are keys of JSON."""
    return {
        (one, other): {float(size): times for size, times in by_size.items()}
        for one, to in measured.items()
        for other, by_size in to.items()
    }


def _sizes(measured: Mapping[Pair, BySize]) -> list[float]:
    """GB of each transfer that was measured."""
    return [size for each in measured.values() for size, times in each.items() for _ in times]
