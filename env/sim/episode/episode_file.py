"""Episode files: a cluster, workflows, the placements made and what came of them, as JSON.

What `recording` makes of a run, `replay` plays again and `env.sim.check.validate` checks.
"""

import gzip
import json
import os
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from env.base.errors import InputError, located
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import one_line, short, validated
from env.sim.episode.first_format import FirstEpisode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recorded_world import specification


def read_episode(path: str | os.PathLike[str]) -> EpisodeFile:
    """Reads an episode file, plain or .gz, of any format.

    Raises:
        InputError: one line with the file, the place in it, what was found and what is allowed.
    """
    where = str(path)
    document = parse_json(read_bytes(Path(path)), where)
    if not isinstance(document, dict):
        raise InputError(f"{where}: {type(document).__name__} found, a JSON object is needed")
    number = document.get("format", 1)
    if type(number) is not int or number not in (1, 2):
        raise InputError(f"{where}: format: {short(number)} found, allowed are 1 and 2")
    if number == 1:
        first = validated(FirstEpisode, document, where)
        with located(where):
            episode = first.converted()
    else:
        episode = validated(EpisodeFile, document, where)
    with located(where):
        specification(episode)
    return episode


def write_episode(path: str | os.PathLike[str], episode: EpisodeFile) -> None:
    """Writes an episode file (gzip if it ends in .gz) that reads back as the same numbers.

    The file appears whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    target = Path(path)
    text = json_text(episode.model_dump(exclude_none=True, by_alias=True))
    content = f"{text}\n".encode()
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with written_whole(target) as temporary:
        temporary.write_bytes(content)


def json_text(value: Any, indent: str = "") -> str:
    """JSON with each row of a table on a line of its own, and each key beside a table."""
    if is_table(value):
        rows = (f"{indent} {json_text(row, f'{indent} ')}" for row in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    if isinstance(value, dict) and any(map(is_table, value.values())):
        keys = (f"{indent} {json.dumps(k)}: {json_text(v, f'{indent} ')}" for k, v in value.items())
        return "{\n" + ",\n".join(keys) + f"\n{indent}}}"
    return json.dumps(value)


def is_table(value: Any) -> bool:
    """Whether a value is a list of JSON objects."""
    return isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], dict)


def check_files(
    module: str,
    description: str | None,
    arguments: Sequence[str] | None,
    check: Callable[[EpisodeFile], list[str]],
    output: TextIO,
) -> int:
    """A command that prints what `check` says of each episode file that it is given.

    Returns:
        its exit code: 1 if that is anything, 2 and a line on standard error for bad input.
    """
    parser = ArgumentParser(usage=SUPPRESS, prog=f"python -m {module}", description=description)
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file, plain or .gz")
    lines = []
    try:
        for file in parser.parse_args(arguments).files:
            episode = read_episode(file)
            with located(file):
                lines += [f"{file}: {line}" for line in check(episode)]
    except InputError as error:
        print(one_line(str(error)), file=sys.stderr)
        return 2
    for line in lines:
        print(line, file=output)
    return 1 if lines else 0
