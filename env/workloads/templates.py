"""Pools of workflow templates: what the config group `workflow` describes, ready to be drawn from.

A pool is filled once in a process; episodes sample it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from env.base.files import MOST_BYTES
from env.base.schema import Strict, Weight, validated
from env.sim.declared.workflow_template import WorkflowTemplate
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.assumptions import Summary, summary
from env.workloads.inline import InlineEntry, inline_graph
from env.workloads.recipes import RecipeEntry, recipe_graph
from env.workloads.task_graph import TaskGraph
from env.workloads.workflow_files import find_workflow_files, read_workflow_file

PoolName = Literal["training", "evaluation"]
POOLS: tuple[PoolName, ...] = get_args(PoolName)

ABSOLUTE = AfterValidator(lambda path: str(Path(path).expanduser().absolute()))
AS_TUPLE = BeforeValidator(lambda paths: (paths,) if isinstance(paths, str) else paths)
FilePath = Annotated[str, Field(min_length=1), ABSOLUTE]
"""A file, a folder or a glob pattern; a relative one starts where the config is validated."""
Paths = Annotated[tuple[FilePath, ...], AS_TUPLE, Field(min_length=1)]
"""One of them, or a list."""


class FilesEntry(Strict):
    """Workflow files (WfFormat, DAX, SeBS-Flow) in the mix; the weight is spread evenly over them.

    Without an `evaluation_path`, learned policies are judged on workflows they have seen, at
    arrivals they have not.
    """

    path: Paths
    evaluation_path: Paths | None = None
    weight: Weight = 1.0


ENTRY_KEYS = ("recipe", "path", "functions")
"""The key that says what an entry of the mix is. In <> it is a tag: errors leave it out."""


def _tag(entry: Any) -> str | None:
    keys = entry if isinstance(entry, Mapping) else getattr(entry, "__dict__", ())
    return next((f"<{key}>" for key in ENTRY_KEYS if key in keys), None)


Entry = Annotated[
    Annotated[RecipeEntry, Tag("<recipe>")]
    | Annotated[FilesEntry, Tag("<path>")]
    | Annotated[InlineEntry, Tag("<functions>")],
    Discriminator(
        _tag,
        custom_error_type="entry_kind",
        custom_error_message=f"one of the keys {', '.join(ENTRY_KEYS)} is needed",
    ),
]


class WorkflowConfig(Strict):
    """Which workflows there are; the files of conf/workflow explain each key."""

    path: Paths | None = None
    evaluation_path: Paths | None = None
    mix: dict[str, Entry] = Field(default_factory=dict)
    max_bytes: int = Field(default=MOST_BYTES, ge=1, le=1_000_000_000_000)
    annotation: AnnotationRules

    @model_validator(mode="after")
    def _has_workflows(self) -> Self:
        if self.path is None and self.evaluation_path is not None:
            raise ValueError("evaluation_path needs path, which is not given")
        if self.path is None and not self.mix:
            raise ValueError("no workflows: one of path and mix is needed")
        return self

    @property
    def entries(self) -> Mapping[str, RecipeEntry | FilesEntry | InlineEntry]:
        """The mix in force, by name."""
        if self.path is None:
            return self.mix
        return {"path": FilesEntry(path=self.path, evaluation_path=self.evaluation_path)}


@dataclass(frozen=True, eq=False)
class TemplatePool:
    """Templates with the probability of each.

    Attributes:
        entries: P templates, each with the name of its entry in the mix.
        weights: float64 (P,), sums to 1.
        assumptions: by source (file or config key) what was assumed, and its workflows and tasks.
    """

    entries: Mapping[WorkflowTemplate, str]
    weights: np.ndarray
    assumptions: Mapping[str, Counter[str]]

    @cached_property
    def templates(self) -> tuple[WorkflowTemplate, ...]:
        """The P templates."""
        return tuple(self.entries)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[WorkflowTemplate, ...]:
        """`count` templates, drawn by weight with replacement."""
        chosen = rng.choice(len(self.templates), size=count, p=self.weights)
        return tuple(self.templates[position] for position in chosen)


TemplatePools = Mapping[PoolName, TemplatePool]
"""Workflows of recipes are never in both; files and inline workflows are, unless an
`evaluation_path` is given."""


def template_pools(config: WorkflowConfig, core_speed: int) -> TemplatePools:
    """The pools of a config, filled once in a process and again only when a file has changed.

    Raises:
        InputError: a file cannot be used, or a workflow is not a DAG.
    """
    stamps = tuple(
        (str(file), file.stat().st_mtime_ns)
        for entry in config.entries.values()
        if isinstance(entry, FilesEntry)
        for file in find_workflow_files(entry.path + (entry.evaluation_path or ()))
    )
    return _filled(config.model_dump_json(by_alias=True), stamps, core_speed)


def assumed_of(worlds: Iterable[tuple[Mapping[str, Any], int]], pool: PoolName) -> Summary:
    """What was assumed of the workflows of a pool.

    Args:
        worlds: of each the group `workflow`, in plain containers, and the operations per second of
            the cluster's reference core. What several have in common counts once.
        pool: training or evaluation.
    """
    sources: dict[tuple[AnnotationRules, int], dict[str, Counter[str]]] = defaultdict(dict)
    for workflow, core_speed in worlds:
        config = validated(WorkflowConfig, workflow, "workflow")
        assumed = template_pools(config, core_speed)[pool].assumptions
        sources[config.annotation, core_speed] |= assumed
    return summary(sources.values())


@lru_cache(maxsize=8)
def _filled(config_json: str, stamps: tuple[Any, ...], core_speed: int) -> TemplatePools:
    config = WorkflowConfig.model_validate_json(config_json)
    return {pool: _pool(config, pool, core_speed) for pool in POOLS}


def _pool(config: WorkflowConfig, pool: PoolName, core_speed: int) -> TemplatePool:
    entries: dict[WorkflowTemplate, str] = {}
    weights: list[float] = []
    assumptions: dict[str, Counter[str]] = defaultdict(Counter)
    for name, entry in config.entries.items():
        graphs = _graphs(name, entry, pool, config.max_bytes)
        weights += [entry.weight / len(graphs)] * len(graphs)
        for graph in graphs:
            template, counts = annotate(graph, config.annotation, core_speed)
            entries[template] = name
            assumptions[graph.where] += Counter(workflows=1, tasks=len(graph.tasks)) + counts
    shares = np.array(weights) / sum(weights)
    shares.flags.writeable = False
    return TemplatePool(entries, shares, dict(assumptions))


def _graphs(
    name: str, entry: RecipeEntry | FilesEntry | InlineEntry, pool: PoolName, max_bytes: int
) -> list[TaskGraph]:
    where = f"workflow: mix.{name}"
    if isinstance(entry, InlineEntry):
        return [inline_graph(entry, name, where)]
    if isinstance(entry, FilesEntry):
        other = entry.evaluation_path if pool == "evaluation" else None
        files = find_workflow_files(other or entry.path)
        return [read_workflow_file(file, max_bytes, inside) for file, inside in files.items()]
    count = entry.training_templates if pool == "training" else entry.evaluation_templates
    seeds = np.random.SeedSequence(entry.seed, spawn_key=(POOLS.index(pool),)).spawn(count)
    return [
        recipe_graph(entry, seed, f"{name}-{pool}-{number}", where)
        for number, seed in enumerate(seeds)
    ]
