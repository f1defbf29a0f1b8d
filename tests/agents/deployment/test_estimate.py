"""What plans come to, worked out by hand; many cases are those of Caribou's own tests."""

from typing import Any

import numpy as np
import pytest

from agents.deployment.estimate import CARBON, COST, RUNTIME, Estimate
from agents.deployment.inputs import Inputs, kwh_per_s
from env.base.errors import InputError
from env.sim.declared.regions import Regions
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
CHAIN = workflow(("a", "b", 1.0))
ONE = workflow(nodes="a")
WITHIN = {"transfer_within_region": True}


def moved(pairs: dict[str, dict[str, dict[str, list[float]]]], probability: float = 1.0) -> Any:
    return {"invocation_probability": probability, "regions_to_regions": pairs}


def estimated(made: Inputs, *plan: int, **changes: Any) -> Estimate:
    return problem(made, **changes).estimate(np.array(plan))


def row(table: str, **values: Any) -> dict[str, Any]:
    """The table with these values in the row of every region."""
    return {table: {region: values for region in (HOME, NEAR, FAR)}}


def test_a_chain_at_home_and_away() -> None:
    calls = {"a": {"b": moved({HOME: {HOME: {"1.0": [2.0]}, NEAR: {"1.0": [3.0]}}})}}
    far = {"average_latency": 1.0, "tail_latency": 1.0, "seconds_per_gb": 10.0}
    latency = {"transmission_latency": {region: far for region in (HOME, NEAR, FAR)}}
    rows = {HOME: latency, FAR: {"relative_performance": 2.0}}
    measured = {"a": {HOME: [10.0]}, "b": {HOME: [20.0], NEAR: [5.0]}}
    tables = tables_of(measured, calls, performance_region_table=rows)
    made = inputs(CHAIN, tables, transfer_kwh_per_gb=0.01)
    at_home = estimated(made, 0, 0).mean
    assert at_home == pytest.approx([0.5 + 10 + 2 + 20, 0.4 + 30, 30 * 300])
    near = estimated(made, 0, 1).mean
    grams = 10 * 300 + 5 * 150 + 0.01 * (300 + 150) / 2
    assert near == pytest.approx([0.5 + 10 + 3 + 5, 0.4 + 15 + 0.02, grams])
    # Not measured: 1 s of latency and 10 s for a GB; twice the performance.
    away = estimated(made, 0, 2).mean
    grams = 10 * 300 + 10 * 100 + 0.01 * (300 + 100) / 2
    assert away == pytest.approx([0.5 + 10 + 1 + 10 + 10, 0.4 + 20 + 0.09, grams])
    arm = estimated(inputs(CHAIN, tables, architecture="arm64"), 0, 0).mean
    assert arm[COST] == pytest.approx(0.2 + 15)


def test_energy_of_executions() -> None:
    """Conformance 16 and 17."""
    power = {"min_cpu_power": 0.1, "max_cpu_power": 0.5, "average_memory_power": 0.5}
    provider = power | {"cfe": 0.2, "pue": 1.1}
    tables = tables_of(
        {"a": {HOME: [10.0]}},
        **row("provider_region_table", **provider),
        **row("carbon_region_table", carbon_intensity=0.3),
    )
    given = {"memory_per_vcpu": 2048, "utilisation": 0.6}
    made = inputs(workflow(nodes="a", memory=4096), tables, **given)
    cpu, memory, grid = 0.34 * 2 / 3600, 0.5 * 4 / 3600, 0.8 * 1.1 * 0.3
    assert estimated(made, 0).mean[CARBON] == pytest.approx(10 * (cpu + memory) * grid)


def test_constants_of_the_published_code() -> None:
    """Conformance 22; at half load a vCPU has 2.12 W, the average of the document's example."""
    constants = {"min_cpu_power": 0.00074, "max_cpu_power": 0.0035, "pue": 1.11, "cfe": 0.0}
    given = constants | {"average_memory_power": 0.0003725, "average_cpu_power": 9.0}
    settings = settings_with(memory_per_vcpu=1024)
    found = kwh_per_s(given, np.array([2048]), settings) * 410
    assert found == pytest.approx((2 * 0.00212 + 2 * 0.0003725) * 1.11 * 410 / 3600)


@pytest.mark.parametrize(
    ("region", "settings", "intensity"), [(0, WITHIN, 0.4), (1, {}, 0.5), (0, {}, 0.0)]
)
def test_carbon_of_incoming_data(region: int, settings: Any, intensity: float) -> None:
    """Conformance 18: 10 GB come from clients at home, 0.4; the other region has 0.6."""
    grids = {HOME: {"carbon_intensity": 0.4}, NEAR: {"carbon_intensity": 0.6}}
    hop = {HOME: {"10.0": [1.0]}}
    tables = tables_of({"a": {HOME: [0.0]}}, start_hop=hop, carbon_region_table=grids)
    made = inputs(ONE, tables, transfer_kwh_per_gb=0.001, **settings)
    found = estimated(made, region).mean
    assert found[CARBON] == pytest.approx(10 * 0.001 * intensity)
    assert found[COST] == pytest.approx(0.2)  # what comes from clients has no egress


