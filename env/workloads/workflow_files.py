"""Workflow files: which ones a path names, and reading any of them."""

import glob
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from env.base.errors import InputError
from env.base.files import MOST_BYTES, read_bytes
from env.workloads.dax import read_dax
from env.workloads.sebs_flow import DEFINITION, MEASURED, read_sebs_flow
from env.workloads.task_graph import TaskGraph
from env.workloads.wfformat import read_wfformat

READERS = {".json": read_wfformat, ".dax": read_dax, ".xml": read_dax}
SUFFIXES = tuple(f"{suffix}{packed}" for suffix in (*READERS, MEASURED) for packed in ("", ".gz"))
ALLOWED = ", ".join(SUFFIXES)
OF_SEBS_FLOW = DEFINITION, "config.json"
"""Not workflows, where measurements are beside them."""


def find_workflow_files(paths: Iterable[str]) -> dict[Path, Path | None]:
    """All workflow files that `paths` name, each once, in a stable order.

    Args:
        paths: files, folders (searched in full depth) and glob patterns (`**` too). In folders and
            patterns, files without a workflow's suffix are left out, and so are names that begin
            with a dot, unless the path itself has them. A definition of SeBS-Flow stands for all
            measurements beside it.

    Returns:
        Each file with the folder that it must not lead out of: the one that is searched, or where
        a pattern begins; None where the path names the file.

    Raises:
        InputError: a path names nothing, or a file that is no workflow by its suffix.
    """
    files: dict[Path, Path | None] = {}
    for text in paths:
        path = Path(text).expanduser()
        if path.name == DEFINITION and _beside_measurements(path):
            path = path.parent
        if path.exists() and not path.is_dir():
            if not path.name.endswith(SUFFIXES):
                raise InputError(f"{text}: not a workflow file, allowed suffixes: {ALLOWED}")
            files.setdefault(path.absolute(), None)
            continue
        inside, matches = path, [path]
        if not path.is_dir():
            inside = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
            matches = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207
        several = {file for match in matches for file in _workflows_in(match)}
        if not several:
            what = "no workflow file in it" if path.is_dir() else "no such file or folder"
            raise InputError(f"{text}: {what}; suffixes of workflow files: {ALLOWED}")
        for file in sorted(several):
            files.setdefault(file.absolute(), inside)
    return files


def read_workflow_file(
    path: Path, max_bytes: int = MOST_BYTES, inside: Path | None = None
) -> TaskGraph:
    """Reads one workflow file, gzipped or not, as its suffix says; see `opened`.

    Raises:
        InputError: the file cannot be read, or is no such file.
    """
    content = read_bytes(path, max_bytes, inside)
    stem = path.name.removesuffix(".gz")
    if stem.endswith(MEASURED):
        definition = read_bytes(path.with_name(DEFINITION), max_bytes, inside)
        return read_sebs_flow(definition, path, max_bytes)
    suffix = Path(stem).suffix
    return READERS[suffix](content, stem.removesuffix(suffix), str(path))


def _workflows_in(path: Path) -> Iterator[Path]:
    """The file itself, or those of a folder in full depth that are not hidden."""
    for file in path.rglob("*") if path.is_dir() else (path,):
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        named = file.name.endswith(SUFFIXES) and not _beside_measurements(file)
        if named and not hidden and file.is_file():
            yield file


def _beside_measurements(file: Path) -> bool:
    """Whether a file is one of SeBS-Flow that says more of the measurements beside it."""
    return file.name in OF_SEBS_FLOW and any(file.parent.glob(f"*{MEASURED}*"))
