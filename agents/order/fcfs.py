"""Order `fcfs`: first come, first served."""

from typing import Literal

from env.base.schema import Strict
from env.sim.ordering import FirstCome


class Fcfs(Strict, FirstCome):
    """Whoever joined the queue first goes first."""

    name: Literal["fcfs"] = "fcfs"
