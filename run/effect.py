"""What one group says and another one makes void: typed, it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hydra import compose
from hydra.core.override_parser.types import Override

from env.base.errors import InputError
from env.workloads.source import is_funded, is_trace
from run.arguments import leaves
from run.composing import plain

Told = Mapping[str, Any]
"""A composed configuration in plain containers."""


class Void(NamedTuple):
    """Keys without effect in some worlds of some commands, and what makes it so.

    Commands and keys stand apart by blanks; all below a key is meant, too.
    """

    commands: str
    keys: str
    because: str
    where: Callable[[Told], bool] = lambda told: True


VOID: Final = (
    Void("evaluate train search_baseline", "workload.seed", "seed says it"),
    Void(
        "evaluate train",
        "workflow",
        "workload is a trace of single functions",
        lambda told: is_trace(told["workload"]),
    ),
    Void(
        "evaluate train",
        "keep_alive",
        "dispatch is immediate and workload.container_cold_start=0, new containers start at once",
        lambda told: (
            told["dispatch"]["kind"] == "immediate"
            and _at(told, "workload.container_cold_start") == 0
        ),
    ),
    Void(
        "evaluate train",
        "dispatch.patience",
        "lease=always, no server is ever started",
        lambda told: told["lease"]["kind"] == "always",
    ),
    Void(
        "evaluate train",
        "lease.step",
        "lease=always without lease.charged, nothing is paid",
        lambda told: told["lease"]["kind"] == "always" and not told["lease"]["charged"],
    ),
    Void("evaluate", "agents", "policy is null", lambda told: not told["policy"]),
    Void(
        "evaluate",
        "record report.episodes_mb",
        "nothing is recorded where something is swept",
        lambda told: told["sweep"] is not None,
    ),
    Void(
        "evaluate",
        "objective.fairness_weight",
        "no tenants with tickets wait in one queue: dispatch=queued and workload=tickets have them",
        lambda told: told["dispatch"]["kind"] != "queued" or not is_funded(told["workload"]),
    ),
    Void(
        "train search_baseline",
        "workload.tenants workload.currencies objective.fairness_weight cluster.cpu_share",
        "training tells no tenants apart but with agents=tenants",
        lambda told: _at(told, "agents.layout") != "tenants",
    ),
    Void(
        "train search_baseline",
        "variation.arrival_rate variation.computation variation.server_count "
        "variation.hourly_rate variation.single variation.load",
        "variation.unvaried is 1, all episodes stay as they are",
        lambda told: _at(told, "variation.unvaried") == 1,
    ),
    Void(
        "search_baseline",
        "workload.container_cold_start",
        "weights are searched where containers start at once",
    ),
)


def check_effect(command: str, jobs: Sequence[tuple[Told, Sequence[Override]]]) -> None:
    """Refuses what was typed and changes nothing in any job, unless it is so anyway.

    Args:
        command: name of its primary configuration.
        jobs: of each, what its overrides come to, and these.

    Raises:
        InputError: an override has no effect.
    """
    found: dict[str, str | None] = {}
    for told, overrides in jobs:
        rows = [row for row in VOID if command in row.commands.split() and row.where(told)]
        reasons = {key: row.because for row in reversed(rows) for key in row.keys.split()}
        for override in overrides:
            key = override.key_or_group.replace("/", ".")
            value = None if override.is_delete() else override.value()
            voids = [_reason(reasons, leaf) for leaf, _ in leaves(key, value)]
            if not all(voids):
                found[key] = None
            elif key not in found and _at(plain(compose(command)), key) != _at(told, key):
                found[key] = voids[0]
    for key, reason in found.items():
        if reason is not None:
            raise InputError(f"{key}: without effect, {reason}: leave it out")


def _reason(reasons: Mapping[str, str], key: str) -> str | None:
    """Why a key has no effect, or what it is below has none; None if it has one."""
    return next((why for above, why in reasons.items() if f"{key}.".startswith(f"{above}.")), None)


def _at(told: Told, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    value: Any = told
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
