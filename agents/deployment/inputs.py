"""What plans are estimated from: a workflow in its regions, with samples of what was measured.

This is the InputManager of Caribou's design document, which loads what its tables have.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, listed
from env.sim.declared.bounds import LONGEST
from env.sim.declared.power import MB_PER_GB
from env.sim.declared.regions import ANYWHERE, check_known, permitted_regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.records import HOUR
from env.tables.tables import AVAILABLE, Tables

Samples = dict[tuple[str, str], list[float]]
"""Seconds, by the regions from which and to which."""
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=2, le=1_000_000)]

HOURS = 24
GIGABYTE = 1e9
"""Bytes, of transfers."""
TAIL_ONE_IN = 10
"""How many latencies are one of the tail, so that it is the 95th percentile of them."""
CLIENT = -1
"""Who calls a function that no other calls."""


class DeploymentSettings(Strict):
    """How plans are estimated and made; conf/deployment/default.yaml explains each number."""

    architecture: Literal["x86_64", "arm64"]
    memory_per_vcpu: Annotated[float, Field(gt=0, le=1e9)]
    utilisation: Share
    transfer_kwh_per_gb: Annotated[float, Field(ge=0, le=1e6)]
    transfer_within_region: bool
    batch: Count
    tolerance: Share
    most_samples: Count
    solves_per_day: Literal[1, 2, 3, 4, 6, 8, 12, 24]
    home_share: Share
    expiry: Annotated[float, Field(gt=0, le=LONGEST)]
    tokens_per_solve: Annotated[float, Field(ge=0, le=1e15)]
    redeployment: Annotated[float, Field(ge=0, le=LONGEST)]


def calls_of(workflow: WorkflowTemplate) -> np.ndarray:
    """int64 (E, 2) caller and called: edges of a workflow, and then the calls of `CLIENT`."""
    first = np.setdiff1d(np.arange(workflow.function_count), workflow.edges[:, 1])
    of_clients = np.stack([np.full_like(first, CLIENT), first], axis=1)
    return np.concatenate([workflow.edges, of_clients])


class Inputs:
    """A workflow in its regions: N nodes, E edges, R regions.

    Where nothing was measured of a node in a region, its runs are those at home, by the relative
    performance of both. Where nothing was measured of a call between two regions, their latency
    counts, and the seconds that its bytes take; of a start hop, what it takes at home and the
    latency from there. All calls along an edge have the mean of the measured sizes. Where the
    probability of a call was measured, that counts. The gCO2e/GB of carbon_region_table are not
    used, for they do not tell hours apart, nor what is free at first.

    Attributes:
        nodes, regions: names.
        home: the region where clients are.
        permitted: bool (N, R), where a node may run.
        order: (N,) nodes, each behind those that call it.
        edges: int64 (E, 2), see `calls_of`.
        probability, gigabytes: (E,) that the caller makes the call, and of what it sends.
        transfers: samples of seconds along each edge, by the names of both regions.
        executions: samples of seconds of each node in each region.
        request, usd_per_s, egress: (R,), (N, R), (R, R) USD: of a run, a second of it, a GB.
        kwh_per_s, kwh_per_gb: (N, R), (R, R) energy of a second of a run, and of a GB.
        intensity: (24, R) gCO2e/kWh by hour of the day.

    Args:
        tables: as collectors fill them, with functions by the names they have in the workflow.
        workflow: what is planned for.
        home: region where clients are.
        settings: numbers that no table has.

    Raises:
        InputError: a row is missing, or nothing was measured at home, or a function must not run
            there.
    """

    def __init__(
        self,
        tables: Tables,
        workflow: WorkflowTemplate,
        home: str,
        settings: DeploymentSettings,
    ) -> None:
        self.nodes = workflow.function_names
        self.regions = regions = tuple(tables.rows(AVAILABLE))
        permitted = []
        for node, declared in enumerate(workflow.regions or (ANYWHERE,) * len(self.nodes)):
            named = (*(declared.allowed or ()), *(declared.disallowed or ()))
            check_known(f"{workflow.label}: {self.nodes[node]}", named, regions)
            may = permitted_regions(regions, declared.allowed, declared.disallowed)
            if home not in may:
                where = f"may run in {listed(may) or 'no region'}, home is {home}"
                raise InputError(f"{workflow.label}: {self.nodes[node]} {where}")
            permitted.append([region in may for region in regions])
        self.permitted, self.home = np.array(permitted), regions.index(home)
        providers = _rows(tables, "provider_region_table", regions)
        carbon = _rows(tables, "carbon_region_table", regions)
        performance = _rows(tables, "performance_region_table", regions)
        self.intensity = np.transpose([row["hourly"] for row in carbon])
        kind, memory = settings.architecture, workflow.memory_req
        costs = [row["execution_cost"] for row in providers]
        self.request = np.array([each["invocation_cost"][kind] for each in costs])
        per_gb_s = [each["compute_cost"][kind] for each in costs]
        self.usd_per_s = np.outer(memory / MB_PER_GB, per_gb_s)
        self.kwh_per_s = np.transpose([kwh_per_s(row, memory, settings) for row in providers])
        egress = [
            {one: 0.0} | row["transmission_cost"]["to_region"]
            for one, row in zip(regions, providers, strict=True)
        ]
        self.egress = np.array([[each[to] for to in regions] for each in egress])
        self.kwh_per_gb = np.full_like(self.egress, settings.transfer_kwh_per_gb)
        if not settings.transfer_within_region:
            np.fill_diagonal(self.kwh_per_gb, 0.0)

        table, key = "workflow_instance_table", workflow.name
        (measured,) = _rows(tables, table, [key])
        instances, hops = measured["instance_summary"], measured["start_hop_summary"]
        executed = {name: instances.get(name, {}).get("executions", {}) for name in self.nodes}
        for what, found in {**executed, "start_hop_summary": hops}.items():
            if not found.get(home):
                raise InputError(f"{table}: {key}: {what}: nothing of the home region, {home}")
        speed = [row["relative_performance"] for row in performance]
        slower = dict(zip(regions, [speed[self.home] / each for each in speed], strict=True))
        self.executions = [
            [each.get(region) or [slower[region] * s for s in each[home]] for region in regions]
            for each in executed.values()
        ]

        latency = {
            (one, to): latency_of(row["transmission_latency"][to])
            for one, row in zip(regions, performance, strict=True)
            for to in regions
        }
        start_hop, sizes = transfers_of({home: hops})
        for region in regions:
            far, at_home = cycle(latency[home, region][0]), start_hop[home, home]
            start_hop.setdefault((home, region), [seconds + next(far) for seconds in at_home])
        self.order, self.edges = np.array(workflow.topological_order()), calls_of(workflow)
        self.probability = np.ones(len(self.edges))
        self.gigabytes = np.full(len(self.edges), np.mean(sizes))
        self.transfers = [start_hop] * len(self.edges)
        for edge, (source, target) in enumerate(workflow.edges.tolist()):
            call = instances[self.nodes[source]]["to_instance"].get(self.nodes[target], {})
            stated = workflow.probability[edge]
            self.probability[edge] = call.get("invocation_probability", stated)
            self.transfers[edge], sizes = transfers_of(call.get("regions_to_regions", {}))
            size = np.mean(sizes or workflow.data_bytes[edge] / GIGABYTE).item()
            self.gigabytes[edge] = size
            for pair, (samples, per_gb) in latency.items():
                self.transfers[edge].setdefault(pair, [each + size * per_gb for each in samples])


def kwh_per_s(
    provider: Mapping[str, Any], memory: np.ndarray, settings: DeploymentSettings
) -> np.ndarray:
    """Energy of a second with so much memory (MB), as far as carbon is emitted for it.

    Power is in kW, of an idle and of a busy vCPU, and of a GB.
    """
    idle, busy = provider["min_cpu_power"], provider["max_cpu_power"]
    cpu = (idle + settings.utilisation * (busy - idle)) / settings.memory_per_vcpu
    power = (cpu + provider["average_memory_power"] / MB_PER_GB) * memory
    return power / HOUR * (1 - provider["cfe"]) * provider["pue"]


def latency_of(measured: Mapping[str, Any]) -> tuple[list[float], float]:
    """Samples with this average and tail, and seconds per GB; the published code has samples."""
    average, tail = (measured.get(f"{which}_latency", 0.0) for which in ("average", "tail"))
    usual = max(0.0, (TAIL_ONE_IN * average - tail) / (TAIL_ONE_IN - 1))
    samples = [*[usual] * (TAIL_ONE_IN - 1), tail]
    return measured.get("latency_distribution", samples), measured.get("seconds_per_gb", 0.0)


def transfers_of(measured: Mapping[str, Any]) -> tuple[Samples, list[float]]:
    """Seconds of transfers by regions, and the GB of each, of samples by regions and GB."""
    seconds: Samples = {}
    sizes: list[float] = []
    for one, to in measured.items():
        for other, by_size in to.items():
            for size, times in by_size.items():
                seconds.setdefault((one, other), []).extend(times)
                sizes += [float(size)] * len(times)
    return seconds, sizes


def _rows(tables: Tables, name: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    rows = tables.rows(name)
    for key in keys:
        if key not in rows:
            raise InputError(f"{name}: no row '{key}', the table has {listed(rows)}")
    return [rows[key] for key in keys]
