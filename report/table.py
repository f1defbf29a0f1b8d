"""The comparison as a table in the terminal."""

from collections.abc import Sequence

from rich.table import Table

from agents.evaluation import Interval

# Metric, heading, format of the mean and of half the interval.
SHOWN = (
    ("J", "J", ".3f"),
    ("J_over_best_baseline", "J - best baseline", "+.3f"),
    ("slowdown", "slowdown", ".2f"),
    ("slowdown_p95", "p95", ".2f"),
    ("cost_ratio", "cost ratio", ".2f"),
    ("makespan", "makespan (h)", ".2f"),
    ("rent", "rent (USD)", ".2f"),
    ("cold_starts", "cold starts", ".1f"),
    ("decisions_per_s", "decisions/s", ",.0f"),
)
HOUR = 3600.0


def summary_table(summary: Sequence[dict[str, str | Interval]], title: str) -> Table:
    """A row a policy: means, and half the width of the 95% interval where it is compared."""
    table = Table(title=title, title_justify="left", caption="mean ± 95% interval over episodes")
    table.add_column("policy", no_wrap=True)
    for _, heading, _ in SHOWN:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in summary:
        table.add_row(str(row["policy"]), *(_cell(row[key], key, form) for key, _, form in SHOWN))
    return table


def _cell(found: str | Interval, key: str, form: str) -> str:
    assert isinstance(found, Interval)
    scale = HOUR if key == "makespan" else 1.0
    shown = format(found.mean / scale, form)
    if key in ("J", "J_over_best_baseline"):
        half = (found.ci_high - found.ci_low) / 2
        return f"{shown} ± {half:.3f}"
    return shown
