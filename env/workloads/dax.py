"""Pegasus DAX, the XML of abstract workflows (2.1 as its generators write it, and 3.x).

A job states its runtime and its files with their sizes; cores and memory are not in it.
"""

from collections.abc import Iterator
from typing import Annotated
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from env.schema import one_line, validated
from env.sim.errors import InputError
from env.workloads.task_graph import Task, TaskGraph, graph_from_files, note_file, positions

READ_LINKS = ("input", "inout")
WRITTEN_LINKS = ("output", "inout")


class _Attributes(BaseModel):
    """XML attributes are text: numbers in them are converted."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class _Job(_Attributes):
    id: Annotated[str, Field(min_length=1)]
    name: str = ""
    runtime: float | None = None  # seconds


class _Uses(_Attributes):
    file: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("file", "name"))]
    link: str = ""
    size: float | None = None  # bytes


class _Reference(_Attributes):
    ref: str


def read_dax(content: bytes, name: str, where: str) -> TaskGraph:
    """Reads one workflow.

    A file listed several times by one job has the largest of its sizes there; a file to which
    different jobs give different sizes has its writer's. The published generators draw from normal
    distributions that reach below 0: a negative runtime counts as 0, a negative size as missing.

    Args:
        content: of the file, uncompressed.
        name: what to call the workflow.
        where: the file, for errors.

    Raises:
        InputError: the content is no DAX or declares entities, a job is unknown, declared twice or
            depends on itself, or a number is not finite.
    """
    try:
        root = fromstring(content)
    except DefusedXmlException as error:
        raise InputError(f"{where}: XML entities are refused: {one_line(str(error))}") from None
    except (ParseError, ValueError, LookupError) as error:
        raise InputError(f"{where}: not valid XML: {one_line(str(error))}") from None
    if _tag(root) != "adag":
        raise InputError(f"{where}: the root element is <{_tag(root)}>, <adag> is needed")
    tasks = tuple(_task(job, where) for job in _children(root, "job"))
    index = positions((task.name for task in tasks), where)
    edges = set()
    for child in _children(root, "child"):
        target = _position(child, index, where)
        edges |= {
            (_position(parent, index, where), target) for parent in _children(child, "parent")
        }
    return graph_from_files(name, where, tasks, edges, {})


def _task(element: Element, where: str) -> Task:
    job = validated(_Job, dict(element.attrib), f"{where}: job {element.get('id', '')}")
    reads: dict[str, float | None] = {}
    writes: dict[str, float | None] = {}
    for uses in _children(element, "uses"):
        use = validated(_Uses, dict(uses.attrib), f"{where}: job {job.id}: uses")
        size = None if use.size is None or use.size < 0 else use.size
        for links, files in ((READ_LINKS, reads), (WRITTEN_LINKS, writes)):
            if use.link.lower() in links:
                note_file(files, use.file, size)
    runtime = None if job.runtime is None else max(job.runtime, 0.0)
    return Task(job.id, job.name or job.id, runtime=runtime, reads=reads, writes=writes)


def _position(element: Element, index: dict[str, int], where: str) -> int:
    kind = _tag(element)
    reference = validated(_Reference, dict(element.attrib), f"{where}: {kind}").ref
    if reference not in index:
        raise InputError(f"{where}: a {kind} refers to '{reference}', no such job")
    return index[reference]


def _children(element: Element, tag: str) -> Iterator[Element]:
    return (child for child in element if _tag(child) == tag)


def _tag(element: Element) -> str:
    """The tag without its namespace."""
    return str(element.tag).rpartition("}")[2]
