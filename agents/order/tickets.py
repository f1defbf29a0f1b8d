"""Orders in which tenants take turns by their tickets; within a tenant another order counts."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.heft import Heft
from agents.order.sjf import Sjf
from agents.order.srf import Srf
from agents.rule_kinds import QueueOrder
from env.base.schema import Strict
from env.sim.declared.ordering import (
    Amount,
    ByWorkflow,
    DeclaredFunctions,
    Resource,
    Sharing,
    Winners,
)


class Workflows(ByWorkflow):
    """Within a tenant: by the tickets that it gives its workflows."""

    name: Literal["workflows"] = "workflows"


Within = Annotated[
    CriticalPath | Fcfs | FuncSched | Heft | Sjf | Srf | Workflows, Field(discriminator="name")
]


class InTurn(Strict):
    """What all of them have in common.

    Attributes:
        name: of the mechanism.
        within: whose function goes next of a tenant whose turn it is.
        half_life: seconds after which use counts half: who had more than its share lately pays up
            to twice as much. None: it is not remembered.
    """

    name: str
    within: Within
    half_life: Amount | None

    def write(self, options: np.void) -> None:
        """Fills in the options of the engine."""
        self.within.write(options)

    def rank(self, functions: DeclaredFunctions) -> np.ndarray:
        """(D,) see `Order` in env/sim/declared/ordering.py."""
        return self.within.rank(functions)

    @property
    def sharing(self) -> Sharing:
        """How tenants take turns."""
        given = self.model_dump(exclude={"name", "within"})
        return Sharing.model_validate({"mechanism": self.name, **given})


class Charged(InTurn):
    """Tenants are charged what their functions really used.

    Attributes:
        resource, quantum: see `Sharing` in env/sim/declared/ordering.py.
    """

    resource: Resource
    quantum: Amount | None


class ByUse(Charged, QueueOrder):
    """The mechanisms of Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995)."""

    name: Literal["lottery", "stride", "hierarchical_stride"]


class SeveralWinners(Charged, QueueOrder):
    """A lottery of several winners.

    Attributes:
        winners: see `Sharing` in env/sim/declared/ordering.py.
    """

    name: Literal["multi_lottery"]
    winners: Winners


class DominantResource(InTurn, QueueOrder):
    """The tenant with the lowest dominant share of what is held goes next: of threads or memory.

    Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011).
    """

    name: Literal["drf"]
