"""What the views of workflows and functions need to know of the episode that they are part of."""

from typing import Protocol

from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state.block import State


class Played(Protocol):
    """An episode: its records, what was declared, and where things are; `RawEnv` is one."""

    state: State
    arrival_times: tuple[float, ...]
    workflow_templates: tuple[WorkflowTemplate, ...]
    tenants: tuple[str, ...]

    def place_of(self, node: int) -> tuple[str, int, int]:
        """(server name, server id, NUMA node id) of an index in the records."""
        ...

    def function_index(self, wf_id: int, fn_id: int) -> int:
        """Index of a function in the records, NONE before its workflow arrives."""
        ...

    def node_index(self, server_name: str, server_id: int, numa_node_id: int) -> int:
        """Index of a NUMA node in the records."""
        ...
