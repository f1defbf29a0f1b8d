"""Configurations of small worlds, composed from conf/ as the commands do."""

from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

CONF = Path(__file__).parents[2] / "conf"
TINY = ("cluster=tiny", "workflow=tiny", "workload=tiny")
STUDY = ("cluster=hetero_numa", "workflow=study", "workload=poisson")
LAYOUTS = ("placer", "hierarchical", "server_types")


@cache
def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("train", overrides=list(overrides))
    groups = ("cluster", "workflow", "workload", "agents", "objective")
    return {group: OmegaConf.to_container(config[group], resolve=True) for group in groups}


def world(*overrides: str, seed: int = 0) -> dict[str, Any]:
    """What `ServerlessEnv` is built from."""
    return {**_composed(overrides), "seed": seed}
