"""How benchmarks print what they measured."""

import json
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table


def print_figures(figures: Mapping[str, float], units: Mapping[str, str], as_json: bool) -> None:
    """Prints them as a table, or as one JSON object.

    Args:
        figures: what was measured, by name.
        units: what each of them is; the order of the rows.
        as_json: print the object.
    """
    if as_json:
        print(json.dumps(figures))
        return
    table = Table("figure", "value", "what")
    for name, what in units.items():
        if name in figures:
            table.add_row(name, f"{figures[name]:,.{0 if figures[name] >= 1000 else 2}f}", what)
    Console().print(table)
