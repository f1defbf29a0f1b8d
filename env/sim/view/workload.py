"""The views of what arrives: `Workload`, `Workflow` and `Function`."""

from __future__ import annotations

import numpy as np

from env.base.errors import InputError
from env.sim.assembly.new_state import reset
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.events.submissions import arrive_next, end_function, get, run_function
from env.sim.state import records
from env.sim.state.block import State
from env.sim.state.records import NONE
from env.sim.view.recorded import Printed, RecordedOnce

Place = tuple[str, int, int]
"""(server type, server, NUMA node)."""
PLACED = records.RUNNING, records.FINISHED
"""States of a function that has been given a container."""
SUBMITTED_ONCE = range(records.SUBMITTED, records.FAILED + 1)
"""States of a function that may have been submitted."""


class Played(Printed):
    """What the views of workflows and functions read; the base of `RawEnv`."""

    state: State
    cluster_config: ClusterConfig
    arrival_times: tuple[float, ...]
    workflow_templates: tuple[WorkflowTemplate, ...]
    tenants: tuple[str, ...]
    _places: list[Place]

    def place_of(self, node: int) -> Place:
        """Where a NUMA node is, by its index in the records."""
        return self._places[node]

    def function_index(self, wf_id: int, fn_id: int) -> int:
        """Index of a function in the records, NONE before its workflow arrives.

        Raises:
            InputError: the workflow has ended and its records serve another one.
        """
        slot = self.slot_of(wf_id)
        if slot == NONE:
            return NONE
        return slot * int(self.state.cluster[0]["functions_per_slot"]) + fn_id

    def slot_of(self, wf_id: int) -> int:
        """Index of a workflow in the records, NONE before it arrives.

        Raises:
            InputError: as for `function_index`.
        """
        slot = int(self.state.slot_of[wf_id])
        if slot == records.RECYCLED:
            raise InputError(f"workflow {wf_id} has ended and its records have been recycled")
        return slot


class Workload:
    """Reads all workflows of an episode, and can be moved on by hand."""

    def __init__(self, env: Played) -> None:
        self._env = env
        self.workflows = tuple(Workflow(env, wf_id) for wf_id in range(len(env.arrival_times)))

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
        self, wf_id: int, fn_id: int, place: Place, memory_alloc: int, creation_time: float
    ) -> None:
        """Notes that a function has been placed."""
        index = self._env.function_index(wf_id, fn_id)
        node = self._env.cluster_config.node_index(*place)
        run_function(self._env.state, index, node, memory_alloc, creation_time)

    def finish_function(self, wf_id: int, fn_id: int, time: float) -> None:
        """Notes that a function has ended and submits successors that waited for it alone."""
        index = self._env.function_index(wf_id, fn_id)
        end_function(self._env.state, index, float(time), records.FINISHED)


class FunctionsIn:
    """An attribute of a workflow: the ids of its functions in a state."""

    def __init__(self, state: str, doc: str) -> None:
        self._state, self.__doc__ = state, doc

    def __get__(self, workflow: Workflow, owner: type | None = None) -> set[int]:
        return {each.fn_id for each in workflow.functions if each.state == self._state}


class Workflow(Printed):
    """Reads one workflow of an episode: its functions, its DAG, and who is in which state.

    Attributes:
        template: what was declared.
        arrival_time: seconds.
        tenant: whose it is; None without tenants.
    """

    shows = "wf_id", "arrival_time", "completion_time"
    pending_functions = FunctionsIn("PENDING", "They wait for a predecessor, or for the arrival.")
    submitted_functions = FunctionsIn("SUBMITTED", "They wait for a placement.")
    running_functions = FunctionsIn("RUNNING", "They have been placed and have not finished.")
    finished_functions = FunctionsIn("FINISHED", "They have finished.")

    def __init__(self, env: Played, wf_id: int) -> None:
        self._env = env
        self.wf_id = wf_id
        self.template, self.arrival_time = env.workflow_templates[wf_id], env.arrival_times[wf_id]
        self.tenant = env.tenants[wf_id] if env.tenants else None
        self.functions = tuple(
            Function(env, wf_id, fn_id) for fn_id in range(self.template.function_count)
        )

    @property
    def completion_time(self) -> float | None:
        """Seconds: the last completion of its functions; None until all have finished."""
        slot = int(self._env.state.slot_of[self.wf_id])
        time = self._env.state.workflows[slot]["completion_time"] if slot >= 0 else np.nan
        return None if np.isnan(time) else float(time)

    @property
    def source_functions(self) -> set[int]:
        """Functions without predecessors."""
        return set(range(len(self.functions))) - set(self.template.edges[:, 1].tolist())


class Function(Printed):
    """Reads the record of function `fn_id` of workflow `wf_id`.

    Attributes that have no value yet read as None.

    Attributes:
        computation: operations.
        memory_req: MB.
        parallelism: threads of execution.
    """

    shows = "wf_id", "fn_id", "state"
    submission_time = RecordedOnce(
        float, "Seconds: arrival, or last completion among its predecessors.", *SUBMITTED_ONCE
    )
    memory_alloc = RecordedOnce(int, "MB given to its container.", *PLACED)
    creation_time = RecordedOnce(float, "Seconds: its first start.", *PLACED)
    start_time = RecordedOnce(float, "Seconds; None while it waits, may be to come.", *PLACED)
    completion_time = RecordedOnce(float, "Seconds: its end.", records.FINISHED)

    def __init__(self, env: Played, wf_id: int, fn_id: int) -> None:
        self._env = env
        self.wf_id = wf_id
        self.fn_id = fn_id
        template = env.workflow_templates[wf_id]
        self.computation = int(template.computation[fn_id])
        self.memory_req = int(template.memory_req[fn_id])
        self.parallelism = int(template.parallelism[fn_id])

    @property
    def state(self) -> str:
        """One of `env.sim.state.records.STATE_NAMES`."""
        return records.STATE_NAMES[self._state]

    @property
    def place(self) -> Place | None:
        """Where it was placed."""
        placed = self._state in PLACED
        return self._env.place_of(int(self._record["node"])) if placed else None

    @property
    def _record(self) -> np.void:
        return self._env.state.functions[self._env.function_index(self.wf_id, self.fn_id)]

    @property
    def _state(self) -> int:
        arrived = self._env.function_index(self.wf_id, self.fn_id) != NONE
        return int(self._record["state"]) if arrived else records.PENDING
