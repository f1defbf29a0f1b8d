"""Episode files: a cluster, workflows, the placements made and what came of them, as JSON.

What `recording` makes of a run, `replay` plays again and `env.sim.check.validate` checks.
"""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from env.base.errors import InputError, located
from env.base.files import parse_json, read_bytes, written_whole
from env.base.schema import short, validated
from env.sim.episode.first_format import FirstEpisode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recorded_world import specification
from env.sim.episode.rows import WorkflowModel


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
    if number == 2:
        episode = validated(EpisodeFile, document, where)
        with located(where):
            specification(episode)
        return episode
    first = validated(FirstEpisode, document, where)
    with located(where):
        specification(first.converted())
        return first.converted().model_copy(update={"expected": first.results()})


def write_episode(path: str | os.PathLike[str], episode: EpisodeFile) -> None:
    """Writes an episode file (gzip if it ends in .gz) that reads back as the same numbers.

    The file appears whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    target = Path(path)
    content = _json_text(episode).encode()
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with written_whole(target) as temporary:
        temporary.write_bytes(content)


def json_rows(fields: Mapping[str, Any], indent: int) -> str:
    """`fields` as the inside of a JSON object, lists of objects one row a line."""
    pad = " " * indent
    lines = []
    for key, value in fields.items():
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"{pad} {json.dumps(row)}" for row in value)
            lines.append(f"{pad}{json.dumps(key)}: [\n{rows}\n{pad}]")
        else:
            lines.append(f"{pad}{json.dumps(key)}: {json.dumps(value)}")
    return ",\n".join(lines)


def _json_text(episode: EpisodeFile) -> str:
    head = _plain(episode)
    head.pop("workflows")
    last: dict[str, Any] = {key: head.pop(key) for key in ("actions", "expected") if key in head}
    expected = last.pop("expected", None)
    workflows = ",\n".join(_workflow_text(workflow) for workflow in episode.workflows)
    parts = [json_rows(head, 1), f' "workflows": [\n{workflows}\n ]', json_rows(last, 1)]
    if expected is not None:
        parts.append(f' "expected": {{\n{json_rows(expected, 2)}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _workflow_text(workflow: WorkflowModel) -> str:
    plain = _plain(workflow)
    first = ("workflow_id", "name", "arrival_time", "tenant", "work")
    head = {key: plain.pop(key) for key in first if key in plain}
    return f"  {json.dumps(head)[:-1]},\n{json_rows(plain, 3)}}}"


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(exclude_none=True, by_alias=True)
