"""The summary as a table in the terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from report.summary import RANKED_BY, PolicySummary, Summary, number, spread

PLAIN_WIDTH = 400
"""Characters in which all columns fit; what is printed into files and pipes has this width."""


def summary_table(summary: Summary, width: int = PLAIN_WIDTH) -> Table:
    """A row a policy: J and the comparison with their intervals, the means of all other metrics.

    Of several scenarios each has a block of rows below its name.

    Args:
        summary: of an evaluation.
        width: characters of the terminal; metrics are left out, last ones first, until the table
            fits.
    """
    ruler = Console(width=10_000)  # so wide that nothing is cut when measured
    for shown in range(len(summary.metrics), -1, -1):
        table = _table(summary, shown)
        if ruler.measure(table).maximum <= width:
            break
    return table


def _table(summary: Summary, shown: int) -> Table:
    """The first `shown` metrics; J is there with its comparison if there is any."""
    others = [
        metric for metric in list(summary.metrics.values())[:shown] if metric.name != RANKED_BY
    ]
    hidden = "" if shown == len(summary.metrics) else "; more columns in summary.md"
    compared_with = len(summary.ranked) - 1
    comparisons = f"{compared_with} comparison{'' if compared_with == 1 else 's'}"
    table = Table(
        title=summary.title,
        title_justify="left",
        caption=(
            f"mean over episodes [{summary.confidence:.0%} interval], p corrected for "
            f"{comparisons}{hidden}"
        ),
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("policy", no_wrap=True)
    against = [f"{RANKED_BY} - {RANKED_BY} of\n{summary.measure}", "p", "P(better)"]
    compared = against if shown else []
    for heading in (RANKED_BY, *compared, *("\n".join(m.heading.split()) for m in others)):
        table.add_column(heading, justify="right", no_wrap=True)
    for scenario in summary.scenarios:
        if summary.several:
            table.add_section()
            table.add_row(scenario.replace(" ", "\n"))  # a swept key a line, as names are long
        for policy in summary.of(scenario).policies:
            means = [number(policy.metrics[metric.name].mean.value) for metric in others]
            comparison = _comparison(policy) if shown else []
            J = spread(policy.metrics[RANKED_BY].mean)
            table.add_row(policy.label, J, *comparison, *means)
    return table


def _comparison(policy: PolicySummary) -> list[str]:
    against = policy.against
    return [
        spread(against.difference, sign="+"),
        f"{against.p_holm:.2g}",
        f"{against.probability.value:.2f}",
    ]
