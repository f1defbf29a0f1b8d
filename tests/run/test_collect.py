"""The command that fills tables: what each collector makes of small files, and what is refused."""

import gzip
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from env.sim.declared.hardware import ServerType
from env.sim.declared.regions import Link, Region
from env.sim.declared.workflow_template import WorkflowTemplate
from env.tables.collectors.carbon import distance, next_day
from env.tables.tables import AVAILABLE, FILLED_BY, Rows, Tables
from run.collect import main
from tests.env.small import cluster_of
from tests.episodes import GOLDEN, begun, written

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
    "interregion_throughput.csv.gz": """src_region,dst_region,throughput_received
aws:us-east-1,aws:eu-central-1,2e9
aws:us-east-1,aws:us-west-1,8e9
aws:eu-central-1,aws:us-east-1,4e9
""",
    "de.csv": "date,hour,ci\n" + "".join(f"{hour:%Y-%m-%d,%H:%M},{hour.hour}\n" for hour in HOURS),
}


@pytest.fixture(autouse=True)
def folder(elsewhere: Path) -> Path:
    """The files, and an episode."""
    for name, text in FILES.items():
        content = text.encode()
        (elsewhere / name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    episode(elsewhere / "episode.json", EAST, GERMANY)
    return elsewhere


def episode(path: Path, *regions: str) -> Path:
    """Two workflows of Start, 10 s, that calls Resize, 20 s, on the next server, and never Mail.

    The second one comes after a day.
    """
    chances = np.array([np.nextafter(1.0, 0.0), 1e-300])
    template = WorkflowTemplate(
        "thumbnails",
        [10_000, 20_000, 1_000],
        [1, 1, 1],
        [1, 1, 1],
        [(0, 1), (0, 2)],
        [3_000_000_000, 7],
        function_names=("Start", "Resize", "Mail"),
        probability=chances,
    )
    servers = [
        ServerType(str(at), 1, 3.6, 0.0, 1, 4, 100, region=region)
        for at, region in enumerate(regions)
    ]
    link = Link(round_trip=0.0, bandwidth=1e9, egress=0.0)
    places = dict.fromkeys(regions, Region()) | {regions[0]: Region(links={regions[1]: link})}
    cluster = cluster_of(*servers, regions=places)
    env = begun([0.0, 86_400.0], [template] * 2, cluster, record=True)
    while (function := env.current_function) is not None:
        env.step(str(function.fn_id), 0, 0, 1)
    return written(env, path)


INPUTS = {
    "provider": [".", EAST, GERMANY],
    "carbon": [f"{EAST}=", f"{GERMANY}=de.csv"],
    "performance": ["."],
    "workflow": ["episode.json"],
}


def collect(collector: str, *inputs: str) -> None:
    """The command, with its usual inputs if there are none."""
    main(["t.duckdb", collector, *(inputs or INPUTS[collector]), "--at", "2023-07-09T05"])


def contents() -> dict[str, Rows]:
    return {name: Tables("t.duckdb").rows(name, least=0) for name in FILLED_BY}


def collected(*collectors: str) -> dict[str, Rows]:
    """All tables after the first collector and some others."""
    for each in ("provider", *collectors):
        collect(each)
    return contents()


def test_regions_prices_and_power() -> None:
    tables = collected()
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
    assert between[EAST] == {"carbon_intensity": 0.001 * 475, "unit": "gCO2eq/GB"}
    assert between[GERMANY]["carbon_intensity"] == pytest.approx(0.001 * (475 + 11.5) / 2)
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


def test_runs_of_a_workflow(folder: Path) -> None:
    """10 s, 3 GB at 1 GB/s to another region, 20 s; runs elsewhere are not in the summary."""
    episode(folder / "elsewhere.json", EAST, "aws:not-available")
    collected()
    collect("workflow", "elsewhere.json", "episode.json")
    tables = contents()
    summary = tables["workflow_summary_table"]["thumbnails"]
    assert len(summary["logs"]) == 4
    assert summary["last_sync_time"] == "2023-07-10 05:00:33,000000+0000"
    log = summary["logs"][3]
    assert (log["start_time"], log["runtime"]) == ("2023-07-10 05:00:00,000000+0000", 33)
    assert log["start_hop_destination"] == {"provider": "aws", "region": "us-east-1"}
    call = {"invoked": 2, "non_executions": 0, "invocation_probability": 1.0}
    never = {"invoked": 0, "non_executions": 2, "invocation_probability": 0.0}
    assert tables["workflow_instance_table"]["thumbnails"] == {
        "workflow_runtime_samples": [33, 33],
        "daily_invocation_counts": {"2023-07-09+0000": 1, "2023-07-10+0000": 1},
        "start_hop_summary": {EAST: {"0.0": [0, 0]}},
        "instance_summary": {
            "Start": {
                "invocations": 2,
                "executions": {EAST: [10, 10]},
                "to_instance": {
                    "Resize": {**call, "regions_to_regions": {EAST: {GERMANY: {"3.0": [3, 3]}}}},
                    "Mail": {**never, "regions_to_regions": {}},
                },
            },
            "Resize": {"invocations": 2, "executions": {GERMANY: [20, 20]}, "to_instance": {}},
        },
    }


@pytest.mark.parametrize("collector", INPUTS)
def test_twice_is_as_once(collector: str) -> None:
    once = collected(collector)
    collect(collector)
    assert contents() == once


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("provider . aws:us-east-9", "'aws:us-east-9' is unknown, did you mean 'aws:us-east"),
        (f"provider . {EAST} aws:eu-west-2", "_costs.csv: no cost of us-east-1 eu-west-2"),
        (f"carbon {EAST}=", f"region '{GERMANY}' has no file, '{GERMANY}=' would take 475 g"),
        (f"carbon {EAST}= {GERMANY}=short.csv", "short.csv: hour 2023-07-02T05"),
        (f"carbon {EAST}= {GERMANY}= aws:mars=", "carbon: region 'aws:mars' is unknown"),
        (f"carbon {EAST}= {GERMANY}", "REGION=FILE is needed, once for each region"),
        ("performance . none", "performance: . none: one folder is needed"),
        ("performance none", "none/interregion_throughput.csv.gz: no such file"),
        ("workflow unnamed.json", "unnamed.json: no workflow that has a name has finished"),
    ],
)
def test_a_collector_that_fails_leaves_the_tables_as_they_were(
    command: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "short.csv").write_text("date,hour,ci\n2023-07-09,04:00,1\n")
    shutil.copy(GOLDEN[0], folder / "unnamed.json")
    before = collected(*INPUTS)
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        collect(*command.split())
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and says in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert contents() == before


@pytest.mark.realdata
def test_real_samples(data_dir: Path) -> None:
    """All 21 regions that are measured."""
    files = str(data_dir / "regions")
    collect("provider", files)
    collect("performance", files)
    rows = contents()["performance_region_table"]
    assert len(rows) == len(rows[EAST]["transmission_latency"]) == 21
