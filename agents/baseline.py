"""Hand-written schedulers: an order, a placement rule and a memory rule, put together in YAML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from omegaconf import OmegaConf
from pydantic import Field
from yaml import YAMLError  # type: ignore[import-untyped]

from agents.command import CONF
from agents.memory.required import Required
from agents.memory.stingy import Stingy
from agents.memory.tiered import Tiered
from agents.order.submission import Submission
from agents.placement.best_fit import BestFit
from agents.placement.cheapest import Cheapest
from agents.placement.data_local import DataLocal
from agents.placement.earliest_finish import EarliestFinish
from agents.placement.first_fit import FirstFit
from agents.placement.greedy_objective import GreedyObjective
from agents.placement.random import Random
from agents.placement.rollout import Rollout
from agents.placement.round_robin import RoundRobin
from agents.placement.worst_fit import WorstFit
from agents.scheduler import Decision, Kind, Placement, Scheduler
from env.reward import Objective
from env.schema import Strict, nearest, one_line, validated
from env.sim.errors import InputError
from env.sim.raw_env import RawEnv

PlacementParts = (
    BestFit
    | Cheapest
    | DataLocal
    | EarliestFinish
    | FirstFit
    | GreedyObjective
    | Random
    | Rollout
    | RoundRobin
    | WorstFit
)


class BaselineConfig(Strict):
    """A file of conf/baseline; every part names its rule."""

    order: Submission
    placement: Annotated[PlacementParts, Field(discriminator="name")]
    memory: Annotated[Required | Stingy | Tiered, Field(discriminator="name")]


class ComposedScheduler:
    """A scheduler made of an order, a placement rule and a memory rule."""

    def __init__(self, name: str, config: BaselineConfig) -> None:
        self.name = name
        self.kind: Kind = "reference" if isinstance(config.placement, Rollout) else "baseline"
        self._config = config

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Draws of the episode come from `seed`."""
        self._rng = np.random.default_rng(seed)

    def place(self, decision: Decision) -> Placement:
        """Memory first, then the node."""
        memory_alloc = self._config.memory.allocate(decision)
        candidates = decision.candidates(memory_alloc)
        node = self._config.placement.choose(decision, candidates, memory_alloc, self._rng)
        return Placement(node, memory_alloc)


def known_baselines() -> list[str]:
    """Names of the files of conf/baseline."""
    return sorted(path.stem for path in (CONF / "baseline").glob("*.yaml"))


def make_baselines(names: Sequence[str]) -> list[Scheduler]:
    """The named baselines.

    Args:
        names: of files of conf/baseline, or paths of such files; these are called by their name
            without folder and ending.

    Raises:
        InputError: a name is unknown or given twice, a file is missing or does not validate.
    """
    known = known_baselines()
    files = {}
    for given in names:
        is_path = Path(given).suffix in (".yaml", ".yml")
        name = Path(given).stem if is_path else given
        if name in files:
            raise InputError(f"baselines: '{name}' is given twice")
        if not is_path and name not in known:
            raise InputError(f"baselines: '{name}' is unknown, {nearest(name, known)}")
        files[name] = Path(given) if is_path else CONF / "baseline" / f"{name}.yaml"
    return [
        ComposedScheduler(name, validated(BaselineConfig, _read(file), _shown(file)))
        for name, file in files.items()
    ]


def _read(file: Path) -> Any:
    try:
        return OmegaConf.to_container(OmegaConf.load(file))
    except OSError as error:
        raise InputError(f"baselines: '{file}': {error.strerror or error}") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{_shown(file)}: not YAML, {one_line(str(error))}") from None


def _shown(file: Path) -> str:
    """What errors call a file: those of conf/baseline as in the project's folder."""
    ours = file.is_relative_to(CONF)
    return f"conf/{file.relative_to(CONF)}" if ours else str(file)
