"""Collected tables by hand: three regions with round numbers, unless a test says else."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from agents.deployment.estimate import Estimator
from agents.deployment.inputs import TABLES, WORKFLOWS, Inputs
from agents.deployment.problem import Problem
from agents.deployment.settings import DeploymentSettings
from env.base.schema import validated
from env.sim.declared.regions import Regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.code.configuration import Constraints
from run.command import CONF

REGIONS = HOME, NEAR, FAR = "aws:home", "aws:near", "gcp:far"
DEFAULT = yaml.safe_load((CONF / "deployment" / "default.yaml").read_text())
MEMORY = 1024
"""MB of every function: 1 GB, and one vCPU."""
PROVIDER = {
    "execution_cost": {
        "invocation_cost": {"arm64": 0.1, "x86_64": 0.2, "free_tier_invocations": 9},
        "compute_cost": {"arm64": 0.5, "x86_64": 1.0, "free_tier_compute_gb_s": 9},
    },
    "transmission_cost": {"global_data_transfer": 0.09, "provider_data_transfer": 0.02},
    **{"pue": 1.0, "cfe": 0.0, "average_memory_power": 0.0, "average_cpu_power": 3600.0},
}
"""A second of a vCPU is 1 kWh."""

Times = Mapping[str, Mapping[str, list[float]]]
Edge = tuple[str, str, float]
"""Caller, called, probability."""


def settings_with(**changes: Any) -> DeploymentSettings:
    made = DEFAULT | {"memory_per_vcpu": MEMORY} | changes
    return validated(DeploymentSettings, made, "deployment")


def workflow(
    *edges: Edge, nodes: str = "ab", size: float = 1.0, memory: int = MEMORY
) -> WorkflowTemplate:
    """Functions called by letters; each edge has so many GB."""
    ones, ends = np.ones(len(nodes), np.int64), [map(nodes.index, edge[:2]) for edge in edges]
    pairs, sizes = np.array([[*each] for each in ends]), np.full(len(edges), round(size * 1e9))
    chances = np.array([edge[2] for edge in edges])
    given = "shop", ones, memory * ones, ones, pairs, sizes, tuple(nodes)
    return WorkflowTemplate(*given, probability=chances)


def tables_of(
    executions: Times,
    calls: Mapping[str, Mapping[str, Any]] | None = None,
    start_hop: Times | None = None,
    regions: Sequence[str] = REGIONS,
    **rows: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """The tables; `rows` has other values of rows, by table and region.

    It takes 1 s to another region; grids have 300, 150 and 100 gCO2e/kWh; clients need 0.5 s.
    """
    tables: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
    for at, region in enumerate(regions):
        seconds = {other: float(other != region) for other in regions}
        latency = {other: {"average_latency": s, "tail_latency": s} for other, s in seconds.items()}
        carbon = {"carbon_intensity": 300.0 / (1 + at), "unit": "gCO2eq/kWh"}
        speed = {"relative_performance": 1.0, "transmission_latency": latency}
        for name, row in zip(TABLES, ({}, PROVIDER, carbon, speed), strict=False):
            tables[name][region] = row | dict(rows.get(name, {}).get(region, {}))
    tables[WORKFLOWS]["shop-0.0.1"] = {
        "start_hop_summary": start_hop or {HOME: {"0.0": [0.5]}},
        "instance_summary": {
            node: {"executions": by_region, "to_instance": (calls or {}).get(node, {})}
            for node, by_region in executions.items()
        },
    }
    return tables


def inputs(
    template: WorkflowTemplate,
    tables: Mapping[str, Mapping[str, Any]],
    declared: Mapping[str, Regions] | None = None,
    **settings: Any,
) -> Inputs:
    return Inputs(tables, template, "0.0.1", HOME, declared or {}, settings_with(**settings))


def problem(made: Inputs, **changes: Any) -> Problem:
    """That of hour 0; changes of the settings, or of the constraints."""
    limits = {key: changes.pop(key) for key in [*changes] if key in Constraints.model_fields}
    constraints = validated(Constraints, limits, "constraints")
    ranked, rng = constraints.priority_order[0], np.random.default_rng(0)
    estimator = Estimator(made, settings_with(**changes), ranked, rng)
    return Problem(made, constraints, estimator, made.intensity[0])


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
    calls: dict[str, dict[str, Any]] = {}
    for at in range(1, nodes):
        for source in [other for other in range(at) if rng.random() < 1.5 / at] or [0]:
            chance = float(rng.choice([1, 1, 0.5]))
            pairs = {each: {HOME: {str(rng.random()): seconds(0.3)}} for each in places[:2]}
            call = {"invocation_probability": chance, "regions_to_regions": pairs}
            calls.setdefault(names[source], {})[names[at]] = call
            edges.append((names[source], names[at], chance))
    executions = {
        name: {each: seconds(5.0) for each in places if each == HOME or rng.random() < 0.5}
        for name in names
    }
    rows: dict[str, Any] = {
        "carbon_region_table": {each: {"hourly": rng.uniform(50, 600, 24)} for each in places},
        "performance_region_table": {
            each: {"relative_performance": rng.uniform(0.8, 1.2)} for each in places
        },
    }
    tables = tables_of(executions, calls, {HOME: {"0.1": seconds(0.2)}}, places, **rows)
    at_home = dict.fromkeys(bound, Regions(allowed=(HOME,)))
    return inputs(workflow(*edges, nodes=names), tables, at_home)
