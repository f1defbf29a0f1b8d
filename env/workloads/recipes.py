"""Workflows made by the recipes of WfCommons, which need no files.

https://wfcommons.org. A recipe grows the graph of a measured workflow and draws runtimes and sizes
from distributions fitted to measurements. It takes no seed, so the global generators it draws from
are seeded, and put back as they were, around every call.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Literal

import networkx as nx
import numpy as np
from pydantic import BeforeValidator, Field

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict, Weight, as_range
from env.workloads.task_graph import Task, TaskGraph, graph_from_files, positions

RecipeName = Literal[
    "blast",
    "bwa",
    "cycles",
    "epigenomics",
    "genome",
    "montage",
    "rnaseq",
    "seismology",
    "soykb",
    "srasearch",
]

ENDS = ("SRC", "DST")
"""Nodes that WfCommons puts before and after every graph and counts as tasks, but never runs."""

Tasks = Annotated[int, Field(ge=1, le=1_000_000)]


class RecipeEntry(Strict):
    """Workflows of one recipe in the mix, see conf/workflow/study.yaml.

    Training and evaluation use streams of the seed that never meet. The weight is spread evenly
    over the templates. In WfCommons 1.6 the recipe rnaseq makes tasks without any edge.
    """

    recipe: RecipeName
    num_tasks: Annotated[tuple[Tasks, Tasks], BeforeValidator(as_range), ASCENDING]
    seed: int = Field(ge=0)
    training_templates: int = Field(default=10, ge=1, le=10_000)
    evaluation_templates: int = Field(default=5, ge=1, le=10_000)
    weight: Weight = 1.0


def recipe_graph(
    entry: RecipeEntry, seed_sequence: np.random.SeedSequence, name: str, where: str
) -> TaskGraph:
    """One workflow of a recipe; the same seed gives the same one in every process.

    The number of cores a recipe states is a placeholder (always 1) and is not used.

    Raises:
        InputError: no workflow that the recipe was measured with is as small.
    """
    low, high = entry.num_tasks
    num_tasks = int(np.random.default_rng(seed_sequence).integers(low, high, endpoint=True))
    with _seeded_globals(seed_sequence):
        recipe = _recipe_class(entry.recipe).from_num_tasks(num_tasks + len(ENDS))
        try:
            recipe.build_workflow(name)
        except ValueError as error:
            fault = f"{error} ({len(ENDS)} are its ends); a higher num_tasks is needed"
            raise InputError(f"{where}: recipe '{entry.recipe}': {fault}") from None
    tasks = tuple(
        Task(
            name=task_id,
            category=task.name,
            runtime=task.runtime,
            reads={file.file_id: file.size for file in task.input_files},
            writes={file.file_id: file.size for file in task.output_files},
        )
        for task_id, task in recipe.tasks_map.items()
    )
    index = positions(recipe.tasks_map, where)
    edges = {
        (index[parent], index[child])
        for child, parents in recipe.tasks_parents.items()
        for parent in parents
    }
    return graph_from_files(name, where, tasks, edges, {})


@contextmanager
def _seeded_globals(seed_sequence: np.random.SeedSequence) -> Iterator[None]:
    python_state, numpy_state = random.getstate(), np.random.get_state()
    words = seed_sequence.generate_state(8)
    try:
        random.seed(int.from_bytes(words[:4].tobytes(), "little"))
        np.random.seed(words[4:])
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@cache
def _recipe_class(recipe: str) -> Any:
    """The class of WfCommons, made independent of Python's hash seed."""
    # Imported when needed: it takes more than a second.
    from wfcommons.wfchef import recipes

    class Repeatable(getattr(recipes, f"{recipe.capitalize()}Recipe")):  # type: ignore[misc]
        def generate_nx_graph(self) -> nx.DiGraph:
            return _in_stable_order(super().generate_nx_graph())

    return Repeatable


def _in_stable_order(graph: nx.DiGraph) -> nx.DiGraph:
    """The same graph with nodes and edges in an order that does not depend on string hashes.

    WfCommons copies nodes set by set, in the sets' order, and draws runtimes in the order of the
    nodes. Here the measured nodes come first as they are, then all first copies, all second ones,
    and so on, each in the order of the nodes they copy.
    """
    rank: dict[str, tuple[int, int]] = {}
    copies: Counter[str] = Counter()
    for node, original in graph.nodes(data="duplicate_of"):
        copies[original] += 1
        rank[node] = (copies[original], rank[original][1]) if original else (0, len(rank))
    ordered = nx.DiGraph()
    ordered.add_nodes_from(sorted(graph.nodes(data=True), key=lambda item: rank[item[0]]))
    ordered.add_edges_from(sorted(graph.edges, key=lambda edge: (rank[edge[0]], rank[edge[1]])))
    return ordered
