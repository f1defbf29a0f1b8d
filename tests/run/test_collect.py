"""The command that fills tables: what each collector makes of small files, and what is refused."""

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from env.tables.collectors.carbon import distance, next_day
from env.tables.tables import AVAILABLE, FILLED_BY, Rows, Tables
from run.collect import main

EAST, GERMANY = "aws:us-east-1", "aws:eu-central-1"
BEGIN = datetime(2023, 7, 2, 5)
"""A week before the hour of these tests."""
HOURS = [BEGIN + timedelta(hours=number) for number in range(168)]
FILES = {
    "aws_serverless_prices.csv": """price_kind,arch,region,usd
lambda_usd_per_ms_at_128MB,x86_64,us-east-1,2e-9
lambda_usd_per_ms_at_128MB,x86_64,default,3e-9
lambda_usd_per_ms_at_128MB,arm64,default,1e-9
step_functions_usd_per_state_transition,,default,2e-5
""",
    "aws_transfer_costs.csv": """src,dst,cost
us-east-1,eu-central-1,0.02
us-east-1,internet,0.09
eu-central-1,us-east-1,0.03
eu-central-1,internet,0.08
""",
    "power_model_constants.csv": """name,value,unit
pue,1.11,ratio
cfe,0.2,fraction
average_memory_power,0.0004,kW per GB
min_cpu_power,0.001,kW per vCPU
max_cpu_power,0.003,kW per vCPU
""",
    "aws_rtt_ms.csv": r"""src\dst,eu-central-1,us-east-1,us-west-1
eu-central-1,2,91,151
us-east-1,92,4,62
""",
    "interregion_throughput.csv": """src_region,dst_region,throughput_received
aws:us-east-1,aws:eu-central-1,2e9
aws:us-east-1,aws:us-west-1,8e9
aws:eu-central-1,aws:us-east-1,4e9
""",
    "de.csv": "date,hour,ci\n" + "".join(f"{hour:%Y-%m-%d,%H:%M},{hour.hour}\n" for hour in HOURS),
}


