"""What tenants used of the cluster, how long their workflows took, and whether that was fair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evaluation.shares import Shares
from report import palette
from report.digits import exact
from report.timeline import Timeline, mean_over

NAMED = len(palette.SERIES)
"""Tenants that have a name and a colour of their own."""
OTHERS = "all others"
"""What the rest is called together; no tenant can have a blank in its name."""

SHARE_COLUMNS: Mapping[str, Callable[[Shares, int], str]] = {
    "tickets": lambda shares, place: exact(shares.tickets[place], "share"),
    "received (core-s)": lambda shares, place: exact(shares.received[-1, place]),
    "entitled (core-s)": lambda shares, place: exact(shares.entitled[-1, place]),
    "received / entitled": lambda shares, place: exact(shares.ratio[place]),
    "largest error (quanta)": lambda shares, place: exact(shares.error[place]),
    "largest error of a pair (quanta)": lambda shares, place: exact(shares.pair_error[place]),
    "largest lag (core-s)": lambda shares, place: exact(shares.largest_lag[place]),
    "last lag (core-s)": lambda shares, place: exact(shares.last_lag[place], sign="+"),
    "mean dominant share": lambda shares, place: exact(shares.dominant[place], "share"),
    "response time (s)": lambda shares, place: exact(shares.response[place]),
    "its deviation (s)": lambda shares, place: exact(shares.response_deviation[place]),
}
"""Of the table of shares, behind the tenant: what stands there of the tenant in a place."""


def labels(shares: Mapping[str, float]) -> dict[str, str]:
    """What charts call every tenant: of more than `NAMED`, the smallest ones are `OTHERS`.

    The largest come first.

    Args:
        shares: of the workflows or of their work, by tenant.
    """
    largest = sorted(shares, key=lambda tenant: -shares[tenant])
    return {tenant: tenant if place < NAMED else OTHERS for place, tenant in enumerate(largest)}


def colours(label_of: Mapping[str, str]) -> dict[str, str]:
    """The colour of every label of `labels`, in their order."""
    named = dict(zip(dict.fromkeys(label_of.values()), palette.SERIES, strict=False))
    return named | ({OTHERS: palette.KINDS["reference"]} if OTHERS in label_of.values() else {})


def capacity_used(
    timeline: Timeline, label_of: Mapping[str, str], edges: np.ndarray
) -> dict[str, np.ndarray]:
    """Share of the cluster's computing capacity that went to whom; {} without labels or tenants.

    Args:
        label_of: from `labels`.
        edges: (B + 1,) seconds, of the bins.

    Returns:
        (B,) by label: mean over a bin of the speed of all its containers / computing capacity.
    """
    if not label_of or not timeline.tenants:
        return {}
    used = {label: np.zeros(len(edges) - 1) for label in label_of.values()}
    containers = timeline.containers
    owners = np.array([label_of[tenant] for tenant in timeline.tenants])[containers["wf_id"]]
    capacity = sum(node.computing_capacity for node in timeline.nodes)
    for index, node in enumerate(timeline.nodes):
        here = containers["node"] == index
        # All threads of a node have the same speed, so containers share it in constant ratios.
        everyone = _weight_over(node.times, containers[here])
        each = np.divide(node.cpu, everyone, out=np.zeros(len(node.cpu)), where=node.cpu > 0)
        for label, share in used.items():
            own = each * _weight_over(node.times, containers[here & (owners == label)])
            share += mean_over(node.times, own, edges) * (node.computing_capacity / capacity)
    return used


def _weight_over(times: np.ndarray, containers: np.ndarray) -> np.ndarray:
    """(K,) speed of what runs at each time, in threads that have all the memory they need."""
    memory = np.minimum(1.0, containers["memory_alloc"] / containers["memory_req"])
    weights = memory * containers["parallelism"]

    def before(event: str) -> np.ndarray:
        order = np.argsort(containers[event])
        sums = np.concatenate([[0.0], np.cumsum(weights[order])])
        return np.asarray(sums[np.searchsorted(containers[event][order], times, side="right")])

    return before("start_time") - before("completion_time")


def mean_flow_times(workflows: pd.DataFrame, label_of: Mapping[str, str]) -> pd.DataFrame:
    """How long the workflows of each tenant took.

    Args:
        workflows: of the recorded episodes: policy, tenant, flow_time (s).

    Returns:
        A row a policy and label: policy, tenant, flow_time (its mean, s), workflows (their number).
    """
    rows = workflows.assign(tenant=workflows["tenant"].map(label_of))
    by_tenant = rows.groupby(["policy", "tenant"], sort=False)["flow_time"]
    return by_tenant.agg(flow_time="mean", workflows="size").reset_index()


def share_curves(
    shares: Shares, label_of: Mapping[str, str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(T,) core-seconds received and (T,) entitled by label."""
    names = np.array([label_of.get(tenant, "") for tenant in shares.tenants])
    return {
        label: tuple(
            each[:, names == label].sum(axis=1) for each in (shares.received, shares.entitled)
        )
        for label in dict.fromkeys(label_of.values())
    }


def share_rows(shares: Shares, label_of: Mapping[str, str]) -> pd.DataFrame:
    """The same for `episode_charts.shares`: tenant, what, time, core_seconds."""
    return pd.concat(
        pd.DataFrame(
            {"tenant": label, "what": what, "time": shares.times.round(3), "core_seconds": curve}
        )
        for label, curves in share_curves(shares, label_of).items()
        for what, curve in zip(("received", "entitled"), curves, strict=True)
    )


def share_data(shares: Shares, label_of: Mapping[str, str]) -> dict[str, Any]:
    """What the page tells of the shares of an episode.

    Returns:
        `told`, a line; `times` (s) and `curves`: label, received and entitled (core-seconds) at
        these; `rows` of the table: label, tenant and what `SHARE_COLUMNS` call, who has most
        tickets first.
    """
    most_first = np.lexsort([-shares.entitled[-1], -shares.tickets])
    known = [place for place in most_first.tolist() if shares.tenants[place] in label_of]
    quantum = f"{exact(shares.quantum)} core-second{'' if shares.quantum == 1 else 's'}"
    return {
        "told": f"Jain's index {shares.jain:.3f}; a quantum is {quantum}",
        "times": shares.times.round(3).tolist(),
        "curves": [
            [label, received.round(3).tolist(), entitled.round(3).tolist()]
            for label, (received, entitled) in share_curves(shares, label_of).items()
        ],
        "rows": [
            [
                label_of[shares.tenants[place]],
                shares.tenants[place],
                *(cell(shares, place) for cell in SHARE_COLUMNS.values()),
            ]
            for place in known
        ],
    }
