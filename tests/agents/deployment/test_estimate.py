"""What plans come to, worked out by hand; many cases are those of Caribou's own tests."""

from typing import Any

import numpy as np
import pytest

from agents.deployment.inputs import Inputs, kwh_per_s, latency_of
from agents.deployment.problem import Estimate
from env.base.errors import InputError
from tests.agents.deployment.tables import (
    FAR,
    HOME,
    NEAR,
    inputs,
    problem,
    settings_with,
    tables_of,
    workflow,
)

NEVER = 1e-300
"""Probability of a call that no seed makes."""
CHAIN, ONE = workflow(("a", "b", 1.0)), workflow(nodes="a")
EMPTY = workflow(("a", "b", 1.0), size=0)


def moved(seconds: Any, probability: float = 1.0) -> Any:
    """A call from home, by other region and GB."""
    return {"invocation_probability": probability, "regions_to_regions": {HOME: seconds}}


def estimated(made: Inputs, *plan: int, **changes: Any) -> Estimate:
    return problem(made, **changes).estimate(plan)


def comes_to(runtime: float, cost: float, carbon: float) -> Any:
    return pytest.approx({"runtime": runtime, "cost": cost, "carbon": carbon})


def of_all(table: str, **values: Any) -> dict[str, Any]:
    """The table with these values in the row of every region."""
    return {table: {region: values for region in (HOME, NEAR, FAR)}}


def test_a_chain_at_home_and_away() -> None:
    calls = {"a": {"b": moved({HOME: {"1.0": [2.0]}, NEAR: {"1.0": [3.0]}})}}
    far = {"average_latency": 1.0, "tail_latency": 1.0, "seconds_per_gb": 10.0}
    latency = {"transmission_latency": {region: far for region in (HOME, NEAR, FAR)}}
    rows: Any = {HOME: latency, FAR: {"relative_performance": 2.0}}
    measured = {"a": {HOME: [10.0]}, "b": {HOME: [20.0], NEAR: [5.0]}}
    tables = tables_of(measured, calls, performance_region_table=rows)
    made = inputs(CHAIN, tables, transfer_kwh_per_gb=0.01)
    assert estimated(made, 0, 0)["average"] == comes_to(0.5 + 10 + 2 + 20, 0.4 + 30, 30 * 300)
    grams = 10 * 300 + 5 * 150 + 0.01 * (300 + 150) / 2
    assert estimated(made, 0, 1)["average"] == comes_to(0.5 + 10 + 3 + 5, 0.4 + 15 + 0.05, grams)
    # Not measured: 1 s of latency and 10 s for a GB; twice the performance.
    grams = 10 * 300 + 10 * 100 + 0.01 * (300 + 100) / 2
    found = estimated(made, 0, 2)["average"]
    assert found == comes_to(0.5 + 10 + 1 + 10 + 10, 0.4 + 20 + 0.05, grams)
    arm = estimated(inputs(CHAIN, tables, architecture="arm64"), 0, 0)["average"]
    assert arm["cost"] == pytest.approx(0.2 + 15)


def test_energy_of_executions() -> None:
    """Conformance 16, 17, and 22, whose constants give a vCPU 2.12 W at half load."""
    provider = {"cfe": 0.2, "pue": 1.1, "average_memory_power": 0.5}
    power = {"min_cpu_power": 0.1, "max_cpu_power": 0.5}
    settings = settings_with(memory_per_vcpu=2048, utilisation=0.6)
    cpu, memory, grid = 0.34 * 2 / 3600, 0.5 * 4 / 3600, 0.8 * 1.1 * 0.3
    found = kwh_per_s(provider | power, np.array([4096]), settings) * 0.3
    assert found == pytest.approx((cpu + memory) * grid)
    provider = {"cfe": 0.0, "pue": 1.11, "average_memory_power": 0.0003725}
    power = {"min_cpu_power": 0.00074, "max_cpu_power": 0.0035}
    found = kwh_per_s(provider | power, np.array([2048]), settings_with()) * 410
    assert found == pytest.approx((2 * 0.00212 + 2 * 0.0003725) * 1.11 * 410 / 3600)


