"""Configurations of small worlds, composed from conf/ as the commands do."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir

from run.command import CONF
from run.composing import plain

TINY = ("cluster=tiny", "workflow=tiny", "workload=tiny")
STUDY = ("cluster=hetero_numa", "workflow=study", "workload=poisson")
LAYOUTS = ("placer", "hierarchical", "server_types")
CROWDED = (
    *("workload.source.functions=40", "workload.source.minutes=200", "workload.sampling.start=100"),
    *("workload.sampling.minutes=1", "workload.sampling.compression=100"),
    "cluster.server_types.worker.server_count=2",
)
"""100 minutes of a trace of 40 functions in one, on two servers: more than they can hold."""
TRACE = ("experiment=queue_agent", *CROWDED, "workload.sampling.ratio=1.0")
TENANTS = (
    "experiment=tickets_agents",
    "workload.arrivals.workflows=[20,30]",
    "workload.arrivals.mean_gap=1",
)
"""Three tenants with tickets in the tiny cluster, an agent for each."""
SECOND_TYPE = (
    "+cluster.server_types.small={server_count:2,hourly_rate:0.1,cold_start_latency:0.0,"
    "numa_nodes_per_server:2,cores_per_numa_node:2,memory_mb_per_numa_node:12288}"
)
"""Of servers, for worlds that have one."""


GROUPS = (
    *("cluster", "workflow", "workload", "agents", "objective", "variation"),
    *("dispatch", "lease", "keep_alive", "changes", "recovery"),
)


@cache
def _composed(name: str | None, overrides: tuple[str, ...]) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base=None):
        return plain(compose(name, list(overrides)))


def composed(*overrides: str, name: str | None = None) -> dict[str, Any]:
    """The configuration of a command; without its name that of groups: "+workflow=study"."""
    return copy.deepcopy(_composed(name, overrides))


def world(*overrides: str, seed: int = 0) -> dict[str, Any]:
    """What `ServerlessEnv` is built from."""
    config = composed(*overrides, name="train")
    return {group: config[group] for group in GROUPS} | {"seed": seed}


def with_queue(layout: str) -> tuple[str, ...]:
    """Overrides for the agent `queue`, alone or before those of a layout who place."""
    if layout == "queue":
        return ("agents=queue", "agents.queue.functions=4")
    return (f"agents={layout}", "agents.queue={functions:4,starve_threshold:300}")


def with_gpu(config: dict[str, Any]) -> dict[str, Any]:
    """The world with GPUs on its second server type alone; the first function needs half of one."""
    kinds = {
        name: kind | {"resources_per_numa_node": {"GPU": int(index == 1)}}
        for index, (name, kind) in enumerate(config["cluster"]["server_types"].items())
    }
    function = {"runtime": 2.0, "memory": 100, "parallelism": 1}
    inline = {
        "functions": {"a": function | {"resources": {"GPU": 0.5}}, "b": function},
        "edges": [{"from": "a", "to": "b", "bytes": 1}],
    }
    return config | {
        "cluster": config["cluster"] | {"server_types": kinds},
        "workflow": config["workflow"] | {"mix": {"inline": inline}},
    }


def gym_mask(agent: Any, mask: np.ndarray) -> Any:
    """What `sample` of the agent's action space takes."""
    flags = mask.astype(np.int8)
    return (flags[: agent.bids], flags[agent.bids :]) if agent.bids else flags


def write_carbon(folder: Path, year: int) -> None:
    """In Great Britain electricity is clean here, and in Germany dirty."""
    hours = pd.date_range(f"{year}-01-01", periods=48, freq="h")
    for name, grams in (("gb", 50), ("de", 400)):
        table = pd.DataFrame({"date": hours.date, "hour": hours.strftime("%H:%M"), "ci": grams})
        table.to_csv(folder / f"hourly_{name}_{year}.csv.gz", index=False)
