"""Workflows written in YAML: functions, edges, bytes. Meant for small examples and for tests."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from env.base.errors import InputError
from env.base.schema import Strict, Weight
from env.sim.declared.bounds import NamedResources, Probability
from env.sim.declared.regions import Regions
from env.workloads.task_graph import Task, TaskGraph, position, positions


class InlineFunction(Strict):
    """One function, see conf/workflow/inline.yaml. Either runtime or computation is given.

    What is left out, the annotation rules draw: alike for all functions of a category. Without a
    category each function is one.
    """

    runtime: float | None = Field(default=None, gt=0)
    computation: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=1)
    cores: int | None = Field(default=None, alias="parallelism", ge=1, le=1_000_000)
    category: str | None = None
    resources: NamedResources = Field(default_factory=dict)
    regions: Regions = Regions()

    @model_validator(mode="after")
    def _one_amount_of_work(self) -> Self:
        if (self.runtime is None) == (self.computation is None):
            raise ValueError("exactly one of runtime and computation is needed")
        return self


class InlineEdge(Strict, coerce_numbers_to_str=True):
    """`bytes` moved from one function to another, each called by its name or number.

    When the first one ends, it calls the other with this probability.
    """

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    data_bytes: int = Field(alias="bytes", ge=0)
    probability: Probability = 1.0


def _numbered(functions: Any) -> Any:
    """Functions in a list are named by their position."""
    return dict(enumerate(functions)) if isinstance(functions, (list, tuple)) else functions


class InlineEntry(Strict, coerce_numbers_to_str=True):
    """One workflow of the mix, the same in the training and the evaluation pool."""

    functions: Annotated[dict[str, InlineFunction], BeforeValidator(_numbered)]
    edges: tuple[InlineEdge, ...] = ()
    weight: Weight = 1.0


def inline_graph(entry: InlineEntry, name: str, where: str) -> TaskGraph:
    """The workflow of an entry; its numbers are taken as they are.

    Raises:
        InputError: there is no function, or an edge is declared twice or leads nowhere.
    """
    index = positions(entry.functions, where)
    tasks = tuple(
        Task(own, **dict(function) | {"category": function.category or own})
        for own, function in entry.functions.items()
    )
    edge_bytes: dict[tuple[int, int], int] = {}
    probability: dict[tuple[int, int], float] = {}
    for edge in entry.edges:
        label = f"{where}: edge {edge.source} -> {edge.target}"
        source, target = (position(end, index, f"{label}:") for end in (edge.source, edge.target))
        if (source, target) in edge_bytes:
            raise InputError(f"{label} is declared twice")
        edge_bytes[source, target] = edge.data_bytes
        probability[source, target] = edge.probability
    return TaskGraph(name, where, tasks, edge_bytes, probability, measured=False)
