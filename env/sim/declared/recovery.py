"""Config group `recovery`: what becomes of killed functions and of data where servers change."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.base.schema import Strict
from env.sim.declared.bounds import LONGEST
from env.sim.state.change_records import RECOVERY
from env.sim.state.records import INF, NONE


class BackOff(Strict):
    """Before its k-th retry a function waits `wait` * `factor` ** (k - 1) seconds.

    Attributes:
        wait: seconds; 0: it is submitted again at once.
        factor: by which each wait is longer than the one before.
        jitter: share by which a wait is drawn to be longer or shorter, uniformly.
    """

    wait: Annotated[float, Field(ge=0, le=LONGEST)] = 0.0
    factor: Annotated[float, Field(ge=1, le=100)] = 1.0
    jitter: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def bounds(self, attempt: int) -> tuple[float, float]:
        """The least and the most seconds before retry `attempt`, 1 being the first."""
        wait = self.wait * self.factor ** (attempt - 1)
        return tuple(min(wait * (1 + sign * self.jitter), LONGEST) for sign in (-1, 1))  # type: ignore[return-value]


class Recovery(Strict):
    """What becomes of functions that are killed, and of data on servers that go.

    Attributes:
        retries: how often a function is submitted again before it has failed; None: any number.
        backoff: how long it waits before.
        data_durability: whether data of finished functions are kept in storage, or lie on their
            server and are lost with it: who is needed still runs again.
        checkpoint: seconds at full speed between two moments at which what a function has done is
            saved, at no cost; None: a killed function begins anew.
    """

    retries: Annotated[int, Field(ge=0, le=10**6)] | None = None
    backoff: BackOff = BackOff()
    data_durability: Literal["durable", "server"] = "durable"
    checkpoint: Annotated[float, Field(ge=1e-3, le=LONGEST)] | None = None

    def record(self, seed: int) -> np.ndarray:
        """RECOVERY (1,) with the seed of all that is drawn where servers change."""
        record = np.zeros(1, RECOVERY)
        record["seed"] = seed
        record["limit"] = NONE if self.retries is None else self.retries
        for key in BackOff.model_fields:
            record[key] = getattr(self.backoff, key)
        record["data_lost"] = self.data_durability == "server"
        record["checkpoint"] = INF if self.checkpoint is None else self.checkpoint
        return record
