"""Config group `dispatch`: functions are placed at once, or wait in a central queue."""

from typing import Annotated, Literal

from pydantic import Field

from env.base.schema import Strict
from env.sim.state.records import INF


class Immediate(Strict):
    """Functions are placed when they are submitted."""

    kind: Literal["immediate"]


class Queued(Strict):
    """Functions wait in a central queue.

    Attributes:
        patience: seconds of waiting after which a server may be started; None: never, while one
            is leased that could ever hold the function.
    """

    kind: Literal["queued"]
    patience: Annotated[float, Field(ge=0, le=1e9)] | None

    @property
    def seconds(self) -> float:
        """`patience`, inf for never."""
        return INF if self.patience is None else self.patience


Dispatch = Annotated[Immediate | Queued, Field(discriminator="kind")]
