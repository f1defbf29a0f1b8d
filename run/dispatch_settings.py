"""Config group `dispatch`: functions are placed at once, or wait in a central queue."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from env.base.errors import InputError
from env.base.schema import Strict, distinct, nearest, validated
from env.learn.queue_agent import QueueAgent
from env.sim.keep_alive_policy import KeepAliveConfig, KeepAlivePolicy
from env.workloads.traces.trace_samples import SampleSettings
from run.command import CONF
from run.config_file import read_yaml

Names = Annotated[tuple[str, ...], Field(min_length=1)]
Figure = Literal["ratios", "parts", "distribution"]


class Immediate(Strict):
    """Functions are placed when they are submitted."""

    kind: Literal["immediate"]


class Queued(Strict):
    """Functions wait in a central queue; conf/dispatch explains each."""

    kind: Literal["queued"]
    patience: Annotated[float, Field(ge=0, le=1e9)] | None
    orders: Names
    keep_alives: Names
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Field(min_length=1)]
    samples: Annotated[dict[str, SampleSettings], Field(min_length=1)]
    queue_agent: QueueAgent
    slo: tuple[Annotated[float, Field(gt=0, le=1e9)], ...]
    late: Annotated[float, Field(gt=0, le=1e9)]
    figure: Figure

    @field_validator("orders", "keep_alives", "seeds", "slo")
    @classmethod
    def _distinct(cls, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return distinct(given)

    @field_validator("orders")
    @classmethod
    def _written(cls, given: Names) -> Names:
        if "learned" in given:
            raise ValueError("'learned' comes with policy=PATH, beside the orders: leave it out")
        return given


def make_keep_alive(name: str) -> KeepAlivePolicy:
    """The policy of a file of conf/keep_alive.

    Raises:
        InputError: the name is unknown, or the file does not validate.
    """
    folder = CONF / "keep_alive"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise InputError(f"dispatch.keep_alives: '{name}' is unknown, {nearest(name, known)}")
    where = f"conf/keep_alive/{name}.yaml"
    found = read_yaml(folder / f"{name}.yaml", where)
    return validated(KeepAliveConfig, {"keep_alive": found}, where).keep_alive
