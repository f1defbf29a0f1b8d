"""Workflow files: which ones a path names, and reading any of them."""

import glob
from collections.abc import Iterable
from pathlib import Path

from env.files import opened, user_path
from env.sim.errors import InputError
from env.workloads.dax import read_dax
from env.workloads.task_graph import TaskGraph
from env.workloads.wfformat import read_wfformat

READERS = {".json": read_wfformat, ".dax": read_dax, ".xml": read_dax}
SUFFIXES = tuple(f"{suffix}{packed}" for suffix in READERS for packed in ("", ".gz"))


def find_workflow_files(paths: Iterable[str]) -> tuple[Path, ...]:
    """All workflow files that `paths` name, each once, in a stable order.

    Args:
        paths: files, folders (searched in full depth) and glob patterns (`**` too). Relative ones
            start at the working directory. In folders and patterns, files that do not have a
            workflow's suffix are passed over.

    Raises:
        InputError: a path names nothing, or a file that is no workflow by its suffix.
    """
    found: dict[Path, None] = {}
    for text in paths:
        path = user_path(text)
        if path.is_file() and not _is_workflow(path):
            raise InputError(f"{text}: not a workflow file, allowed suffixes: {_allowed()}")
        globbed = glob.glob(str(path), recursive=True)  # noqa: PTH207, absolute patterns too
        matches = [path] if path.exists() else map(Path, globbed)
        try:
            files = sorted(file for match in matches for file in _expanded(match))
        except OSError as error:
            raise InputError(f"{text}: cannot be searched: {error.strerror or error}") from None
        if not files:
            what = "no workflow file in it" if path.exists() else "no such file or folder"
            raise InputError(f"{text}: {what}; suffixes of workflow files: {_allowed()}")
        found |= dict.fromkeys(file.absolute() for file in files)
    return tuple(found)


def read_workflow_file(path: Path) -> TaskGraph:
    """Reads one WfFormat or DAX file, gzipped or not, told apart by its suffix.

    Raises:
        InputError: the file cannot be read, or is not what its suffix says.
    """
    with opened(path) as file:
        content = file.read()
    stem = path.name.removesuffix(".gz")
    suffix = Path(stem).suffix
    return READERS[suffix](content, stem.removesuffix(suffix), str(path))


def _expanded(path: Path) -> list[Path]:
    files = path.rglob("*") if path.is_dir() else [path]
    return [file for file in files if _is_workflow(file) and file.is_file()]


def _is_workflow(path: Path) -> bool:
    return path.name.endswith(SUFFIXES)


def _allowed() -> str:
    return ", ".join(SUFFIXES)