@pytest.mark.parametrize(
    ("region", "within", "intensity"), [(0, True, 0.4), (1, False, 0.5), (0, False, 0.0)]
)
def test_carbon_of_incoming_data(region: int, within: bool, intensity: float) -> None:
    """Conformance 18: 10 GB come from clients at home, 0.4; the other region has 0.6."""
    grids = {HOME: {"hourly": [0.4] * 24}, NEAR: {"hourly": [0.6] * 24}}
    hop = {HOME: {"10.0": [1.0]}}
    tables = tables_of({"a": {HOME: [0.0]}}, start_hop=hop, carbon_region_table=grids)
    made = inputs(ONE, tables, transfer_kwh_per_gb=0.001, transfer_within_region=within)
    found = estimated(made, region)["average"]
    assert found["carbon"] == pytest.approx(10 * 0.001 * intensity)
    assert found["cost"] == pytest.approx(0.2)  # what comes from clients has no egress


def test_cost_of_egress_and_executions() -> None:
    """Conformance 19: of 0.3 GB that a sends, 0.1 leave the region; c is not called, so free."""
    prices = {
        "execution_cost": {"invocation_cost": {"x86_64": 0.05}, "compute_cost": {"x86_64": 0.1}},
    }
    sizes = {"b": ("0.2", 1.0), "c": ("9", 0.0), "d": ("0.1", 1.0)}
    sent = {to: moved({HOME: {size: [0]}}, chance) for to, (size, chance) in sizes.items()}
    executed: Any = {"a": {HOME: [10.0]}, "b": {HOME: [0.0]}, "c": {HOME: [99]}, "d": {HOME: [0.0]}}
    tables = tables_of(executed, {"a": sent}, **of_all("provider_region_table", **prices))
    made = inputs(workflow(("a", "b", 1), ("a", "c", 0.5), ("a", "d", 1), nodes="abcd"), tables)
    found = estimated(made, 0, 0, 0, 1)
    assert found["average"]["cost"] == pytest.approx((0.1 * 10 + 0.05) + 2 * 0.05 + 0.1 * 0.05)


def test_start_hop() -> None:
    """Conformance 20: sample by sample what it takes at home, and the latency from there."""
    hop, distribution = {HOME: {"0.0": [0.3, 0.4, 0.5]}}, {"latency_distribution": [0.2, 0.3, 0.4]}
    latency = {"transmission_latency": {region: distribution for region in (HOME, NEAR, FAR)}}
    rows = of_all("performance_region_table", **latency)
    tables = tables_of({"a": {HOME: [1.0]}}, start_hop=hop, **rows)
    made = inputs(ONE, tables)
    assert made.transfers[0][HOME, NEAR] == pytest.approx([0.5, 0.7, 0.9])
    assert estimated(made, 0, tolerance=0.0)["average"]["runtime"] == pytest.approx(1.4, abs=0.01)
    tables["workflow_instance_table"]["shop-0.0.1"]["start_hop_summary"] = {NEAR: {"0.0": [0.3]}}
    with pytest.raises(InputError, match="start_hop_summary: nothing of the home region, aws:home"):
        inputs(ONE, tables)


def test_latency_has_its_average_and_its_tail() -> None:
    samples, _ = latency_of({"average_latency": 0.05, "tail_latency": 0.07})
    assert np.mean(samples) == pytest.approx(0.05)
    assert np.percentile(samples * 100, 95) == 0.07


def test_tail() -> None:
    """Conformance 12: the 95th percentile, though in it all conditional calls are made."""
    measured = {"a": {HOME: [float(at) for at in range(1, 101)]}, "b": {HOME: [1000.0]}}
    made = inputs(workflow(("a", "b", NEVER), size=0), tables_of(measured))
    found = estimated(made, 0, 0, tolerance=0.0, most_samples=100_000)
    assert found["average"]["runtime"] == pytest.approx(0.5 + 50.5, rel=0.01)
    assert found["tail"]["runtime"] == pytest.approx(1000.5 + 95, abs=1)