@pytest.fixture(autouse=True)
def folder(elsewhere: Path) -> Path:
    """The files."""
    for name, text in FILES.items():
        if name == "interregion_throughput.csv":
            (elsewhere / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (elsewhere / name).write_text(text)
    return elsewhere


INPUTS = {
    "provider": [".", EAST, GERMANY],
    "carbon": [f"{EAST}=", f"{GERMANY}=de.csv", "aws:not-available=none.csv"],
    "performance": ["."],
}


def collect(collector: str, *inputs: str) -> int:
    """Exit code of the command, with its usual inputs if there are none."""
    given = inputs or INPUTS[collector]
    return main(["t.duckdb", collector, *given, "--at", "2023-07-09T05"])


def contents() -> dict[str, Rows]:
    return {name: Tables("t.duckdb").rows(name, least=0) for name in FILLED_BY}


def collected(collector: str) -> dict[str, Rows]:
    """All tables after a collector and, if it is not the first, that of the regions."""
    assert collect("provider") == 0
    assert collect(collector) == 0
    return contents()


def test_regions_prices_and_power() -> None:
    tables = collected("provider")
    assert tables["provider_table"] == {"aws": {}}
    assert tables[AVAILABLE][GERMANY] == {
        "name": "Europe (Frankfurt)",
        "provider": "aws",
        "code": "eu-central-1",
        "latitude": 50.1,
        "longitude": 8.7,
        "provider_collector": 1_688_878_800,  # 2023-07-09T05 in Unix seconds
        "carbon_collector": None,
        "performance_collector": None,
    }
    rows = tables["provider_region_table"]
    compute = rows[EAST]["execution_cost"]["compute_cost"]
    assert compute["x86_64"] == pytest.approx(1.6e-5)  # 1000 ms of 8 times 128 MB
    assert compute["arm64"] == pytest.approx(0.8e-5)
    assert rows[GERMANY]["execution_cost"]["compute_cost"]["x86_64"] == pytest.approx(2.4e-5)
    assert rows[EAST]["execution_cost"]["invocation_cost"]["arm64"] == 2e-7
    transmission = {"global_data_transfer": 0.09, "provider_data_transfer": 0.02, "unit": "USD/GB"}
    assert rows[EAST]["transmission_cost"] == {**transmission, "to_region": {GERMANY: 0.02}}
    assert rows[EAST]["average_cpu_power"] == pytest.approx(0.002)
    assert rows[EAST]["pue"] == 1.11


def test_carbon_of_a_week_in_which_hour_h_has_h_grams() -> None:
    """The forecast of Caribou's own test: 24 values 0 to 23, 11.5 overall; no data: 475."""
    rows = collected("carbon")["carbon_region_table"]
    assert rows[GERMANY]["hourly"] == pytest.approx(range(24), abs=1e-9)
    assert rows[GERMANY]["carbon_intensity"] == pytest.approx(11.5)
    assert rows[EAST]["hourly"] == [475] * 24
    between = rows[EAST]["transmission_carbon"]
    assert between[EAST] == {"carbon_intensity": 0.005 * 475, "unit": "gCO2eq/GB"}
    assert between[GERMANY]["carbon_intensity"] == pytest.approx(0.005 * (475 + 11.5) / 2)
    assert rows[EAST]["transmission_distances"][EAST] == 0


def test_a_degree_at_the_equator_and_a_forecast_of_the_published_code() -> None:
    """Both of caribou/tests/data_collector, test_carbon_retriever.py, which forecasts from 19 h."""
    places = ({"latitude": 0, "longitude": degree} for degree in (0, 1))
    assert distance(*places) == pytest.approx(111.19, abs=0.005)
    first = [189, 169, 148, 133, 136, 122, 132, 141, 141, 147, 150, 148]
    second = [143, 118, 104, 115, 109, 110, 112, 124, 130, 140, 158, 159]
    third = [143, 142, 135, 139, 140, 123, 123, 140, 160, 170, 185, 173]
    fourth = [167, 146, 147, 134, 122, 129, 139, 152, 184, 207, 254, 262]
    forecast = next_day(np.array(first + second + third + fourth, float))
    assert forecast[[0, 5, 23]] == pytest.approx([243.72, 194.52, 262.0], abs=0.01)
    assert forecast.mean() == pytest.approx(212.40, abs=0.01)


def test_latencies_between_regions() -> None:
    rows = collected("performance")["performance_region_table"]
    assert rows[EAST]["relative_performance"] == 1
    latency = rows[EAST]["transmission_latency"]
    assert [*latency] == [GERMANY, EAST]
    assert latency[GERMANY] == {
        "average_latency": 0.092,
        "tail_latency": pytest.approx(0.1288),
        "seconds_per_gb": 4.0,
        "unit": "s",
    }
    assert (latency[EAST]["average_latency"], latency[EAST]["seconds_per_gb"]) == (0.004, 1.0)


@pytest.mark.parametrize("collector", INPUTS)
def test_twice_is_as_once(collector: str) -> None:
    once = collected(collector)
    assert collect(collector) == 0
    assert contents() == once


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "provider . aws:us-east-9",
            "region 'aws:us-east-9' is unknown, did you mean 'aws:us-east",
        ),
        (
            f"provider . {EAST} aws:eu-west-2",
            "aws_transfer_costs.csv: no cost of us-east-1 eu-west-2",
        ),
        (f"carbon {EAST}=", f"region '{GERMANY}' has no file, '{GERMANY}=' would take 475 g"),
        (f"carbon {EAST}= {GERMANY}=short.csv", "short.csv: line 2: hour 2023-07-02T05"),
        ("performance none", "none/interregion_throughput.csv.gz: no such file"),
    ],
)
def test_a_collector_that_fails_leaves_the_tables_as_they_were(
    command: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "short.csv").write_text("date,hour,ci\n2023-07-09,04:00,1\n")
    for each in INPUTS:
        assert collect(each) == 0
    before = contents()
    capsys.readouterr()
    assert collect(*command.split()) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and says in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert contents() == before


@pytest.mark.realdata
def test_real_samples(data_dir: Path) -> None:
    """All 21 regions that are measured."""
    files = str(data_dir / "regions")
    assert collect("provider", files) == 0
    assert collect("performance", files) == 0
    rows = contents()["performance_region_table"]
    assert len(rows) == len(rows[EAST]["transmission_latency"]) == 21
