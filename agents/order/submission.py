"""Order `submission`: the order in which the simulator asks."""

from agents.rule_kinds import QueueOrder


class Submission(QueueOrder):
    """By (submission time, workflow, function): nothing to choose, functions never queue up."""
