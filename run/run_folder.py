"""Where a run leaves its results: `outputs/<date>/<time>_<name>`, or where it is resumed."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from env.base.errors import InputError
from run.composing import TYPED, leaves

OUTPUTS = Path("outputs")
HELD = {"train": "checkpoints", "evaluate": "run.json"}
"""By command, the file or folder in a run's folder that shows that the run can go on."""
RUN_FILES = (".hydra", "run.json", "results.parquet", "metrics.csv", "checkpoints", "policy")
"""What runs write; a copy may lack the first of them."""
ASSUMPTIONS = "assumptions.json"
"""Assumptions of a training about its workload; it is written before there is any result."""
_NAME = re.compile(r"[\w.+-]{1,80}", re.ASCII)  # it is part of the name of a folder


def run_folder(name: str | None, typed: Sequence[str], resume: str | None, has: str | None) -> Path:
    """The folder of a run.

    Args:
        name: of the run; None: made of what was typed.
        typed: the arguments.
        resume: a run that goes on in its own folder; a lone checkpoint goes on in a new one.
        has: what the folder of such a run has.
    """
    if resume is not None and has is not None and (Path(resume) / has).exists():
        return Path(resume)
    now = datetime.now()
    folder = OUTPUTS / f"{now:%Y-%m-%d}" / numbered(f"{now:%H-%M-%S}", typed, name)
    # Runs that begin in the same second are told apart.
    others = (folder.with_name(f"{folder.name}_{number}") for number in count(2))
    return next(each for each in chain([folder], others) if not each.exists())


def numbered(number: str, typed: Sequence[str], name: str | None = None) -> str:
    """The number of a job, or the time of a run, and its name, or a name made of what was typed."""
    return "_".join(filter(None, [number, name or _chosen(typed)]))


def check_folder(folder: Path, resume: str | None) -> None:
    """Refuses an absolute folder that cannot be made or written to, or has results already.

    Those of two runs would be taken for those of one; the run that goes on is one with them.

    Raises:
        InputError: see above.
    """
    there = folder
    try:
        while not there.exists():
            there = there.parent
        TemporaryFile(dir=there).close()  # permissions do not tell: /proc has them, takes nothing
    except OSError as error:
        raise InputError(
            f"'{folder}': '{there}' is no folder to write to: {error.strerror}"
        ) from None
    if any((folder / left).exists() for left in RUN_FILES):
        _check_taken(folder, resume)


def claim(folder: Path, resume: str | None) -> None:
    """Makes the folder of a run.

    Raises:
        InputError: another run has begun there since it was checked.
    """
    try:
        (folder / TYPED.parent).mkdir(parents=True)
    except FileExistsError:
        _check_taken(folder, resume)


def _check_taken(folder: Path, resume: str | None) -> None:
    if resume is None or Path(resume).absolute() != folder:
        raise InputError(f"'{folder}' has a run already: name a new folder") from None


def first_difference(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[str, Any, Any] | None:
    """The first key, dotted, at which two trees differ, and both values; None if they are equal."""
    mine, theirs = (
        {key: value for key, value in leaves("", each) if value != {}} for each in (one, other)
    )
    differing = (key for key in mine | theirs if mine.get(key) != theirs.get(key))
    return next(((key, mine.get(key), theirs.get(key)) for key in differing), None)


def _chosen(typed: Sequence[str]) -> str:
    """What was typed, as far as it makes short names: `tiny-ppo-seed3`."""
    words: list[str] = []
    for override in typed:
        key, _, value = override.lstrip("+~").partition("=")
        # A resumed run is named by its folder, and mappings are too long.
        if key in ("name", "resume") or "{" in value:
            continue
        named = "+".join(filter(None, map(_last_of, re.split(r"[\[\],\s'\"]+", value))))
        word = named if named[:1].isalpha() else key.rpartition(".")[2] + named
        if named and word not in words and _NAME.fullmatch("-".join([*words, word])):
            words.append(word)
    return "-".join(words)


def _last_of(value: str) -> str:
    """What people call a value: of a path its last part, of `FILE.py:CLASS` the class."""
    parts = [part for part in re.split(r"[/:]", value) if part not in ("", "policy")]
    last = re.sub(r"^\d\d-\d\d-\d\d_", "", parts[-1]) if parts else ""  # of a run its name alone
    return re.sub(r"[^\w.+-]", "", last, flags=re.ASCII)
