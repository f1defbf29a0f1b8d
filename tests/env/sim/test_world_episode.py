"""Episode files of format 2: recorded in any world, read back, and played again to the same."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from env.base.errors import InputError
from env.sim import idle_forecast
from env.sim.check.validate import violations
from env.sim.endings import take_down
from env.sim.engine import play
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, main, replayed
from env.sim.episode.replay import played as replay_of
from env.sim.episode.world_episode import WorldEpisode
from env.sim.records import INF
from env.sim.resources import names_of
from env.sim.view.raw_env import RawEnv
from evaluation.shares import shares_of
from tests.env.sim.test_world_against_reference import World, engine, worlds
from tests.recorded_worlds import (
    FUNDING,
    KEPT,
    LEASES,
    crowded,
    played,
    shared,
    trace,
    world,
)
from tests.reference_inputs import mean

RANDOM = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def check_round_trip(env: RawEnv, path: Path) -> WorldEpisode:
    """Written, read back, played again and validated; the episode."""
    episode = episode_of(env, "a world", "a test")
    assert isinstance(episode, WorldEpisode) and episode.expected is not None
    write_episode(path, episode)
    again = read_episode(path)
    assert again == episode
    assert differences(replayed(again), episode.expected) == []
    assert violations(again) == []
    return episode


@RANDOM
@given(world=worlds())
def test_random_worlds(tmp_path_factory: pytest.TempPathFactory, world: World) -> None:
    assume(not names_of(world.templates))  # of which an episode file knows nothing
    path = tmp_path_factory.mktemp("episodes") / "episode.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        episode = episode_of(engine(world), "random", "a test")
        write_episode(path, episode)
        again = read_episode(path)
        assert again == episode
        assert again.expected is not None
        assert differences(replayed(again), again.expected) == []
        assert violations(again) == []


@pytest.mark.parametrize("keep_alive", KEPT)
@pytest.mark.parametrize("lease", LEASES)
@pytest.mark.parametrize("order", ["immediate", "rr", "chosen"])
def test_every_world(tmp_path: Path, order: str, lease: str, keep_alive: str) -> None:
    env = world(order, lease, keep_alive)
    episode = check_round_trip(env, tmp_path / "episode.json")
    assert (episode.options.queue is None) == (order == "immediate")
    assert episode.tenants[:3] == ["a", "b", "a"]
    results = episode.expected
    assert results is not None
    preempted = [run for run in results.runs if run.outcome == "preempted"]
    assert len(results.runs) == 32 + len(preempted)
    assert bool(preempted) == (order == "rr")
    assert bool(results.warm_containers) == (keep_alive != "none")
    assert results.total_rent == env.total_rent
    assert {run.container_cold_start_time for run in results.runs if not run.warm} == {2.5}


@pytest.mark.parametrize("order", ["fcfs", "heft", "srtf", "funcsched"])
@pytest.mark.parametrize("patience", [0.0, 30.0, INF])
def test_every_order_and_patience(tmp_path: Path, order: str, patience: float) -> None:
    episode = check_round_trip(
        world(order, keep_alive="lru", patience=patience), tmp_path / "episode.json"
    )
    assert episode.actions == ()
    assert episode.options.queue is not None
    assert episode.options.queue.patience == (None if patience == INF else patience)


@pytest.mark.parametrize("order", ["rr", "chosen"])
def test_who_is_asked_is_asked_again(tmp_path: Path, order: str) -> None:
    """With preemption a function is placed more than once."""
    env = world(order, keep_alive="lru", placement="asked", patience=30.0)
    episode = check_round_trip(env, tmp_path / "episode.json")
    assert len(episode.actions) == len(env.runs)
    memory = {action.memory_allocated_mb for action in episode.actions}
    assert 2048 in memory and 2047 in memory


@pytest.mark.parametrize(
    "order",
    [
        *("lottery", "multi_lottery", "stochastic_remainder", "stride", "hierarchical_stride"),
        *("eevdf", "weighted_fair", "drf", "stride+sjf", "lottery+funcsched"),
        *("stride_workflows", "stride_workflows_apart"),
    ],
)
def test_tenants_take_the_same_turns_again(tmp_path: Path, order: str) -> None:
    """All that is drawn follows from the seed in the file; shares come out the same."""
    env = shared(order)
    episode = check_round_trip(env, tmp_path / "episode.json")
    assert episode.options.queue is not None and episode.options.queue.sharing is not None
    assert episode.options.queue.sharing.mechanism == re.split(r"\+|_workflows", order)[0]
    assert episode.options.queue.turns_seed == 7
    before, after = shares_of(env), shares_of(replay_of(episode))
    assert before.received[-1].min() > 20.0
    assert after.received.tolist() == before.received.tolist()
    assert after.error.tolist() == before.error.tolist()


def test_another_seed_draws_other_turns() -> None:
    episode = episode_of(shared("lottery"), "a world", "a test")
    document = episode.model_dump()
    document["options"]["queue"]["turns_seed"] = 8
    again = WorldEpisode.model_validate(document)
    assert again.expected is not None
    assert differences(replayed(again), again.expected) != []


def test_tickets_are_recorded_whatever_the_order(tmp_path: Path) -> None:
    episode = check_round_trip(shared("fcfs"), tmp_path / "episode.json")
    assert episode.funding == FUNDING
    assert episode.options.queue is not None and episode.options.queue.sharing is None


def test_cores_are_shared_by_tickets_again(tmp_path: Path) -> None:
    """Some nodes have more threads than cores: alike, functions would end at other times."""
    episode = check_round_trip(crowded(), tmp_path / "episode.json")
    assert (episode.cluster.cpu_share, episode.funding) == ("tickets", FUNDING)
    document = episode.model_dump()
    document["cluster"]["cpu_share"] = document["funding"] = None
    assert violations(WorldEpisode.model_validate(document)) != []


def test_who_places_is_asked_in_turn(tmp_path: Path) -> None:
    episode = check_round_trip(shared("stride", placement="asked"), tmp_path / "episode.json")
    assert len(episode.actions) == len(episode.functions)


@pytest.mark.parametrize("order", ["immediate", "fcfs", "rr", "srtf"])
def test_a_sample_of_a_trace(tmp_path: Path, order: str) -> None:
    """Work is drawn, and the policy knows of requests before time 0."""
    episode = check_round_trip(trace(order), tmp_path / "episode.json")
    drawn = {workflow.work for workflow in episode.workflows}
    assert {1_000_000, 1_500_000, 2_000_000} < drawn
    assert [execution.begin for execution in episode.earlier] == [-100.0, -80.0, -60.0, -40.0]
    assert len({id(template) for template in episode.templates()}) == 2


def test_without_images_runs_are_recorded_too(tmp_path: Path) -> None:
    """No container starts cold or stays warm, but servers are always up."""
    env = world("immediate", "always charged", cold_start=0.0)
    with_images = check_round_trip(env, tmp_path / "with.json")
    bare = RawEnv(
        env.arrival_times,
        env.workflow_templates,
        env.cluster_config,
        record=True,
        tenants=env.tenants,
        rules=env.rules,
    )
    for log in env.logs:
        bare.step(log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
    without = check_round_trip(bare, tmp_path / "without.json")
    assert without.images == ()
    assert without.expected is not None and with_images.expected is not None
    assert without.expected.runs == with_images.expected.runs


def test_the_plain_world_stays_in_format_1() -> None:
    assert episode_of(world(cold_start=0.0), "plain", "a test").format == 1
    assert episode_of(world(cold_start=1.0), "cold", "a test").format == 2


def test_what_is_not_recorded_is_refused() -> None:
    env = world("rr", keep_alive="lru")
    with pytest.raises(InputError, match="not recorded, RawEnv"):
        episode_of(env.fork(), "fork", "a test")
    env = world("immediate")
    env.reset()
    with pytest.raises(InputError, match="not over yet"):
        episode_of(env, "begun", "a test")
    env.step("small", 0, 0, 2048)
    take_down(env.state, 0)
    env._play_on(play(env.state))
    with pytest.raises(InputError, match="went down or functions were skipped"):
        episode_of(played(env), "down", "a test")


Change = Callable[[Any], None]


def _set(*keys: Any, to: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


def _drop(*keys: Any) -> Change:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trace sample whose functions are placed by who is asked, and worlds beside it."""
    folder = tmp_path_factory.mktemp("worlds")
    found = {}
    for name, env in {
        "asked": trace("rr", placement="asked"),
        "engine": world("funcsched", keep_alive="lru"),
        "chosen": world("chosen", keep_alive="lru"),
        "immediate": world("immediate", keep_alive="lru"),
        "shared": shared("stride+sjf"),
        "workflows": shared("stride_workflows"),
        "crowded": crowded(),
    }.items():
        path = folder / f"{name}.json"
        write_episode(path, episode_of(env, name, "a test"))
        found[name] = json.loads(path.read_text())
    return found


