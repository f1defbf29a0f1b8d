"""Pegasus DAX: its quirks, and what a broken or hostile file gets."""

from pathlib import Path

import pytest

from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.dax import read_dax
from env.workloads.task_graph import TaskGraph
from tests.documents import refused_in_a_line

BOMB = """<?xml version="1.0"?>
<!DOCTYPE adag [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>
<adag><job id="&c;" name="x" runtime="1"/></adag>"""
OUTSIDE = """<?xml version="1.0"?>
<!DOCTYPE adag [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<adag><job id="a" name="&a;" runtime="1"/></adag>"""


@pytest.fixture
def photo(fixtures: Path) -> str:
    return (fixtures / "photo.dax").read_text()


def test_jobs_and_edges(photo: str) -> None:
    graph = read_dax(photo.encode(), "photo", "photo.dax")
    assert [task.name for task in graph.tasks] == ["ID00", "ID01", "ID02", "ID03"]
    assert [task.category for task in graph.tasks] == ["split", "scale", "scale", "join"]
    assert [task.runtime for task in graph.tasks] == [4.0, 12.5, 0.0, 0.0]
    assert {(task.memory, task.cores) for task in graph.tasks} == {(None, None)}
    assert graph.edge_bytes == {
        (0, 1): 4_000_000,  # a.jpg as its writer says, not as its reader does
        (0, 2): 5_000_600,  # c.jpg has a negative size with its writer, so its reader's counts
        (1, 3): 40_000,
        (2, 3): 0,  # not declared, but the file is read; its size is stated nowhere
    }
    assert graph.assumptions == {
        "edges added for a file that is read": 1,
        "file sizes missing, taken as 0": 1,
        "files with several sizes, the writer's taken": 1,
        "negative file sizes taken as unknown": 1,
        "negative runtimes taken as 0": 1,
    }


def dax(body: str) -> TaskGraph:
    content = f'<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6">{body}</adag>'
    return read_dax(content.encode(), "w", "w.dax")


def profiles(**given: str) -> str:
    return "".join(
        '<profile namespace="{}" key="{}">{}</profile>'.format(*key.split("__"), value)
        for key, value in given.items()
    )


@pytest.mark.parametrize(
    ("given", "runtime", "cores", "memory"),
    [
        ({"pegasus__runtime": " 120 ", "pegasus__cores": "4"}, 120, 4, None),
        ({"pegasus__memory": "2048"}, None, None, 2048),
        ({"globus__count": "3", "globus__maxmemory": "512"}, None, 3, 512),
        ({"condor__request_cpus": "2", "condor__request_memory": "300"}, None, 2, 300),
        ({"condor__request_memory": "2 GB"}, None, None, 2048),
        ({"condor__request_memory": "512M"}, None, None, 512),
        # Keys of the systems below win, in any order.
        ({"condor__request_memory": "9", "pegasus__memory": "5"}, None, None, 9),
        # Limits and others' keys are no measurements.
        ({"globus__maxwalltime": "60", "env__cores": "4"}, None, None, None),
    ],
)
def test_profiles(
    given: dict[str, str], runtime: float | None, cores: float | None, memory: float | None
) -> None:
    (task,) = dax(f'<job id="a" name="x">{profiles(**given)}</job>').tasks
    assert (task.runtime, task.cores, task.memory) == (runtime, cores, memory)


def test_gpus() -> None:
    for key in ("pegasus__gpus", "condor__request_gpus"):
        (task,) = dax(f'<job id="a" name="x">{profiles(**{key: "0.5"})}</job>').tasks
        assert task.resources == {"GPU": 5_000}


def test_what_counts_more() -> None:
    """The job's attribute, its profile, the profile of its executable."""
    graph = dax(
        f'<executable name="x" version="1">{profiles(pegasus__runtime="5", pegasus__cores="2")}'
        f"</executable>"
        f'<job id="a" name="x" version="1" runtime="7">{profiles(pegasus__runtime="6")}</job>'
        f'<job id="b" name="x" version="1">{profiles(pegasus__runtime="6")}</job>'
        '<job id="c" name="x" version="1"/><job id="d" name="x" version="2"/>'
    )
    found = [(task.runtime, task.cores) for task in graph.tasks]
    assert found == [(7, 2), (6, 2), (5, 2), (None, None)]


