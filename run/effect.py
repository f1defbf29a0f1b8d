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
WORLD: Final = "world"
"""In place of a command: a world of training for other programs, see run/worlds.py."""


class Void(NamedTuple):
    """Keys without effect in some worlds of some commands, and what makes it so.

    Commands and keys stand apart by blanks; all below a key is meant, too.
    """

    commands: str
    keys: str
    because: str
    where: Callable[[Told], bool] = lambda told: True


def _queued(told: Told) -> bool:
    return bool(told["dispatch"]["kind"] == "queued")


def _shared(told: Told) -> bool:
    return _queued(told) and is_funded(told["workload"])


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
        lambda told: not _queued(told) and _at(told, "workload.container_cold_start") == 0,
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
        lambda told: not _shared(told),
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
    Void(
        WORLD,
        "agents.share_type_policy algo ray tune budget checkpoint held_out name resume",
        "an environment does not train",
    ),
)


def check_effect(command: str, jobs: Sequence[tuple[Told, Sequence[Override]]]) -> None:
    """Refuses what was typed and changes nothing in any job, unless it is so anyway.

    Args:
        command: name of its primary configuration, or WORLD.
        jobs: of each, what its overrides come to, and these.

    Raises:
        InputError: an override has no effect.
    """
    found: dict[str, str | None] = {}
    for told, overrides in jobs:
        rows = [row for row in VOID if command in row.commands.split() and row.where(told)]
        for override in overrides:
            key = override.key_or_group.replace("/", ".")
            value = None if override.is_delete() else override.value()
            reasons = [_reason(rows, leaf) for leaf, _ in leaves(key, value)]
            if not all(reasons):
                found[key] = None
            elif key not in found and not _is_default(command, key, told):
                found[key] = reasons[0]
    for key, reason in found.items():
        if reason is not None:
            raise InputError(f"{key}: without effect, {reason}: leave it out")


def _reason(rows: Sequence[Void], key: str) -> str | None:
    """Why a key has no effect, None if it has one."""
    return next(
        (
            row.because
            for row in rows
            for each in row.keys.split()
            if f"{key}.".startswith(f"{each}.")
        ),
        None,
    )


def _is_default(command: str, key: str, told: Told) -> bool:
    """Whether a key has the value that it has where nothing is typed."""
    if command == WORLD:
        return False
    return bool(_at(plain(compose(command)), key) == _at(told, key))


def _at(told: Told, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    value: Any = told
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
