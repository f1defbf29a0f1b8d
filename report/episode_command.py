"""The commands that make something else of an episode file: report.gantt, .schedule and .trace."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.base.schema import one_line

Made = TypeVar("Made")

STANDARD_OUTPUT = Path("-")


@until_reader_leaves()
def convert_episode(
    read: Callable[[str], Made],
    write: Callable[[Made, Path], None],
    *,
    module: str,
    description: str,
    made: str,
    output: Path,
    arguments: Sequence[str] | None,
) -> int:
    """Runs one of them and returns its exit code; bad input gets one line and 2.

    Args:
        read: takes from the episode file what is needed of it.
        write: makes the other file, whole or not at all.
        module: that it is started by.
        description: for its help.
        made: what it calls the file it makes.
        output: that file, unless another is given; `STANDARD_OUTPUT` is not told of.
        arguments: None takes those of the process.
    """
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, prog=f"python -m {module}", description=description
    )
    parser.add_argument("episode", metavar="EPISODE", help="episode file, plain or .gz")
    shown = "standard output" if output == STANDARD_OUTPUT else output
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=output, help=f"{shown}"
    )
    options = parser.parse_args(arguments)
    try:
        found = read(options.episode)
        if _same(options.output, Path(options.episode)):
            raise InputError(f"--output: '{options.output}' is the episode file itself")
        write(found, options.output)
    except InputError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 2
    if options.output != STANDARD_OUTPUT:
        print(f"{made}: {options.output}")
    return 0


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # there is no such file, or none can have the name
        return False