def test_cost_of_egress_and_executions() -> None:
    """Conformance 19: of 0.3 GB that a sends, 0.1 leave the region; c is not called, so free."""
    prices = {
        "execution_cost": {"invocation_cost": {"x86_64": 0.05}, "compute_cost": {"x86_64": 0.1}},
        "transmission_cost": {"provider_data_transfer": 0.05, "global_data_transfer": 9.0},
    }
    sent = {
        to: moved({HOME: {HOME: {size: [0]}}})
        for to, size in zip("bcd", ("0.2", "9", "0.1"), strict=True)
    }
    sent["c"] = moved({}, 0.0)
    executed: Any = {"a": {HOME: [10.0]}, "b": {HOME: [0.0]}, "c": {HOME: [99]}, "d": {HOME: [0.0]}}
    tables = tables_of(executed, {"a": sent}, **row("provider_region_table", **prices))
    made = inputs(workflow(("a", "b", 1), ("a", "c", 0.5), ("a", "d", 1), nodes="abcd"), tables)
    found = estimated(made, 0, 0, 0, 1)
    assert found.mean[COST] == pytest.approx((0.1 * 10 + 0.05) + 2 * 0.05 + 0.1 * 0.05)


def test_start_hop() -> None:
    """Conformance 20: sample by sample what it takes at home, and the latency from there."""
    hop, distribution = {HOME: {"0.0": [0.3, 0.4, 0.5]}}, {"latency_distribution": [0.2, 0.3, 0.4]}
    latency = {"transmission_latency": {region: distribution for region in (HOME, NEAR, FAR)}}
    tables = tables_of(
        {"a": {HOME: [1.0]}}, start_hop=hop, **row("performance_region_table", **latency)
    )
    made = inputs(ONE, tables)
    assert made.transfers[0].measured[HOME, NEAR][0.0] == pytest.approx([0.5, 0.7, 0.9])
    assert estimated(made, 0, tolerance=0.0).mean[RUNTIME] == pytest.approx(1.4, abs=0.01)
    tables["workflow_instance_table"]["shop-0.0.1"]["start_hop_summary"] = {NEAR: {"0.0": [0.3]}}
    with pytest.raises(InputError, match="start_hop_summary: nothing of the home region, aws:home"):
        inputs(ONE, tables)


def test_latency_has_its_average_and_its_tail() -> None:
    latency = {
        other: {"average_latency": 0.05, "tail_latency": 0.07} for other in (HOME, NEAR, FAR)
    }
    tables = tables_of(
        {"a": {HOME: [0.0]}, "b": {HOME: [0.0]}},
        start_hop={HOME: {"0.0": [0.0]}},
        **row("performance_region_table", transmission_latency=latency),
    )
    found = estimated(inputs(workflow(("a", "b", 1), size=0), tables), 0, 0, tolerance=0.0)
    assert found.mean[RUNTIME] == pytest.approx(0.05, rel=0.01)
    assert found.tail[RUNTIME] == 0.07


def test_tail() -> None:
    """Conformance 12: the 95th percentile, though in it all conditional calls are made."""
    measured = {"a": {HOME: [float(at) for at in range(1, 101)]}, "b": {HOME: [1000.0]}}
    made = inputs(workflow(("a", "b", NEVER), size=0), tables_of(measured))
    found = estimated(made, 0, 0, tolerance=0.0, most_samples=100_000)
    assert found.mean[RUNTIME] == pytest.approx(0.5 + 50.5, rel=0.01)
    assert found.tail[RUNTIME] == pytest.approx(1000.5 + 95, abs=1)


def test_a_synchronization_node_waits_for_all_callers() -> None:
    """b is called by a, and ends late; whether it calls c or not, c waits for it."""
    measured = {"a": {HOME: [1.0]}, "b": {HOME: [50.0]}, "c": {HOME: [3.0]}}
    calls = {source: {"c": moved({HOME: {HOME: {"1": [7.0]}}})} for source in "ab"}
    calls["a"]["b"] = moved({HOME: {HOME: {"1": [2.0]}}})
    for to_b, to_c, runtime in ((1, 1, 63.5), (1, 0, 56.5), (0, 1, 11.5)):
        calls["a"]["b"]["invocation_probability"] = to_b
        calls["b"]["c"]["invocation_probability"] = to_c
        edges = ("a", "b", 0.5), ("a", "c", 1.0), ("b", "c", 0.5)
        made = inputs(workflow(*edges, nodes="abc"), tables_of(measured, calls))
        found = estimated(made, 0, 0, 0)
        assert found.mean[RUNTIME] == pytest.approx(runtime)
        assert found.tail[RUNTIME] == pytest.approx(63.5)
        assert found.mean[COST] == pytest.approx(0.6 + 54 if to_b else 0.4 + 4)


