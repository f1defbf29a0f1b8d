"""Workflows declared in code: what is read, the names of their nodes, and what is refused.

The cases are those of Caribou's own tests and design document.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from env.base.errors import InputError
from env.sim.declared.regions import Regions, permitted_regions
from env.workloads.code.analysis import Code, read_code
from env.workloads.code.annotations import Workflow
from env.workloads.code.configuration import Configuration, read_configuration
from env.workloads.code.logical import LogicalDag, logical_dag, workflow_file

Write = Callable[..., Path]
CALL = "workflow.invoke_serverless_function"
WAIT = "workflow.get_predecessor_data()"
HOME, NEAR = ({"provider": "aws", "region": region} for region in ("home", "near"))
BASE = {"workflow_name": "shop", "workflow_version": "0.0.1", "home_region": HOME}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes shop.py: functions by name with their statements; the first one is the entry.

    The workflow is in line 2, and a function begins two lines after the one before ends; so the
    first statements of functions with one statement are in lines 6, 10, 14 and so on.
    """

    def of(extra: str = "", **functions: list[str]) -> Path:
        lines = ["from any import Workflow", 'workflow = Workflow("shop", "0.0.1")', ""]
        for at, (name, statements) in enumerate(functions.items()):
            entry = ", entry_point=True" if at == 0 else ""
            lines += [f'@workflow.serverless_function(name="{name.upper()}"{entry})']
            lines += [f"def {name}(event):"]
            lines += [f"    {each}" for each in statements or ["pass"]] + [""]
        path = tmp_path / "shop.py"
        path.write_text("\n".join(lines) + extra)
        return path

    return of


def dag_of(path: Path) -> LogicalDag:
    return logical_dag(read_code(path), None)


def names(dag: LogicalDag) -> list[str]:
    return [node.name for node in dag.nodes]


