"""Pegasus DAX, the XML of abstract workflows (2.1 as its generators write it, and 3.x).

A job states its runtime and its files with their sizes; from 3.0 on, profiles of the job or of its
executable may state runtime, cores, memory and GPUs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.ElementTree import DefusedXMLParser
from pydantic import AliasChoices, BeforeValidator, Field

from env.base.errors import InputError
from env.base.files import check_values
from env.base.schema import LOWER_CASE, Recorded, short, validated
from env.resources.quantity import Quantity
from env.workloads.task_graph import (
    Task,
    TaskGraph,
    agreed,
    graph_from_files,
    position,
    positions,
    sized_files,
)

Link = Literal["input", "output", "inout", "none", "checkpoint"]
"""How a job uses a file; the last two move nothing between jobs."""
PROFILES = {
    ("pegasus", "runtime"): "runtime",
    ("pegasus", "cores"): "cores",
    ("globus", "count"): "cores",
    ("condor", "request_cpus"): "cores",
    ("pegasus", "memory"): "memory",
    ("globus", "maxmemory"): "memory",
    ("condor", "request_memory"): "memory",
    ("pegasus", "gpus"): "gpus",
    ("condor", "request_gpus"): "gpus",
}
"""What a profile states, by namespace and key. Of several keys the last counts, as in Pegasus.
Limits (maxwalltime) are no measurements.
https://pegasus.isi.edu/documentation/reference-guide/configuration.html"""
MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
"""Of a unit, with which HTCondor's request_memory may end; without one it is in MB."""

Executable = tuple[str | None, ...]
"""Namespace, name and version of an executable."""
Amount = Annotated[float, Field(ge=0)]


class _Attributes(Recorded, strict=False):
    """XML attributes are text: numbers in them are converted."""


def _without_unit(memory: Any) -> Any:
    text = memory.upper().removesuffix("B")
    try:
        return float(text[:-1]) * MEGABYTES[text[-1:]]
    except (ValueError, KeyError):
        return memory


class _Job(_Attributes):
    """The attributes of a job and what profiles state of it."""

    id: Annotated[str, Field(min_length=1)]
    name: str = ""
    runtime: float | None = None  # seconds
    cores: Amount | None = None
    memory: Annotated[Amount | None, BeforeValidator(_without_unit)] = None  # MB
    gpus: Quantity = Quantity(0)


class _Uses(_Attributes):
    file: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("file", "name"))]
    link: Annotated[Link, LOWER_CASE] = "none"
    size: float | None = None  # bytes


def read_dax(content: bytes, name: str, where: str) -> TaskGraph:
    """Reads one workflow from the unpacked content of a file, which errors call `where`.

    A file to which different jobs give different sizes has its writer's. A job's own `runtime`
    counts more than its profile, and that more than its executable's. The published generators draw
    from normal distributions that reach below 0: a negative runtime counts as 0, a negative size as
    missing.

    Raises:
        InputError: the content is no DAX, has too many elements, declares entities or has a
            sub-workflow, a job is unknown or declared twice, a number is not finite, or two
            values are stated for one thing.
    """
    check_values(content, b"<=", where)
    try:
        parser = DefusedXMLParser(target=TreeBuilder())
        parser.feed(content)
        root = parser.close()
    except (ParseError, ValueError, LookupError) as error:  # entities; an unknown encoding
        raise InputError(f"{where}: not valid XML: {short(str(error))}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without its namespace
    if root.tag != "adag":
        raise InputError(f"{where}: the root element is {short(root.tag)}, 'adag' is needed")
    for element in (*root.findall("dax"), *root.findall("dag")):
        raise InputError(
            f"{where}: <{element.tag}> {short(element.get('id', ''))} is a sub-workflow, which is "
            "not read: only workflows of jobs are"
        )
    declared: dict[Executable, list[Element]] = defaultdict(list)  # several, one for each system
    for element in root.findall("executable"):
        declared[_executable(element)].append(element)
    executables = {
        executable: _profiles(several, f"{where}: executable {short(executable[1])}")
        for executable, several in declared.items()
    }
    counts: Counter[str] = Counter()
    tasks = tuple(_task(job, executables, counts, where) for job in root.findall("job"))
    index = positions((task.name for task in tasks), where)
    edges = set()
    for child in root.findall("child"):
        for parent in child.findall("parent"):
            ends = [
                position(end.get("ref", ""), index, f"{where}: a {end.tag} refers to")
                for end in (parent, child)
            ]
            edges.add((ends[0], ends[1]))
    return graph_from_files(name, where, tasks, edges, counts)


def _task(
    element: Element,
    executables: Mapping[Executable, dict[str, str]],
    counts: Counter[str],
    where: str,
) -> Task:
    where = f"{where}: job {short(element.get('id', ''))}"
    profiles = executables.get(_executable(element), {}) | _profiles([element], where)
    job = validated(_Job, profiles | element.attrib, where)
    uses = [
        validated(_Uses, dict(file.attrib), f"{where}: uses") for file in element.findall("uses")
    ]
    counts["negative file sizes taken as unknown"] += sum((use.size or 0) < 0 for use in uses)
    reads, writes = (
        sized_files(
            (
                (use.file, None if use.size is None or use.size < 0 else use.size)
                for use in uses
                if use.link in (link, "inout")
            ),
            f"{where}: {link}",
        )
        for link in ("input", "output")
    )
    counts["negative runtimes taken as 0"] += (job.runtime or 0) < 0
    return Task(
        job.id,
        job.name or job.id,
        runtime=None if job.runtime is None else max(job.runtime, 0.0),
        memory=job.memory,
        cores=job.cores,
        resources={"GPU": job.gpus} if job.gpus else {},
        reads=reads,
        writes=writes,
    )


def _executable(element: Element) -> Executable:
    """Which executable a job calls, or an element declares."""
    return tuple(element.get(key) for key in ("namespace", "name", "version"))


def _profiles(elements: Iterable[Element], where: str) -> dict[str, str]:
    """What the profiles of a job, or of all declarations of an executable, state as written."""
    stated: dict[tuple[str, str], str] = {}
    for profile in (profile for element in elements for profile in element.findall("profile")):
        key = (profile.get("namespace", "").lower(), profile.get("key", "").lower())
        if key in PROFILES:
            text = (profile.text or "").strip()
            agreed(stated.setdefault(key, text), text, f"{where}: profile {' '.join(key)}")
    return {amount: stated[key] for key, amount in PROFILES.items() if key in stated}
