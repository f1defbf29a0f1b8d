"""Episodes of any kind, for the tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from env.sim.check.validate import violations
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.declared.rules import DEFAULT_RULES, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import write_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.view.raw_env import RawEnv
from tests.documents import Change

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


def begun(
    times: Sequence[float],
    templates: Sequence[WorkflowTemplate],
    cluster: ClusterConfig,
    record: bool = False,
    rules: Rules = DEFAULT_RULES,
    workflow_slots: int | None = None,
    **others: Any,
) -> RawEnv:
    """An episode at its first decision; `others` are fields of its `EpisodeWorkload`."""
    for name, given in others.items():
        others[name] = tuple(given) if isinstance(given, list) else given
    workload = EpisodeWorkload(tuple(times), tuple(templates), **others)
    return RawEnv.of(Episode(workload, cluster, rules, workflow_slots), record)


def written(env: RawEnv, path: Path) -> Path:
    """The file of a finished episode that was recorded; it is called as the file."""
    write_episode(path, episode_of(env, path.name.partition(".")[0], "a test"))
    return path


def checked(env: RawEnv) -> EpisodeFile:
    """What its file says; the validator finds nothing wrong, and a replay gives the same."""
    recorded = episode_of(env, "episode", "a test")
    recorded = EpisodeFile.model_validate_json(
        recorded.model_dump_json(exclude_none=True, by_alias=True)
    )
    assert_sound(recorded)
    return recorded


def assert_sound(recorded: EpisodeFile) -> None:
    """The validator finds nothing wrong, and a replay gives the same."""
    assert violations(recorded) == []
    assert recorded.expected is not None
    assert differences(replayed(recorded), recorded.expected) == []


def objections(recorded: EpisodeFile, *changes: Change) -> list[str]:
    """What the validator says of a file that has been changed."""
    document = recorded.model_dump(mode="json", by_alias=True)
    for change in changes:
        change(document)
    return violations(EpisodeFile.model_validate(document))


def end(env: RawEnv) -> RawEnv:
    """The same, played to its end: all on the first node, with the memory they need."""
    while (function := env.current_function) is not None:
        env.step(*env.place_of(0), function.memory_req)
    assert env.done
    return env