JOB = '<job id="a" name="x">{}</job>'
EXECUTABLE = '<executable name="x" arch="{}">{}</executable>'
SUB_WORKFLOW = '<job id="a" name="x" runtime="1"/><{} id="b" file="inner.dax"/>'
NOT_READ = "is a sub-workflow, which is not read: only workflows of jobs are"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            JOB.format(profiles(pegasus__cores="2") + profiles(pegasus__cores="4")),
            "job 'a': profile pegasus cores: found '2' and '4', one is needed",
        ),
        (
            EXECUTABLE.format("x86_64", profiles(pegasus__runtime="5"))
            + EXECUTABLE.format("aarch64", profiles(pegasus__runtime="9"))
            + JOB.format(""),
            "executable 'x': profile pegasus runtime: found '5' and '9', one is needed",
        ),
        (JOB.format(profiles(pegasus__memory="soon")), "job 'a': memory: "),
        (JOB.format(profiles(pegasus__memory="9" * 5_000)), "job 'a': memory: "),
        (f'<job id="a" name="x" runtime="{"x" * 1_000_000}"/>', "job 'a': runtime: "),
        (
            JOB.format('<uses file="f" link="outptu" size="5"/>'),
            "job 'a': uses: link: Input should be 'input', 'output'",
        ),
        (SUB_WORKFLOW.format("dax"), f"<dax> 'b' {NOT_READ}"),
        (SUB_WORKFLOW.format("dag"), f"<dag> 'b' {NOT_READ}"),
    ],
)
def test_what_is_refused(body: str, message: str) -> None:
    with refused_in_a_line(f"w.dax: {message}"):
        dax(body)


def test_links() -> None:
    def graph(link: str) -> TaskGraph:
        return dax(
            f'<job id="a"><uses file="f" {link} size="5"/></job>'
            '<job id="b"><uses file="f" link="input"/></job>'
            '<child ref="b"><parent ref="a"/></child>'
        )

    carried = {link: graph(f'link="{link}"').edge_bytes for link in ("OUTPUT", "inout", "none")}
    assert carried == {"OUTPUT": {(0, 1): 5}, "inout": {(0, 1): 5}, "none": {(0, 1): 0}}
    assert graph("").edge_bytes == {(0, 1): 0}


def test_deep_files_get_an_answer() -> None:
    deep = "<a>" * 50_000 + "</a>" * 50_000
    assert len(dax(f'<job id="a" name="x" runtime="1"/>{deep}').tasks) == 1


def test_later_versions_call_files_by_name(photo: str) -> None:
    expected = read_dax(photo.encode(), "photo", "photo.dax")
    later = photo.replace("uses file=", "uses name=").replace('version="2.1"', 'version="3.6"')
    assert read_dax(later.encode(), "photo", "photo.dax") == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</adag>", "", "not valid XML"),
        ("", BOMB, 'not valid XML: "EntitiesForbidden'),
        ("", OUTSIDE, 'not valid XML: "EntitiesForbidden'),
        ('encoding="UTF-8"', f'encoding="{"x" * 1_000}"', "not valid XML: 'unknown encoding"),
        ("adag", "dag", "the root element is 'dag', 'adag' is needed"),
        ('runtime="4.0"', 'runtime="soon"', "job 'ID00': runtime: Input should be a valid number"),
        ('size="4000000"', 'size="1e300"', "data_bytes[0] is 1e+300, at least 0"),
        ('parent ref="ID00"', 'parent ref="ID77"', "a parent refers to 'ID77', no such task"),
        ("job", "work", "no tasks, at least 1 is needed"),
    ],
)
def test_bad_files(photo: str, rules: AnnotationRules, old: str, new: str, message: str) -> None:
    content = (photo.replace(old, new) if old else new).encode()
    with refused_in_a_line("photo.dax: ", message):
        annotate(read_dax(content, "photo", "photo.dax"), rules, 1_000)
