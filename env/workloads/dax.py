"""Pegasus DAX, the XML of abstract workflows (2.1 as its generators write it, and 3.x).

A job states its runtime and its files with their sizes; from 3.0 on, profiles of the job or of its
executable may state runtime, cores and memory.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser
from pydantic import AliasChoices, BeforeValidator, Field

from env.base.errors import InputError
from env.base.files import check_values
from env.base.schema import LOWER_CASE, Recorded, one_line, short, validated
from env.workloads.task_graph import (
    File,
    Task,
    TaskGraph,
    agreed,
    graph_from_files,
    named,
    positions,
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
}
"""What a profile states, by namespace and key; of several keys the last counts, as in Pegasus,
where keys of the systems below win over its own. Limits (maxwalltime) are no measurements.
https://pegasus.isi.edu/documentation/reference-guide/configuration.html"""
MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
"""Of a unit, with which HTCondor's request_memory may end; without one it is in MB."""

Called = tuple[str | None, ...]
"""Namespace, name and version of an executable."""


class _Attributes(Recorded, strict=False):
    """XML attributes are text: numbers in them are converted."""


class _Job(_Attributes):
    id: Annotated[str, Field(min_length=1)]
    name: str = ""
    runtime: float | None = None  # seconds


def _without_unit(memory: Any) -> Any:
    number, unit = memory[:-1], memory[-1:].upper()
    if unit == "B":
        number, unit = number[:-1], number[-1:].upper()
    try:
        return float(number) * MEGABYTES[unit]
    except (ValueError, KeyError):
        return memory


Amount = Annotated[float, Field(ge=0)]


class _Profiles(_Attributes):
    """What profiles state of a job."""

    runtime: Amount | None = None  # seconds
    cores: Amount | None = None
    memory: Annotated[Amount | None, BeforeValidator(_without_unit)] = None  # MB


class _Uses(_Attributes):
    file: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("file", "name"))]
    link: Annotated[Link, LOWER_CASE] = "none"
    size: float | None = None  # bytes


def read_dax(content: bytes, name: str, where: str) -> TaskGraph:
    """Reads one workflow.

    A file to which different jobs give different sizes has its writer's. A job's own `runtime`
    counts more than its profile, and that more than its executable's. The published generators draw
    from normal distributions that reach below 0: a negative runtime counts as 0, a negative size as
    missing.

    Args:
        content: of the file, uncompressed.
        name: what to call the workflow.
        where: the file, for errors.

    Raises:
        InputError: the content is no DAX, has too many elements, declares entities or has a
            sub-workflow, a job is unknown, declared twice or depends on itself, a number is not
            finite, or two values are stated for one thing.
    """
    check_values(content, b"<=", where)
    try:
        parser = DefusedXMLParser(target=TreeBuilder())
        parser.feed(content)
        root = parser.close()
    except DefusedXmlException as error:
        raise InputError(f"{where}: XML entities are refused: {one_line(str(error))}") from None
    except LookupError:  # its text repeats the name of the encoding, whatever that is
        raise InputError(f"{where}: not valid XML: its encoding is unknown") from None
    except (ParseError, ValueError) as error:
        raise InputError(f"{where}: not valid XML: {one_line(str(error))}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # without its namespace
    if root.tag != "adag":
        raise InputError(f"{where}: the root element is {short(root.tag)}, 'adag' is needed")
    for tag in ("dax", "dag"):
        for element in root.findall(tag):
            raise InputError(
                f"{where}: <{tag}> {short(element.get('id', ''))} is a sub-workflow, which is not "
                "read: only workflows of jobs are"
            )
    declared: dict[Called, list[Element]] = defaultdict(list)  # one for each of several systems
    for executable in root.findall("executable"):
        declared[_called(executable)].append(executable)
    executables = {
        called: _profiles(several, f"{where}: executable {short(called[1])}")
        for called, several in declared.items()
    }
    counts: Counter[str] = Counter()
    tasks = tuple(_task(job, executables, counts, where) for job in root.findall("job"))
    index = positions((task.name for task in tasks), where)
    edges = set()
    for child in root.findall("child"):
        target = _position(child, index, where)
        edges |= {(_position(parent, index, where), target) for parent in child.findall("parent")}
    return graph_from_files(name, where, tasks, edges, counts)


def _task(
    element: Element,
    executables: Mapping[Called, dict[str, str]],
    counts: Counter[str],
    where: str,
) -> Task:
    place = f"{where}: job {short(element.get('id', ''))}"
    job = validated(_Job, dict(element.attrib), place)
    told = executables.get(_called(element), {}) | _profiles([element], place)
    profiles = validated(_Profiles, told, f"{place}: profile")
    reads: dict[File, float | None] = {}
    writes: dict[File, float | None] = {}
    for uses in element.findall("uses"):
        use = validated(_Uses, dict(uses.attrib), f"{place}: uses")
        file = named(use.file)
        size = use.size
        if size is not None and size < 0:
            size = None
            counts["negative file sizes taken as unknown"] += 1
        for links, files in ((("input", "inout"), reads), (("output", "inout"), writes)):
            if use.link in links:
                what = f"{place}: size of {use.link} {short(use.file)}"
                files[file] = agreed(files.get(file), size, what)
    runtime = profiles.runtime if job.runtime is None else job.runtime
    if runtime is not None and runtime < 0:
        runtime = 0.0
        counts["negative runtimes taken as 0"] += 1
    return Task(
        job.id,
        job.name or job.id,
        runtime=runtime,
        memory=profiles.memory,
        cores=profiles.cores,
        reads=reads,
        writes=writes,
    )


def _called(element: Element) -> Called:
    """What a job calls its executable."""
    return tuple(element.get(key) for key in ("namespace", "name", "version"))


def _profiles(elements: Iterable[Element], place: str) -> dict[str, str]:
    """What the profiles of a job, or of all declarations of an executable, state as written."""
    given: dict[tuple[str, str], str] = {}
    for profile in (profile for element in elements for profile in element.findall("profile")):
        key = (profile.get("namespace", "").lower(), profile.get("key", "").lower())
        if key in PROFILES:
            text = (profile.text or "").strip()
            agreed(given.setdefault(key, text), text, f"{place}: profile {' '.join(key)}")
    return {what: given[key] for key, what in PROFILES.items() if key in given}


def _position(element: Element, index: dict[str, int], where: str) -> int:
    reference = element.get("ref")
    if reference not in index:
        raise InputError(f"{where}: a {element.tag} refers to {short(reference)}, no such job")
    return index[reference]
