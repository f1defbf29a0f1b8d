"""Fills tables of regions and workflows: `python -m run.collect FILE.duckdb COLLECTOR INPUT...`.

provider FOLDER [REGION ...]  regions, prices and power; first of all, as it makes the file
carbon REGION=FILE ...        carbon intensities, forecast for the day from --at on
performance FOLDER            latencies between regions
workflow EPISODE ...          episode files, whose time 0 is --at
"""

from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from env.base.errors import InputError
from env.base.files import read_yaml
from env.base.pipes import until_reader_leaves
from env.base.schema import validated
from env.tables.collectors import CollectorSettings
from env.tables.collectors.carbon import carbon_rows
from env.tables.collectors.regions import performance_rows, provider_rows
from env.tables.collectors.workflow import workflow_rows
from env.tables.tables import Tables
from run.command import CONF, refuse

COLLECTORS = {
    "provider": provider_rows,
    "carbon": carbon_rows,
    "performance": performance_rows,
    "workflow": workflow_rows,
}


def hour(text: str) -> datetime:
    """An hour in UTC, such as 2023-07-01T00."""
    return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> None:
    """The command; bad input gets one line, exit code 2, and no change."""
    parser = ArgumentParser(
        usage=SUPPRESS,
        prog="python -m run.collect",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("tables", metavar="FILE.duckdb", type=Tables)
    parser.add_argument("collector", choices=COLLECTORS)
    parser.add_argument("inputs", metavar="INPUT", nargs="+")
    parser.add_argument(
        "--at", type=hour, required=True, help="the hour it is (UTC): 2023-07-01T00"
    )
    parser.add_argument("--settings", metavar="FILE", type=Path, default=CONF / "collect.yaml")
    options = parser.parse_args(arguments)
    try:
        where = str(options.settings)
        settings = validated(CollectorSettings, read_yaml(options.settings, where), where)
        collect = COLLECTORS[options.collector]
        rows = collect(options.tables, options.inputs, settings, options.at)
        options.tables.replace(options.collector, int(options.at.timestamp()), rows)
    except InputError as error:
        refuse(error)
    for name, table in rows.items():
        print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main()
