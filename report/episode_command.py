"""The commands that make something else of an episode file: report.gantt, .schedule and .trace."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from run.command import refuse

Made = TypeVar("Made")

STANDARD_OUTPUT = Path("-")


def command(
    made: str,
    read: Callable[[str], Made],
    write: Callable[[Made, Path], None],
    output: Path,
    description: str,
) -> Callable[..., None]:
    """One of them; bad input gets one line and exit code 2.

    Args:
        made: what it makes.
        read: takes from the episode file what is needed of it.
        write: makes the other file, whole or not at all.
        output: that file, unless another is given; `STANDARD_OUTPUT` is not told of.
        description: for its help.
    """

    @until_reader_leaves()
    def main(arguments: Sequence[str] | None = None) -> None:
        program = f"python -m report.{Path(sys.argv[0]).stem}"
        parser = ArgumentParser(usage=SUPPRESS, prog=program, description=description)
        parser.add_argument("episode", metavar="EPISODE", help="episode file, plain or .gz")
        shown = "standard output" if output == STANDARD_OUTPUT else str(output)
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=output, help=shown)
        options = parser.parse_args(arguments)
        try:
            content = read(options.episode)
            if os.path.realpath(options.output) == os.path.realpath(options.episode):
                raise InputError(f"--output: '{options.output}' is the episode file itself")
            write(content, options.output)
        except InputError as error:
            refuse(error)
        if options.output != STANDARD_OUTPUT:
            print(f"{made}: {options.output}")

    return main
