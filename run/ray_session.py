"""Starts or joins Ray, the same way for training and evaluation."""

import contextlib
import logging
import os
import socket
import warnings
from collections.abc import Mapping
from typing import Any

from env.base.errors import InputError
from env.base.schema import one_line
from run.command import PROJECT
from run.settings import RaySettings

ANSWERS_WITHIN = 10.0
"""s; Ray itself tries for minutes to reach a machine that does not answer."""


def check_ray(address: str | None) -> None:
    """Refuses an address of host and port at which nothing answers.

    Raises:
        InputError: no connection can be made.
    """
    if address is None or address == "auto":
        return
    host, port = address.removeprefix("ray://").rsplit(":", 1)
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN).close()
    except OSError as error:
        raise InputError(f"ray.address: '{address}': {error.strerror or error}") from None


def connect(
    address: str | None, num_cpus: int | None = None, runtime_env: Mapping[str, Any] | None = None
) -> None:
    """Starts or joins Ray, quietly, with this project first on the path of every worker.

    Args:
        address: of a running Ray cluster; None starts Ray on this machine.
        num_cpus: cores Ray may use on this machine; None means all.
        runtime_env: Ray's runtime environment of the workers.

    Raises:
        InputError: there is no Ray at the address, or it cannot start in its temporary folder.
    """
    import ray  # takes seconds to import

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    runtime = dict(runtime_env or {})
    runtime["env_vars"] = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        "OMP_NUM_THREADS": "1",
        **runtime.get("env_vars", {}),
    }
    if address is not None:
        runtime.setdefault("working_dir", str(PROJECT))
    # Ray puts the folder it is started in before all others on its workers' path, where it could
    # hide this project's packages behind others of the same name.
    with contextlib.chdir(PROJECT):
        try:
            ray.init(
                address=address or "local",
                num_cpus=num_cpus,
                include_dashboard=False if address is None else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env=runtime,
            )
        except OSError as error:
            where = "RAY_TMPDIR, its folder" if address is None else f"ray.address: '{address}'"
            raise InputError(f"{where}: {one_line(str(error))}") from None


def start_ray(settings: RaySettings, beside_runners: int = 0) -> None:
    """Starts or joins Ray for a run that needs some cores beside one a runner and learner.

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
    cores = ray.cluster_resources().get("CPU", 0)
    needed = settings.num_env_runners + settings.num_learners + beside_runners
    if needed > cores:
        # Ray would wait for more, silently.
        ray.shutdown()
        raise InputError(
            f"ray.num_env_runners {settings.num_env_runners} and ray.num_learners "
            f"{settings.num_learners} need {needed} cores, Ray has {cores:g}"
        )
