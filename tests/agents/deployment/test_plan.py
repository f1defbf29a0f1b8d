"""Plans of a day, their files, and the command that makes them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from agents.deployment.__main__ import main
from agents.deployment.plan import DeploymentPlan, daily_plan, read_plan, write_plan
from agents.deployment.solvers.fine import Fine
from env.base.errors import InputError
from env.base.schema import validated
from env.tables.tables import FILLED_BY, Tables
from env.workloads.code.configuration import Configuration
from tests.agents.deployment.tables import HOME, NEAR, inputs, settings_with, tables_of, workflow

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NODES = ("a", "b")
GIVEN = {"workflow_name": "shop", "workflow_version": "0.0.1", "home_region": HOME}
CARBON = {
    HOME: {"hourly": [300.0] * 24},
    NEAR: {"hourly": [*[100.0] * 6, *[250.0, 550.0] * 3, *[400.0] * 12]},
}


def made(**settings: Any) -> DeploymentPlan:
    """Two nodes of 10 s; the other region has less carbon in the night, and then now and then."""
    executed = {name: {HOME: [10.0]} for name in NODES}
    tables = tables_of(executed, regions=(HOME, NEAR), carbon_region_table=CARBON)
    given = inputs(workflow(("a", "b", 1), size=0), tables)
    configuration = validated(Configuration, GIVEN, "config.yml")
    return daily_plan(given, configuration, Fine(most_plans=9), settings_with(**settings), 0, NOW)


def test_an_hour_has_the_plan_of_its_intensity() -> None:
    """Conformance 15: a plan names provider and region of each node."""
    plan = made()
    assert list(plan.hours) == list(range(24))
    assert plan.instances(0, 0.5) == {"a": NEAR, "b": NEAR}
    regions = [plan.instances(hour, 0.5)["b"] for hour in range(24)]
    assert regions == [*[NEAR] * 6, *[NEAR, HOME] * 3, *[HOME] * 12]
    here, home = plan.hours[0].current_deployment, plan.hours[0].home_deployment
    assert here.metrics["average"]["carbon"] == pytest.approx(20 * 100)
    assert here.metrics["tail"]["runtime"] == pytest.approx(0.5 + 1 + 20)
    assert home.metrics["average"]["carbon"] == pytest.approx(20 * 300)


def test_four_plans_a_day_are_made_for_their_hours() -> None:
    """250 and 550 are 400 on average, above those 300 at home."""
    plan = made(solves_per_day=4)
    assert list(plan.hours) == [0, 6, 12, 18]
    assert [plan.instances(hour, 0.5)["a"] for hour in (0, 5, 6, 23)] == [NEAR, NEAR, HOME, HOME]
    once = made(solves_per_day=1).hours[0].home_deployment
    assert once.metrics["average"]["carbon"] == pytest.approx(20 * 300)


def test_a_tenth_of_the_traffic_goes_home() -> None:
    """Conformance 12."""
    plan, draws = made(), np.random.default_rng(0).random(20_000)
    at_home = [plan.instances(0, draw)["a"] == HOME for draw in draws]
    assert np.mean(at_home) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("0.0.1", "0.0.2"), "a plan of shop-0.0.2, one of shop-0.0.1 is"),
        (lambda text: text.replace('"b"', '"c"'), "hours.0: other nodes than the workflow's: b, c"),
        (lambda text: text.replace(HOME, "home"), "hours.0.current_deployment.instances.a: "),
        (lambda text: text.replace('"0": {', '"24": {'), "hours.24.*: .*less than 24"),
        (lambda text: text[:-9], "not valid JSON"),
    ],
)
def test_files_that_are_no_plan_of_the_workflow(
    tmp_path: Path, change: Callable[[str], str], words: str
) -> None:
    path, plan = tmp_path / "plan.json", made(solves_per_day=1, expiry=3600)
    assert plan.expiry_time - NOW == timedelta(hours=1)
    write_plan(plan, path)
    assert read_plan(path, "shop-0.0.1", NODES) == plan
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=rf"plan\.json: .*{words}"):
        read_plan(path, "shop-0.0.1", NODES)


CODE = """
from env.workloads.code.annotations import Workflow
workflow = Workflow("shop", "0.0.1")
@workflow.serverless_function(name="A", entry_point=True)
def a(event): workflow.invoke_serverless_function(b)
@workflow.serverless_function(name="B")
def b(event): pass
"""
NAMES = "A:entry_point:0", "B:A_0_0:1"


@pytest.fixture
def shop(tmp_path: Path) -> list[str]:
    """A workflow, its configuration and tables; the words of a command."""
    (tmp_path / "shop.py").write_text(CODE)
    functions = {name: {"runtime": 1.0, "memory": 1024} for name in "AB"}
    (tmp_path / "config.yml").write_text(yaml.safe_dump(GIVEN | {"functions": functions}))
    executed = {name: {HOME: [10.0]} for name in NAMES}
    tables, file = tables_of(executed, carbon_region_table=CARBON), tmp_path / "tables.duckdb"
    for name, rows in tables.items():
        Tables(file).replace(FILLED_BY[name], 0, {name: rows})
    return [f"code={tmp_path / 'shop.py'}", f"tables={file}", f"plan={tmp_path / 'plan.json'}"]


def test_the_command_prints_and_writes_a_plan(shop: list[str], tmp_path: Path, capsys: Any) -> None:
    main([*shop, "deployment.solves_per_day=4", "solver=fine"])
    printed = capsys.readouterr().out
    # Of 300 g and 20.5 s at home, a tenth of runs keeps these; others have 100 g and 21.5 s.
    assert "shop 0.0.1" in printed and NEAR in printed
    assert "-60.0%" in printed and "+4.4%" in printed
    plan = read_plan(tmp_path / "plan.json", "shop-0.0.1", NAMES)
    assert set(plan.instances(0, 0.5)) == set(NAMES)


def test_an_unknown_region_is_refused(shop: list[str], tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "config.yml"
    given = yaml.safe_load(config.read_text())
    typo = {"disallowed_regions": [{"provider": "aws", "region": "neer"}]}
    config.write_text(yaml.safe_dump(given | {"regions_and_providers": typo}))
    with pytest.raises(SystemExit):
        main(shop)
    assert "region 'aws:neer' is unknown, did you mean" in capsys.readouterr().err
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("solver=fin", "solver=fin: unknown option, did you mean 'fine'?"),
        ("deployment.tolerance=2", "deployment.tolerance: "),
        ("tables=none.duckdb", "none.duckdb: no such file"),
    ],
)
def test_bad_input_has_one_line(
    shop: list[str], tmp_path: Path, word: str, says: str, capsys: Any
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*shop, word])
    said = capsys.readouterr().err
    assert left.value.code == 2 and says in said and said.count("\n") == 1
    assert not (tmp_path / "plan.json").exists()
