"""The `Workload` view: all workflows of an episode and the queue of submitted functions."""

from __future__ import annotations

from env.sim.view.function import Function
from env.sim.view.played import Played
from env.sim.view.workflow import Workflow


class Workload:
    """Reads all workflows of an episode and the queue of submitted functions."""

    def __init__(self, env: Played) -> None:
        self._env = env
        self.workflows = tuple(Workflow(env, wf_id) for wf_id in range(len(env.arrival_times)))

    def __repr__(self) -> str:
        finished = int(self._env.state.cluster[0]["finished_workflows"])
        return f"Workload({len(self.workflows)} workflows, {finished} finished)"

    @property
    def queue(self) -> tuple[Function, ...]:
        """Submitted functions in the order in which they will be decided."""
        entries = self._env.state.submitted[: int(self._env.state.cluster[0]["queue_size"])]
        ordered = sorted(entries[["time", "major", "minor"]].tolist())
        return tuple(self.workflows[wf_id].functions[fn_id] for _, wf_id, fn_id in ordered)
