"""What an evaluation was about, in a few words: what J is, and the world that was played."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from env.score.metrics import Metric
from env.score.reward import Objective
from env.sim.declared.hardware import cluster_from_config
from env.sim.declared.rules import Lease
from env.workloads.arrivals import BurstyArrivals, FixedArrivals
from env.workloads.generator import WorkloadConfig
from env.workloads.source import is_trace
from report.digits import exact
from report.summary import RANKED_BY

TERMS = {
    "time_weight": "mean slowdown",
    "cost_weight": "cost ratio",
    "completion_weight": "completion",
    "fairness_weight": "share error",
    "carbon_weight": "carbon ratio",
}
"""Of J, by their weights."""

Metrics = Mapping[str, Metric]
Scenarios = Mapping[str, Mapping[str, Any]]
"""Of run.json: the swept keys and their values, by the name of the scenario."""


def with_weights(metrics: Metrics, run: Mapping[str, Any]) -> Metrics:
    """The metrics, J in the weights of a run.json: `mean slowdown + 0.1 * cost ratio`."""
    groups = {key.partition(".")[0] for key in swept(run)}
    if "objective" in groups:
        return metrics
    weights = Objective.model_validate(run["config"]["objective"]).model_dump()
    lease = Lease.model_validate(run["config"]["lease"])
    free = lease.is_free and not run["config"]["cluster"].get("regions")
    if free and "lease" not in groups:
        weights["cost_weight"] = 0.0  # nothing is paid
    terms = [
        term if weights[key] == 1 else f"{weights[key]:g} * {term}"
        for key, term in TERMS.items()
        if weights[key]
    ]
    shares = weights["fairness_weight"] > 0
    ideal = "1 each is ideal" if len(terms) - shares > 1 else "1 is ideal"
    formula = f"{' + '.join(terms)}, {ideal}{', no share error' if shares else ''}"
    return {**metrics, RANKED_BY: replace(metrics[RANKED_BY], formula=formula)}


def swept(run: Mapping[str, Any]) -> list[str]:
    """The keys in which the scenarios of a run.json differ: each has all of them."""
    return list(next(iter(run["scenarios"].values())))


def world(run: Mapping[str, Any], results: pd.DataFrame) -> str:
    """The servers and their price, and what arrives, where these are the same; what is swept."""
    config, keys = run["config"], swept(run)
    groups = {key.partition(".")[0].partition("/")[0] for key in keys}
    functions = f"{results['decisions'].mean():,.0f} functions on average"
    sentences = [] if groups & {"cluster", "lease"} else [_servers(config)]
    if "workload" in groups:
        sentences.append(f"An episode has {functions}.")
    else:
        sentences.append(f"{_arriving(config['workload'])}, an episode has {functions}.")
    if keys:
        sentences.append(f"Scenarios differ in {', '.join(keys)}.")
    return " ".join(sentences)


def calm(run: Mapping[str, Any], results: pd.DataFrame) -> str:
    """That nothing waited centrally, as far as it did not; "" where functions do not wait there."""
    queued = run["config"]["dispatch"]["kind"] == "queued"
    waited = results.groupby("scenario")["queueing"].max() > 0
    if not queued or waited.all():
        return ""
    where = f" in {(~waited).sum()} of {len(waited)} scenarios" if waited.any() else ""
    return f"nothing waited in the central queue{where}, so orders make no difference there"


def _servers(config: Mapping[str, Any]) -> str:
    """`3 servers (2 small, 1 large) with 4 NUMA nodes and 16 cores cost 0.17 to 0.34 USD/h ...`."""
    cluster = cluster_from_config(config["cluster"], "")
    types = cluster.present_types
    counts = ", ".join(f"{each.count} {each.name}" for each in types)
    nodes = sum(each.count * each.numa_nodes for each in types)
    cores = sum(each.count * each.numa_nodes * each.cpu for each in types)
    rates = [cluster.rate_of(each) for each in types]
    rate = " to ".join(dict.fromkeys([exact(min(rates)), exact(max(rates))]))
    together = exact(sum(each.count * cluster.rate_of(each) for each in types))
    lease = Lease.model_validate(config["lease"])
    paid = f"each started {'hour' if lease.step == 3600 else f'{lease.step:g} s'}"
    if lease.kind == "hourly":
        how = f"{paid} of a lease is paid"
    else:
        up = "all are up" if lease.autoscale is None else "the scheduler says how many are up"
        free = "nothing is paid" if lease.is_free else "each use is paid"
        how = f"{up}, {f'{paid} is paid' if lease.charged else free}"
    return (
        f"{counted(sum(each.count for each in types), 'server')} ({counts}) with "
        f"{counted(nodes, 'NUMA node')} and {counted(cores, 'core')} cost {rate} USD/h each, "
        f"{together} USD/h together; {how}."
    )


def _arriving(workload: Mapping[str, Any]) -> str:
    """`6 to 12 workflows arrive, 600 s apart on average`."""
    if is_trace(workload):
        return f"Requests of single functions arrive, as in the trace {workload['source']['kind']}"
    arrivals = WorkloadConfig.model_validate(workload).arrivals
    if isinstance(arrivals, FixedArrivals):
        return f"{counted(len(arrivals.times), 'workflow')} arrive at fixed times"
    low, high = arrivals.workflows
    many = counted(high, "workflow") if low == high else f"{low} to {counted(high, 'workflow')}"
    if isinstance(arrivals, BurstyArrivals):
        gaps = (
            f"in bursts, {arrivals.burst_gap:g} s apart, and {arrivals.calm_gap:g} s between them"
        )
    else:
        gaps = f"{arrivals.mean_gap:g} s apart on average"
    return f"{many} arrive {gaps}"


def counted(count: int, what: str) -> str:
    """`1 server`, `2 servers`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
