"""What one group says and another one makes void: typed, it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hydra import compose
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf

from env.base.errors import InputError
from env.workloads.source import is_funded, is_trace
from run.arguments import leaves

Told = Mapping[str, Any]
"""A composed configuration in plain containers."""


class Void(NamedTuple):
    """Keys without effect.

    Attributes:
        commands: names of the primary configurations of the commands, or WORLD, apart by blanks.
        keys: dotted, apart by blanks; all below them are meant too.
        because: what makes it so.
        where: whether it is so in a world.
    """

    commands: str
    keys: str
    because: str
    where: Callable[[Told], bool]


ALL: Final = "evaluate train search_baseline"
WORLD: Final = "world"
"""A world of training for other programs: see run/worlds.py."""
VOID: Final = (
    Void(ALL, "workload.seed", "seed says it", lambda told: True),
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
        lambda told: not _queued(told) and not at(told, "workload.container_cold_start", 1),
    ),
    Void(
        "evaluate train",
        "dispatch.patience",
        "lease=always, no server is ever started",
        lambda told: at(told, "lease.kind") == "always",
    ),
    Void(
        "evaluate train",
        "lease.step",
        "lease=always and lease.charged is false, nothing is paid",
        lambda told: at(told, "lease.kind") == "always" and not at(told, "lease.charged", True),
    ),
    Void(
        "evaluate train",
        "lease.charged",
        "lease=hourly is paid",
        lambda told: at(told, "lease.kind") == "hourly" and not at(told, "lease.charged", True),
    ),
    Void("evaluate", "agents", "policy is null", lambda told: not told.get("policy")),
    Void(
        "evaluate",
        "record report.episodes_mb",
        "nothing is recorded where something is swept",
        lambda told: told.get("sweep") is not None,
    ),
    Void(
        "evaluate",
        "objective.fairness_weight",
        "no tenants with tickets wait in one queue: dispatch=queued and workload=tickets have them",
        lambda told: not (_queued(told) and is_funded(told["workload"])),
    ),
    Void(
        "evaluate",
        "cluster.cpu_share",
        "no tenant holds tickets",
        lambda told: not is_funded(told["workload"]),
    ),
    Void(
        "train search_baseline",
        "workload.tenants workload.currencies objective.fairness_weight cluster.cpu_share",
        "training tells no tenants apart but with agents=tenants",
        lambda told: at(told, "agents.layout") != "tenants",
    ),
    Void(
        "train search_baseline",
        "variation.arrival_rate variation.computation variation.server_count "
        "variation.hourly_rate variation.single variation.load",
        "variation.unvaried is 1, all episodes stay as they are",
        lambda told: at(told, "variation.unvaried") == 1,
    ),
    Void(
        "search_baseline",
        "workload.container_cold_start cluster.power",
        "weights are searched where containers start at once, and J does not count carbon",
        lambda told: True,
    ),
    Void(
        WORLD,
        "agents.share_type_policy algo ray tune budget checkpoint held_out name resume hydra",
        "an environment does not train",
        lambda told: True,
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


def at(told: Told, key: str, absent: Any = None) -> Any:
    """The value of a dotted key, `absent` where there is none."""
    value: Any = told
    for name in key.split("."):
        value = value.get(name, absent) if isinstance(value, Mapping) else absent
    return value


def _queued(told: Told) -> bool:
    return bool(at(told, "dispatch.kind") == "queued")


def _is_default(command: str, key: str, told: Told) -> bool:
    """Whether a key has the value that it has where nothing is typed."""
    if command == WORLD:
        return False
    default = OmegaConf.to_container(compose(command))
    return bool(at(default, key) == at(told, key))  # type: ignore[arg-type]


def _reason(rows: Sequence[Void], key: str) -> str | None:
    """Why a key has no effect, None if it has one."""
    for row in rows:
        if any(f"{key}.".startswith(f"{each}.") for each in row.keys.split()):
            return row.because
    return None
