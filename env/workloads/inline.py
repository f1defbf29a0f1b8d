"""Workflows written in YAML: functions, edges, bytes. Meant for small examples and for tests."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, Weight
from env.sim.declared.bounds import NamedResources
from env.workloads.task_graph import Task, TaskGraph, positions


class InlineFunction(Strict):
    """One function. Exactly one of `runtime` and `computation` is given.

    Attributes:
        runtime: seconds on `parallelism` cores of the cluster's own speed.
        computation: operations.
        memory: MB; left out, the annotation rules draw it.
        parallelism: cores; left out, the annotation rules draw it.
        category: functions of one category are drawn alike; left out, each is a category.
        resources: units of named resources, as gpu.
    """

    runtime: float | None = Field(default=None, gt=0)
    computation: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=1)
    parallelism: int | None = Field(default=None, ge=1, le=1_000_000)
    category: str | None = None
    resources: NamedResources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_amount_of_work(self) -> Self:
        if (self.runtime is None) == (self.computation is None):
            given = "neither is" if self.runtime is None else "both are"
            raise ValueError(f"one of runtime and computation is needed, {given} given")
        return self


def _as_text(name: Any) -> Any:
    return str(name) if isinstance(name, int) else name


def _by_name(functions: Any) -> Any:
    """Functions in a list are named by their position."""
    if isinstance(functions, (list, tuple)):
        functions = dict(enumerate(functions))
    if isinstance(functions, Mapping):
        return {_as_text(name): function for name, function in functions.items()}
    return functions


FunctionName = Annotated[str, BeforeValidator(_as_text)]


class InlineEdge(Strict):
    """`bytes` moved from one function to another, each called by its name or number."""

    source: FunctionName = Field(alias="from")
    target: FunctionName = Field(alias="to")
    data_bytes: int = Field(alias="bytes", ge=0)


class InlineEntry(Strict):
    """One workflow of the mix, the same in the training and the evaluation pool."""

    functions: Annotated[dict[str, InlineFunction], BeforeValidator(_by_name)]
    edges: tuple[InlineEdge, ...] = ()
    weight: Weight = 1.0


def inline_graph(entry: InlineEntry, name: str, where: str) -> TaskGraph:
    """The workflow of an entry; its numbers are taken as they are.

    Raises:
        InputError: there is no function, or an edge is declared twice or leads nowhere.
    """
    index = positions(entry.functions, where)
    tasks = tuple(
        Task(
            name=function_name,
            category=function.category or function_name,
            runtime=function.runtime,
            computation=function.computation,
            memory=function.memory,
            cores=function.parallelism,
            resources=function.resources,
        )
        for function_name, function in entry.functions.items()
    )
    edge_bytes: dict[tuple[int, int], int] = {}
    for edge in entry.edges:
        label = f"{where}: edge {edge.source} -> {edge.target}"
        for end in (edge.source, edge.target):
            if end not in index:
                raise InputError(f"{label} names '{end}', known are {', '.join(index)}")
        key = (index[edge.source], index[edge.target])
        if key in edge_bytes:
            raise InputError(f"{label} is declared twice")
        edge_bytes[key] = edge.data_bytes
    return TaskGraph(name, where, tasks, edge_bytes, measured=False)
