"""The schedule of an episode as a table: what the file says, function by function."""

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Lease, Rules
from env.sim.declared.server_changes import ListedChanges, Recovery
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from report.schedule import main, read_schedule
from tests.episodes import GOLDEN, begun, end, written
from tests.recorded_worlds import world

CLUSTER = ClusterConfig(1_000, 1e12, 1e12, 100.0, (ServerType("s", 2, 0.36, 10.0, 1, 2, 4),))

ONE = replace(CLUSTER, server_types=(ServerType("s", 1, 0.36, 10.0, 1, 2, 4),))


def printed(path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    main([str(path)])
    return list(csv.DictReader(StringIO(capsys.readouterr().out)))


def test_it_is_told_why_a_function_was_slow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two functions of two threads of 2 GB share a node of 2 cores and 4 GB, a third one waits."""
    fork = WorkflowTemplate("fork", [20_000] * 3, [2] * 3, [2] * 3, [], [])
    env = RawEnv([5.0], [fork], CLUSTER, record=True)
    rows = printed(written(end(env), tmp_path / "fork.json"), capsys)
    # One starts the server, for 10 s. At full speed each takes 10 s, two at once take 20 s.
    told = ("server_start_time", "memory_wait_time", "full_speed_time", "stretch", "response_time")
    assert [[float(row[key]) for key in told] for row in rows] == [
        [10, 0, 10, 2, 30],
        [10, 0, 10, 2, 30],
        [10, 20, 10, 1, 40],
    ]


@pytest.mark.parametrize("order", [None, "rr"])
def test_columns_add_up_to_the_response_time(order: str | None, tmp_path: Path) -> None:
    path = GOLDEN[-1]
    if order is not None:
        path = written(world(order, keep_alive="lru", patience=30.0), tmp_path / "world.json")
    table = read_schedule(str(path))
    parts = table["queueing_time"] + table["server_start_time"] + table["data_transfer_time"]
    parts += table["container_cold_start_time"] + table["memory_wait_time"]
    parts += table["full_speed_time"] * table["stretch"]
    passed = table["completion_time"] - table["submission_time"]
    assert parts.tolist() == pytest.approx(passed.tolist())
    assert table["response_time"].tolist() == passed.tolist()


def recorded(path: Path) -> None:
    """Two functions, named, on two servers: 10 s, 8 s for the data, 20 s."""
    name, names = "=etl, daily", ("split", "join")
    chain = WorkflowTemplate(name, [10_000, 20_000], [3, 2], [1, 1], [(0, 1)], [800], names)
    env = begun([5.0], [chain], CLUSTER, record=True, tenants=["ann"])
    env.step("s", 0, 0, 3)
    env.step("s", 1, 0, 2)
    written(env, path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_and_times_of_a_chain(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path / "chain.json.gz")
    out = tmp_path / f"schedule.{ending}"
    main([str(tmp_path / "chain.json.gz"), "-o", str(out)])
    assert capsys.readouterr().out == f"schedule: {out}\n"
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    name = "'=etl, daily" if ending == "csv" else "=etl, daily"  # no formula
    assert table["workflow_name"].tolist() == [name] * 2
    assert table["function_name"].tolist() == ["split", "join"]
    assert table["tenant"].tolist() == ["ann"] * 2
    assert table["arrival_time"].tolist() == [5.0] * 2
    times = ["submission_time", "server_start_time", "start_time", "completion_time"]
    # The other server starts for 10 s, then the data comes for 8 s.
    assert table[times].values.tolist() == [[5.0, 10.0, 15.0, 25.0], [25.0, 10.0, 43.0, 63.0]]
    assert table["server_index"].tolist() == [0, 1]
    assert table["memory_allocated_mb"].dtype == "int64"


def test_a_preempted_function_has_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(world("rr", keep_alive="lru", patience=30.0), tmp_path / "world.json")
    document = json.loads(path.read_text())
    runs = document["expected"]["runs"]
    rows = printed(path, capsys)
    assert len(rows) == sum(len(one["functions"]) for one in document["workflows"]) < len(runs)
    for row in rows:
        key = {name: int(row[name]) for name in ("workflow_id", "function_id")}
        own = [run for run in runs if key.items() <= run.items()]
        assert int(row["runs"]) == len(own)
        assert float(row["start_time"]) == min(run["start_time"] for run in own)
        assert float(row["completion_time"]) == max(run["end_time"] for run in own)
        seconds = sum(run["execution_time"] for run in own)
        assert float(row["execution_time"]) == pytest.approx(seconds)


def test_functions_that_failed_have_no_row(tmp_path: Path) -> None:
    """The only server fails while the first of two functions runs, which is not tried again."""
    fails = {"time": 25.0, "server": "s 0", "action": "fail"}
    rules = Rules(
        lease=Lease(kind="always", charged=False),
        changes=ListedChanges.model_validate({"kind": "listed", "events": [fails]}),
        recovery=Recovery(retries=0),
    )
    chains = [WorkflowTemplate("w", [10_000, 20_000], [1, 1], [1, 1], [(0, 1)], [0])] * 2
    env = end(begun([5.0, 100.0], chains, ONE, record=True, rules=rules))
    table = read_schedule(str(written(env, tmp_path / "failed.json")))
    assert table[["workflow_id", "function_id", "completion_time"]].values.tolist() == [[0, 0, 15]]


def test_bad_input_gets_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "none.json")])
    assert "none.json" in capsys.readouterr().err
