"""`Played`: an episode's records, what was declared of it, and where things are in the records."""

from env.base.errors import InputError
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.block import State
from env.sim.state.records import NONE, RECYCLED
from env.sim.view.recorded import Printed

Place = tuple[str, int, int]
"""(server type, server, NUMA node)."""


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
        if slot == RECYCLED:
            raise InputError(f"workflow {wf_id} has ended and its records have been recycled")
        return slot
