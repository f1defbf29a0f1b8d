"""What is published of regions: prices, the power and the speed of hardware, latencies."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from env.base.csv_file import CsvTable
from env.base.errors import InputError
from env.sim.declared.regions import check_known
from env.tables.collectors import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables

GB_SECOND: Final = 1000 * 1024 / 128
"""In milliseconds of 128 MB, of which prices are stated."""
BITS_PER_GB: Final = 8e9


def provider_rows(
    tables: Tables, inputs: Sequence[str], settings: CollectorSettings, now: datetime
) -> dict[str, Rows]:
    """Reads a folder; more inputs are the available regions, without them all of the settings.

    The document's fields, and in addition what data to each other region cost, `to_region`, of
    which `provider_data_transfer` is the most, and the power of an idle and of a busy vCPU.
    """
    folder, keys = Path(inputs[0]), inputs[1:] or [*settings.regions]
    check_known("provider", keys, settings.regions)
    compute = CsvTable(folder / "aws_serverless_prices.csv", "usd", "price_kind", "arch", "region")
    transfer = CsvTable(folder / "aws_transfer_costs.csv", "cost", "src", "dst")
    constants = CsvTable(folder / "power_model_constants.csv", "value", "name")
    names = ("pue", "cfe", "average_memory_power", "min_cpu_power", "max_cpu_power")
    power = {name: constants[name,] for name in names}
    power["average_cpu_power"] = (power["min_cpu_power"] + power["max_cpu_power"]) / 2
    codes = {key: key.split(":") for key in keys}
    available, regions = {}, {}
    for key, (provider, code) in codes.items():
        available[key] = {**dict(settings.regions[key]), "provider": provider, "code": code}
        egress = {other: transfer[code, codes[other][1]] for other in keys if other != key}
        gb_second = {}
        for architecture in ("arm64", "x86_64"):
            kind = "lambda_usd_per_ms_at_128MB", architecture
            place = code if (*kind, code) in compute else "default"
            gb_second[architecture] = GB_SECOND * compute[*kind, place]
        requests = dict.fromkeys(gb_second, settings.request)
        regions[key] = {
            "execution_cost": {
                "invocation_cost": {**requests, "free_tier_invocations": settings.free_requests},
                "compute_cost": {**gb_second, "free_tier_compute_gb_s": settings.free_gb_seconds},
                "unit": "USD",
            },
            "transmission_cost": {
                "global_data_transfer": transfer[code, "internet"],
                "provider_data_transfer": max(egress.values(), default=0.0),
                "to_region": egress,
                "unit": "USD/GB",
            },
            **power,
            "available_architectures": [*gb_second],
        }
    providers: Rows = {provider: {} for provider, _ in codes.values()}
    return {AVAILABLE: available, "provider_table": providers, "provider_region_table": regions}


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
