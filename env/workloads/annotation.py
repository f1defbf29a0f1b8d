"""Rules for what a source does not state: from a `TaskGraph` to a `WorkflowTemplate`.

The rules are here, their numbers in conf/workflow/annotation.
"""

import math
import zlib
from collections import Counter
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict
from env.resources.quantity import as_number
from env.sim.declared.bounds import LARGEST_WORK
from env.sim.declared.regions import ANYWHERE
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.task_graph import NO_TASK, TaskGraph

Seconds = Annotated[float, Field(gt=0, le=1e9)]
Megabytes = Annotated[float, Field(ge=1, le=1e9)]
Cores = Annotated[int, Field(ge=1, le=1_000_000)]


class AnnotationRules(Strict):
    """Numbers of the rules that `annotate` applies; conf/workflow/annotation explains each."""

    without_runtimes: Literal["refuse", "draw"] = "refuse"
    seed: int = Field(ge=0)
    runtime_scale: float = Field(gt=0, le=1e9)
    min_runtime: Seconds
    runtime_range: Annotated[tuple[Seconds, Seconds] | None, ASCENDING]
    missing_runtime: Annotated[tuple[Seconds, Seconds], ASCENDING]
    min_memory: Megabytes
    missing_memory: Annotated[tuple[Megabytes, Megabytes], ASCENDING]
    max_parallelism: Cores
    missing_parallelism: Annotated[tuple[Cores, Cores], ASCENDING]


def annotate(
    graph: TaskGraph, rules: AnnotationRules, core_speed: int
) -> tuple[WorkflowTemplate, Counter[str]]:
    """Fills in what the source leaves open and converts to the simulator's units.

    What is missing, and memory or cores of 0, is drawn for the category; memory and cores are
    rounded up. The computation is runtime * core speed * cores before they are cut, for the source
    measured the runtime on that many cores; at least 1 operation. Scaling, clipping and the bounds
    are for measurements: what a person wrote inline is taken as it is.

    The core speed is in operations per second: that of the cluster's reference core, which the
    source's cores are taken to equal.

    Returns:
        The template, and how often each rule had to decide.

    Raises:
        InputError: no task has a runtime and the rules do not allow that, a number is beyond what
            the engine can count, or see `WorkflowTemplate`.
    """
    tasks, measured = graph.tasks, graph.measured
    counts = Counter(graph.assumptions)
    timeless = all(task.runtime is None for task in tasks)
    if measured and timeless and rules.without_runtimes == "refuse":
        raise InputError(
            f"{graph.where}: no task has a runtime ({counts[NO_TASK]} {NO_TASK}); to have them "
            "drawn, add workflow.annotation.without_runtimes=draw"
        )
    counts["no dependencies"] = int(measured and len(tasks) > 1 and not graph.edge_bytes)
    drawn_runtime, drawn_memory, drawn_cores = np.transpose(
        [_drawn(rules, graph.name, task.category) for task in tasks]
    )

    def decided(rule: str, applies: np.ndarray, then: ArrayLike, values: np.ndarray) -> np.ndarray:
        """The values, and `then` where a rule applies, which is counted."""
        counts[rule] += int(applies.sum())
        return np.where(applies, then, values)

    stated = np.array([task.cores or 0 for task in tasks], dtype=np.float64)
    cores = decided("cores rounded up", stated > np.floor(stated), np.ceil(stated), stated)
    many = (cores > rules.max_parallelism) & measured
    parallelism = decided("parallelism cut to max_parallelism", many, rules.max_parallelism, cores)
    missing = cores == 0
    cores = np.where(missing, drawn_cores, cores)
    parallelism = decided("parallelism drawn", missing, drawn_cores, parallelism)

    memory = np.ceil(np.array([task.memory or 0 for task in tasks], dtype=np.float64))
    missing = memory == 0
    small = (memory < rules.min_memory) & ~missing & measured
    memory = decided("memory raised to min_memory", small, math.ceil(rules.min_memory), memory)
    memory = decided("memory drawn", missing, drawn_memory, memory)

    timed = np.array([task.computation is None for task in tasks])
    runtime = np.array([task.runtime for task in tasks], dtype=np.float64)  # None: not a number
    runtime = decided("runtime drawn", np.isnan(runtime) & timed, drawn_runtime, runtime)
    zero = "runtime 0 raised to min_runtime"
    runtime = decided(zero, (runtime == 0) & timed, rules.min_runtime, runtime)
    if measured:
        scaled, scale = "runtime multiplied by runtime_scale", rules.runtime_scale
        runtime = decided(scaled, timed & (scale != 1), runtime * scale, runtime)
        clipped = np.clip(runtime, *rules.runtime_range or (0, math.inf))
        runtime = decided("runtime clipped to runtime_range", clipped != runtime, clipped, runtime)
    work = np.rint(runtime * core_speed * cores)
    work = decided("computation raised to 1 operation", work == 0, 1, work)
    works = [task.computation or amount for task, amount in zip(tasks, work, strict=True)]
    if max(*works, *memory) > LARGEST_WORK:
        raise InputError(f"{graph.where}: a computation is above 2^62 operations, or memory MB")
    template = WorkflowTemplate(
        name=graph.name,
        computation=np.array([int(amount) for amount in works]),
        memory_req=memory.astype(np.int64),
        parallelism=parallelism.astype(np.int64),
        edges=np.array(list(graph.edge_bytes), dtype=np.int64).reshape(-1, 2),
        data_bytes=np.array(list(graph.edge_bytes.values()), dtype=np.float64),
        function_names=tuple(task.name for task in tasks),
        where=graph.where,
        resources={
            name: np.array([as_number(task.resources.get(name, 0)) for task in tasks])
            for name in {name for task in tasks for name in task.resources}
        },
        images=tuple(
            (graph.where, graph.name, task.category) if measured else task.category
            for task in tasks
        ),
        probability=np.array([graph.probability.get(edge, 1.0) for edge in graph.edge_bytes]),
        regions=tuple(task.regions for task in tasks)
        if any(task.regions != ANYWHERE for task in tasks)
        else (),
    )
    return template, +counts


@lru_cache(maxsize=10_000)
def _drawn(rules: AnnotationRules, template: str, category: str) -> tuple[float, int, int]:
    """Seconds, MB and cores of a task category: tasks of a kind are alike, whatever else there is.

    The stream depends on the seed, the template's name and the category alone, so neither the
    order of files nor of tasks matters.
    """
    key = (zlib.crc32(template.encode()), zlib.crc32(category.encode()))
    rng = np.random.default_rng(np.random.SeedSequence(rules.seed, spawn_key=key))
    runtime = math.exp(rng.uniform(*np.log(rules.missing_runtime)))
    memory = math.exp(rng.uniform(*np.log(rules.missing_memory)))
    low, high = rules.missing_parallelism
    parallelism = int(rng.integers(low, high, endpoint=True))
    return runtime, max(1, round(memory)), parallelism
