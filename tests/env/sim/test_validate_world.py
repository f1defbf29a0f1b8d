"""The checker names what is wrong with a recorded episode of any world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from env.sim.check.validate import violations
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from tests.recorded_worlds import shared, trace, world

UNTOLD = {
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
    found = {}
    for name, env in envs.items():
        found[name] = episode_of(env, name, "a test")
    return found


def _changed(episode: EpisodeFile, change: Callable[[Any], None]) -> list[str]:
    document = episode.model_dump(mode="json", by_alias=True)
    change(document)
    return violations(EpisodeFile.model_validate(document))


def leaves(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*keys, key))]
    if isinstance(value, list):
        return [leaf for key, inner in enumerate(value) for leaf in leaves(inner, (*keys, key))]
    return [] if value is None else [keys]


def moved(key: str, value: Any, by: float = 1.0) -> Any:
    """Another value: a time or an amount by so much, or relative to it, of a count the next."""
    if isinstance(value, bool):
        return not value
    if key == "outcome":
        return "preempted" if value == "completed" else "completed"
    if isinstance(value, float):
        return value + max(by, by * value if by < 1 else 0.0)
    return "other" if isinstance(value, str) else value + 1


@pytest.mark.parametrize("name", UNTOLD)
def test_no_number_can_be_changed_unseen(episodes: dict[str, EpisodeFile], name: str) -> None:
    """Every number of the results, moved a little, is seen, but for what no rule tells."""
    episode = episodes[name]
    assert violations(episode) == []
    unseen = set()
    for leaf in leaves(episode.model_dump(mode="json")["expected"]):

        def change(document: Any, leaf: tuple[Any, ...] = leaf) -> None:
            holder = document["expected"]
            for key in leaf[:-1]:
                holder = holder[key]
            holder[leaf[-1]] = moved(leaf[-1], holder[leaf[-1]])

        if not _changed(episode, change):
            unseen.add((leaf[0], leaf[-1]))
    assert unseen <= UNTOLD[name]


def _run(index: int, **fields: Any) -> Callable[[Any], None]:
    return lambda document: document["expected"]["runs"][index].update(fields)


def _warm(index: int, **fields: Any) -> Callable[[Any], None]:
    return lambda document: document["expected"]["warm_containers"][index].update(fields)


def _index(episode: EpisodeFile, **fields: Any) -> int:
    """The first run with these fields."""
    assert episode.expected is not None
    return next(
        index
        for index, run in enumerate(episode.expected.runs)
        if all(getattr(run, key) == value for key, value in fields.items())
    )


@pytest.mark.parametrize(
    ("name", "of", "fields", "words"),
    [
        # Cold starts: 2.5 s of a container, 20 or 30 s of a server.
        ("at once", {}, {"container_cold_start_time": 1.5}, ["is 1.5, 2.5 is due"]),
        ("at once", {"warm": False}, {"warm": True}, ["starts warm on a server that was off"]),
        ("at once", {}, {"dispatch_time": 1.0}, ["submitted at 0.0, but dispatched at 1.0"]),
        ("asked", {}, {"server_type": "tiny"}, ["tiny", "does not exist"]),
    ],
)
def test_each_kind_of_error_of_a_run_is_named(
    episodes: dict[str, EpisodeFile],
    name: str,
    of: dict[str, Any],
    fields: dict[str, Any],
    words: list[str],
) -> None:
    episode = episodes[name]
    found = _changed(episode, _run(_index(episode, **of), **fields))
    assert any(all(word in line for word in words) for line in found), found


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("queued", _warm(0, end_time=3000.0), ["warm_containers.0: idle for more than 40.0 s"]),
        (
            "queued",
            lambda document: document["expected"]["servers"][0].update(lease_seconds=600.0),
            ["server small 0: 0.166667 hours rented"],
        ),
        ("asked", lambda document: document["actions"].pop(), ["actions: ", "runs"]),
        ("trace", lambda document: document["workflows"][0].update(work=9), ["operations"]),
    ],
)
def test_each_kind_of_error_beside_runs_is_named(
    episodes: dict[str, EpisodeFile],
    name: str,
    change: Callable[[Any], None],
    words: list[str],
) -> None:
    found = _changed(episodes[name], change)
    assert any(all(word in line for word in words) for line in found), found


def test_one_who_goes_before_its_turn(episodes: dict[str, EpisodeFile]) -> None:
    """Of those that wait the smallest rank goes: all of another function come before it now."""
    found = _changed(
        episodes["trace"],
        lambda document: [
            workflow["functions"][0].update(rank=-1.0) for workflow in document["workflows"][::2]
        ],
    )
    assert any("before its turn" in line for line in found), found


def test_one_of_a_tenant_who_goes_before_its_turn(episodes: dict[str, EpisodeFile]) -> None:
    """Ranks count within a tenant alone: those of all functions of one may be moved together."""

    def all_of_one(document: Any) -> None:
        for workflow in document["workflows"]:
            for function in workflow["functions"]:
                function["rank"] += 1000.0 * (workflow["tenant"] == "a")

    def some_of_one(document: Any) -> None:
        for workflow in document["workflows"]:
            for function in workflow["functions"]:
                early = workflow["tenant"] == "a" and workflow["workflow_id"] >= 20
                function["rank"] -= 1000.0 * early

    assert _changed(episodes["shared"], all_of_one) == []
    found = _changed(episodes["shared"], some_of_one)
    assert any("before its turn" in line for line in found), found


@pytest.mark.parametrize("late", [2.0**63, 1e30])
def test_a_moment_that_is_far_too_late_is_seen_at_once(
    episodes: dict[str, EpisodeFile], late: float
) -> None:
    """Leases of servers that are always up are not renewed one by one up to it."""
    assert _changed(
        episodes["queued"], lambda document: document["expected"]["runs"][-1].update(end_time=late)
    )
