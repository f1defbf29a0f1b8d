"""Scaling `utilisation`: servers by how busy their cores are."""

import math
from typing import Annotated

from pydantic import Field

from agents.rule_kinds import ScalingRule, waiting
from agents.scheduler import Decision
from env.sim.state.records import IN_SERVICE


class Utilisation(ScalingRule):
    """As many as bring threads / cores to a target: ceil(servers * utilisation / target).

    They stay as they are within a tolerance. One that is too many goes once it has been idle for
    long, in place of a stabilisation window. Source:
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details

    Attributes:
        target: threads of containers for each core.
        tolerance: share of the target.
    """

    target: Annotated[float, Field(gt=0, le=100)]
    tolerance: Annotated[float, Field(ge=0, lt=1)]

    def change(self, decision: Decision, kind: int, idle: float) -> int:
        state = decision.env.state
        up = (state.servers["condition"] == IN_SERVICE) & (state.servers["type"] == kind)
        nodes = state.nodes[up[state.nodes["server"]]]
        if not len(nodes):
            return int(len(waiting(state)) > 0)
        ratio = nodes["parallelism"].sum() / nodes["cpu"].sum() / self.target
        if abs(ratio - 1.0) <= self.tolerance:
            return 0
        more = math.ceil(up.sum() * ratio) - up.sum()
        if more > 0:
            return 1
        return -1 if more < 0 and idle >= self.idle_timeout else 0
