"""Collected tables by hand: three regions with round numbers, unless a test says else."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml

from agents.deployment.inputs import DeploymentSettings, Inputs
from agents.deployment.problem import Problem
from env.base.schema import validated
from env.sim.declared.regions import Regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.tables.tables import FILLED_BY
from env.workloads.code.configuration import Constraints
from run.command import CONF

REGIONS = HOME, NEAR, FAR = "aws:home", "aws:near", "gcp:far"
DEFAULT = yaml.safe_load((CONF / "deployment" / "default.yaml").read_text())
MEMORY = 1024
"""MB of every function: 1 GB, and one vCPU."""
REQUEST, SECOND = {"arm64": 0.1, "x86_64": 0.2}, {"arm64": 0.5, "x86_64": 1.0}
PROVIDER: dict[str, Any] = {
    "execution_cost": {"invocation_cost": REQUEST, "compute_cost": SECOND},
    **{"pue": 1.0, "cfe": 0.0, "average_memory_power": 0.0},
    **{"min_cpu_power": 3600.0, "max_cpu_power": 3600.0},
}
"""A second of a vCPU is 1 kWh."""

USUAL: dict[str, Any] = {"relative_performance": 1.0}

Rows = Mapping[str, Mapping[str, Any]]
Times = Mapping[str, Mapping[str, list[float]]]
Edge = tuple[str, str, float]
"""Caller, called, probability."""


def settings_with(**changes: Any) -> DeploymentSettings:
    made = DEFAULT | {"memory_per_vcpu": MEMORY} | changes
    return validated(DeploymentSettings, made, "deployment")


def workflow(
    *edges: Edge, nodes: str = "ab", size: float = 1.0, bound: Sequence[str] = ()
) -> WorkflowTemplate:
    """Functions called by letters, of which some must not leave home; each edge has so many GB."""
    ones, sizes = np.ones(len(nodes), np.int64), np.full(len(edges), round(size * 1e9))
    pairs = np.array([[nodes.index(end) for end in edge[:2]] for edge in edges])
    given = "shop-0.0.1", ones, MEMORY * ones, ones, pairs, sizes, tuple(nodes)
    regions = tuple(Regions(allowed=(HOME,)) if node in bound else Regions() for node in nodes)
    chances = np.array([edge[2] for edge in edges])
    return WorkflowTemplate(*given, probability=chances, regions=regions)


def tables_of(
    executions: Times,
    calls: Mapping[str, Mapping[str, Any]] | None = None,
    start_hop: Times | None = None,
    regions: Sequence[str] = REGIONS,
    **rows: Rows,
) -> dict[str, dict[str, Any]]:
    """The tables; `rows` has other values of rows, by table and region.

    It takes 1 s and 0.05 USD/GB to another region; grids have 300, 150 and 100 gCO2e/kWh; clients
    need 0.5 s.
    """
    tables: dict[str, dict[str, Any]] = {name: {} for name in FILLED_BY}
    for at, region in enumerate(regions):
        seconds = {other: float(other != region) for other in regions}
        latency = {other: {"average_latency": s, "tail_latency": s} for other, s in seconds.items()}
        egress = {other: 0.05 for other in regions if other != region}
        tables["available_regions_table"][region] = {}
        for name, row in (
            ("provider_region_table", PROVIDER | {"transmission_cost": {"to_region": egress}}),
            ("carbon_region_table", {"hourly": [300.0 / (1 + at)] * 24}),
            ("performance_region_table", USUAL | {"transmission_latency": latency}),
        ):
            tables[name][region] = row | dict(rows.get(name, {}).get(region, {}))
    instances = {
        node: {"executions": by_region, "to_instance": (calls or {}).get(node, {})}
        for node, by_region in executions.items()
    }
    hops = start_hop or {HOME: {"0.0": [0.5]}}
    summary = {"start_hop_summary": hops, "instance_summary": instances}
    tables["workflow_instance_table"]["shop-0.0.1"] = summary
    return tables


def inputs(template: WorkflowTemplate, tables: Rows, **settings: Any) -> Inputs:
    as_read: Any = SimpleNamespace(rows=tables.__getitem__)
    return Inputs(as_read, template, HOME, settings_with(**settings))


def problem(made: Inputs, **changes: Any) -> Problem:
    """That of hour 0; changes of the settings, or of the constraints."""
    limits = {key: changes.pop(key) for key in [*changes] if key in Constraints.model_fields}
    constraints, rng = validated(Constraints, limits, "constraints"), np.random.default_rng(0)
    found = Problem(made, constraints, settings_with(**changes), rng)
    found.turn_to(made.intensity[0])
    return found


def drawn_inputs(nodes: int, regions: int, seed: int, bound: Sequence[str] = ()) -> Inputs:
    """A workflow at random, measured at home, and by half in other regions.

    The first function calls all others that no other function calls; a third of the calls are
    conditional. Functions that are `bound` must not leave home.
    """
    rng, names = np.random.default_rng(seed), "abcdefghijklmnop"[:nodes]
    places = (HOME, *(f"aws:r{at}" for at in range(1, regions)))

    def seconds(scale: float) -> list[float]:
        return (scale * rng.lognormal(0, 0.3, rng.integers(1, 30))).tolist()

    edges: list[Edge] = []
    calls: dict[str, dict[str, Any]] = {name: {} for name in names}
    for at in range(1, nodes):
        for source in [other for other in range(at) if rng.random() < 1.5 / at] or [0]:
            pairs = {each: {HOME: {str(rng.random()): seconds(0.3)}} for each in places[:2]}
            calls[names[source]][names[at]] = {"regions_to_regions": pairs}
            edges.append((names[source], names[at], float(rng.choice([1, 1, 0.5]))))
    executions = {
        name: {each: seconds(5.0) for each in places if each == HOME or rng.random() < 0.5}
        for name in names
    }
    carbon = {each: {"hourly": rng.uniform(50, 600, 24)} for each in places}
    speed = {each: {"relative_performance": rng.uniform(0.8, 1.2)} for each in places}
    rows: dict[str, Rows] = {"carbon_region_table": carbon, "performance_region_table": speed}
    tables = tables_of(executions, calls, {HOME: {"0.1": seconds(0.2)}}, places, **rows)
    return inputs(workflow(*edges, nodes=names, bound=bound), tables)
