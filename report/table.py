"""The summary as a table in the terminal."""

import os
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from report.summary import RANKED_BY, Summary, wrapped

PLAIN_WIDTH = 80
"""Characters of a line in files and pipes, unless COLUMNS says otherwise."""
LONGEST_LABEL = 40
"""Characters of a policy in a line; longer ones go on in the next."""


def console() -> Console:
    """Where commands print tables: as wide as the terminal, if it is one."""
    # rich asks COLUMNS, and then any terminal that the process has, even where it prints elsewhere.
    asked = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if asked else PLAIN_WIDTH, markup=False)


def plain_table(**options: Any) -> Table:
    """A table of ours: a line below its headings, `options` as of `Table`."""
    justified = {"title_justify": "left", "caption_justify": "left"} | options
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, **justified)


def summary_table(summary: Summary, width: int) -> Group:
    """What was found, and a row a policy: difference in J, J, P(better), means of other metrics.

    Of several scenarios each has a block of rows below its name.

    Args:
        width: characters of the terminal; the last columns are left out until the table fits, and
            then the interval of J.
    """
    ruler = Console(width=10_000)  # so wide that nothing is cut when measured
    for shown in range(len(summary.metrics) - 1, -2, -1):
        table = _table(summary, shown)
        if ruler.measure(table).maximum <= width:
            break
    return Group(Text(f"{summary.finding}.\n{summary.title}."), table)


def _table(summary: Summary, shown: int) -> Table:
    """With the first `shown` metrics besides J; 0: no P(better), -1: nor the interval of J."""
    left = [name for name in summary.metrics if name != RANKED_BY]
    others = left[: max(0, shown)]
    compared = len(summary.kinds) > 1
    often = compared and bool(others)
    caption = [f"{RANKED_BY} = {summary.metrics[RANKED_BY].formula}; lower is better."]
    if compared:
        caption.append(summary.difference_is)
    if often:
        caption.append(f"P(better): share of episodes with a lower {RANKED_BY}.")
    caption.append(summary.means_are)
    if others != left:
        caption.append("More columns are in summary.md.")
    table = plain_table(caption=" ".join(caption))
    table.add_column("policy", overflow="fold", max_width=LONGEST_LABEL)
    headings = [
        *[f"{RANKED_BY} against\n{wrapped(summary.measure)}"] * compared,
        RANKED_BY,
        *["P(better)"] * often,
        *("\n".join(summary.metrics[name].heading.split()) for name in others),
    ]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for scenario in summary.scenarios:
        if summary.several:
            table.add_section()
            table.add_row(scenario.replace(" ", "\n"))  # a swept key a line, as names are long
        for policy in summary.of(scenario).policies:
            means = {name: policy.metrics[name].mean for name in (RANKED_BY, *others)}
            J = means.pop(RANKED_BY)
            cells = [
                *[summary.spread(policy.relative, "share", "+")] * compared,
                summary.spread(J) if shown >= 0 else summary.number(J),
                *[summary.number(policy.against.probability, "share")] * often,
                *(
                    summary.number(mean, summary.metrics[name].shown)
                    for name, mean in means.items()
                ),
            ]
            table.add_row(policy.label, *cells)
    return table
