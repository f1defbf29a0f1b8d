"""Order `fcfs`: first come, first served."""

from typing import Literal

from agents.rule_kinds import QueueOrder


class Fcfs(QueueOrder):
    """Whoever joined the queue first goes first."""

    name: Literal["fcfs"] = "fcfs"
