"""Checkpoints of a run: RLlib's, with the run's own counters beside them; whole or not there."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from ray.rllib.algorithms import Algorithm

from env.base.errors import InputError
from env.base.files import folder_written_whole, parse_json, read_bytes
from env.base.schema import Recorded, Strict, validated
from env.learn.multi_agent import ENV_NAME
from run.composing import TRAINING_WORLD
from run.run_folder import first_difference
from run.settings import TrainSettings

FOLDER = "checkpoints"
STATE = "run.json"
PREFIX = "iteration_"


class RunState(Strict, frozen=False):
    """What a run has done so far, over all its parts.

    Attributes:
        iteration: iterations done.
        env_steps: environment steps sampled.
        seconds: spent training, evaluations among them.
        evaluated: iteration after which the policies were last evaluated; 0 before.
        evaluating: seconds spent on evaluations.
        difference: percent of J, to the rule in held-out episodes, when last evaluated.
        best: lowest difference so far.
    """

    iteration: Annotated[int, Field(ge=0)] = 0
    env_steps: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    evaluated: Annotated[int, Field(ge=0)] = 0
    evaluating: Annotated[float, Field(ge=0)] = 0.0
    difference: float | None = None
    best: float | None = None

    @property
    def is_best(self) -> bool:
        """Whether the policies of this iteration have been evaluated, and none were better."""
        return self.evaluated == self.iteration and self.difference == self.best


class Stored(Recorded):
    """`run.json`.

    Attributes:
        state: counters.
        config: of the run.
        environment: name and version of what it was trained in; older checkpoints do not know it.
    """

    state: RunState
    config: dict[str, Any]
    environment: str = "of an earlier version"


def save_checkpoint(
    algorithm: Algorithm, run_folder: Path, state: RunState, config: dict[str, Any], keep: int
) -> None:
    """Writes `checkpoints/iteration_<n>`, and removes what is older than the `keep` newest.

    The one with the lowest difference to the rule stays, however old.
    """
    folder = run_folder / FOLDER
    stored = Stored(state=state, config=config, environment=algorithm.config.env)
    with folder_written_whole(folder / f"{PREFIX}{state.iteration:06}") as fresh:
        algorithm.save_to_path(str(fresh.absolute()))
        (fresh / STATE).write_text(json.dumps(stored.model_dump(), indent=2) + "\n")
    saved = {path: load_checkpoint(path).state.difference for path in _checkpoints(folder)}
    evaluated = {path: value for path, value in saved.items() if value is not None}
    best = min(evaluated, key=evaluated.__getitem__, default=None)
    for old in list(saved)[:-keep]:
        if old != best:
            shutil.rmtree(old)


def find_checkpoint(path: str | Path) -> Path:
    """The checkpoint that a path means: itself, or the newest of a run folder.

    Raises:
        InputError: there is none.
    """
    path = Path(path).absolute()
    if (path / STATE).is_file():
        return path
    saved = _checkpoints(path / FOLDER) or _checkpoints(path)
    if not saved:
        raise InputError(f"resume: '{path}' is neither a checkpoint nor a run folder with one")
    return saved[-1]


def load_checkpoint(path: Path) -> Stored:
    """What a checkpoint says of itself.

    Raises:
        InputError: the file that says so is damaged.
    """
    where = f"resume: '{path / STATE}'"
    content = read_bytes(path / STATE, inside=path)
    return validated(Stored, parse_json(content, where), where)


def check_resume(settings: TrainSettings, path: str) -> None:
    """Refuses a checkpoint of other networks, another world or other held-out episodes.

    Raises:
        InputError: it is one, the key is named; or it is damaged, or has used all of the budget.
    """
    checkpoint = find_checkpoint(path)
    stored = load_checkpoint(checkpoint)
    state = stored.state
    if stored.environment != ENV_NAME:
        raise InputError(
            f"resume: '{checkpoint}' was made in the environment {stored.environment}, this is "
            f"{ENV_NAME}, in which agents may see or earn something else: train anew; its policies "
            "can still be evaluated"
        )
    now = settings.model_dump(mode="json")
    where = f"resume: '{checkpoint / STATE}': config"
    # Groups that an older run did not have are as they are now.
    before = validated(TrainSettings, {**now, **stored.config}, where).model_dump(mode="json")
    differing = first_difference(_lasting(before), _lasting(now))
    if differing is not None:
        key, old, new = differing
        raise InputError(
            f"resume: {key} is {new}, '{checkpoint}' was made with {old}: give the same"
        )
    if settings.budget.progress(state.seconds, state.iteration) >= 1:
        raise InputError(
            f"resume: '{checkpoint}' has done {state.iteration} iterations in "
            f"{state.seconds / 60:.1f} minutes, which is all of budget: give a larger one"
        )


def _lasting(config: Mapping[str, Any]) -> dict[str, Any]:
    """Without which the networks do not fit, or the best policy so far was so elsewhere."""
    networks = ("name", "hidden", "network", "message_rounds")
    return {
        **{group: config[group] for group in TRAINING_WORLD},
        "algo": {key: config["algo"].get(key) for key in networks},
        "held_out": {**config["held_out"], "share": None},
    }


def _checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob(f"{PREFIX}*") if (path / STATE).is_file())
