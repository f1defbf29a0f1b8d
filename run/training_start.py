"""What a training starts from: its world, in plain containers, and Ray."""

import logging
import warnings
from typing import Any

from env.base.errors import InputError
from env.base.schema import validated
from run.next_command import WORLD
from run.ray_session import connect
from run.settings import RaySettings, TrainSettings

TRAINING_WORLD = (*WORLD, "agents", "variation")
"""Groups that make the world in which schedulers learn."""


def world_of(settings: TrainSettings) -> dict[str, Any]:
    """What the environment is built from, in plain containers: they travel to Ray's workers."""
    from env.workloads.source import is_trace
    from env.workloads.templates import WorkflowConfig

    told = settings.model_dump(mode="json")
    workload, workflow = told["workload"], told["workflow"]
    if not is_trace(workload):
        config = validated(WorkflowConfig, workflow, "workflow")  # makes its paths absolute
        told["workflow"] = config.model_dump(mode="json", by_alias=True)
    return {key: told[key] for key in (*TRAINING_WORLD, "seed")}


def start_ray(settings: RaySettings, beside_runners: int = 0) -> None:
    """Starts or joins Ray for a run.

    Args:
        settings: of the run.
        beside_runners: cores that it needs of Ray besides one for each runner and learner.

    Raises:
        InputError: there is no Ray at the address, or it has fewer cores.
    """
    import ray
    import torch

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    # RLlib registers its vectorised environment anew in every run of a sweep.
    warnings.filterwarnings("ignore", message=".*Overriding environment")
    # More threads than one fight over busy cores.
    torch.set_num_threads(1)
    connect(settings.address, settings.num_cpus, settings.runtime_env)
    found = ray.cluster_resources().get("CPU", 0)
    cores = settings.num_env_runners + settings.num_learners + beside_runners
    if cores > found:
        # Ray would wait for more, silently.
        ray.shutdown()
        raise InputError(
            f"ray.num_env_runners {settings.num_env_runners} and ray.num_learners "
            f"{settings.num_learners} need {cores} cores, Ray has {found:g}"
        )
