"""Keys that another key makes void: an argument that sets one is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hydra import compose

from env.base.errors import InputError
from env.workloads.source import is_funded, is_trace
from run.composing import Scenario, at, leaves, plain


def void_keys(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys without effect in a configuration, apart by blanks, and why; keys below them, too."""
    yield "workload.seed", "seed says it"
    queued = at(config, "dispatch.kind") == "queued"
    lease = config.get("lease", {})
    if is_trace(config["workload"]):
        yield "workflow", "workload is a trace of single functions"
    if not queued and at(config, "workload.container_cold_start") == 0:
        yield (
            "keep_alive",
            "dispatch is immediate and workload.container_cold_start=0, new containers start at "
            "once",
        )
    if lease.get("kind") == "always":
        yield "dispatch.patience", "lease=always, no server is ever started"
        if not lease["charged"]:
            yield "lease.step", "lease=always without lease.charged, nothing is paid"
    if at(config, "changes.kind") == "none" and not lease.get("spot"):
        yield "recovery", "changes=none and lease has no spot servers, nothing is ever killed"
    regions = [region.get("power", {}) for region in config["cluster"].get("regions", {}).values()]
    if regions and all("carbon_intensity_g_per_kwh" in power for power in regions):
        yield "cluster.power.carbon_intensity_g_per_kwh", "each region has its own"
    if "variation" not in config:  # of evaluate.py
        if not config["policy"]:
            yield "agents", "policy is null"
        if not config["keep"]:
            yield "minimise", "nothing is promised with keep"
        if config["sweep"] is not None:
            yield "record report.episodes_mb", "nothing is recorded where something is swept"
        if not queued or not is_funded(config["workload"]):
            yield (
                "objective.fairness_weight",
                "no tenants with tickets wait in one queue: dispatch=queued and workload=tickets "
                "have them",
            )
        return
    if at(config, "agents.layout") != "tenants":
        yield (
            "workload.tenants workload.currencies objective.fairness_weight cluster.cpu_share",
            "training tells no tenants apart but with agents=tenants",
        )
    if config["variation"]["unvaried"] == 1:
        yield (
            " ".join(f"variation.{key}" for key in config["variation"] if key != "unvaried"),
            "variation.unvaried is 1, all episodes stay as they are",
        )
    if "search" in config:
        yield "workload.container_cold_start", "weights are searched where containers start at once"


def check_effect(command: str, scenarios: Sequence[Scenario]) -> None:
    """Refuses an override of a command that changes nothing in any scenario of its jobs.

    One whose value is the default passes.

    Raises:
        InputError: an override has no effect.
    """
    reasons: dict[str, str | None] = {}
    for _, _, config, overrides in scenarios:
        void = {key: why for keys, why in void_keys(config) for key in keys.split()}
        for override in overrides:
            key = override.key_or_group.replace("/", ".")
            value = None if override.is_delete() else override.value()
            each = [_reason(void, leaf) for leaf, _ in leaves(key, value)]
            if not all(each):
                reasons[key] = None
            elif key not in reasons and at(plain(compose(command)), key) != at(config, key):
                reasons[key] = each[0]
    for key, reason in reasons.items():
        if reason is not None:
            raise InputError(f"{key}: without effect, {reason}: leave it out")


def _reason(void: Mapping[str, str], key: str) -> str | None:
    """Why a key, or one that it is below, has no effect; None if it has one."""
    return next((why for above, why in void.items() if f"{key}.".startswith(f"{above}.")), None)
