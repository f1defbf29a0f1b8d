"""The `Function` view: one cloud function of a running workflow."""

from __future__ import annotations

from env.sim.state.records import FINISHED, NONE, PENDING, RUNNING, STATE_NAMES
from env.sim.view.played import Played
from env.sim.view.recorded import RecordedOnce


class Function:
    """Reads the record of function `fn_id` of workflow `wf_id`.

    Attributes that have no value yet read as None.
    """

    memory_alloc = RecordedOnce(int, "MB given to its container.", when="_placed")
    creation_time = RecordedOnce(float, "Seconds: its first start.", when="_placed")
    completion_time = RecordedOnce(float, "Seconds: its end.", when="_finished")

    def __init__(self, env: Played, wf_id: int, fn_id: int) -> None:
        self._env = env
        self.wf_id = wf_id
        self.fn_id = fn_id

    def __repr__(self) -> str:
        return f"Function(wf_id={self.wf_id}, fn_id={self.fn_id}, state={self.state})"

    @property
    def computation(self) -> int:
        """Operations."""
        return int(self._template.computation[self.fn_id])

    @property
    def memory_req(self) -> int:
        """MB."""
        return int(self._template.memory_req[self.fn_id])

    @property
    def parallelism(self) -> int:
        """Threads of execution."""
        return int(self._template.parallelism[self.fn_id])

    @property
    def state(self) -> str:
        """One of `env.sim.state.records.STATE_NAMES`."""
        return STATE_NAMES[self._state]

    @property
    def submission_time(self) -> float | None:
        """Seconds: the arrival, or the last completion among the predecessors."""
        submitted = self._state > PENDING and self._record["submission_time"] >= 0
        return float(self._record["submission_time"]) if submitted else None

    @property
    def start_time(self) -> float | None:
        """Seconds; None while it waits on its node. May lie in the future."""
        started = self._placed and self._record["start_time"] >= 0
        return float(self._record["start_time"]) if started else None

    @property
    def server_name(self) -> str | None:
        """Type of the server it was placed on."""
        return self._place[0]

    @property
    def server_id(self) -> int | None:
        """Server within its type."""
        return self._place[1]

    @property
    def numa_node_id(self) -> int | None:
        """NUMA node within its server."""
        return self._place[2]

    @property
    def _place(self) -> tuple[str, int, int] | tuple[None, None, None]:
        if not self._placed:
            return None, None, None
        return self._env.place_of(int(self._record["node"]))

    @property
    def _template(self):
        return self._env.workflow_templates[self.wf_id]

    @property
    def _record(self):
        return self._env.state.functions[self._env.function_index(self.wf_id, self.fn_id)]

    @property
    def _state(self) -> int:
        if self._env.function_index(self.wf_id, self.fn_id) == NONE:
            return PENDING
        return int(self._record["state"])

    @property
    def _placed(self) -> bool:
        return self._state in (RUNNING, FINISHED)

    @property
    def _finished(self) -> bool:
        return self._state == FINISHED
