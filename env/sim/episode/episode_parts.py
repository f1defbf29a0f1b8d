"""What all episode files have: a cluster, workflows, and the placements that were made.

Field names carry their units.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, TenantName, nearest
from env.sim.bounds import LARGEST_WORK
from env.sim.cluster_file import ClusterModel, Cores, Memory, Name, Seconds, Whole
from env.sim.hardware import ClusterConfig
from env.sim.workflow_template import WorkflowTemplate

# What came of an episode has no bound of its own: those of its inputs keep it finite.
Amount = Annotated[float, Field(strict=True, ge=0)]
Work = Annotated[int, Field(strict=True, ge=1, le=LARGEST_WORK)]


class FunctionModel(Strict):
    """A function: operations, MB, and the cores it can use; and its name, for reading."""

    function_id: Whole
    name: Name | None = None
    computation: Work
    memory_required_mb: Memory
    parallelism: Cores


class EdgeModel(Strict):
    """`data_bytes` move from function `source` to function `target`."""

    source: Whole
    target: Whole
    data_bytes: Whole


class WorkflowModel(Strict):
    """A workflow, when it arrives (s), and whose it is: all in a file have a tenant, or none.

    Its name is that of what was declared, for reading: several may have the same.
    """

    workflow_id: Whole
    name: Name | None = None
    arrival_time: Seconds
    tenant: TenantName | None = None
    functions: Annotated[tuple[FunctionModel, ...], Field(min_length=1)]
    edges: tuple[EdgeModel, ...] = ()

    @classmethod
    def of(
        cls,
        workflow_id: int,
        arrival_time: float,
        template: WorkflowTemplate,
        tenant: str | None = None,
    ) -> "WorkflowModel":
        """The file's form of `template`."""
        names = template.function_names or ("",) * template.function_count
        return cls(
            workflow_id=workflow_id,
            name=template.name or None,
            arrival_time=arrival_time,
            tenant=tenant,
            functions=tuple(
                FunctionModel(
                    function_id=fn_id,
                    name=name or None,
                    computation=int(computation),
                    memory_required_mb=int(memory),
                    parallelism=int(parallelism),
                )
                for fn_id, (name, computation, memory, parallelism) in enumerate(
                    zip(
                        names,
                        template.computation,
                        template.memory_req,
                        template.parallelism,
                        strict=True,
                    )
                )
            ),
            edges=tuple(
                EdgeModel(source=int(source), target=int(target), data_bytes=int(data_bytes))
                for (source, target), data_bytes in zip(
                    template.edges, template.data_bytes, strict=True
                )
            ),
        )

    def template(self) -> WorkflowTemplate:
        """The same as the simulator takes it; function k has id k.

        Raises:
            InputError: an edge leads nowhere or is declared twice, or the graph has a cycle.
        """
        names = tuple(function.name for function in self.functions if function.name is not None)
        return WorkflowTemplate(
            name=self.name or f"workflow {self.workflow_id}",
            computation=np.array([function.computation for function in self.functions]),
            memory_req=np.array([function.memory_required_mb for function in self.functions]),
            parallelism=np.array([function.parallelism for function in self.functions]),
            edges=np.array(
                [(edge.source, edge.target) for edge in self.edges], dtype=np.int64
            ).reshape(-1, 2),
            data_bytes=np.array([edge.data_bytes for edge in self.edges], dtype=np.int64),
            function_names=names if len(names) == len(self.functions) else (),
        )


class PlacedModel(Strict):
    """A function, and where and with how much memory (MB) it runs."""

    workflow_id: Whole
    function_id: Whole
    server_type: Name
    server_index: Whole
    numa_node_index: Whole
    memory_allocated_mb: Memory

    @property
    def function(self) -> tuple[int, int]:
        """(workflow, function)."""
        return self.workflow_id, self.function_id

    @property
    def place(self) -> tuple[str, int, int]:
        """(server type, server, NUMA node)."""
        return self.server_type, self.server_index, self.numa_node_index


