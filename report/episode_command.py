"""The commands that make something else of an episode file: report.gantt, .schedule and .trace."""

import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.base.schema import one_line

Made = TypeVar("Made")

STANDARD_OUTPUT = Path("-")


def command(
    made: str,
    read: Callable[[str], Made],
    write: Callable[[Made, Path], None],
    output: Path,
    description: str,
) -> Callable[..., int]:
    """One of them, which returns its exit code; bad input gets one line and 2.

    Args:
        made: what it makes.
        read: takes from the episode file what is needed of it.
        write: makes the other file, whole or not at all.
        output: that file, unless another is given; `STANDARD_OUTPUT` is not told of.
        description: for its help.
    """

    @until_reader_leaves()
    def main(arguments: Sequence[str] | None = None) -> int:
        program = f"python -m report.{Path(sys.argv[0]).stem}"
        parser = ArgumentParser(usage=SUPPRESS, prog=program, description=description)
        parser.add_argument("episode", metavar="EPISODE", help="episode file, plain or .gz")
        shown = "standard output" if output == STANDARD_OUTPUT else str(output)
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=output, help=shown)
        options = parser.parse_args(arguments)
        try:
            content = read(options.episode)
            if _same(options.output, Path(options.episode)):
                raise InputError(f"--output: '{options.output}' is the episode file itself")
            write(content, options.output)
        except InputError as error:
            print(f"error: {one_line(str(error))}", file=sys.stderr)
            return 2
        if options.output != STANDARD_OUTPUT:
            print(f"{made}: {options.output}")
        return 0

    return main


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # there is no such file, or none can have the name
        return False
