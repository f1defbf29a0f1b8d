"""The commands that make another file of an episode file: report.gantt and report.trace."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from env.base.errors import InputError
from env.base.schema import one_line
from report.timeline import Timeline, read_timeline


def convert_episode(
    write: Callable[[Timeline, Path], None],
    *,
    module: str,
    description: str,
    made: str,
    output: str,
    arguments: Sequence[str] | None,
) -> int:
    """Runs one of them and returns its exit code; bad input gets one line and 2.

    Args:
        write: makes the file, whole or not at all.
        module: that it is started by.
        description: for its help.
        made: what it calls the file it makes.
        output: name of that file, unless another is given.
        arguments: None takes those of the process.
    """
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, prog=f"python -m {module}", description=description
    )
    parser.add_argument("episode", metavar="EPISODE", help="episode file, plain or .gz")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=output, help="%(default)s"
    )
    options = parser.parse_args(arguments)
    try:
        write(read_timeline(options.episode), options.output)
    except InputError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 2
    print(f"{made}: {options.output}")
    return 0
