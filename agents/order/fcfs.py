"""Order `fcfs`: first come, first served."""

from agents.rule_kinds import QueueOrder


class Fcfs(QueueOrder):
    """Whoever joined the queue first goes first."""