QUEUE = ("options", "queue")
FUNCTION = ("workflows", 0, "functions", 0)
RUN = ("expected", "runs", 0)
WARM = ("expected", "warm_containers", 0)
SERVER = ("expected", "servers", 0)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("asked", _set("format", to=True), ["format: True found, allowed are 1 and 2"]),
        ("asked", _set("format", to=1), ["unknown key"]),
        ("asked", _set("format", to="2"), ["format: '2' found"]),
        ("asked", _set("imges", to=[]), ["imges", "unknown key", "'images'"]),
        ("asked", _drop("options"), ["options", "missing"]),
        ("asked", _set("options", "billing", to=1), ["options.billing", "unknown key"]),
        ("asked", _set(*QUEUE, "order", to="rank"), ["options.queue.order", "by_rank"]),
        ("asked", _drop(*QUEUE, "order"), ["options.queue.order", "missing"]),
        ("asked", _set(*QUEUE, "time_slice", to=0), ["options.queue.time_slice", "0.001"]),
        ("asked", _set(*QUEUE, "time_slice", to="4"), ["options.queue.time_slice", "'4'"]),
        ("asked", _set(*QUEUE, "starve_threshold", to=-1), ["queue.starve_threshold", "-1"]),
        ("asked", _set(*QUEUE, "placement", to="worst"), ["placement", "'worst'", "worst_fit"]),
        ("asked", _set(*QUEUE, "patience", to=-0.5), ["options.queue.patience", "-0.5"]),
        ("asked", _set(*QUEUE, "patiense", to=1), ["patiense", "'patience'"]),
        ("asked", _set("options", "lease", "kind", to="daily"), ["options.lease.kind", "'daily'"]),
        ("asked", _set("options", "lease", "step", to=0.5), ["options.lease.step", "0.5"]),
        ("asked", _set("options", "lease", "charged", to="so"), ["options.lease.charged", "'so'"]),
        (
            "asked",
            _set("options", "keep_alive", "policy", to="lur"),
            ["options.keep_alive.policy", "'lur'", "lru"],
        ),
        ("asked", _drop("options", "keep_alive", "bins"), ["options.keep_alive.bins", "missing"]),
        ("asked", _set("options", "keep_alive", "bin", to=0), ["options.keep_alive.bin", "0"]),
        (
            "asked",
            _set("options", "keep_alive", to={"policy": "lru"}),
            ["earlier: 4 found, keep_alive 'lru' knows of none"],
        ),
        ("asked", _set("images", to=[]), ["images: none found"]),
        ("asked", _set("images", 1, "image_id", to=0), ["images.1: id 0", "0 to 2"]),
        (
            "asked",
            _set("images", 0, "container_cold_start", to=-1),
            ["images.0.container_cold_start", "-1"],
        ),
        ("asked", _set("images", 0, "memory_mb", to=1.5), ["images.0.memory_mb", "1.5"]),
        ("asked", _set("earlier", 0, "image", to=7), ["earlier.0.image: 7", "0 to 2"]),
        ("asked", _set("earlier", 0, "begin", to=None), ["earlier.0.begin", "None"]),
        ("asked", _set("earlier", 0, "end", to=2e9), ["earlier.0.end", "2000000000"]),
        ("asked", _set("workflows", 0, "work", to=0), ["workflows.0.work", "0"]),
        ("asked", _drop("workflows", 0, "work"), ["workflows: 32 of 33 have work"]),
        ("immediate", _set("workflows", 3, "work", to=5), ["workflows: 1 of 8 have work"]),
        ("asked", _set(*FUNCTION, "image", to=3), ["workflows.0.functions.0.image: 3", "0 to 2"]),
        ("asked", _drop(*FUNCTION, "image"), ["workflows.0.functions.0.image: None"]),
        ("asked", _drop(*FUNCTION, "rank"), ["functions.0.rank: None", "needed with order"]),
        ("engine", _set(*FUNCTION, "rank", to=1.0), ["functions.0.rank: 1.0", "only with order"]),
        ("asked", _set(*FUNCTION, "rank", to="first"), ["functions.0.rank", "'first'"]),
        ("asked", _set("actions", 0, "dispatch_time", to=0.0), ["actions.0.dispatch_time: 0.0"]),
        ("chosen", _drop("actions", 2, "dispatch_time"), ["actions.2.dispatch_time: None"]),
        ("asked", _set("actions", 0, "server_type", to="smal"), ["actions.0.server_type", "smal"]),
        ("asked", _set("actions", 0, "memory_allocated_mb", to=9999), ["actions.0", "9999 MB"]),
        ("asked", _set("actions", 0, "workflow_id", to=99), ["actions.0: workflow 99 function 0"]),
        ("immediate", _set("actions", 1, "workflow_id", to=0), ["actions.1", "placed twice"]),
        ("immediate", _drop("actions", 31), ["actions: workflow", "never placed"]),
        (
            "engine",
            lambda document: document.update(actions=[_bare_action()]),
            ["actions: 1 found, order 'funcsched' and placement 'worst_fit' need none"],
        ),
        ("asked", _set(*RUN, "warm", to=1), ["expected.runs.0.warm", "1"]),
        ("asked", _set(*RUN, "outcome", to="killed"), ["expected.runs.0.outcome", "'killed'"]),
        ("asked", _set(*RUN, "end_time", to=-1.0), ["expected.runs.0.end_time", "-1.0"]),
        ("asked", _set(*RUN, "joined", to=1.5), ["expected.runs.0.joined", "1.5"]),
        ("asked", _drop(*RUN, "queueing_time"), ["expected.runs.0.queueing_time", "missing"]),
        ("asked", _set(*RUN, "rent", to=1), ["expected.runs.0.rent", "unknown key"]),
        ("asked", _set(*WARM, "begin_time", to="x"), ["warm_containers.0.begin_time", "'x'"]),
        ("asked", _set(*WARM, "memory_mb", to=0), ["warm_containers.0.memory_mb", "0"]),
        ("asked", _set(*SERVER, "hours_rented", to=1), ["servers.0.hours_rented", "unknown key"]),
        ("asked", _set(*SERVER, "lease_seconds", to=-1), ["servers.0.lease_seconds", "-1"]),
        ("asked", _set("expected", "total_rent", to=None), ["expected.total_rent", "None"]),
        ("shared", _drop("funding"), ["funding: missing, options.queue.sharing needs it"]),
        ("crowded", _drop("funding"), ["funding: missing, cluster.cpu_share needs it"]),
        ("crowded", _drop("cluster", "cpu_share"), ["funding: found", "cluster.cpu_share"]),
        (
            "crowded",
            _set("cluster", "cpu_share", to="lots"),
            ["cluster.cpu_share", "equal, tickets"],
        ),
        ("workflows", _drop("workflows", 1, "tickets"), ["workflows.1.tickets: None", "needed"]),
        ("workflows", _set("workflows", 1, "tickets", to=-1.0), ["workflows.1.tickets", "-1"]),
        ("workflows", _drop(*QUEUE, "lends"), ["queue.lends: None", "needed with"]),
        ("shared", _set(*QUEUE, "lends", to=True), ["queue.lends: True", "allowed only with"]),
        ("shared", _set("workflows", 0, "tickets", to=2.0), ["workflows.0.tickets: 2.0", "only"]),
        ("shared", _set("funding", "tenants", "a", "tickets", to=0), ["funding.tenants.a", "0"]),
        (
            "shared",
            _set("funding", "tenants", to={}),
            ["funding.tenants: at least 1 entry is needed"],
        ),
        (
            "shared",
            _set("funding", "currencies", "lab", "currency", to="lab"),
            ["funding", "'lab'", "cycle"],
        ),
        ("shared", _drop("funding", "tenants", "b"), ["workflows.1.tenant: 'b' found", "funding"]),
        ("shared", _set("workflows", 0, "tenant", to="d"), ["workflows.0.tenant: 'd' found"]),
        (
            "shared",
            _set(*QUEUE, "sharing", "mechanism", to="strode"),
            ["options.queue.sharing.mechanism", "'strode'"],
        ),
        ("shared", _set(*QUEUE, "sharing", "quantum", to=0), ["queue.sharing.quantum", "0"]),
        ("shared", _set(*QUEUE, "sharing", "winers", to=2), ["winers", "'winners'"]),
        ("shared", _drop(*QUEUE, "turns_seed"), ["queue.turns_seed: None", "needed with"]),
        ("shared", _drop(*QUEUE, "sharing"), ["queue.turns_seed: 7", "allowed only with"]),
        ("shared", _set(*QUEUE, "turns_seed", to=2**64), ["queue.turns_seed", "18446744073709"]),
        ("shared", _set(*QUEUE, "turns_seed", to=-1), ["queue.turns_seed", "-1"]),
        ("shared", _set(*QUEUE, "turns_seed", to=0.5), ["queue.turns_seed", "0.5"]),
        ("shared", _set(*QUEUE, "time_slice", to=4.0), ["queue.time_slice: 4.0", "sharing"]),
        ("engine", _set(*QUEUE, "sharing", to={"mechanism": "drf"}), ["queue.turns_seed: None"]),
        (
            "immediate",
            _set("funding", to={"tenants": {"a": {"tickets": 1}}}),
            ["funding: found, it is allowed only with options.queue"],
        ),
    ],
)
def test_bad_content_gets_one_clear_line(
    tmp_path: Path, documents: dict[str, Any], name: str, change: Change, words: list[str]
) -> None:
    document = copy.deepcopy(documents[name])
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_episode(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    for word in words:
        assert word in message


def _bare_action() -> dict[str, Any]:
    return {
        "workflow_id": 0,
        "function_id": 0,
        "server_type": "small",
        "server_index": 0,
        "numa_node_index": 0,
        "memory_allocated_mb": 1024,
    }


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("asked", _set("actions", 1, "workflow_id", to=0), ["actions.1: places workflow 0"]),
        ("asked", _drop("actions", -1), ["actions: 38 found, but functions wait"]),
        (
            "asked",
            lambda document: document["actions"].append(document["actions"][0]),
            ["actions.", "but the episode is over"],
        ),
        ("asked", _set("actions", 0, "server_type", to="large"), []),
        (
            "chosen",
            _set("actions", 0, "dispatch_time", to=5000.0),
            ["actions.0: choose: nothing is to come"],
        ),
        ("chosen", _set("actions", 3, "dispatch_time", to=0.5), ["actions.3", "at 0.5 s"]),
    ],
)
def test_what_cannot_be_played_gets_one_line(
    tmp_path: Path,
    documents: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    name: str,
    change: Change,
    words: list[str],
) -> None:
    document = copy.deepcopy(documents[name])
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    code = main([str(path)])
    printed = capsys.readouterr().err
    assert code in (1, 2) and printed.startswith(f"{path}: ")
    assert code == 1 or (len(printed.splitlines()) == 1 and all(word in printed for word in words))


def test_the_command_names_what_differs(
    tmp_path: Path, documents: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    document = copy.deepcopy(documents["asked"])
    path = tmp_path / "episode.json"
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["runs"] == document["expected"]["runs"]
    run = document["expected"]["runs"][0]
    computed, run["end_time"] = run["end_time"], run["end_time"] + 1e-6
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 1
    name = f"workflow {run['workflow_id']} function {run['function_id']} run 0"
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: runs.{name}.end_time: {computed} computed, {run['end_time']} expected"
    ]