def test_conditional_calls_are_drawn() -> None:
    """c runs where b does, which is called three times in ten.

    b calls it by its code, whatever was measured.
    """
    measured = {"a": {HOME: [0.0]}, "b": {HOME: [100.0]}, "c": {HOME: [200.0]}}
    given = workflow(("a", "b", 0.3), ("b", "c", 1.0), nodes="acb", size=0)
    made = inputs(given, tables_of(measured, {"b": {"c": moved({}, 0.5)}}))
    found = estimated(made, 0, 0, 0, tolerance=0.0, most_samples=50_000)
    assert found.mean[CARBON] == pytest.approx(0.3 * 90_000, rel=0.02)


def test_measured_sizes_are_drawn_and_the_nearest_counts() -> None:
    """Half of the transfers have 1 GB, half 5; only 4 GB were sent to the other region."""
    pairs = {HOME: {HOME: {"1.0": [1.0], "5.0": [9.0]}}}
    measured = {"a": {HOME: [0.0]}, "b": {HOME: [0.0]}}
    pairs[HOME][NEAR] = {"4.0": [20.0], "0.5": [10.0], "3.9": [30.0]}
    made = inputs(CHAIN, tables_of(measured, {"a": {"b": moved(pairs)}}))
    along = next(each for each in made.transfers if each.sizes != [0.0])
    assert along.sizes == [1.0, 5.0, 4.0, 0.5, 3.9]
    seconds = along.seconds((HOME, NEAR), np.array([1.0, 5.0, 2.3]), np.zeros(3))
    assert seconds.tolist() == [10.0, 20.0, 30.0]


def test_draws_are_common_to_all_plans() -> None:
    """A region that is half as fast takes twice as long in every sample, however few there are.

    That of a follows from its performance; that of b was measured, in another order.
    """
    times = np.random.default_rng(0).lognormal(size=50)
    measured = {"a": {HOME: times.tolist()}, "b": {HOME: times.tolist()}}
    measured["b"][NEAR] = (2 * times[::-1]).tolist()
    slow = {NEAR: {"relative_performance": 0.5, "transmission_latency": {}}}
    tables = tables_of(measured, start_hop={HOME: {"0": [0.0]}}, performance_region_table=slow)
    for rows in tables["performance_region_table"].values():
        none = {"average_latency": 0.0, "tail_latency": 0.0}
        rows["transmission_latency"] = {region: none for region in (HOME, NEAR, FAR)}
    made = inputs(workflow(("a", "b", 1), size=0), tables)
    (home, near), few = (((0, 0), (1, 1)), {"most_samples": 7, "tolerance": 0.0})
    mean = estimated(made, *home, **few).mean[RUNTIME]
    assert estimated(made, *near, **few).mean[RUNTIME] == pytest.approx(2 * mean, rel=1e-12)


def test_samples_are_drawn_until_the_interval_is_tight() -> None:
    made = inputs(ONE, tables_of({"a": {HOME: [1.0, 3.0]}}))
    # The coefficient of variation is 0.5, so (1.96 * 0.5 / 0.05)^2 = 384 samples are needed.
    given = {"batch": 10, "most_samples": 5000}
    assert estimated(made, 0, tolerance=0.05, **given).samples == pytest.approx(384, abs=40)
    assert estimated(made, 0, tolerance=0.001, **given).samples == 5000
    assert estimated(made, 0, tolerance=0.9, **given).samples == 10


@pytest.mark.parametrize(
    ("table", "key", "words"),
    [
        (
            "carbon_region_table",
            NEAR,
            "^carbon_region_table: no row 'aws:near', the table has aws:",
        ),
        ("workflow_instance_table", "shop-0.0.1", "no row 'shop-0.0.1', the table has no rows"),
        ("available_regions_table", HOME, "'shop': a may run in aws:near, gcp:far, home is aws:h"),
    ],
)
def test_rows_that_are_missing(table: str, key: str, words: str) -> None:
    tables = tables_of({"a": {HOME: [1.0]}})
    del tables[table][key]
    with pytest.raises(InputError, match=words):
        inputs(ONE, tables)


def test_what_was_never_measured_or_must_not_run_at_home() -> None:
    with pytest.raises(InputError, match="shop-0.0.1: b: nothing of the home region, aws:home"):
        inputs(CHAIN, tables_of({"a": {HOME: [1.0]}, "b": {NEAR: [1.0]}}))
    with pytest.raises(InputError, match="'shop': a may run in gcp:far, home is aws:home"):
        inputs(ONE, tables_of({"a": {HOME: [1.0]}}), {"a": Regions(allowed=(FAR,))})
