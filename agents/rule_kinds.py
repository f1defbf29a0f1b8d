"""The kinds of rules that a baseline is made of; each rule is found by its file."""

from __future__ import annotations

from importlib import import_module
from inspect import get_annotations
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, Union

import numpy as np
from pydantic import Field, GetPydanticSchema
from pydantic.fields import FieldInfo

from agents.scheduler import Decision
from env.base.schema import Strict
from env.learn.scaler import MORE, SAME, next_to_leave
from env.sim.declared.ordering import FirstCome
from env.sim.state.block import State
from env.sim.state.records import NONE, SUBMITTED
from env.sim.view.hardware import waits_on_node
from env.sim.view.raw_env import RawEnv


class Rule(Strict):
    """A part of a baseline, or a solver of deployment plans.

    Attributes:
        name: what YAML calls it: that of its file, where its class gives no other.
    """

    name: str = ""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Names the rule."""
        if "name" not in get_annotations(cls) and cls.__module__ != __name__:
            file = cls.__module__.rpartition(".")[2]
            called: Any = Literal[file]
            cls.model_fields["name"] = FieldInfo.from_annotated_attribute(called, file)
            cls.model_rebuild(force=True)


class QueueOrder(Rule, FirstCome):
    """Which waiting function goes next: first come, first served, unless a subclass says else.

    See `Order` in env/sim/declared/ordering.py.
    """


class PlacementRule(Rule):
    """Which NUMA node runs a function.

    Attributes:
        is_reference: whether it knows more than a scheduler can, or tries all in copies.
        needs_regions: whether it works in clusters with regions alone.
    """

    is_reference: ClassVar[bool] = False
    needs_regions: ClassVar[bool] = False

    def reset(self, env: RawEnv, seed: np.random.SeedSequence) -> None:
        """Turns to a new episode, as a scheduler does; most rules keep nothing of one."""

    def choose(self, decision: Decision) -> int:
        """A feasible row: of one memory tier, a NUMA node each."""
        raise NotImplementedError


class MemoryRule(Rule):
    """How much memory a function is given.

    Attributes:
        ratio: of what it requires.
    """

    ratio: float


class ScalingRule(Rule):
    """How many servers of a type are in service.

    Attributes:
        idle_timeout: seconds without a function after which a server may be retired.
    """

    idle_timeout: Annotated[float, Field(ge=0, le=1e9)]

    def choose(self, decision: Decision) -> int:
        """A row of the kind `scaler` that may be chosen."""
        question, state = decision.env.question, decision.env.state
        assert question is not None
        idle = idle_seconds(state, next_to_leave(state, question.subject))
        row = SAME + self.change(decision, question.subject, idle)
        may_be = decision.rows["feasible"]
        return row if may_be[row] else SAME if may_be[SAME] else MORE

    def change(self, decision: Decision, kind: int, idle: float) -> int:
        """-1, 0 or 1 server of the type `kind`; that which would leave is idle for `idle` s."""
        raise NotImplementedError


def waiting(state: State) -> np.ndarray:
    """FUNCTION records of those that wait for a server or for memory."""
    functions = state.functions
    return functions[(functions["state"] == SUBMITTED) | waits_on_node(functions)]


def idle_seconds(state: State, server: int) -> float:
    """Since when nothing is on a server that is up; 0 where something is."""
    record = state.servers[server]
    if server == NONE or record["container_count"] > 0:
        return 0.0
    clocks = state.nodes["clock"][state.nodes["server"] == server]
    return max(0.0, float(state.cluster[0]["time"] - max(record["ready_time"], clocks.max())))


def in_folder(package: ModuleType, kind: type[Rule]) -> Any:
    """For a field of a model: any of the rules of a kind in a folder, chosen by `name`."""
    for file in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(file.name)
    rules = (rule for rule in kind.__subclasses__() if rule.__module__.startswith(package.__name__))
    union: Any = Annotated[Union[tuple(rules)], Field(discriminator="name")]  # noqa: UP007
    return GetPydanticSchema(lambda source, handler: handler.generate_schema(union))
