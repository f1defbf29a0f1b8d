"""What tenants used of the cluster, how long their workflows took, and whether that was fair."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from env.score.metrics import Shown
from env.sim.episode.episode_file import read_episode
from evaluation.shares import Shares
from report import palette
from report.digits import exact
from report.timeline import Timeline, mean_over

NAMED = len(palette.SERIES)
"""Tenants that have a name and a colour of their own."""
OTHERS = "all others"
"""What the rest is called together; no tenant can have a blank in its name."""

SHARE_COLUMNS: Mapping[str, tuple[str, Shown]] = {
    "tickets": ("tickets", "share"),
    "received (core-s)": ("received", "number"),
    "entitled (core-s)": ("entitled", "number"),
    "received / entitled": ("ratio", "number"),
    "largest error (quanta)": ("error", "number"),
    "largest error of a pair (quanta)": ("pair_error", "number"),
    "largest lag (core-s)": ("largest_lag", "number"),
    "last lag (core-s)": ("last_lag", "number"),
    "mean dominant share": ("dominant", "share"),
    "response time (s)": ("response", "number"),
    "its deviation (s)": ("response_deviation", "number"),
}
"""Headings of the table of shares, behind the tenant: columns of `Shares.tenants`."""


def labels_of(workload: Mapping[str, Any], recordings: Iterable[Path]) -> dict[str, str]:
    """What charts call tenants: by the shares that are declared of them.

    Tenants of a trace have none, so the work of their recorded workflows decides.

    Args:
        workload: of the configuration.
        recordings: of each episode one, as all policies have played the same workflows.
    """
    declared = workload.get("tenants") or {}
    if not isinstance(declared, str):
        shares = {
            name: tenant["share"] if isinstance(tenant, Mapping) else tenant
            for name, tenant in declared.items()
        }
        return labels(shares)
    work: Counter[str] = Counter()
    for path in recordings:
        for workflow in read_episode(path).workflows:
            if workflow.tenant is not None:
                declared_work = sum(function.computation for function in workflow.functions)
                work[workflow.tenant] += workflow.work or declared_work
    return labels(work)


def labels(shares: Mapping[str, float]) -> dict[str, str]:
    """What charts call every tenant, the largest first; from `NAMED` on they are `OTHERS`."""
    largest = sorted(shares, key=lambda tenant: -shares[tenant])
    return {tenant: tenant if place < NAMED else OTHERS for place, tenant in enumerate(largest)}


def colours(label_of: Mapping[str, str]) -> dict[str, str]:
    """The colour of every label of `labels`, in their order."""
    named = dict(zip(dict.fromkeys(label_of.values()), palette.SERIES, strict=False))
    return named | ({OTHERS: palette.KINDS["reference"]} if OTHERS in label_of.values() else {})


def capacity_used(timeline: Timeline, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Share of the cluster's computing capacity that went to whom; {} without tenants.

    By label (B,): mean over bins of the speed of its containers / computing capacity of all nodes.
    The bins are between `edges`, (B + 1,) seconds.
    """
    capacity = sum(node.computing_capacity for node in timeline.nodes)
    used = {label: np.zeros(len(edges) - 1) for label in timeline.nodes[0].cpu_of}
    for node in timeline.nodes:
        for label, cpu in node.cpu_of.items():
            used[label] += mean_over(node.times, cpu, edges) * (node.computing_capacity / capacity)
    return used


def share_rows(shares: Shares, label_of: Mapping[str, str]) -> pd.DataFrame:
    """Core-seconds received and entitled, for charts: tenant (its label), what, time, ..."""
    names = np.array([label_of.get(tenant, "") for tenant in shares.tenants.index])
    return pd.concat(
        pd.DataFrame(
            {
                "tenant": label,
                "what": what,
                "time": shares.times.round(3),
                "core_seconds": curves[:, names == label].sum(axis=1),
            }
        )
        for label in dict.fromkeys(label_of.values())
        for what, curves in (("received", shares.received), ("entitled", shares.entitled))
    )


def share_data(shares: Shares, label_of: Mapping[str, str]) -> dict[str, Any]:
    """What the page tells of the shares of an episode.

    Returns:
        `line`, a text; `times` (s) and `curves`: label, received and entitled (core-seconds) at
        these; `rows` of the table: label, tenant and what `SHARE_COLUMNS` call, who has most
        tickets first.
    """
    table = shares.tenants[shares.tenants.index.isin(label_of)]
    table = table.sort_values(["tickets", "entitled"], ascending=False, kind="stable")
    quantum = f"{exact(shares.quantum)} core-second{'' if shares.quantum == 1 else 's'}"
    curves: dict[str, list[Any]] = {}
    for (label, _), rows in share_rows(shares, label_of).groupby(["tenant", "what"], sort=False):
        curves.setdefault(label, [label]).append(rows["core_seconds"].round(3).tolist())
    return {
        "line": f"Jain's index {shares.jain:.3f}; a quantum is {quantum}",
        "times": shares.times.round(3).tolist(),
        "curves": list(curves.values()),
        "rows": [
            [
                label_of[tenant],
                tenant,
                *(
                    exact(row[column], shown, "+" if column == "last_lag" else "")
                    for column, shown in SHARE_COLUMNS.values()
                ),
            ]
            for tenant, row in table.iterrows()
        ],
    }
