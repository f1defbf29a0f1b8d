"""The tables of Caribou's design document in one DuckDB file: a text key, and a value in JSON."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from env.base.errors import InputError
from env.base.files import parse_json
from env.base.schema import one_line

AVAILABLE: Final = "available_regions_table"
FILLED_BY: Final = {
    AVAILABLE: "provider",
    "provider_table": "provider",
    "provider_region_table": "provider",
    "carbon_region_table": "carbon",
    "performance_region_table": "performance",
    "workflow_summary_table": "workflow",
    "workflow_instance_table": "workflow",
}
"""The collector of each table."""
STAMPED: Final = ("provider", "carbon", "performance")
"""Collectors that note in `AVAILABLE` when they ran, each in a column of its own."""

ALONE: Final[dict[str, Any]] = {"enable_external_access": False}
"""A file of others reads no other file and loads no code."""

Rows = dict[str, dict[str, Any]]
"""Values by key."""


class Tables:
    """A file of tables, open only while it is read or written.

    Raises:
        InputError: from its methods, where it is no such file or another program has it open.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def rows(self, name: str, least: int = 1) -> Rows:
        """A table in the order of its keys; regions also have the times of collectors.

        Raises:
            InputError: it has fewer rows than `least`.
        """
        names, found = ["key", "value"], []
        if self.path.exists():
            with self._opened(read_only=True) as connection:
                table = connection.execute(f"SELECT * FROM {name} ORDER BY key")
                names, found = [column[0] for column in table.description], table.fetchall()
        if len(found) < least:
            fault = f"{name} is empty" if self.path.exists() else "no such file"
            raise InputError(f"{self.path}: {fault}, collector '{FILLED_BY[name]}' fills it")
        where = f"{self.path}: {name}"
        return {
            key: {**parse_json(value.encode(), where), **dict(zip(names[2:], times, strict=True))}
            for key, value, *times in found
        }

    def replace(self, collector: str, at: int, tables: Mapping[str, Rows]) -> None:
        """Gives the tables of a collector other rows and notes the time: all of it, or nothing.

        What other collectors noted of regions that stay is kept.

        Args:
            collector: its name.
            at: Unix seconds.
            tables: all rows, by the name of the table.
        """
        with self._opened(read_only=False) as connection:
            connection.execute("BEGIN")
            times = "".join(f", {each}_collector BIGINT" for each in STAMPED)
            for name in FILLED_BY:
                columns = "key TEXT PRIMARY KEY, value JSON" + times * (name == AVAILABLE)
                connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            for name, rows in tables.items():
                gone = f"DELETE FROM {name} WHERE key NOT IN (SELECT unnest(?::TEXT[]))"
                connection.execute(gone, [[*rows]])
                row = f"INSERT OR REPLACE INTO {name} (key, value) VALUES (?, ?)"
                for key, value in rows.items():
                    connection.execute(row, [key, json.dumps(value, allow_nan=False)])
            if collector in STAMPED:
                connection.execute(f"UPDATE {AVAILABLE} SET {collector}_collector = ?", [at])
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        if self.path.suffix != ".duckdb":  # others it may read as tables of their own
            raise InputError(f"{self.path}: a name that ends in .duckdb is needed")
        try:
            with duckdb.connect(str(self.path), read_only, ALONE) as connection:
                yield connection
        except duckdb.Error as error:
            raise InputError(f"{self.path}: {one_line(str(error))}") from None
