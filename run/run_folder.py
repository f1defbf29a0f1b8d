"""Where a run leaves its results: `outputs/<date>/<time>_<name>`, or where it is resumed."""

import re
from datetime import datetime
from pathlib import Path
from typing import cast

from omegaconf import ListConfig, OmegaConf

from env.base.errors import InputError
from env.base.schema import short

OUTPUTS = Path("outputs")
MOST_CHARACTERS = 80
"""Of a name, which is part of the name of a folder."""
RUN_FILES = (".hydra", "run.json", "results.parquet", "metrics.csv", "checkpoints", "policy")
"""What Hydra writes first into the folder of a run, which a copy may lack, and what runs leave."""
ASSUMPTIONS = "assumptions.json"
"""What a training assumes of what arrives; it is written before anything is made of that."""
_NAME = re.compile(rf"[\w.+-]{{1,{MOST_CHARACTERS}}}", re.ASCII)


def run_folder(name: str | None, typed: ListConfig, resume: str | None, has: str) -> str:
    """The folder of a run, as `${run_folder:NAME,TYPED,RESUME,HAS}` in conf/.

    Args:
        name: of the run; None: made of what was typed.
        typed: overrides.
        resume: a run that goes on in its own folder; a lone checkpoint goes on in a new one.
        has: what the folder of such a run has.
    """
    if resume is not None and (Path(resume) / has).exists():
        return resume
    now = datetime.now()
    folder = OUTPUTS / f"{now:%Y-%m-%d}" / _joined(f"{now:%H-%M-%S}", name or _chosen(typed))
    # Runs that begin in the same second are told apart.
    count, found = 1, folder
    while found.exists():
        count += 1
        found = folder.with_name(f"{folder.name}_{count}")
    return str(found)


def job_folder(number: int, typed: ListConfig) -> str:
    """The folder of a job within that of its sweep, as `${job_folder:NUMBER,TYPED}` in conf/."""
    return _joined(str(number), _chosen(typed))


def check_run_name(name: object) -> None:
    """Refuses what cannot be part of the name of a folder.

    Raises:
        InputError: the key `name` is something else than a word.
    """
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InputError(
            f"name: {short(name)}: a word of letters, digits and _.+- is needed, of at most "
            f"{MOST_CHARACTERS} characters"
        )


def _joined(first: str, name: str) -> str:
    return f"{first}_{name}" if name else first


def _chosen(typed: ListConfig) -> str:
    """What was typed, as far as it makes short names: `tiny-ppo-seed3`."""
    words: list[str] = []
    for override in cast(list[str], OmegaConf.to_container(typed, resolve=False)):
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


OmegaConf.register_new_resolver("run_folder", run_folder, replace=True, use_cache=True)
OmegaConf.register_new_resolver("job_folder", job_folder, replace=True, use_cache=True)
