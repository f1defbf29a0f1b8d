"""Which keys have no effect in the world at hand: typed, they are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from hydra.core.override_parser.types import Override

from env.base.errors import InputError
from env.workloads.source import is_funded
from run.interpolation import leaves
from run.told import (
    Told,
    at,
    by_workflows,
    from_files,
    leased,
    nobody_expected,
    of_trace,
    one_node_servers,
    plain_world,
    queued,
    splits_currencies,
    stated,
    tickets_count,
    without_files,
    written,
)


@dataclass(frozen=True)
class Silent:
    """Keys without effect.

    Attributes:
        commands: names of the primary configurations of the commands, or WORLD, apart by blanks.
        because: what makes it so, a clause that names a key.
        where: whether it is so in a world.
        keys: dotted, apart by blanks, `*` for any name; all below them are meant too.
    """

    commands: str
    because: str
    where: Callable[[Told], bool]
    keys: str


def _while(commands: str, key: str, value: object, keys: str) -> Silent:
    """Keys without effect where another one has a value."""
    return Silent(commands, f"{key} is {value}", lambda told: at(told, key) == value, keys)


ALL: Final = "evaluate train search_baseline"
WORLD: Final = "world"
"""A world of training for other programs: see run/worlds.py."""
SILENT: Final = (
    # What arrives.
    Silent(
        "evaluate train",
        "workload is a trace of single functions",
        of_trace,
        "workflow cluster.same_node_bandwidth_bytes_per_s "
        "cluster.between_nodes_of_one_server_bandwidth_bytes_per_s "
        "cluster.between_servers_bandwidth_bytes_per_s",
    ),
    Silent(
        "evaluate train",
        "keep_alive does not learn from earlier requests",
        lambda told: at(told, "keep_alive.policy") != "hybrid_histogram",
        "workload.sampling.history",
    ),
    Silent(ALL, "workflow.path takes the place of the mix", from_files, "workflow.mix"),
    Silent(
        ALL,
        "no workflow has a path, no files are read",
        without_files,
        "workflow.max_bytes workflow.annotation.without_runtimes",
    ),
    Silent(
        ALL,
        "workflow.path is null",
        lambda told: not from_files(told),
        "workflow.evaluation_path",
    ),
    Silent(
        ALL,
        "workflow.mix is written function by function, and taken as it is",
        written,
        "workflow.annotation.runtime_scale workflow.annotation.runtime_range "
        "workflow.annotation.min_runtime workflow.annotation.missing_runtime "
        "workflow.annotation.min_memory workflow.annotation.max_parallelism",
    ),
    Silent(
        ALL,
        "workflow.mix states the memory of every function",
        lambda told: stated(told, "memory"),
        "workflow.annotation.missing_memory",
    ),
    Silent(
        ALL,
        "workflow.mix states the parallelism of every function",
        lambda told: stated(told, "parallelism"),
        "workflow.annotation.missing_parallelism",
    ),
    Silent(
        ALL,
        "workflow.mix states all, nothing is drawn",
        lambda told: stated(told, "memory") and stated(told, "parallelism"),
        "workflow.annotation.seed",
    ),
    Silent(ALL, "seed says it", lambda told: True, "workload.seed"),
    Silent(
        "train search_baseline",
        "training tells no tenants apart but with agents=tenants",
        lambda told: not splits_currencies(told),
        "workload.tenants workload.currencies objective.fairness_weight cluster.cpu_share",
    ),
    Silent(
        "train search_baseline",
        "variation.unvaried is 1, all episodes stay as they are",
        lambda told: at(told, "variation.unvaried") == 1,
        "variation.arrival_rate variation.computation variation.server_count "
        "variation.hourly_rate variation.single variation.load",
    ),
    Silent(ALL, "paths start where the command does", lambda told: True, "hydra.job.chdir"),
    # Where functions wait.
    Silent(
        ALL,
        "nothing is paid",
        lambda told: not leased(told),
        "cluster.server_types.*.hourly_rate objective.cost_weight",
    ),
    Silent(
        ALL,
        "lease=always, no server starts cold",
        lambda told: at(told, "lease.kind") == "always",
        "cluster.server_types.*.cold_start_latency",
    ),
    Silent(ALL, "lease.charged is false", lambda told: not leased(told), "lease.step"),
    Silent(
        ALL,
        "lease=hourly is paid",
        lambda told: at(told, "lease.kind") == "hourly",
        "lease.charged",
    ),
    Silent(
        "evaluate train",
        "dispatch is immediate and workload.container_cold_start=0, new containers start at once",
        lambda told: not queued(told) and at(told, "workload.container_cold_start") == 0,
        "keep_alive",
    ),
    Silent(
        "evaluate train",
        "dispatch=queued lease=always, no server is ever started",
        lambda told: queued(told) and at(told, "lease.kind") == "always",
        "dispatch.patience",
    ),
    Silent(
        "evaluate",
        "schedules are tried out where dispatch is immediate, lease=hourly, keep_alive=none and "
        "workload.container_cold_start=0",
        lambda told: not plain_world(told),
        "optimum",
    ),
    Silent(
        ALL,
        "numa_nodes_per_server is 1 everywhere",
        one_node_servers,
        "cluster.between_nodes_of_one_server_bandwidth_bytes_per_s",
    ),
    Silent(
        "search_baseline",
        "weights are searched where containers start at once",
        lambda told: True,
        "workload.container_cold_start",
    ),
    Silent("search_baseline", "J does not count carbon", lambda told: True, "cluster.power"),
    Silent(
        "train",
        "of a trace the rate of arrivals varies, and the servers",
        of_trace,
        "variation.computation variation.single variation.load",
    ),
    # Who decides.
    Silent("evaluate", "policy is null", lambda told: not at(told, "policy"), "agents"),
    Silent(
        "train",
        "agents.layout is queue, a rule of the engine places",
        lambda told: at(told, "agents.layout") == "queue",
        "agents.memory_tiers agents.score agents.workflow_window agents.share_type_policy "
        "algo.message_rounds",
    ),
    Silent(
        "train",
        "agents.layout is tenants, a rule of the engine places",
        splits_currencies,
        "agents.memory_tiers agents.score agents.workflow_window algo.message_rounds",
    ),
    Silent(
        "evaluate",
        "nothing is recorded where something is swept",
        lambda told: at(told, "sweep") is not None,
        "record report.episodes_mb",
    ),
    Silent(
        "evaluate",
        "nothing is recorded where something is swept, and no tickets count",
        lambda told: at(told, "sweep") is not None and not tickets_count(told),
        "workload.tenants",
    ),
    _while("evaluate", "record", 0, "report.episodes_mb"),
    Silent(
        "evaluate",
        "record is 0 and no tickets count, nobody is told apart",
        lambda told: at(told, "record") == 0 and not tickets_count(told),
        "workload.tenants",
    ),
    Silent(
        "evaluate",
        "dispatch is immediate, functions do not wait for a turn",
        lambda told: not queued(told),
        "objective.fairness_weight",
    ),
    Silent(
        "evaluate",
        "dispatch is immediate and cluster.cpu_share equal, nothing goes by tickets",
        lambda told: not tickets_count(told),
        "workload.currencies workload.tenants.*.tickets workload.tenants.*.currency",
    ),
    Silent(
        "evaluate",
        "none of the baselines goes by workflows within a tenant",
        lambda told: not by_workflows(told),
        "workload.tenants.*.workflows",
    ),
    Silent(
        "evaluate",
        "no tenant holds tickets",
        lambda told: not is_funded(told["workload"]),
        "objective.fairness_weight cluster.cpu_share",
    ),
    Silent("evaluate", "nothing is to keep", lambda told: not at(told, "keep"), "minimise"),
    _while("evaluate", "workers", 1, "ray.address"),
    Silent(
        "train",
        "agents.tenants.mechanism is drf, it charges the memory and threads that tasks hold",
        lambda told: at(told, "agents.tenants.mechanism") == "drf",
        "agents.tenants.resource agents.tenants.quantum",
    ),
    Silent(
        "train",
        "agents.tenants.mechanism is not multi_lottery",
        lambda told: at(told, "agents.tenants.mechanism") != "multi_lottery",
        "agents.tenants.winners",
    ),
    _while("search_baseline", "search.economy", [0, 0], "search.demand"),
    _while("search_baseline", "search.arrival_use", [0, 0], "search.arrival_horizon"),
    Silent(
        "search_baseline",
        "search.arrival_use and search.known_use are [0, 0]",
        lambda told: at(told, "search.arrival_use") == at(told, "search.known_use") == [0, 0],
        "search.own_use",
    ),
    _while("train", "agents.score.economy", 0, "agents.score.demand"),
    _while("train", "agents.score.arrival_use", 0, "agents.score.arrival_horizon"),
    Silent(
        "train",
        "agents.score.arrival_use and agents.score.known_use are 0",
        nobody_expected,
        "agents.score.own_use",
    ),
    # How it learns.
    _while("train", "agents.workflow_window", 0, "algo.message_rounds"),
    Silent(
        "train",
        "algo.warm_start is null",
        lambda told: (
            at(told, "algo.name") != "bc"
            and at(told, "algo.warm_start") is None
            and at(told, "tune.space.warm_start") is None
        ),
        "algo.cloning",
    ),
    Silent(
        "train",
        "algo=bc does nothing but clone",
        lambda told: at(told, "algo.name") == "bc",
        "algo.cloning.temperature",
    ),
    _while("train", "ray.num_env_runners", 0, "ray.wait_for_runners ray.restart_failed_runners"),
    Silent(
        "train",
        "ray.num_env_runners and ray.num_learners are 0, all is in one process",
        lambda told: (
            at(told, "ray.num_env_runners") == at(told, "ray.num_learners") == 0
            and at(told, "tune") is None
        ),
        "ray.num_cpus ray.runtime_env",
    ),
    Silent(
        "train",
        "algo.sampler=fast alone has threads",
        lambda told: at(told, "algo.sampler") != "fast",
        "ray.threads_per_runner",
    ),
    Silent(
        "train",
        "algo=ppo alone has threads that learn",
        lambda told: at(told, "algo.name") != "ppo",
        "ray.threads_per_learner",
    ),
    Silent(
        "train",
        "trials of tune have one thread, and checkpoints of their own",
        lambda told: at(told, "tune") is not None,
        "ray.threads_per_runner ray.threads_per_learner checkpoint.every_minutes checkpoint.keep",
    ),
    Silent(
        WORLD,
        "an environment does not train",
        lambda told: True,
        "agents.share_type_policy algo ray tune budget checkpoint held_out name resume hydra",
    ),
)


OF_ANY_NAME: Final = (
    "cluster.power.",
    "cluster.server_types.",
    "hydra.",
    "tune.",
    "variation.",
    "workflow.mix.",
    "workload.currencies.",
    "workload.tenants.",
)
"""What may be deleted: entries with names of the user's, and parts that may be missing."""


