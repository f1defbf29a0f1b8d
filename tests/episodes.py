"""Episodes of any kind, for the tests."""

from collections.abc import Sequence
from typing import Any

from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.rules import DEFAULT_RULES, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv


def begun(
    times: Sequence[float],
    templates: Sequence[WorkflowTemplate],
    cluster: ClusterConfig,
    record: bool = False,
    rules: Rules = DEFAULT_RULES,
    workflow_slots: int | None = None,
    **others: Any,
) -> RawEnv:
    """An episode at its first decision; `others` are fields of its `EpisodeWorkload`."""
    for name, given in others.items():
        others[name] = tuple(given) if isinstance(given, list) else given
    workload = EpisodeWorkload(tuple(times), tuple(templates), **others)
    return RawEnv.of(Episode(workload, cluster, rules, workflow_slots), record)
