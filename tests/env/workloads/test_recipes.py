"""WfCommons recipes: repeatable in every process, and without side effects."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from env.base.schema import validated
from env.workloads.recipes import RecipeEntry, RecipeName, recipe_graph
from env.workloads.task_graph import TaskGraph
from tests.documents import refused_in_a_line

RECIPES = get_args(RecipeName)
ROOT = Path(__file__).resolve().parents[3]
# rnaseq at this size makes WfCommons copy nodes in the order of a set.
CASES = [("rnaseq", 200), ("montage", 70), ("srasearch", 40)]


def entry(recipe: str, num_tasks: object) -> RecipeEntry:
    return validated(RecipeEntry, {"recipe": recipe, "num_tasks": num_tasks, "seed": 1}, "mix.x")


def make(recipe: str, num_tasks: object, seed: int = 5) -> TaskGraph:
    return recipe_graph(entry(recipe, num_tasks), np.random.SeedSequence(seed), "x", "mix.x")


def content(graph: TaskGraph) -> tuple[object, ...]:
    """Everything a template is made from; the names of the files mean nothing."""
    tasks = [(task.name, task.category, task.runtime) for task in graph.tasks]
    return tasks, sorted(graph.edge_bytes.items())


def digest() -> str:
    """Of the workflows of all cases."""
    made = [content(make(recipe, num_tasks)) for recipe, num_tasks in CASES]
    return hashlib.sha256(repr(made).encode()).hexdigest()


def test_the_names_are_those_of_wfcommons() -> None:
    from wfcommons.wfchef import recipes

    offered = {name.removesuffix("Recipe") for name in vars(recipes) if name.endswith("Recipe")}
    assert {name.lower() for name in offered} == set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_makes_workflows_but_none_that_is_too_small(recipe: str) -> None:
    graph = make(recipe, 105)
    assert 40 < len(graph.tasks) <= 105
    assert graph.edge_bytes or recipe == "rnaseq"
    assert all(task.runtime is not None and task.runtime >= 0 for task in graph.tasks)
    assert all(task.cores is None and task.memory is None for task in graph.tasks)
    with refused_in_a_line(f"mix.x: recipe '{recipe}': ", "a higher num_tasks is needed"):
        make(recipe, 20)


def test_num_tasks_is_an_upper_bound_or_a_range() -> None:
    sizes = [len(make("srasearch", [30, 60], seed).tasks) for seed in range(12)]
    assert max(sizes) <= 60 and min(sizes) >= 28
    assert len(set(sizes)) > 3
    assert len(make("montage", 70).tasks) <= 70


def test_global_generators_are_left_as_they_were() -> None:
    random.seed(11)
    np.random.seed(12)
    expected = (random.getstate(), np.random.random(3).tolist())
    np.random.seed(12)
    make("blast", 50)
    assert (random.getstate(), np.random.random(3).tolist()) == expected


def test_workflows_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Two processes with other hash seeds agree, print nothing and leave no file."""
    program = "from tests.env.workloads.test_recipes import digest; print(digest())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    results = [process.communicate(timeout=600) for process in running]
    expected = digest()
    assert results == [(f"{expected}\n", "")] * 2
    assert list(tmp_path.iterdir()) == []
