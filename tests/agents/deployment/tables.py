"""Collected tables by hand: three regions with round numbers, unless a test says else."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from agents.deployment.estimate import Estimator
from agents.deployment.inputs import Inputs, inputs_of
from agents.deployment.problem import Problem
from agents.deployment.settings import DeploymentSettings
from env.base.schema import validated
from env.sim.declared.regions import Regions
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.code.configuration import Constraints
from run.command import CONF

HOME, NEAR, FAR = "aws:home", "aws:near", "gcp:far"
REGIONS = (HOME, NEAR, FAR)
DEFAULT = yaml.safe_load((CONF / "deployment" / "default.yaml").read_text())
MEMORY = 1024
"""MB of every function: 1 GB, and with `memory_per_vcpu` one vCPU."""

Edge = tuple[str, str, float]
"""Source, target, probability."""


def settings_with(**changes: Any) -> DeploymentSettings:
    made = DEFAULT | {"memory_per_vcpu": MEMORY} | changes
    return validated(DeploymentSettings, made, "deployment")


def workflow(
    *edges: Edge, nodes: str = "ab", size: float = 1.0, memory: int = MEMORY
) -> WorkflowTemplate:
    """Functions called by letters; each edge has so many GB."""
    ones = [1] * len(nodes)
    return WorkflowTemplate(
        "shop",
        ones,
        [memory] * len(nodes),
        ones,
        [(nodes.index(source), nodes.index(target)) for source, target, _ in edges],
        [round(size * 1e9)] * len(edges),
        tuple(nodes),
        probability=np.array([chance for *_, chance in edges]),
    )


def tables_of(
    executions: Mapping[str, Mapping[str, list[float]]],
    calls: Mapping[str, Mapping[str, Any]] | None = None,
    start_hop: Mapping[str, Mapping[str, list[float]]] | None = None,
    regions: Sequence[str] = REGIONS,
    **rows: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """The tables; `rows` has other values of rows, by table and region.

    A request costs 0.2 USD, a second of 1 GB 1 USD, a GB to another region 0.02 or 0.09 USD; it
    takes 1 s to another region. A vCPU has 3,600 kW, so a second of it is 1 kWh; grids have 300,
    150 and 100 gCO2e/kWh.
    """
    tables: dict[str, dict[str, Any]] = {
        "available_regions_table": {},
        "provider_region_table": {},
        "carbon_region_table": {},
        "performance_region_table": {},
    }
    for at, region in enumerate(regions):
        provider, code = region.split(":")
        latency = {other: 0.0 if other == region else 1.0 for other in regions}
        values = {
            "available_regions_table": {"provider": provider, "code": code},
            "provider_region_table": {
                "execution_cost": {
                    "invocation_cost": {"arm64": 0.1, "x86_64": 0.2, "free_tier_invocations": 9},
                    "compute_cost": {"arm64": 0.5, "x86_64": 1.0, "free_tier_compute_gb_s": 9},
                    "unit": "USD",
                },
                "transmission_cost": {
                    "global_data_transfer": 0.09,
                    "provider_data_transfer": 0.02,
                    "unit": "USD/GB",
                },
                "pue": 1.0,
                "cfe": 0.0,
                "average_memory_power": 0.0,
                "average_cpu_power": 3600.0,
            },
            "carbon_region_table": {
                "carbon_intensity": 300.0 / (1 + at),
                "unit": "gCO2eq/kWh",
                "transmission_carbon": {},
            },
            "performance_region_table": {
                "relative_performance": 1.0,
                "transmission_latency": {
                    other: {"average_latency": seconds, "tail_latency": seconds, "unit": "s"}
                    for other, seconds in latency.items()
                },
            },
        }
        for name, value in values.items():
            tables[name][region] = value | dict(rows.get(name, {}).get(region, {}))
    tables["workflow_instance_table"] = {
        "shop-0.0.1": {
            "workflow_runtime_samples": [],
            "daily_invocation_counts": {},
            "start_hop_summary": start_hop or {HOME: {"0.0": [0.5]}},
            "instance_summary": {
                node: {
                    "invocations": 1,
                    "executions": by_region,
                    "to_instance": (calls or {}).get(node, {}),
                }
                for node, by_region in executions.items()
            },
        }
    }
    return tables


def inputs(
    template: WorkflowTemplate,
    tables: Mapping[str, Mapping[str, Any]],
    regions: Mapping[str, Regions] | None = None,
    **settings: Any,
) -> Inputs:
    return inputs_of(tables, template, "0.0.1", HOME, regions or {}, settings_with(**settings))


def problem(made: Inputs, seed: int = 0, **changes: Any) -> Problem:
    """That of hour 0; changes of the settings, or of the constraints."""
    limits = {key: changes.pop(key) for key in [*changes] if key in Constraints.model_fields}
    constraints = validated(Constraints, limits, "constraints")
    rng = np.random.default_rng(seed)
    ranked = constraints.priority_order[0]
    estimator = Estimator(made, settings_with(**changes), ranked, rng)
    return Problem(made, constraints, estimator, made.intensity[0])


def drawn_inputs(nodes: int, regions: int, seed: int, bound: Sequence[str] = ()) -> Inputs:
    """A workflow at random, measured at home, and by half in other regions.

    The first function calls all others that no other function calls; a third of the calls are
    conditional. Functions that are `bound` must not leave home.
    """
    rng = np.random.default_rng(seed)
    names = "abcdefghijklmnop"[:nodes]
    places = (HOME, *(f"aws:r{at}" for at in range(1, regions)))
    edges: list[Edge] = []
    for at in range(1, nodes):
        callers = [other for other in range(at) if rng.random() < 1.5 / at] or [0]
        edges += [(names[one], names[at], float(rng.choice([1, 1, 0.5]))) for one in callers]

    def seconds(scale: float) -> list[float]:
        return (scale * rng.lognormal(0, 0.3, rng.integers(1, 30))).tolist()

    def somewhere(scale: float) -> dict[str, list[float]]:
        return {each: seconds(scale) for each in places if each == HOME or rng.random() < 0.5}

    calls: dict[str, dict[str, Any]] = {}
    for source, target, chance in edges:
        pairs = {each: {HOME: {str(rng.random()): seconds(0.3)}} for each in places[:2]}
        call = {"invocation_probability": chance, "regions_to_regions": pairs}
        calls.setdefault(source, {})[target] = call
    rows = {
        "carbon_region_table": {
            each: {"hourly": rng.uniform(50, 600, 24).tolist()} for each in places
        },
        "performance_region_table": {
            each: {"relative_performance": rng.uniform(0.8, 1.2)} for each in places
        },
    }
    hops = {HOME: {"0.1": seconds(0.2)}}
    executions = {name: somewhere(rng.uniform(1, 10)) for name in names}
    tables = tables_of(executions, calls, hops, places, **rows)
    at_home = dict.fromkeys(bound, Regions(allowed=(HOME,)))
    return inputs(workflow(*edges, nodes=names), tables, at_home)
