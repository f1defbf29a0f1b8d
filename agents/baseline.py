"""Hand-written schedulers: an order, a placement rule and a memory rule, put together in YAML."""

from collections.abc import Sequence
from functools import cache
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
from agents.scheduler import Decision, Placement, Scheduler
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

    Raises:
        InputError: a name is unknown or given twice, or a file does not validate.
    """
    known = known_baselines()
    for name in names:
        if name not in known:
            raise InputError(f"baselines: '{name}' is unknown, {nearest(name, known)}")
        if list(names).count(name) > 1:
            raise InputError(f"baselines: '{name}' is given twice")
    return [
        ComposedScheduler(
            name, validated(BaselineConfig, _read(name), f"conf/baseline/{name}.yaml")
        )
        for name in names
    ]


@cache
def _read(name: str) -> dict[str, Any]:
    try:
        found = OmegaConf.load(CONF / "baseline" / f"{name}.yaml")
    except (YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"conf/baseline/{name}.yaml: not YAML, {one_line(str(error))}") from None
    return OmegaConf.to_container(found)  # type: ignore[return-value]
