"""The checker names what is wrong with a recorded episode of any world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from env.sim.check.validate import violations
from env.sim.episode.episode_file import read_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from run.command import PROJECT
from tests.documents import Change, at, put
from tests.recorded_worlds import shared, trace, world

GOLDEN = sorted((PROJECT / "tests" / "golden").glob("0[245]_*.json"))
UNTOLD = {
    **{path.stem: set[tuple[str, str]]() for path in GOLDEN},
    "at once": {("warm_containers", "end_time")},
    "queued": set[tuple[str, str]](),
    "asked": {("warm_containers", "end_time"), ("servers", "lease_expiration_time")},
    "trace": {
        ("runs", "numa_node_index"),
        *(
            ("warm_containers", key)
            for key in ("begin_time", "end_time", "numa_node_index", "image")
        ),
    },
}
"""What the record does not explain: which of several nodes has room, when a container that nobody
uses is started ahead of requests or removed, how far what was preempted had a lease extended."""


@pytest.fixture(scope="module")
def episodes() -> dict[str, EpisodeFile]:
    envs = {
        "at once": world("immediate", keep_alive="lru"),
        "queued": world("rr", "always charged", "fixed"),
        "asked": world("rr", "hourly in steps of a minute", "lru", placement="asked"),
        "trace": trace("fcfs"),
        "shared": shared("stride+sjf"),
    }
    golden = {path.stem: read_episode(path) for path in GOLDEN}
    return golden | {name: episode_of(env, name, "a test") for name, env in envs.items()}


def _changed(episode: EpisodeFile, change: Change) -> list[str]:
    document = episode.model_dump(mode="json")
    change(document)
    return violations(EpisodeFile.model_validate(document))


def leaves(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*keys, key))]
    if isinstance(value, list):
        return [leaf for key, inner in enumerate(value) for leaf in leaves(inner, (*keys, key))]
    return [] if value is None else [keys]


def move(results: Any, leaf: tuple[Any, ...], by: float) -> None:
    """Another value: a time or an amount by so much, or relative to it, of a count the next."""
    results, key = at(results, leaf[:-1]), leaf[-1]
    value = results[key]
    if isinstance(value, bool):
        results[key] = not value
    elif key == "outcome":
        results[key] = "preempted" if value == "completed" else "completed"
    elif isinstance(value, float):
        results[key] = value + max(by, by * value if by < 1 else 0.0)
    else:
        results[key] = "other" if isinstance(value, str) else value + 1


@pytest.mark.parametrize("name", UNTOLD)
def test_no_number_can_be_changed_unseen(episodes: dict[str, EpisodeFile], name: str) -> None:
    """Every number of the results, moved a little, is seen, but for what no rule tells."""
    episode, by = episodes[name], 1e-6 if name[0] == "0" else 1.0
    assert violations(episode) == []
    unseen = set()
    for leaf in leaves(episode.model_dump(mode="json")["expected"]):
        document = episode.model_dump(mode="json")
        move(document["expected"], leaf, by)
        if not violations(EpisodeFile.model_validate(document)):
            unseen.add((leaf[0], leaf[-1]))
    assert unseen <= UNTOLD[name]


def _first_run(fields: Any, **of: Any) -> Change:
    """Other fields of the first run that has certain ones."""

    def change(document: Any) -> None:
        runs = document["expected"]["runs"]
        next(run for run in runs if of.items() <= run.items()).update(fields)

    return change


def _ranks(by: float, chosen: Callable[[Any], bool]) -> Change:
    """Other ranks of the functions of some workflows."""

    def change(document: Any) -> None:
        for workflow in filter(chosen, document["workflows"]):
            for function in workflow["functions"]:
                function["rank"] += by

    return change


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        # Cold starts: 2.5 s of a container, 20 or 30 s of a server.
        ("at once", _first_run({"container_cold_start_time": 1.5}), ["is 1.5, 2.5 is due"]),
        (
            "at once",
            _first_run({"warm": True}, warm=False),
            ["starts warm on a server that was off"],
        ),
        (
            "at once",
            _first_run({"dispatch_time": 1.0}),
            ["submitted at 0.0, but dispatched at 1.0"],
        ),
        ("asked", _first_run({"server_type": "tiny"}), ["tiny", "does not exist"]),
        (
            "queued",
            put("expected", "warm_containers", 0, "end_time", to=3000.0),
            ["warm_containers.0: idle for more than 40.0 s"],
        ),
        (
            "queued",
            put("expected", "servers", 0, "lease_seconds", to=600.0),
            ["server small 0: 0.166667 hours rented"],
        ),
        ("asked", lambda document: document["actions"].pop(), ["actions: ", "runs"]),
        ("trace", put("workflows", 0, "work", to=9), ["operations"]),
        # Of those that wait the smallest rank goes, and of tenants within each alone.
        ("trace", _ranks(-1e9, lambda each: each["workflow_id"] % 2 == 0), ["before its turn"]),
        (
            "shared",
            _ranks(-1000.0, lambda each: each["tenant"] == "a" and each["workflow_id"] >= 20),
            ["before its turn"],
        ),
    ],
)
def test_each_kind_of_error_is_named(
    episodes: dict[str, EpisodeFile], name: str, change: Change, words: list[str]
) -> None:
    found = _changed(episodes[name], change)
    assert any(all(word in line for word in words) for line in found), found


def test_ranks_count_within_a_tenant_alone(episodes: dict[str, EpisodeFile]) -> None:
    all_of_one = _ranks(1000.0, lambda each: each["tenant"] == "a")
    assert _changed(episodes["shared"], all_of_one) == []


@pytest.mark.parametrize("late", [2.0**63, 1e30])
def test_a_moment_that_is_far_too_late_is_seen_at_once(
    episodes: dict[str, EpisodeFile], late: float
) -> None:
    """Leases of servers that are always up are not renewed one by one up to it."""
    assert _changed(episodes["queued"], put("expected", "runs", -1, "end_time", to=late))
