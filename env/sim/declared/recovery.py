"""Config group `recovery`: what becomes of killed functions and of data where servers change."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.base.schema import Strict
from env.sim.declared.bounds import LONGEST
from env.sim.state.change_records import RECOVERY
from env.sim.state.records import INF, NONE


class BackOff(Strict):
    """How long functions wait before each retry (conf/recovery/default.yaml explains each)."""

    wait: Annotated[float, Field(ge=0, le=LONGEST)] = 0.0
    factor: Annotated[float, Field(ge=1, le=100)] = 1.0
    jitter: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def least(self, attempt: int) -> float:
        """The least seconds before retry `attempt`, 1 being the first."""
        return min(LONGEST, self.wait * self.factor ** (attempt - 1) * (1 - self.jitter))


class Recovery(Strict):
    """What becomes of killed functions and of lost data (conf/recovery/default.yaml explains)."""

    retries: Annotated[int, Field(ge=0, le=10**6)] | None = None
    backoff: BackOff = BackOff()
    data_durability: Literal["durable", "server"] = "durable"
    checkpoint: Annotated[float, Field(ge=1e-3, le=LONGEST)] | None = None

    def record(self) -> np.ndarray:
        """RECOVERY (1,)."""
        record = np.zeros(1, RECOVERY)
        record["limit"] = NONE if self.retries is None else self.retries
        for key in BackOff.model_fields:
            record[key] = getattr(self.backoff, key)
        record["data_lost"] = self.data_durability == "server"
        record["checkpoint"] = INF if self.checkpoint is None else self.checkpoint
        return record
