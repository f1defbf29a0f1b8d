"""Pegasus DAX: its quirks, and what a broken or hostile file gets."""

from pathlib import Path

import pytest

from env.sim.errors import InputError
from env.workloads.annotation import AnnotationRules, annotate
from env.workloads.dax import read_dax

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
    }


def test_zero_and_negative_runtimes_become_the_minimum(photo: str, rules: AnnotationRules) -> None:
    template, counts = annotate(read_dax(photo.encode(), "photo", "photo.dax"), rules, 1_000)
    runtimes = template.computation / template.parallelism / 1_000
    assert runtimes.tolist() == [4.0, 12.5, rules.min_runtime, rules.min_runtime]
    assert counts["runtime 0 raised to min_runtime"] == 2


def test_later_versions_call_files_by_name(photo: str) -> None:
    expected = read_dax(photo.encode(), "photo", "photo.dax")
    later = photo.replace("uses file=", "uses name=").replace('version="2.1"', 'version="3.6"')
    assert read_dax(later.encode(), "photo", "photo.dax") == expected


@pytest.mark.parametrize("content", [BOMB, OUTSIDE])
def test_entities_are_refused(content: str) -> None:
    with pytest.raises(InputError, match="^photo.dax: XML entities are refused") as caught:
        read_dax(content.encode(), "photo", "photo.dax")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</adag>", "", "not valid XML"),
        ('encoding="UTF-8"', 'encoding="none"', "not valid XML"),
        ("adag", "dag", "the root element is <dag>, <adag> is needed"),
        ('runtime="4.0"', 'runtime="nan"', "job ID00: runtime: Input should be a finite number"),
        ('runtime="4.0"', 'runtime="inf"', "job ID00: runtime: Input should be a finite number"),
        ('runtime="4.0"', 'runtime="soon"', "job ID00: runtime: Input should be a valid number"),
        ('runtime="4.0"', 'runtime="1e300"', "which is 2^62 operations or more"),
        ('size="4000000"', 'size="big"', "job ID00: uses: size: Input should be a valid number"),
        ('size="4000000"', 'size="1e300"', "2^62 or more"),
        ('job id="ID01"', 'job id="ID00"', "task 'ID00' is declared twice"),
        ('job id="ID01"', "job", "id: missing, required"),
        ('uses file="a.jpg"', "uses", "job ID00: uses: file: missing, required"),
        ('parent ref="ID00"', 'parent ref="ID77"', "a parent refers to 'ID77', no such job"),
        ('child ref="ID01"', 'child ref="ID77"', "a child refers to 'ID77', no such job"),
        ('child ref="ID01"', "child", "child: ref: missing, required"),
        ('child ref="ID01"', 'child ref="ID00"', "task 'ID00' depends on itself"),
        ('parent ref="ID00"', 'parent ref="ID03"', "the graph has a cycle"),
        ("<job", "<work", "not valid XML"),
        ("job", "work", "no tasks, at least 1 is needed"),
    ],
)
def test_bad_files(photo: str, rules: AnnotationRules, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match="^photo.dax: ") as caught:
        content = photo.replace(old, new).encode()
        annotate(read_dax(content, "photo", "photo.dax"), rules, 1_000)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
