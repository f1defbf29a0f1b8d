"""The `Workload` view: all workflows of an episode and the queue of submitted functions."""

from __future__ import annotations

from env.base.errors import InputError
from env.sim.assembly.new_state import reset
from env.sim.events.submissions import arrive_next, end_function, get, run_function
from env.sim.state.records import FINISHED
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

    def reset(self) -> None:
        """Nothing has arrived."""
        reset(self._env.state)

    def peek(self) -> Function | None:
        """The next function to be submitted or placed, of a later arrival if need be.

        None if everything else waits for a completion.
        """
        state = self._env.state
        heads = []
        if state.cluster[0]["queue_size"]:
            heads.append(state.submitted[0][["time", "major", "minor"]].item())
        if state.cluster[0]["timers_size"]:
            wf_id = int(state.timers[0]["minor"])
            first = min(self.workflows[wf_id].source_functions)
            heads.append((float(state.timers[0]["time"]), wf_id, first))
        if not heads:
            return None
        _, wf_id, fn_id = min(heads)
        return self.workflows[wf_id].functions[fn_id]

    def get(self) -> Function:
        """Takes the function that `peek` shows; its workflow arrives if it has not.

        Raises:
            InputError: there is none.
        """
        function = self.peek()
        if function is None:
            raise InputError("workload: no function is submitted now")
        state = self._env.state
        while function.state == "PENDING":
            if arrive_next(state) < 0:
                raise InputError(f"workload: {len(state.workflows)} workflows are active already")
        get(state, int(state.submitted[0]["index"]))
        return function

    def run_function(
        self,
        wf_id: int,
        fn_id: int,
        place: tuple[str, int, int],
        memory_alloc: int,
        creation_time: float,
    ) -> None:
        """Notes that a function has been placed at (server name, server id, NUMA node id)."""
        index = self._env.function_index(wf_id, fn_id)
        node = self._env.node_index(*place)
        run_function(self._env.state, index, node, memory_alloc, creation_time)

    def finish_function(self, wf_id: int, fn_id: int, time: float) -> None:
        """Notes that a function has ended and submits successors that waited for it alone."""
        index = self._env.function_index(wf_id, fn_id)
        end_function(self._env.state, index, float(time), FINISHED)
