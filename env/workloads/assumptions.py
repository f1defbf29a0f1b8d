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
    "runtime 0 raised to min_runtime": (
        "runtimes: {n} of {tasks} are 0 and count as {rules.min_runtime:g} s"
    ),
    "runtime multiplied by runtime_scale": (
        "runtimes: {n} of {tasks} multiplied by {rules.runtime_scale:g}"
    ),
    "runtime clipped to runtime_range": (
        "runtimes: {n} of {tasks} clipped to {rules.runtime_range[0]:g} to "
        "{rules.runtime_range[1]:g} s"
    ),
    "computation raised to 1 operation": "runtimes: {n} of {tasks} raised to 1 operation",
    "memory raised to min_memory": "memory: {n} of {tasks} raised to {rules.min_memory:g} MB",
    "parallelism cut to max_parallelism": (
        "cores: {n} of {tasks} cut from up to {most_cores:g} to {rules.max_parallelism}, work kept"
    ),
    "no dependencies": "no dependencies at all in {n} of {workflows} workflows",
}
"""What is said of a rule that had to decide, in this order; then all others in their own words."""


@dataclass(frozen=True)
class Assumptions:
    """Of one or several workflows.

    Attributes:
        workflows: how many there are.
        tasks: of all of them.
        most_cores: that a task is stated to use.
        counts: how often a rule had to decide, by what it decided.
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
        rest = {rule: rule + ": {n}" for rule in sorted(self.counts.keys() - WORDS.keys())}
        return "; ".join(
            words.format(n=self.counts[rule], rules=rules, **vars(self))
            for rule, words in (WORDS | rest).items()
            if self.counts.get(rule)
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
