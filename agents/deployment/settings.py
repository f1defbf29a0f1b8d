"""How plans are estimated and made; conf/deployment/default.yaml explains each number."""

from typing import Annotated, Literal

from pydantic import Field

from env.base.schema import Strict
from env.sim.declared.bounds import LONGEST

Share = Annotated[float, Field(ge=0, le=1)]
Samples = Annotated[int, Field(ge=2, le=1_000_000)]


class DeploymentSettings(Strict):
    """Settings of config group `deployment`."""

    architecture: Literal["x86_64", "arm64"]
    memory_per_vcpu: Annotated[float, Field(gt=0, le=1e9)]
    utilisation: Share
    transfer_kwh_per_gb: Annotated[float, Field(ge=0, le=1e6)]
    transfer_within_region: bool
    batch: Samples
    tolerance: Share
    most_samples: Samples
    solves_per_day: Literal[1, 2, 3, 4, 6, 8, 12, 24]
    home_share: Share
    expiry: Annotated[float, Field(gt=0, le=LONGEST)]
    tokens_per_solve: Annotated[float, Field(ge=0, le=1e15)]
    redeployment: Annotated[float, Field(ge=0, le=LONGEST)]
