"""What was assumed of workflows because their source does not state it, counted and in words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from env.base.schema import as_line
from env.workloads.annotation import AnnotationRules

SHOWN_SOURCES = 5
"""Up to so many sources are printed each, more in total only."""

OR = "; or in other scenarios: "
"""Between what different rules assume of one source."""

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
        "cores: {n} of {tasks} cut to {rules.max_parallelism}, work kept"
    ),
    "no dependencies": "no dependencies at all in {n} of {workflows} workflows",
}
"""The words for a rule that had to decide, in this order; all other rules follow by name."""


@dataclass(frozen=True)
class Assumptions:
    """What was assumed of one or several workflows.

    Attributes:
        workflows: how many there are.
        tasks: of all of them.
        counts: how often a rule had to decide, by what it decided.
    """

    workflows: int = 0
    tasks: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Assumptions") -> "Assumptions":
        return Assumptions(
            self.workflows + other.workflows, self.tasks + other.tasks, self.counts + other.counts
        )

    def text(self, rules: AnnotationRules) -> str:
        """One line; empty where everything is stated."""
        rest = {rule: rule + ": {n}" for rule in sorted(self.counts.keys() - WORDS.keys())}
        return "; ".join(
            words.format(n=self.counts[rule], rules=rules, **vars(self))
            for rule, words in (WORDS | rest).items()
            if self.counts[rule]
        )


def summary(
    assumed: Iterable[tuple[AnnotationRules, Mapping[str, Assumptions]]],
) -> dict[str, dict[str, Any]]:
    """What run.json holds: in total and by source, in words and counted.

    Sources without assumptions are left out. Where rules assume different things of a source, their
    texts are joined; the counts are those of the first.

    Args:
        assumed: rules and what was assumed by them, by source: a file or a config key.
    """
    result: dict[str, dict[str, Any]] = {}
    for rules, sources in assumed:
        total = {"total": sum(sources.values(), Assumptions())}
        for where, each in (total | dict(sources)).items():
            if not each.counts:
                continue
            text = each.text(rules)
            first = {"text": text, **vars(each), "counts": dict(each.counts)}
            entry = result.setdefault(where, first)
            if text not in entry["text"].split(OR):
                entry["text"] += OR + text
    return result


def printed(assumptions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines for the terminal of a `summary`: by source where they are few, and the total."""
    sources = {where: each for where, each in assumptions.items() if where != "total"}
    shown = sources if len(sources) <= SHOWN_SOURCES else {}
    if len(sources) > 1:
        total = assumptions["total"]
        shown = {**shown, f"{total['workflows']} workflows in all": total}
    return [as_line(f"assumed, {where}: {each['text']}") for where, each in shown.items()]