@pytest.mark.parametrize(("to_b", "to_c", "runtime"), [(1, 1, 63.5), (1, 0, 56.5), (0, 1, 11.5)])
def test_a_join_waits_for_all_callers(to_b: float, to_c: float, runtime: float) -> None:
    """b is called by a, and ends late; whether it calls c or not, c waits for it."""
    measured = {"a": {HOME: [1.0]}, "b": {HOME: [50.0]}, "c": {HOME: [3.0]}}
    seven = {HOME: {"1": [7.0]}}
    a = {"b": moved({HOME: {"1": [2.0]}}, to_b), "c": moved(seven)}
    tables = tables_of(measured, {"a": a, "b": {"c": moved(seven, to_c)}})
    edges = ("a", "b", 0.5), ("a", "c", 1.0), ("b", "c", 0.5)
    found = estimated(inputs(workflow(*edges, nodes="abc"), tables), 0, 0, 0)
    assert found["average"]["runtime"] == pytest.approx(runtime)
    assert found["tail"]["runtime"] == pytest.approx(63.5)
    assert found["average"]["cost"] == pytest.approx(0.6 + 54 if to_b else 0.4 + 4)


def test_conditional_calls_are_drawn() -> None:
    """c runs where b does, which is called three times in ten."""
    measured = {"a": {HOME: [0.0]}, "b": {HOME: [100.0]}, "c": {HOME: [200.0]}}
    given = workflow(("a", "b", 0.3), ("b", "c", 1.0), nodes="acb", size=0)
    made = inputs(given, tables_of(measured))
    found = estimated(made, 0, 0, 0, tolerance=0.0, most_samples=50_000)
    assert found["average"]["carbon"] == pytest.approx(0.3 * 90_000, rel=0.02)


def test_of_sizes_the_mean_counts_and_all_times_are_drawn() -> None:
    """Of 4 transfers one has 5 GB, three have 1 GB."""
    pairs = {HOME: {"1.0": [1.0, 2.0], "5.0": [9.0]}, NEAR: {"1.0": [7.0]}}
    measured = {"a": {HOME: [0.0]}, "b": {HOME: [0.0]}}
    made = inputs(CHAIN, tables_of(measured, {"a": {"b": moved(pairs)}}))
    assert made.gigabytes.tolist() == [2.0, 0.0]
    assert made.transfers[0][HOME, HOME] == [1.0, 2.0, 9.0]


def test_draws_are_common_to_all_plans() -> None:
    """A region that is half as fast takes twice as long in every sample, however few there are.

    That of a follows from its performance; that of b was measured, in another order.
    """
    times = np.random.default_rng(0).lognormal(size=50)
    measured = {"a": {HOME: times.tolist()}, "b": {HOME: times.tolist()}}
    measured["b"][NEAR] = (2 * times[::-1]).tolist()
    at_once: Any = {"transmission_latency": {region: {} for region in (HOME, NEAR, FAR)}}
    rows = {HOME: at_once, NEAR: at_once | {"relative_performance": 0.5}}
    hop = {HOME: {"0": [0.0]}}
    made = inputs(EMPTY, tables_of(measured, start_hop=hop, performance_region_table=rows))
    few = {"most_samples": 7, "tolerance": 0.0}
    home, near = (estimated(made, at, at, **few)["average"]["runtime"] for at in (0, 1))
    assert near == pytest.approx(2 * home, rel=1e-12)


def test_samples_are_drawn_until_the_interval_is_tight() -> None:
    made = inputs(ONE, tables_of({"a": {HOME: [1.0, 3.0]}}))
    # The coefficient of variation is 0.5, so (1.96 * 0.5 / 0.05)^2 = 384 samples are needed.
    given = {"batch": 10, "most_samples": 5000}
    problems = [problem(made, tolerance=each, **given) for each in (0.05, 0.001, 0.9)]
    for each in problems:
        each.estimate((0,))
    assert [each.samples for each in problems] == [pytest.approx(384, abs=40), 5000, 10]


def test_what_is_missing() -> None:
    tables = tables_of({"a": {HOME: [1.0]}, "b": {NEAR: [1.0]}})
    with pytest.raises(InputError, match="shop-0.0.1: b: nothing of the home region, aws:home"):
        inputs(CHAIN, tables)
    del tables["carbon_region_table"][NEAR]
    with pytest.raises(InputError, match="^carbon_region_table: no row 'aws:near', the table has "):
        inputs(ONE, tables)
    del tables["available_regions_table"][HOME]
    with pytest.raises(InputError, match="'shop-0.0.1': a may run in aws:near, gcp:far, home is"):
        inputs(ONE, tables)
