"""How long data take between regions, and how fast regions are."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from env.base.csv_file import CsvTable
from env.base.errors import InputError
from env.tables.settings import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables

BITS_PER_GB: Final = 8e9


def performance_rows(
    tables: Tables, inputs: Sequence[str], settings: CollectorSettings, now: datetime
) -> dict[str, Rows]:
    """Reads a folder. Latencies are round trips, as in published code.

    The document's fields, and in addition `seconds_per_gb` at the throughput that arrives. Within a
    region, where it is not measured, it is the largest from there.
    """
    if len(inputs) > 1:
        raise InputError(f"performance: {' '.join(inputs)}: one folder is needed")
    regions, folder, rows = tables.rows(AVAILABLE), Path(inputs[0]), {}
    path = folder / "interregion_throughput.csv.gz"
    speed = CsvTable(path, "throughput_received", "src_region", "dst_region")
    for key in regions:
        if from_here := [speed[pair] for pair in speed if pair[0] == key]:
            speed.setdefault((key, key), max(from_here))
    codes = {key: row["code"] for key, row in regions.items()}
    trips = {
        key: CsvTable(folder / "aws_rtt_ms.csv", code, r"src\dst") for key, code in codes.items()
    }
    for key, code in codes.items():
        latency = {}
        for other in regions:
            seconds = trips[other][code,] / 1000
            latency[other] = {
                "average_latency": seconds,
                "tail_latency": settings.tail * seconds,
                "seconds_per_gb": BITS_PER_GB / speed[key, other],
                "unit": "s",
            }
        rows[key] = {
            "relative_performance": settings.relative_performance.get(key, 1.0),
            "transmission_latency": latency,
        }
    return {"performance_region_table": rows}
