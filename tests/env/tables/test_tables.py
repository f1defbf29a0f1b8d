"""The file of tables: what is written stays, all of it or nothing, and what is refused."""

from pathlib import Path

import duckdb
import pytest

from env.base.errors import InputError
from env.tables.tables import AVAILABLE, Rows, Tables

CARBON = "carbon_region_table"
REGIONS: Rows = {"aws:b": {"code": "b"}, "aws:a": {"code": "a"}}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Two regions, collected at 5 s."""
    made = Tables(tmp_path / "a.duckdb")
    made.replace("provider", 5, {AVAILABLE: REGIONS, "provider_table": {"aws": {}}})
    return made


def times(tables: Tables) -> dict[str, list[int | None]]:
    names = ("provider_collector", "carbon_collector", "performance_collector")
    return {key: [row[name] for name in names] for key, row in tables.rows(AVAILABLE).items()}


def test_each_collector_notes_its_own_time_and_regions_that_stay_keep_the_others(
    tables: Tables,
) -> None:
    assert [*tables.rows(AVAILABLE)] == ["aws:a", "aws:b"]  # in the order of their keys
    tables.replace("carbon", 7, {CARBON: {"aws:a": {}, "aws:b": {}}})
    assert times(tables) == {"aws:a": [5, 7, None], "aws:b": [5, 7, None]}
    tables.replace("workflow", 8, {"workflow_summary_table": {}})
    tables.replace("provider", 9, {AVAILABLE: {"aws:b": {"code": "b2"}, "aws:c": {}}})
    assert times(tables) == {"aws:b": [9, 7, None], "aws:c": [9, None, None]}
    assert tables.rows(AVAILABLE)["aws:b"]["code"] == "b2"
    assert [*tables.rows(CARBON)] == ["aws:a", "aws:b"]


def test_what_fails_leaves_the_tables_as_they_were(tables: Tables) -> None:
    before = tables.rows(AVAILABLE)
    damaged: Rows = {"aws": {"price": float("nan")}}
    with pytest.raises(ValueError, match="not JSON compliant"):
        tables.replace("provider", 9, {AVAILABLE: {"aws:c": {}}, "provider_table": damaged})
    assert tables.rows(AVAILABLE) == before
    assert tables.rows("provider_table") == {"aws": {}}


def test_what_is_refused(tables: Tables, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{CARBON} is empty, collector 'carbon' fills it"):
        tables.rows(CARBON)
    assert tables.rows(CARBON, least=0) == {}
    with pytest.raises(InputError, match="none.duckdb: no such file, collector 'provider' fills"):
        Tables(tmp_path / "none.duckdb").rows(AVAILABLE)
    (tmp_path / "text.duckdb").write_text("no database" * 1_000)
    with pytest.raises(InputError, match="not a valid DuckDB database"):
        Tables(tmp_path / "text.duckdb").rows(AVAILABLE)
    with pytest.raises(InputError, match="Cannot open file"):
        Tables(tmp_path / "none" / "a.duckdb").replace("carbon", 0, {})


def test_a_file_of_others_reads_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "others.duckdb"
    with duckdb.connect(str(path)) as connection:
        query = f"SELECT 'a' AS key, content AS value FROM read_text('{__file__}')"
        connection.execute(f"CREATE VIEW {AVAILABLE} AS {query}")
    with pytest.raises(InputError, match="Permission Error"):
        Tables(path).rows(AVAILABLE)