def check_effect(command: str, jobs: Sequence[tuple[Told, Sequence[Override]]]) -> None:
    """Refuses what was typed and cannot change anything, of a sweep in any of its jobs.

    A mapping is refused if all in it is without effect. What is added of a server type passes: a
    new one has to state everything.

    Args:
        command: name of its primary configuration, or WORLD.
        jobs: of each, what its overrides come to, and these.

    Raises:
        InputError: an override has no effect, or takes away what settings need.
    """
    found: dict[str, str | None] = {}
    for told, overrides in jobs:
        silent = _silent(command, told)
        searched = at(told, "tune.space") or {}
        silent += [
            Silent(command, f"tune.space.{name} says it", lambda told: True, f"algo.{name}")
            for name in searched
        ]
        for override in overrides:
            key = override.key_or_group.replace("/", ".")
            if override.is_delete() and not f"{key}.".startswith(OF_ANY_NAME):
                raise InputError(f"~{key}: cannot be left out, give it a value")
            value = None if override.is_delete() else override.value()
            reasons = [_reason(silent, leaf) for leaf, _ in leaves(key, value)]
            of_new_type = override.is_add() and key.startswith("cluster.server_types.")
            counts = of_new_type or not all(reasons) or found.get(key, "") is None
            found[key] = None if counts else reasons[0]
    for key, reason in found.items():
        if reason is not None:
            raise InputError(f"{key}: without effect, {reason}: leave it out")


def has_effect(command: str, told: Told, key: str) -> bool:
    """Whether a dotted key, or something below it, can change anything."""
    return _reason(_silent(command, told), key) is None


def _silent(command: str, told: Told) -> list[Silent]:
    return [row for row in SILENT if command in row.commands.split() and row.where(told)]


def _reason(silent: Sequence[Silent], key: str) -> str | None:
    """Why a key has no effect, None if it has one."""
    parts = key.split(".")
    above = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    for row in silent:
        for pattern in row.keys.split():
            if any(fnmatchcase(name, pattern) for name in above):
                return row.because
    return None
