"""Scaling `queue_length`: servers by how many functions wait."""

from typing import Annotated

from pydantic import Field

from agents.rule_kinds import ScalingRule, waiting
from agents.scheduler import Decision


class QueueLength(ScalingRule):
    """One more while too many functions wait for the servers that are launching.

    One that is idle goes when nothing waits. Source: the queue scalers of KEDA, such as
    https://keda.sh/docs/2.17/scalers/rabbitmq-queue/, by which a queue of so many is a replica.

    Attributes:
        waiting_per_server: functions that wait for each server that is launched.
    """

    waiting_per_server: Annotated[float, Field(gt=0, le=1e6)]

    def change(self, decision: Decision, kind: int, idle: float) -> int:
        state = decision.env.state
        count, launching = len(waiting(state)), state.servers["ready_time"] > decision.env.time
        if count > self.waiting_per_server * launching.sum():
            return 1
        return -1 if count == 0 and idle >= self.idle_timeout else 0