class ActionModel(PlacedModel):
    """What is decided of a function."""


class EpisodeFile(Strict):
    """A whole episode. `actions` has one row a decision, in the order of the decisions.

    Each format has its own `options`, the rules of its world, and `expected`, what came of it.
    """

    format: int
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: Strict
    cluster: ClusterModel
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...]
    expected: Strict | None = None

    @property
    def arrival_times(self) -> list[float]:
        """Seconds, one a workflow."""
        return [workflow.arrival_time for workflow in self.workflows]

    @property
    def tenants(self) -> list[str]:
        """One a workflow; empty where nobody is told apart."""
        return [workflow.tenant for workflow in self.workflows if workflow.tenant is not None]

    @property
    def functions(self) -> dict[tuple[int, int], FunctionModel]:
        """All that is declared, by (workflow, function)."""
        return {
            (workflow.workflow_id, function.function_id): function
            for workflow in self.workflows
            for function in workflow.functions
        }

    def cluster_config(self) -> ClusterConfig:
        """The cluster as the simulator takes it."""
        return self.cluster.cluster_config()

    def templates(self) -> list[WorkflowTemplate]:
        """One a workflow, as the simulator takes them."""
        return [workflow.template() for workflow in self.workflows]

    def check_references(self) -> None:
        """Checks what one field cannot show: ids in order, a DAG, actions that name what exists.

        Raises:
            InputError: one line with the place, what was found and what is allowed.
        """
        check_ids("workflows", [workflow.workflow_id for workflow in self.workflows])
        for workflow in self.workflows:
            check_ids(
                f"workflows.{workflow.workflow_id}.functions",
                [function.function_id for function in workflow.functions],
            )
        if 0 < len(self.tenants) < len(self.workflows):
            raise InputError(
                f"workflows: {len(self.tenants)} of {len(self.workflows)} have a tenant, "
                "all or none are needed"
            )
        self.templates()
        types = {declared.name: declared for declared in self.cluster_config().server_types}
        known = self.functions
        for index, action in enumerate(self.actions):
            if action.function not in known:
                raise InputError(
                    f"actions.{index}: {named(action.function)} is not among the workflows"
                )
            if action.server_type not in types:
                raise InputError(
                    f"actions.{index}.server_type: unknown type '{action.server_type}', "
                    f"{nearest(action.server_type, list(types))}"
                )
            declared = types[action.server_type]
            _check_index(index, "server_index", action.server_index, declared.count)
            _check_index(index, "numa_node_index", action.numa_node_index, declared.numa_nodes)
            if action.memory_allocated_mb > declared.memory:
                raise InputError(
                    f"actions.{index}: {named(action.function)} gets {action.memory_allocated_mb} "
                    f"MB on a NUMA node of '{declared.name}', which has {declared.memory} MB"
                )

    def check_placed_once(self) -> None:
        """Checks that there is one action for each function.

        Raises:
            InputError: one is placed twice, or never.
        """
        placed: set[tuple[int, int]] = set()
        for index, action in enumerate(self.actions):
            if action.function in placed:
                raise InputError(f"actions.{index}: {named(action.function)} is placed twice")
            placed.add(action.function)
        for function in self.functions:
            if function not in placed:
                raise InputError(f"actions: {named(function)} is never placed")


def named(function: tuple[int, int]) -> str:
    """What lines call a function."""
    return f"workflow {function[0]} function {function[1]}"


def check_ids(where: str, ids: list[int]) -> None:
    """Checks that ids count from 0 in order.

    Raises:
        InputError: one does not.
    """
    for position, found in enumerate(ids):
        if found != position:
            raise InputError(
                f"{where}.{position}: id {found} found, ids must be 0 to {len(ids) - 1} in order"
            )


def _check_index(action: int, field: str, found: int, count: int) -> None:
    if found >= count:
        raise InputError(f"actions.{action}.{field}: {found} found, allowed are 0 to {count - 1}")
