"""What was assumed of workflows because their source does not state it, counted and in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from env.base.schema import as_line
from env.workloads.annotation import AnnotationRules

SHOWN_SOURCES = 5
"""How many of them are told apart when they are printed."""

OR = "; or in other scenarios: "
"""Between what different rules have to assume of one source."""

WORDS = {
    "runtime drawn": "runtimes: {n} of {tasks} drawn",
    "memory drawn": "memory: {n} of {tasks} drawn",
    "parallelism drawn": "cores: {n} of {tasks} drawn",
    "cores rounded up": "cores: {n} of {tasks} rounded up to whole ones",
    "negative runtimes taken as 0": "{n} negative runtime{s} taken as 0",
    "runtime 0 raised to min_runtime": (
        "{n} of {tasks} runtimes {are} 0 and count{v} as {rules.min_runtime:g} s"
    ),
    "runtime multiplied by runtime_scale": (
        "{n} of {tasks} runtimes multiplied by {rules.runtime_scale:g}"
    ),
    "runtime clipped to runtime_range": (
        "{n} of {tasks} runtimes clipped to {rules.runtime_range[0]:g} to "
        "{rules.runtime_range[1]:g} s"
    ),
    "computation raised to 1 operation": (
        "{n} of {tasks} runtimes shorter than an operation, 1 is taken"
    ),
    "memory raised to min_memory": "memory: {n} of {tasks} raised to {rules.min_memory:g} MB",
    "parallelism cut to max_parallelism": (
        "{n} task{s} cut from {widest} to {rules.max_parallelism} threads, {its} work kept"
    ),
    "no dependencies": "{without}",
    "execution records of no task": "{n} execution record{s} belong{v} to no task",
    "edges stated by one end only, kept": "{n} edge{s} stated by one end only, kept",
    "edges added for a file that is read": "{n} edge{s} added for a file that is read",
    "file dependencies against the declared order left out": (
        "{n} edge{s} of files against the declared order left out"
    ),
    "negative file sizes taken as unknown": "{n} negative file size{s} taken as unknown",
    "file sizes missing, taken as 0": "{n} file size{s} unknown, taken as 0",
    "files with several sizes, the writer's taken": (
        "{n} file{s} with several sizes, the writer's taken"
    ),
}
"""What is said of a rule that had to decide, in this order."""


@dataclass(frozen=True)
class Assumptions:
    """Of one or several workflows.

    Attributes:
        workflows: how many there are.
        tasks: of all of them.
        most_cores: that a task is stated to use.
        counts: how often a rule had to decide, by the keys of `WORDS`.
    """

    workflows: int = 0
    tasks: int = 0
    most_cores: float = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Assumptions") -> "Assumptions":
        return Assumptions(
            self.workflows + other.workflows,
            self.tasks + other.tasks,
            max(self.most_cores, other.most_cores),
            Counter(self.counts) + Counter(other.counts),
        )

    def text(self, rules: AnnotationRules) -> str:
        """One line; empty where everything is stated."""
        return "; ".join(
            words.format(
                n=n,
                tasks=self.tasks,
                rules=rules,
                s="" if n == 1 else "s",
                v="s" if n == 1 else "",
                are="is" if n == 1 else "are",
                its="its" if n == 1 else "their",
                widest=f"{'' if n == 1 else 'up to '}{self.most_cores:g}",
                without=(
                    "no dependencies at all"
                    if self.workflows == 1
                    else f"no dependencies at all in {n} of {self.workflows} workflows"
                ),
            )
            for rule, words in WORDS.items()
            if (n := self.counts.get(rule, 0))
        )


def told(sources: Mapping[str, Assumptions], rules: AnnotationRules) -> dict[str, dict[str, Any]]:
    """What run.json holds: in total and by source, in words and counted; sources without any not.

    Args:
        sources: by file or config key.
        rules: by which they were annotated.
    """
    some = {where: each for where, each in sources.items() if each.counts}
    if not some:
        return {}
    total = {"total": reduce(add, sources.values())}
    return {
        where: {
            "text": each.text(rules),
            "workflows": each.workflows,
            "tasks": each.tasks,
            "counts": dict(each.counts),
        }
        for where, each in (total | some).items()
    }


def told_together(several: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """What `told` gives by several rules, as one: where they differ in words, all are said."""
    found: dict[str, dict[str, Any]] = {}
    for each in several:
        for where, own in each.items():
            known = found.setdefault(where, dict(own))
            if own["text"] not in known["text"].split(OR):
                known["text"] += OR + own["text"]
    return found


def printed(assumptions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines for the terminal of what `told` gives: by source where they are few, and the total."""
    sources = {where: each for where, each in assumptions.items() if where != "total"}
    shown = sources if len(sources) <= SHOWN_SOURCES else {}
    if len(sources) > 1:
        total = assumptions["total"]
        shown = {**shown, f"{total['workflows']} workflows in all": total}
    return [as_line(f"assumed, {where}: {each['text']}") for where, each in shown.items()]
