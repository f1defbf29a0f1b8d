"""Which regions there are, what a provider charges there and what its hardware draws."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from env.base.csv_file import CsvTable
from env.sim.declared.regions import check_known
from env.tables.settings import CollectorSettings
from env.tables.tables import AVAILABLE, Rows, Tables

GB_SECOND: Final = 1000 * 1024 / 128
"""In milliseconds of 128 MB, of which prices are stated."""


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
