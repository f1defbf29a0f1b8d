"""Episode files: a cluster, workflows, the placements made and what came of them, as JSON.

What `recording` makes of a run, `replay` plays again and `env.sim.check.validate` checks. Field
names carry their units.
"""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from env.base.errors import InputError, located
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import Strict, TenantName, nearest, validated
from env.sim.bounds import LARGEST_WHOLE, LARGEST_WORK
from env.sim.cluster_file import ClusterModel, Cores, Memory, Name, Seconds, Whole
from env.sim.hardware import ClusterConfig
from env.sim.workflow_template import WorkflowTemplate

# What came of an episode has no bound of its own: those of its inputs keep it finite.
Amount = Annotated[float, Field(strict=True, ge=0)]


class FunctionModel(Strict):
    """A function: operations, MB, and the cores it can use."""

    function_id: Whole
    computation: Annotated[int, Field(strict=True, ge=1, le=LARGEST_WORK)]
    memory_required_mb: Memory
    parallelism: Cores


class EdgeModel(Strict):
    """`data_bytes` move from function `source` to function `target`."""

    source: Whole
    target: Whole
    data_bytes: Whole


class WorkflowModel(Strict):
    """A workflow, when it arrives (s), and whose it is: all in a file have a tenant, or none."""

    workflow_id: Whole
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
        return cls(
            workflow_id=workflow_id,
            arrival_time=arrival_time,
            tenant=tenant,
            functions=tuple(
                FunctionModel(
                    function_id=fn_id,
                    computation=int(computation),
                    memory_required_mb=int(memory),
                    parallelism=int(parallelism),
                )
                for fn_id, (computation, memory, parallelism) in enumerate(
                    zip(
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
        return WorkflowTemplate(
            name=f"workflow {self.workflow_id}",
            computation=np.array([function.computation for function in self.functions]),
            memory_req=np.array([function.memory_required_mb for function in self.functions]),
            parallelism=np.array([function.parallelism for function in self.functions]),
            edges=np.array(
                [(edge.source, edge.target) for edge in self.edges], dtype=np.int64
            ).reshape(-1, 2),
            data_bytes=np.array([edge.data_bytes for edge in self.edges], dtype=np.int64),
        )


class ActionModel(Strict):
    """Which function a decision is about, and where and with how much memory (MB) it runs."""

    workflow_id: Whole
    function_id: Whole
    server_type: Name
    server_index: Whole
    numa_node_index: Whole
    memory_allocated_mb: Memory


class NodeStatusModel(Strict):
    """A NUMA node's projected use at a moment; free memory is negative when over-committed."""

    cpu_utilisation: Amount
    memory_utilisation: Amount
    load: Amount
    total_parallelism: Whole
    free_memory_mb: Annotated[int, Field(strict=True, ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]
    time_to_first_completion: Amount
    time_to_last_completion: Amount


class DecisionModel(Strict):
    """What came of one action: times in s, rent in USD charged up to the next decision."""

    submission_time: Amount
    cold_start_time: Amount
    data_transfer_time: Amount
    creation_time: Amount
    rent: Amount
    completed_before_next_decision: tuple[tuple[Whole, Whole], ...]
    target_node_before: NodeStatusModel


class FunctionTimesModel(Strict):
    """When a function was submitted, could first start, started and completed (s)."""

    workflow_id: Whole
    function_id: Whole
    submission_time: Amount
    creation_time: Amount
    start_time: Amount
    completion_time: Amount


class ServerUseModel(Strict):
    """Whole hours rented, the end of the last lease (s) and the rent (USD) of a server."""

    server_type: Name
    server_index: Whole
    hours_rented: Whole
    lease_expiration_time: Amount
    rent: Amount


class Results(Strict):
    """Everything that comes of an episode's actions."""

    decision_count: Whole
    decisions: tuple[DecisionModel, ...]
    functions: tuple[FunctionTimesModel, ...]
    servers: tuple[ServerUseModel, ...]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: tuple[Amount, ...]


class Options(Strict):
    """Rules that differ from the simulator's own; there are none to choose from in format 1."""


class EpisodeFile(Strict):
    """A whole episode. `actions` has one row a decision, in the order of the decisions."""

    format: Literal[1] = 1
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: Options = Options()
    cluster: ClusterModel
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...]
    expected: Results | None = None

    @property
    def arrival_times(self) -> list[float]:
        """Seconds, one a workflow."""
        return [workflow.arrival_time for workflow in self.workflows]

    @property
    def tenants(self) -> list[str]:
        """One a workflow; empty where nobody is told apart."""
        return [workflow.tenant for workflow in self.workflows if workflow.tenant is not None]

    def cluster_config(self) -> ClusterConfig:
        """The cluster as the simulator takes it."""
        return self.cluster.cluster_config()

    def templates(self) -> list[WorkflowTemplate]:
        """One a workflow, as the simulator takes them."""
        return [workflow.template() for workflow in self.workflows]


def read_episode(path: str | os.PathLike[str]) -> EpisodeFile:
    """Reads an episode file, plain or .gz.

    Raises:
        InputError: one line with the file, the place in it, what was found and what is allowed.
    """
    where = str(path)
    document = parse_json(read_bytes(Path(path)), where)
    if not isinstance(document, dict):
        raise InputError(f"{where}: {type(document).__name__} found, a JSON object is needed")
    episode = validated(EpisodeFile, document, where)
    with located(where):
        _check_references(episode)
    return episode


def write_episode(path: str | os.PathLike[str], episode: EpisodeFile) -> None:
    """Writes an episode file (gzip if it ends in .gz) that reads back as the same numbers.

    The file appears whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    target = Path(path)
    content = _json_text(episode).encode()
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with written_whole(target) as temporary:
        temporary.write_bytes(content)


def json_rows(fields: Mapping[str, Any], indent: int) -> str:
    """`fields` as the inside of a JSON object, lists of objects one row a line."""
    pad = " " * indent
    lines = []
    for key, value in fields.items():
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"{pad} {json.dumps(row)}" for row in value)
            lines.append(f"{pad}{json.dumps(key)}: [\n{rows}\n{pad}]")
        else:
            lines.append(f"{pad}{json.dumps(key)}: {json.dumps(value)}")
    return ",\n".join(lines)


def _check_references(episode: EpisodeFile) -> None:
    """What one field cannot show: ids in order, a DAG, and actions that name what exists."""
    _check_ids("workflows", [workflow.workflow_id for workflow in episode.workflows])
    for workflow in episode.workflows:
        _check_ids(
            f"workflows.{workflow.workflow_id}.functions",
            [function.function_id for function in workflow.functions],
        )
    if 0 < len(episode.tenants) < len(episode.workflows):
        raise InputError(
            f"workflows: {len(episode.tenants)} of {len(episode.workflows)} have a tenant, "
            "all or none are needed"
        )
    episode.templates()
    types = {declared.name: declared for declared in episode.cluster_config().server_types}
    placed: set[tuple[int, int]] = set()
    known = {
        (workflow.workflow_id, function.function_id)
        for workflow in episode.workflows
        for function in workflow.functions
    }
    for index, action in enumerate(episode.actions):
        function = (action.workflow_id, action.function_id)
        shown = f"actions.{index}: workflow {function[0]} function {function[1]}"
        if function not in known:
            raise InputError(f"{shown} is not among the workflows")
        if function in placed:
            raise InputError(f"{shown} is placed twice")
        placed.add(function)
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
                f"{shown} gets {action.memory_allocated_mb} MB on a NUMA node of "
                f"'{declared.name}', which has {declared.memory} MB"
            )
    if placed != known:
        wf_id, fn_id = min(known - placed)
        raise InputError(f"actions: workflow {wf_id} function {fn_id} is never placed")


def _check_ids(where: str, ids: list[int]) -> None:
    for position, found in enumerate(ids):
        if found != position:
            raise InputError(
                f"{where}.{position}: id {found} found, ids must be 0 to {len(ids) - 1} in order"
            )


def _check_index(action: int, field: str, found: int, count: int) -> None:
    if found >= count:
        raise InputError(f"actions.{action}.{field}: {found} found, allowed are 0 to {count - 1}")


def _json_text(episode: EpisodeFile) -> str:
    head = _plain(episode)
    head.pop("workflows")
    last: dict[str, Any] = {key: head.pop(key) for key in ("actions", "expected") if key in head}
    expected = last.pop("expected", None)
    workflows = ",\n".join(_workflow_text(workflow) for workflow in episode.workflows)
    parts = [json_rows(head, 1), f' "workflows": [\n{workflows}\n ]', json_rows(last, 1)]
    if expected is not None:
        parts.append(f' "expected": {{\n{json_rows(expected, 2)}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _workflow_text(workflow: WorkflowModel) -> str:
    plain = _plain(workflow)
    first = ("workflow_id", "arrival_time", "tenant")
    head = {key: plain.pop(key) for key in first if key in plain}
    return f"  {json.dumps(head)[:-1]},\n{json_rows(plain, 3)}}}"


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(exclude_none=True)
