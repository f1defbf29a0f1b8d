"""What was assumed of workflows or traces because their source does not state it, counted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from env.base.schema import as_line

SHOWN_SOURCES = 5
"""Up to so many sources are printed each, more in total only."""
SIZES = {"workflows", "tasks", "functions"}
"""Counts that are no assumptions but what these are part of."""
OR = "; or in other scenarios: "
"""Between what different rules assume of one source."""

Summary = dict[str, dict[str, Any]]
"""What run.json holds, in total and by source: a text and the counts."""


def in_words(counts: Mapping[str, int]) -> str:
    """`tasks: 4; runtime drawn: 1`."""
    return "; ".join(f"{what}: {count}" for what, count in counts.items())


def summary(assumed: Iterable[Mapping[str, Counter[str]]]) -> Summary:
    """What was assumed in total and by source; sources of which nothing was assumed are left out.

    Args:
        assumed: by several rules, of each source (a file or a config key) what was assumed and how
            often, and its sizes. Where rules differ in what they assume of a source, their texts
            are joined and the counts are those of the first.
    """
    result: Summary = {}
    for sources in assumed:
        total = sum(sources.values(), Counter())
        for where, counts in ({"total": total} | dict(sources)).items():
            if counts.keys() <= SIZES:
                continue
            text = in_words(counts)
            entry = result.setdefault(where, {"text": text, "counts": dict(counts)})
            if text not in entry["text"].split(OR):
                entry["text"] += OR + text
    return result


def printed(assumptions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines for the terminal of a `summary`: by source where they are few, and the total."""
    sources = {where: each["text"] for where, each in assumptions.items() if where != "total"}
    shown = sources if len(sources) <= SHOWN_SOURCES else {}
    if len(sources) > 1:
        shown = {**shown, "in all": assumptions["total"]["text"]}
    return [as_line(f"assumed, {where}: {text}") for where, text in shown.items()]
