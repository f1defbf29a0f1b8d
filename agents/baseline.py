"""Hand-written schedulers: an order, a placement rule and a memory rule, put together in YAML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from agents.memory.required import Required
from agents.memory.stingy import Stingy
from agents.memory.tiered import Tiered
from agents.order.chosen import Chosen
from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.heft import Heft
from agents.order.rr import RoundRobin as RoundRobinOrder
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from agents.order.srtf import Srtf
from agents.order.submission import Submission
from agents.order.tickets import ByUse, DominantResource, InTurn, SeveralWinners, Within
from agents.order.workflows import Workflows
from agents.placement.best_fit import BestFit
from agents.placement.best_of import BestOf
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
from env.base.errors import InputError
from env.base.files import read_yaml
from env.base.schema import Strict, nearest, printable, short, validated
from env.score.reward import Objective
from env.sim.ordering import Order
from env.sim.rules import Fit
from env.sim.rules import Placement as QueuePlacement
from env.sim.view.raw_env import RawEnv
from run.command import CONF

PlacementParts = (
    BestFit
    | BestOf
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

QueueOrders = (
    Chosen
    | CriticalPath
    | Fcfs
    | FuncSched
    | Heft
    | RoundRobinOrder
    | Sjf
    | Srf
    | Srtf
    | ByUse
    | SeveralWinners
    | DominantResource
)
ALL = "all"
"""In place of names: all that can play."""
WITHIN: TypeAdapter[Within] = TypeAdapter(Within)


class BaselineConfig(Strict):
    """A file of conf/baseline; every part names its rule."""

    order: Annotated[Submission | QueueOrders, Field(discriminator="name")]
    placement: Annotated[PlacementParts, Field(discriminator="name")]
    memory: Annotated[Required | Stingy | Tiered, Field(discriminator="name")]


FITS: tuple[Fit, ...] = get_args(Fit)


class ComposedScheduler:
    """A scheduler made of an order, a placement rule and a memory rule."""

    def __init__(self, name: str, config: BaselineConfig) -> None:
        self.name = name
        self.kind: Kind = (
            "reference" if isinstance(config.placement, BestOf | Rollout) else "baseline"
        )
        self.order: Order | None = None if isinstance(config.order, Submission) else config.order
        own = config.placement.name if config.memory.name == "required" else None
        self.fit: QueuePlacement = next((fit for fit in FITS if fit == own), "asked")
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


def known_baselines(queued: bool = False, funded: bool = False) -> list[str]:
    """Names of the files of conf/baseline: who places at once, or who dispatches from a queue.

    With `funded` those by which tenants take turns, too.
    """
    orders = {name: _config(CONF / "baseline" / f"{name}.yaml").order for name in _names()}
    return [
        name
        for name, order in orders.items()
        if isinstance(order, Submission) != queued and (funded or not isinstance(order, InTurn))
    ]


def all_baselines(queued: bool = False, funded: bool = False) -> list[str]:
    """Names of all that can play in a world and are no references; see `known_baselines`."""
    names = known_baselines(queued, funded) + (known_baselines() if queued else [])
    players = make_baselines(names, queued, funded=funded)
    return [player.name for player in players if player.kind == "baseline"]


def make_baselines(
    names: Sequence[str], queued: bool = False, forks: bool = True, funded: bool = False
) -> list[Scheduler]:
    """The named baselines.

    Args:
        names: of files of conf/baseline, or paths of such files; these are called by their name
            without folder and ending. `ORDER+NAME` takes the order of one and the rest of another,
            where tenants take turns also the order of another within a tenant.
        queued: whether functions wait centrally.
        forks: whether the world is one in which references can play on in copies.
        funded: whether there are tenants that hold tickets.

    Raises:
        InputError: a name is unknown or given twice, a file is missing or does not validate, or
            its rules do not work in this world.
    """
    configs: dict[str, BaselineConfig] = {}
    for given in names:
        *orders, file = _parts(given)
        if orders and not file:
            raise InputError(f"baselines: '{given}': a name is needed after the +")
        ((rule, path),) = _files([file]).items()
        name = "+".join([*orders, rule])
        if name in configs:
            raise InputError(f"baselines: '{name}' is given twice")
        configs[name] = _composed(given, orders, _config(path))
        _check_world(name, configs[name], queued, forks, funded)
    return [ComposedScheduler(name, config) for name, config in configs.items()]


def _parts(given: str) -> list[str]:
    """`ORDER+NAME` in its parts: the names of orders, then that of a file, or its path."""
    order, _, rest = given.partition("+")
    return [given] if order == given or order not in _names() else [order, *_parts(rest)]


def _composed(given: str, orders: Sequence[str], config: BaselineConfig) -> BaselineConfig:
    """A baseline whose order is that of others; the last one comes first."""
    for place, name in reversed(list(enumerate(orders))):
        order = _config(CONF / "baseline" / f"{name}.yaml").order
        if place < len(orders) - 1 and not isinstance(order, InTurn):
            raise InputError(
                f"baselines: '{given}': an order before another one is by tickets, '{name}' is not"
            )
        if isinstance(order, InTurn) and not isinstance(config.order, Submission):
            if isinstance(order.within, Workflows):
                raise InputError(
                    f"baselines: '{given}': '{name}' says who goes next within a tenant"
                )
            order = order.model_copy(update={"within": _within(given, config.order)})
        config = config.model_copy(update={"order": order})
    return config


def _within(given: str, order: QueueOrders) -> Within:
    """The order of a baseline as one of the functions of one tenant."""
    try:
        return WITHIN.validate_python(order.model_dump())
    except ValidationError:
        raise InputError(
            f"baselines: '{given}': within a tenant functions go by critical_path, fcfs, "
            f"funcsched, heft, sjf or srf, found {order.name}"
        ) from None


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
    if isinstance(config.placement, BestOf | Rollout) and not forks:
        raise InputError(
            f"baselines: '{name}' plays on in copies, which it can where dispatch is immediate, "
            "leases are hourly, lease.step is 3600, keep_alive is none and containers start at once"
        )


def _files(names: Sequence[str]) -> dict[str, Path]:
    """The files of baselines by the names that tables give them."""
    known = _names()
    files: dict[str, Path] = {}
    for given in names:
        is_path = Path(given).suffix in (".yaml", ".yml")
        name = Path(given).stem if is_path else given
        if name != printable(name):
            raise InputError(f"baselines: {short(name)}: only printable characters are allowed")
        if name in files:
            raise InputError(f"baselines: '{name}' is given twice")
        if not is_path and name not in known:
            raise InputError(f"baselines: '{name}' is unknown, {nearest(name, known)}")
        files[name] = Path(given) if is_path else CONF / "baseline" / f"{name}.yaml"
    return files


def _names() -> list[str]:
    return sorted(path.stem for path in (CONF / "baseline").glob("*.yaml"))


def _config(file: Path) -> BaselineConfig:
    return validated(BaselineConfig, read_yaml(file, _shown(file)), _shown(file))


def _shown(file: Path) -> str:
    """What errors call a file: those of conf/baseline as in the project's folder."""
    ours = file.is_relative_to(CONF)
    return f"conf/{file.relative_to(CONF)}" if ours else str(file)