def test_names_in_topological_order_and_in_the_published_code(write: Write) -> None:
    """That visits A, C, B, B, D, C, C, breadth first, and counts each visit."""
    calls = {"a": [f"{CALL}(c, 1)", *[f"{CALL}(b, 1)"] * 2], "b": [f"{CALL}(c, 3)"]}
    dag = dag_of(write(**calls, c=[WAIT, f"{CALL}(d)"], d=[]))
    assert names(dag) == ["A:entry_point:0", "B:A_0_1:1", "B:A_0_2:2", "C:sync:3", "D:C_3_0:4"]
    kinds = ["initial", *["intermediate"] * 2, "synchronization", "intermediate"]
    assert [node.kind for node in dag.nodes] == kinds
    assert [edge[:2] for edge in dag.edges] == [(0, 3), (0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    published = ["A:entry_point:0", "B:A_0_1:2", "B:A_0_2:3", "C:sync:", "D:C__0:4"]
    assert dag.indices(published) == dag.indices(names(dag)) == [0, 1, 2, 3, 4]


def test_three_calls_of_a_synchronization_node_are_three_edges(write: Write) -> None:
    dag = dag_of(write(a=[f"{CALL}(b, {at}, 0.5)" for at in range(3)], b=[WAIT]))
    assert names(dag) == ["A:entry_point:0", "B:sync:1"]
    assert [edge[:2] for edge in dag.edges] == [(0, 1)] * 3


def test_conditions(write: Write) -> None:
    """What is never called is no node; calls are counted all the same."""
    conditions = ["", ", True", ", condition=1", ", 0.25", ", False", ", 0", ", event > 0"]
    dag = dag_of(write(a=[f"{CALL}(b, 1{each})" for each in conditions], b=[]))
    assert names(dag)[1:] == [f"B:A_0_{call}:{at}" for at, call in enumerate([0, 1, 2, 3, 6], 1)]
    assert [edge.probability for edge in dag.edges] == [1, 1, 1, 0.25, 0.5]
    assert [edge.assumed for edge in dag.edges] == [False] * 4 + [True]


def test_nothing_is_executed_and_the_annotations_change_nothing(write: Write) -> None:
    extra = "raise SystemExit('executed')"
    assert len(dag_of(write(a=[f"{CALL}(b)"], b=[], extra=extra)).nodes) == 2

    def function() -> str:
        workflow.invoke_serverless_function(function, {}, 0.5)
        return f"unchanged {workflow.get_predecessor_data()}"

    workflow = Workflow("shop", "0.0.1")
    assert workflow.serverless_function(name="f", entry_point=True)(function) is function
    assert function() == "unchanged []"


def test_caribous_own_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("""
from caribou.deployment.client import CaribouWorkflow
flow = CaribouWorkflow(name="own", version="0.0.2")
@flow.serverless_function(entry_point=True, environment_variables=[{"key": "k", "value": "v"}])
def start(event, metadata):
    with open("x") as file:
        flow.invoke_serverless_function(end, {"n": 1}, conditional=file)
@flow.serverless_function(
    name="End", regions_and_providers={"providers": {"aws": {"config": {"timeout": 60}}}}
)
def end(event, metadata): flow.get_predecessor_data()
""")
    dag = dag_of(tmp_path / "app.py")
    assert (dag.code.name, dag.code.version) == ("own", "0.0.2")
    assert names(dag) == ["start:entry_point:0", "End:sync:1"]
    assert dag.edges[0].assumed


DOUBLING = {f"f{at}": [f"{CALL}(f{at + 1})"] * 2 for at in range(14)} | {"f14": []}


@pytest.mark.parametrize(
    ("functions", "line", "words"),
    [
        ({"a": [f"{CALL}(a)"]}, 6, "'A' calls 'A', which is visited again"),
        ({"a": [f"{CALL}(b)"], "b": [f"{CALL}(c)"], "c": [f"{CALL}(b)"]}, 14, "'C' calls 'B', wh"),
        ({"a": [f"{CALL}(b)"], "b": [WAIT, f"{CALL}(b)"]}, 11, "'B' calls 'B', which is visited"),
        ({"a": [], "b": [f"{CALL}(c)"], "c": [f"{CALL}(b)"]}, 8, "'B' is never called"),
        (DOUBLING, 2, "more than 10,000 calls"),
    ],
)
def test_circles_and_dags_without_end(
    write: Write, functions: dict[str, list[str]], line: int, words: str
) -> None:
    with pytest.raises(InputError, match=rf"shop\.py:{line}: {words}"):
        dag_of(write(**functions))


SECOND = '@workflow.serverless_function(name="C")\ndef b(event): pass'
ALLOWED = {"allowed_regions": [HOME], "disallowed_regions": [HOME]}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (", entry_point=True", "", 2, "no entry point"),
        ('name="B"', 'name="B", entry_point=True', 8, "B is a second entry point beside A of lin"),
        ('name="B"', 'name="B:2"', 8, "name: .*, found 'B:2'"),
        ('name="B"', 'name="A"', 8, "name 'A' is used twice, in line 4 too"),
        ("pass", f"pass\n{SECOND}", 11, "def b is used twice, in line 8 too"),
        ('name="B"', "name=B", 8, "arguments must be written out"),
        ('name="B"', "nme=1", 8, "nme: unknown key, did you mean 'name'"),
        ('name="B"', f'name="B", regions_and_providers={ALLOWED}', 8, "both allowed and disallow"),
        ("(b)", "(other)", 6, "what is called must be a function of the workflow"),
        ("(b)", "(b, 1, 1.5)", 6, "condition 1.5 is no probability"),
        ("(b)", "(b, 1, 'yes')", 6, "condition 'yes' is no probability"),
        (f"{CALL}(b)", f"for one in event: {CALL}(b)", 6, "b is called in a loop, a branch"),
        (f"{CALL}(b)", f"event and {CALL}(b)", 6, "b is called in a loop, a branch"),
        (f"{CALL}(b)", f"lambda: {CALL}(b)", 6, "b is called in a loop, a branch or a function"),
        (f"{CALL}(b)", f"{CALL}(b, event, conditon=0.2)", 6, "takes function, payload, condition"),
        (f"{CALL}(b)", f"{CALL}(b, event, 1, condition=0.2)", 6, "each once, and no more"),
        ("pass", f"pass\n{CALL}(b)", 11, "invoke_serverless_function outside"),
        ('"0.0.1"', "VERSION", 2, "arguments must be written out"),
        ("workflow = ", "", 1, "0 found, one NAME = Workflow"),
        ("workflow = ", "first = Workflow('x', '1'); workflow = ", 2, "2 found, one NAME"),
        ("def b(event)", "def b(event", 9, "not Python: "),
    ],
)
def test_violations_are_said_with_their_line(
    write: Write, old: str, new: str, line: int, words: str
) -> None:
    path = write(a=[f"{CALL}(b)"], b=[])
    assert len(dag_of(path).nodes) == 2
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=rf"^[^:]*shop\.py:{line}: .*{words}"):
        read_code(path)


def test_a_fault_of_the_entry_point_is_said_alone(write: Write) -> None:
    path = write(a=[])
    path.write_text(path.read_text().replace('name="A"', 'name="A:1"'))
    with pytest.raises(InputError, match="found 'A:1'") as refused:
        read_code(path)
    assert refused.value.__notes__ == []


def read(path: Path, **changes: Any) -> tuple[Code, Configuration]:
    config = path.with_name("config.yml")
    config.write_text(yaml.safe_dump(BASE | changes))
    code = read_code(path)
    return code, read_configuration(config, code)


