"""Configurations of small worlds, composed from conf/ as the commands do."""

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from ray.rllib.env.multi_agent_env import MultiAgentEnv

CONF = Path(__file__).parents[2] / "conf"
TINY = ("cluster=tiny", "workflow=tiny", "workload=tiny")
STUDY = ("cluster=hetero_numa", "workflow=study", "workload=poisson")
LAYOUTS = ("placer", "hierarchical", "server_types")
TRACE = (
    "experiment=queue_agent",
    "workload.source.functions=40",
    "workload.source.minutes=200",
    "workload.sampling.start=100",
    "workload.sampling.minutes=1",
    "workload.sampling.compression=100",
    "workload.sampling.ratio=1.0",
    "cluster.server_types.worker.server_count=2",
)
"""100 minutes of 40 functions in one, on two servers: more than they can hold."""
SECOND_TYPE = (
    "+cluster.server_types.small={server_count:2,hourly_rate:0.1,cold_start_latency:0.0,"
    "numa_nodes_per_server:2,cores_per_numa_node:2,memory_mb_per_numa_node:12288}"
)
"""Of servers, for worlds that have one."""


@cache
def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("train", overrides=list(overrides))
    groups = ("cluster", "workflow", "workload", "agents", "objective", "variation")
    groups += ("dispatch", "lease", "keep_alive")
    return {group: OmegaConf.to_container(config[group], resolve=True) for group in groups}


def world(*overrides: str, seed: int = 0) -> dict[str, Any]:
    """What `ServerlessEnv` is built from."""
    return {**_composed(overrides), "seed": seed}


def with_queue(layout: str) -> tuple[str, ...]:
    """Overrides for the agent `queue`, alone or before those of a layout who place."""
    if layout == "queue":
        return ("agents=queue", "agents.queue.functions=4")
    return (f"agents={layout}", "agents.queue={functions:4,starve_threshold:300}")


def gym_mask(agent: Any, mask: np.ndarray) -> Any:
    """What `sample` of the agent's action space takes."""
    flags = mask.astype(np.int8)
    return (flags[: agent.bids], flags[agent.bids :]) if agent.bids else flags


def sampling_with_masks(env: MultiAgentEnv) -> MultiAgentEnv:
    """The same, with spaces that sample under the masks of its reset: RLlib's check gives none."""
    reset = env.reset

    def noted(**given: Any) -> Any:
        seen, infos = reset(**given)
        for name, own in seen.items():
            mask, space = gym_mask(env.members[name], own["mask"]), env.action_spaces[name]
            space.sample = partial(type(space).sample, space, mask=mask)
        return seen, infos

    env.reset = noted
    return env
