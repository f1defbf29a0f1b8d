"""Rules for what a source does not state: from a `TaskGraph` to a `WorkflowTemplate`.

The rules are here, their numbers in conf/workflow/annotation.
"""

import math
import zlib
from collections import Counter
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import ASCENDING, Strict, short
from env.sim.declared.bounds import LARGEST_WORK
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.task_graph import Task, TaskGraph

Seconds = Annotated[float, Field(gt=0, le=1e9)]
Megabytes = Annotated[float, Field(ge=1, le=1e9)]
Cores = Annotated[int, Field(ge=1, le=1_000_000)]


class AnnotationRules(Strict):
    """Numbers of the rules that `annotate` applies.

    Attributes:
        without_runtimes: what becomes of a measured workflow in which no task has a runtime.
        seed: of the draws; each template and task category has a stream of its own.
        runtime_scale: measured runtimes are multiplied by it.
        min_runtime: seconds a task measured at 0 is taken to last.
        runtime_range: seconds, measured runtimes are clipped to it after scaling; null: not at all.
        missing_runtime: seconds, range of the draw where no runtime was measured.
        min_memory: MB, smaller measured amounts are raised to it.
        missing_memory: MB, range of the draw where no memory, or 0, was measured.
        max_parallelism: cores, measured parallelism is cut to it; the work is kept.
        missing_parallelism: cores, range of the draw where no parallelism was measured.
    """

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

    - Runtime: missing, drawn for the category; 0, `min_runtime`. Then `runtime_scale`, then
      clipped to `runtime_range`.
    - Memory: missing or 0, drawn for the category; else rounded up to whole MB, at least
      `min_memory`.
    - Parallelism: missing or 0, drawn for the category; else rounded up, at most
      `max_parallelism`.
    - Computation: runtime * core speed * parallelism before it is cut, for the source measured the
      runtime on that many cores; at least 1 operation.

    Scaling, clipping and the two bounds are for measurements: what a person wrote inline is taken
    as it is.

    Args:
        graph: a workflow as read.
        rules: numbers of the rules.
        core_speed: operations per second of the cluster's reference core, which the source's
            cores are taken to equal.

    Returns:
        The template, and how often each rule had to decide.

    Raises:
        InputError: no task has a runtime and the rules do not allow that, a number is beyond what
            the engine can count, or see `WorkflowTemplate`.
    """
    if graph.measured and rules.without_runtimes == "refuse":
        _check_runtimes(graph)
    counts = Counter(graph.assumptions)
    counts["execution records of no task"] = len(graph.foreign_records)
    counts["no dependencies"] = int(
        graph.measured and len(graph.tasks) > 1 and not graph.edge_bytes
    )
    functions = [_function(task, graph, rules, core_speed, counts) for task in graph.tasks]
    if max(map(max, functions)) > LARGEST_WORK:
        raise InputError(f"{graph.where}: a computation is above 2^62 operations, or memory MB")
    computation, memory, parallelism = np.array(functions, dtype=np.int64).T
    resources = {name for task in graph.tasks for name in task.resources}
    template = WorkflowTemplate(
        name=graph.name,
        computation=computation,
        memory_req=memory,
        parallelism=parallelism,
        edges=np.array(list(graph.edge_bytes), dtype=np.int64).reshape(-1, 2),
        data_bytes=np.array(list(graph.edge_bytes.values()), dtype=np.float64),
        function_names=tuple(task.name for task in graph.tasks),
        where=graph.where,
        resources={
            name: np.array([task.resources.get(name, 0) for task in graph.tasks])
            for name in resources
        },
        images=tuple((graph.where, graph.name, task.category) for task in graph.tasks)
        if graph.measured
        else (),
    )
    return template, +counts


def _check_runtimes(graph: TaskGraph) -> None:
    if any(task.runtime is not None for task in graph.tasks):
        return
    why = "no task has a runtime"
    if graph.foreign_records:
        first, count = short(graph.foreign_records[0]), len(graph.foreign_records)
        why = f"execution record {first} (of {count}) belongs to no task, and {why}"
    raise InputError(
        f"{graph.where}: {why}; to have them drawn, add workflow.annotation.without_runtimes=draw"
    )


def _function(
    task: Task,
    graph: TaskGraph,
    rules: AnnotationRules,
    core_speed: int,
    counts: Counter[str],
) -> tuple[int, int, int]:
    """Computation (operations), memory (MB) and parallelism of one task."""
    drawn_runtime, drawn_memory, drawn_cores = _drawn(rules, graph.name, task.category)
    cores = parallelism = math.ceil(task.cores or 0)
    if parallelism == 0:
        cores = parallelism = drawn_cores
        counts["parallelism drawn"] += 1
    else:
        counts["cores rounded up"] += parallelism != task.cores
        if graph.measured and parallelism > rules.max_parallelism:
            parallelism = rules.max_parallelism
            counts["parallelism cut to max_parallelism"] += 1

    memory = math.ceil(task.memory or 0)
    if memory == 0:
        memory = drawn_memory
        counts["memory drawn"] += 1
    elif graph.measured and memory < rules.min_memory:
        memory = math.ceil(rules.min_memory)
        counts["memory raised to min_memory"] += 1

    if task.computation is not None:
        return task.computation, memory, parallelism
    runtime = task.runtime
    if runtime is None:
        runtime = drawn_runtime
        counts["runtime drawn"] += 1
    computation = round(_scaled(runtime, graph.measured, rules, counts) * core_speed * cores)
    if computation == 0:
        computation = 1
        counts["computation raised to 1 operation"] += 1
    return computation, memory, parallelism


def _scaled(runtime: float, measured: bool, rules: AnnotationRules, counts: Counter[str]) -> float:
    """Seconds that a runtime counts as."""
    if runtime == 0:
        runtime = rules.min_runtime
        counts["runtime 0 raised to min_runtime"] += 1
    if not measured:
        return runtime
    if rules.runtime_scale != 1:
        runtime *= rules.runtime_scale
        counts["runtime multiplied by runtime_scale"] += 1
    if rules.runtime_range is None:
        return runtime
    clipped = min(max(runtime, rules.runtime_range[0]), rules.runtime_range[1])
    if clipped != runtime:
        counts["runtime clipped to runtime_range"] += 1
    return clipped


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
