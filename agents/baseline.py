"""Hand-written schedulers: an order, a placement, a memory and a scaling rule in YAML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from agents import memory, order, placement, scaling
from agents.held_back import HeldBack
from agents.memory.required import Required
from agents.order.chosen import Chosen
from agents.order.submission import Submission
from agents.order.tickets import InTurn, Workflows
from agents.rule_kinds import MemoryRule, PlacementRule, QueueOrder, ScalingRule, in_folder
from agents.scheduler import Decision, Scheduler
from env.base.errors import InputError
from env.base.files import read_yaml
from env.base.schema import Strict, nearest, validated
from env.learn.scaler import SCALER
from env.score.reward import Objective
from env.sim.declared.rules import PLACEMENTS
from env.sim.view.raw_env import RawEnv
from run.command import CONF

ALL = "all"
"""In place of names: all that can play."""
Scaling = Annotated[ScalingRule, in_folder(scaling, ScalingRule)]


class BaselineConfig(Strict):
    """A file of conf/baseline; every part names its rule."""

    order: Annotated[QueueOrder, in_folder(order, QueueOrder)]
    placement: Annotated[PlacementRule, in_folder(placement, PlacementRule)]
    memory: Annotated[MemoryRule, in_folder(memory, MemoryRule)]
    scaling: Scaling | None = None


class ComposedScheduler(Scheduler):
    """A scheduler made of an order, a placement rule and a memory rule."""

    def __init__(self, name: str, config: BaselineConfig) -> None:
        self.name = name
        self.kind = "reference" if config.placement.is_reference else "baseline"
        self.order = None if isinstance(config.order, Submission) else config.order
        if isinstance(config.memory, Required):
            # Where functions wait centrally the engine places by itself, if it has the rule.
            same = (rule for rule in PLACEMENTS if rule == config.placement.name)
            self.fit = next(same, "asked")
        self.tiers = (config.memory.ratio,)
        self.asked = () if config.scaling is None else (SCALER,)
        self._config = config

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode."""
        self._config.placement.reset(env, seed)

    def choose(self, decision: Decision) -> int:
        """The row that the rule takes which is asked: placement, scaling, or who goes next."""
        if decision.kind == "choose" and isinstance(self._config.order, HeldBack):
            return self._config.order.choose(decision)
        if decision.kind == SCALER.name and self._config.scaling is not None:
            return self._config.scaling.choose(decision)
        return self._config.placement.choose(decision)


def known_baselines(queued: bool = False, funded: bool = False) -> list[str]:
    """Names of the files of conf/baseline that place at once, or that dispatch from a queue.

    With `funded` those by which tenants take turns, too; none of those that need regions, or hold
    functions back for carbon.
    """
    configs = {name: _config(name) for name in _names()}
    return [
        name
        for name, each in configs.items()
        if each.scaling is None
        and not (each.placement.needs_regions or isinstance(each.order, HeldBack))
        and isinstance(each.order, Submission) != queued
        and (funded or not isinstance(each.order, InTurn))
    ]


def all_baselines(queued: bool = False, funded: bool = False, scaled: bool = False) -> list[str]:
    """Names of all that can play in a world and are no references; see `known_baselines`.

    With `scaled` those that scale, too.
    """
    names = known_baselines(queued, funded) + (known_baselines() if queued else [])
    names += [name for name in _names() if scaled and _config(name).scaling is not None]
    return [name for name in names if not _config(name).placement.is_reference]


def make_baselines(
    names: Sequence[str], queued: bool = False, forks: bool = True, funded: bool = False
) -> list[Scheduler]:
    """The named baselines.

    Args:
        names: of files of conf/baseline, or paths of such files, which are called by their name
            without folder and ending. `ORDER+NAME` takes the order of one and the rest of another,
            where tenants take turns also the order of another within a tenant.
        queued: whether functions wait centrally.
        forks: whether the world is one in which references can play on in copies.
        funded: whether there are tenants that hold tickets.

    Raises:
        InputError: a name is unknown or given twice, a file is missing or does not validate, or
            its rules do not work in this world.
    """
    baselines: dict[str, Scheduler] = {}
    for given in names:
        name, config = _composed(given)
        if name in baselines:
            raise InputError(f"baselines: '{name}' is given twice")
        _check_world(name, config, queued, forks, funded)
        baselines[name] = ComposedScheduler(name, config)
    return list(baselines.values())


def _composed(given: str) -> tuple[str, BaselineConfig]:
    """Name and rules of a baseline: of a file, or with the order of another one before it."""
    first, plus, rest = given.partition("+")
    if not plus or first not in _names():
        return Path(given).stem, _config(given)
    name, config = _composed(rest)
    order = _config(first).order
    if "+" in name and not isinstance(order, InTurn):
        raise InputError(
            f"baselines: '{given}': an order before another one is by tickets, '{first}' is not"
        )
    if isinstance(order, InTurn) and not isinstance(config.order, Submission):
        if isinstance(order.within, Workflows):
            raise InputError(f"baselines: '{given}': '{first}' says who goes next within a tenant")
        tree = order.model_dump() | {"within": config.order.model_dump()}
        order = validated(type(order), tree, f"baselines: '{given}'")
    return f"{first}+{name}", config.model_copy(update={"order": order})


def _check_world(
    name: str, config: BaselineConfig, queued: bool, forks: bool, funded: bool
) -> None:
    if not queued and not isinstance(config.order, Submission):
        raise InputError(
            f"baselines: '{name}' says who of a central queue goes next: dispatch=queued is needed"
        )
    if isinstance(config.order, Chosen):
        raise InputError(f"baselines: '{name}': order 'chosen' is for scripts")
    if isinstance(config.order, InTurn) and not funded:
        raise InputError(
            f"baselines: '{name}': tenants take turns by tickets, and workload.tenants holds none"
        )
    if config.placement.is_reference and not forks:
        raise InputError(
            f"baselines: '{name}' plays on in copies, which it can where dispatch is immediate, "
            "leases are hourly, lease.step is 3600, keep_alive and changes are none and containers "
            "start at once"
        )


def _names() -> list[str]:
    return sorted(path.stem for path in (CONF / "baseline").glob("*.yaml"))


def _config(given: str) -> BaselineConfig:
    """The rules of a file, of which the name in conf/baseline or the path is given."""
    shown, file = given, Path(given)
    if file.suffix not in (".yaml", ".yml"):
        if given not in _names():
            raise InputError(f"baselines: '{given}' is unknown, {nearest(given, _names())}")
        shown = f"conf/baseline/{given}.yaml"
        file = CONF / "baseline" / f"{given}.yaml"
    return validated(BaselineConfig, read_yaml(file, shown), shown)
