"""The rules for what a source does not state."""

import math

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.task_graph import Task, TaskGraph
from tests.documents import refused_in_a_line

SPEED = 1_000
RULES = {
    "seed": 3,
    "runtime_scale": 2.0,
    "min_runtime": 0.5,
    "runtime_range": [1.5, 100.0],
    "missing_runtime": [5.0, 10.0],
    "min_memory": 128,
    "missing_memory": [512, 4096],
    "max_parallelism": 8,
    "missing_parallelism": [1, 4],
}


def with_rules(**changes: object) -> AnnotationRules:
    return validated(AnnotationRules, RULES | changes, "annotation")


def graph(*tasks: Task, name: str = "w", measured: bool = True) -> TaskGraph:
    return TaskGraph(name, "w.json", tasks, {}, measured=measured)


def runtimes(tasks: TaskGraph, rules: AnnotationRules) -> list[float]:
    template, _ = annotate(tasks, rules, SPEED)
    return [float(seconds) for seconds in template.computation / template.parallelism / SPEED]


def test_runtimes_are_raised_scaled_and_clipped() -> None:
    tasks = graph(*(Task(str(i), "a", runtime=s) for i, s in enumerate([0, 0.7, 20, 60])))
    assert runtimes(tasks, with_rules()) == [1.5, 1.5, 40, 100]
    assert runtimes(tasks, with_rules(runtime_range=None)) == [1, 1.4, 40, 120]
    _, counts = annotate(tasks, with_rules(), SPEED)
    assert counts["runtime 0 raised to min_runtime"] == 1
    assert counts["runtime clipped to runtime_range"] == 3


def test_computation_is_at_least_one_operation() -> None:
    tiny, small = (
        Task(name, "a", runtime=of / SPEED, cores=1) for name, of in (("t", 0.2), ("s", 0.5))
    )
    template, counts = annotate(graph(tiny, small), with_rules(runtime_range=None), SPEED)
    assert template.computation.tolist() == [1, 1]
    assert counts["computation raised to 1 operation"] == 1


@pytest.mark.parametrize(
    ("memory", "cores", "annotates"),
    [(0.075, 1.2, (128, 2)), (128, 0.3, (128, 1)), (300.000001, 48, (301, 8))],
)
def test_measured_memory_and_cores(memory: float, cores: float, annotates: tuple[int, int]) -> None:
    template, _ = annotate(graph(Task("t", "a", 1, None, memory, cores)), with_rules(), SPEED)
    assert (template.memory_req.item(), template.parallelism.item()) == annotates


def test_a_task_of_more_cores_than_allowed_keeps_its_work() -> None:
    """64 cores for 10 s are 640 core-seconds, on 8 cores 80 s."""
    tasks = graph(Task("t", "a", runtime=10, memory=200, cores=64))
    template, counts = annotate(tasks, with_rules(runtime_scale=1.0, runtime_range=None), SPEED)
    assert template.parallelism.tolist() == [8]
    assert template.computation.tolist() == [640 * SPEED]
    assert counts == {"parallelism cut to max_parallelism": 1}


def test_a_workflow_without_any_runtime_is_refused_unless_it_is_allowed() -> None:
    tasks = graph(Task("a", "a"), Task("b", "b"))
    way_out = "to have them drawn, add workflow.annotation.without_runtimes=draw"
    with refused_in_a_line(
        f"w.json: no task has a runtime (0 execution records of no task); {way_out}"
    ):
        annotate(tasks, with_rules(), SPEED)
    _, counts = annotate(tasks, with_rules(without_runtimes="draw"), SPEED)
    assert counts["runtime drawn"] == 2
    assert counts["no dependencies"] == 1
    one_measured = graph(Task("a", "a", runtime=0), Task("b", "b"))
    _, counts = annotate(one_measured, with_rules(), SPEED)
    assert counts["runtime drawn"] == 1


def test_what_a_person_wrote_is_taken_as_it_is() -> None:
    task = Task("t", "a", runtime=0.1, memory=4, cores=64)
    template, counts = annotate(graph(task, measured=False), with_rules(), SPEED)
    assert template.computation.tolist() == [6400]
    assert template.memory_req.tolist() == [4]
    assert template.parallelism.tolist() == [64]
    assert not counts


@pytest.mark.parametrize("nothing", [None, 0])
def test_missing_memory_and_parallelism_are_drawn_by_category(nothing: int | None) -> None:
    tasks = [Task(f"{c}{i}", c, 1, None, nothing, nothing) for c in "abcdefgh" for i in range(3)]
    template, counts = annotate(graph(*tasks), with_rules(), SPEED)
    memory, parallelism = template.memory_req.reshape(8, 3), template.parallelism.reshape(8, 3)
    for values in (memory, parallelism):
        assert (values == values[:, :1]).all()  # alike within a category
        assert len(np.unique(values)) > 1  # and not everywhere
    assert counts["memory drawn"] == counts["parallelism drawn"] == 24
    assert memory.min() >= 512 and memory.max() <= 4096
    assert parallelism.min() >= 1 and parallelism.max() <= 4


def test_draws_fill_their_ranges() -> None:
    tasks = [Task(str(i), str(i)) for i in range(2_000)]
    rules = with_rules(runtime_scale=1.0, without_runtimes="draw")
    template, counts = annotate(graph(*tasks), rules, SPEED)
    assert counts["runtime drawn"] == 2_000
    assert np.bincount(template.parallelism)[1:] == pytest.approx([500] * 4, abs=100)
    # log-uniform: half below the geometric mean
    for values, low, high in (
        (template.memory_req, 512, 4096),
        (template.computation / template.parallelism / SPEED, 5, 10),
    ):
        assert low - 1 <= values.min() and values.max() <= high + 1
        assert (values < math.sqrt(low * high)).mean() == pytest.approx(0.5, abs=0.05)


def test_draws_depend_on_seed_template_and_category_alone() -> None:
    tasks = [Task(c, c, runtime=1) for c in "abcdef"]

    def memory(name: str, reverse: bool, seed: int) -> dict[str, int]:
        chosen = tasks[::-1] if reverse else tasks
        template, _ = annotate(graph(*chosen, name=name), with_rules(seed=seed), SPEED)
        return dict(zip(template.function_names, template.memory_req.tolist(), strict=True))

    assert memory("w", False, 3) == memory("w", True, 3)
    assert memory("w", False, 3) != memory("v", False, 3)
    assert memory("w", False, 3) != memory("w", False, 4)
    alone, _ = annotate(graph(tasks[2]), with_rules(), SPEED)
    assert alone.memory_req[0] == memory("w", False, 3)["c"]


def test_more_work_than_the_engine_can_count() -> None:
    with pytest.raises(InputError, match="^w.json: a computation is above 2.62 operations"):
        annotate(
            graph(Task("t", "a", 1e18, None, 1, 1), measured=False), with_rules(), 1_000_000_000
        )