def test_the_file_has_the_numbers_of_the_configuration(write: Write) -> None:
    conditions = "event", "event", "event", "0.125"
    path = write(
        a=[f"{CALL}(b, 1, {each})" for each in conditions],
        b=[f"{CALL}(c, 1, 0.5)", f"{CALL}(c, 1, event)"],
        c=[WAIT],
    )
    own = {"allowed_regions": [NEAR], "providers": {"aws": {"config": {"memory": 128}}}}
    text = path.read_text()
    path.write_text(text.replace('name="C"', f'name="C", regions_and_providers={own}'))
    code, given = read(
        path,
        functions={
            "A": {"runtime": 1.5, "memory": 300, "resources": {"GPU": 0.5}},
            "B": {"runtime": 2.0, "parallelism": 2, "category": "kind"},
            "C": {"computation": 10**9},
        },
        regions_and_providers={
            "disallowed_regions": [NEAR],
            "providers": {"aws": {"config": {"memory": 256}}, "gcp": {"config": {"memory": 1}}},
        },
        calls=[
            {"from": "A", "to": "B", "bytes": 5, "probability": 0.25},
            {"from": "A", "to": "B", "call": 1, "probability": 0.75},
            {"from": "A", "to": "B", "call": 2, "bytes": 7},
            {"from": "B", "to": "C", "bytes": 10},
        ],
    )
    text = workflow_file(logical_dag(code, given), given, "config.yml")
    shop = yaml.safe_load(text)["mix"]["shop-0.0.1"]
    a, b, *_, c = shop["functions"].values()
    assert list(shop["functions"])[1] == "B:A_0_0:1" and len(shop["functions"]) == 6
    far = {"regions": {"disallowed": ["aws:near"]}}
    assert a == far | {"runtime": 1.5, "memory": 300, "category": "A", "resources": {"GPU": 0.5}}
    assert b == far | {"runtime": 2.0, "memory": 256, "parallelism": 2, "category": "kind"}
    near = {"regions": {"allowed": ["aws:near"]}}
    assert c == near | {"computation": 10**9, "memory": 128, "category": "C"}
    edges = [(edge["bytes"], edge.get("probability")) for edge in shop["edges"]]
    assert edges == [(5, 0.25), (5, 0.75), (7, 0.25), (5, 0.125)] + [(20, 0.75)] * 4
    assert text.count('"probability": 0.75}  # 0.5 is assumed') == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workflow_name": "other"}, "workflow_name: 'other' found, .*:2 says 'shop'"),
        ({"workflow_version": "1"}, "workflow_version: '1' found, .*:2 says '0.0.1'"),
        ({"functions": {"Bb": {"runtime": 1.0}}}, "functions.Bb: not in .*, did you mean 'B'"),
        ({"functions": {"B": {"memory": 1}}}, "functions.B: exactly one of runtime and comp"),
        ({"calls": [{"from": "B", "to": "A"}]}, "calls.0: .*shop.py has no such call"),
        ({"calls": [{"from": "A", "to": "B", "call": 1}]}, "calls.0: .* has no such call"),
        ({"calls": [{"from": "A", "to": "B", "probability": 0.5}]}, "calls.0: .* says itself"),
        ({"calls": [{"from": "A", "to": "B", "probability": 0}]}, "probability: .*found 0"),
        ({"regions_and_providers": {"disallowed_regions": [HOME]}}, r":4: aws:home is the home"),
        ({"home_region": "home"}, "home_region: .*found 'home'"),
    ],
)
def test_a_configuration_that_contradicts_the_code(
    write: Write, changes: dict[str, Any], words: str
) -> None:
    path = write(a=[f"{CALL}(b)"], b=[])
    with pytest.raises(InputError, match=words):
        read(path, **changes)


def test_regions_of_a_name_count_alone(write: Write) -> None:
    of_name = {"runtime": 1.0, "regions": {"disallowed": ["aws:near"]}}
    all_of = {"allowed_regions": [NEAR]}
    path = write(a=[])
    code, given = read(path, functions={"A": of_name}, regions_and_providers=all_of)
    assert given.regions(code.functions["a"]) == Regions(disallowed=("aws:near",))
    own = {"disallowed_regions": [NEAR]}
    path.write_text(path.read_text().replace('name="A"', f'name="A", regions_and_providers={own}'))
    code, given = read(path, regions_and_providers={"allowed_regions": [HOME, NEAR]})
    assert given.regions(code.functions["a"]) == Regions(disallowed=("aws:near",))


REGIONS = ("r1", "r2", "r3", "p2:r1")


def test_permitted_regions() -> None:
    """Where some are allowed, what is disallowed does not matter."""
    assert permitted_regions(REGIONS, ("r1", "r2", "p2:r1"), ("r2",)) == ("r1", "r2", "p2:r1")
    assert permitted_regions(REGIONS, (), ("r2",)) == ("r1", "r3", "p2:r1")
    assert permitted_regions(REGIONS, None, None) == REGIONS
