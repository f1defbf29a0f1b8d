"""The `Workflow` view: what is running of a workflow."""

from __future__ import annotations

import numpy as np

from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.function import Function
from env.sim.view.played import Played


class Workflow:
    """Reads one workflow of an episode: its functions, its DAG, and who is in which state."""

    def __init__(self, env: Played, wf_id: int) -> None:
        self._env = env
        self.wf_id = wf_id
        self.functions = tuple(
            Function(env, wf_id, fn_id) for fn_id in range(self.template.function_count)
        )

    def __repr__(self) -> str:
        return (
            f"Workflow(wf_id={self.wf_id}, {self.template.name}, arrival_time={self.arrival_time}, "
            f"finished={len(self.finished_functions)}/{len(self.functions)})"
        )

    @property
    def template(self) -> WorkflowTemplate:
        """What was declared."""
        return self._env.workflow_templates[self.wf_id]

    @property
    def tenant(self) -> str | None:
        """Whose it is; None where nobody is told apart."""
        tenants = self._env.tenants
        return tenants[self.wf_id] if tenants else None

    @property
    def arrival_time(self) -> float:
        """Seconds."""
        return self._env.arrival_times[self.wf_id]

    @property
    def completion_time(self) -> float | None:
        """Seconds: the last completion of its functions; None until all have finished."""
        slot = int(self._env.state.slot_of[self.wf_id])
        time = self._env.state.workflows[slot]["completion_time"] if slot >= 0 else np.nan
        return None if np.isnan(time) else float(time)

    def predecessors(self, fn_id: int) -> tuple[int, ...]:
        """Functions whose data a function reads, ascending."""
        edges = self.template.edges
        return tuple(int(source) for source in edges[edges[:, 1] == fn_id, 0])

    def successors(self, fn_id: int) -> tuple[int, ...]:
        """Functions that read a function's data, ascending."""
        edges = self.template.edges
        return tuple(int(target) for target in edges[edges[:, 0] == fn_id, 1])

    @property
    def source_functions(self) -> set[int]:
        """Functions without predecessors."""
        return set(range(len(self.functions))) - {int(fn) for fn in self.template.edges[:, 1]}

    @property
    def pending_functions(self) -> set[int]:
        """Functions that wait for a predecessor, or for the workflow to arrive."""
        return self._in_state("PENDING")

    @property
    def submitted_functions(self) -> set[int]:
        """Functions that wait for a placement."""
        return self._in_state("SUBMITTED")

    @property
    def running_functions(self) -> set[int]:
        """Functions that have been placed and have not finished."""
        return self._in_state("RUNNING")

    @property
    def finished_functions(self) -> set[int]:
        """Functions that have finished."""
        return self._in_state("FINISHED")

    def _in_state(self, state: str) -> set[int]:
        return {function.fn_id for function in self.functions if function.state == state}
