"""The house has a size and floors: a room that outgrows its number, or an import upwards, fails."""

import ast
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from run.next_command import PROJECT

LINES = {
    "env/base": 766,
    "env/resources": 295,
    "env/tickets": 1213,
    "env/sim": 12472,
    "env/workloads": 3521,
    "env/tables": 487,
    "env/score": 964,
    "env/learn": 3294,
    "run": 1504,
    "agents": 6967,
    "evaluation": 1748,
    "report": 3378,
    "train.py evaluate.py search_baseline.py": 402,
    "tests": 26374,
}
"""Lines at most of *.py in a room; a room within another one is counted apart. May only fall."""
WORDS = {"README.md": 1300, "docs": 28600}
LARGEST_FILE = 450
FLOORS = (
    *("env/base", "env/resources env/tickets", "env/sim/__init__.py env/sim/state"),
    *("env/sim/queue", "env/sim/node", "env/sim/declared env/sim/events"),
    *("env/sim/forecast env/sim/assembly", "env/sim/view", "env/sim/episode", "env/sim/check"),
    *("env/workloads env/score", "env/tables", "env/learn", "run"),
    *("agents", "evaluation", "report", "train.py evaluate.py search_baseline.py"),
)
"""From the ground up."""


def tracked(*patterns: str) -> list[Path]:
    """Files under version control, with their paths from the project's folder."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in listed.stdout.split("\0") if name]
    return [file for file in files if (PROJECT / file).exists()]


def lines_of(file: Path) -> int:
    return (PROJECT / file).read_bytes().count(b"\n")


def in_room(file: Path, room: str) -> bool:
    return any(file.is_relative_to(part) for part in room.split())


SOURCE = [
    file
    for file in tracked("*.py")
    if any(in_room(file, room) for room in LINES) and not in_room(file, "tests")
]


@pytest.mark.parametrize("room", LINES)
def test_a_room_does_not_outgrow_its_number(room: str) -> None:
    within = [other for other in LINES if other != room and in_room(Path(other), room)]
    own = [
        file
        for file in tracked("*.py")
        if in_room(file, room) and not any(in_room(file, other) for other in within)
    ]
    assert sum(map(lines_of, own)) <= LINES[room]


@pytest.mark.parametrize("pages", WORDS)
def test_pages_do_not_outgrow_their_number(pages: str) -> None:
    texts = [(PROJECT / file).read_text() for file in tracked(pages) if file.suffix == ".md"]
    assert sum(len(text.split()) for text in texts) <= WORDS[pages]


def test_no_file_is_too_large_to_be_one_room() -> None:
    large = {str(file): lines_of(file) for file in SOURCE if lines_of(file) > LARGEST_FILE}
    assert not large


def imported(file: Path) -> set[Path]:
    """The files of the project that a file imports, also within functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((PROJECT / file).read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    return {
        path
        for name in names
        for path in (
            Path(*name.split(".")).with_suffix(".py"),
            Path(*name.split("."), "__init__.py"),
        )
        if path in SOURCE and path != file
    }


def floor_of(file: Path) -> int:
    return next(floor for floor, rooms in enumerate(FLOORS) if in_room(file, rooms))


def test_nothing_imports_upwards_or_in_a_circle() -> None:
    arrows = {file: imported(file) for file in SOURCE}
    TopologicalSorter(arrows).prepare()  # raises CycleError
    upwards = [
        f"{file} imports {other}"
        for file, others in arrows.items()
        for other in others
        if floor_of(other) > floor_of(file)
    ]
    assert not upwards
