"""Episode files: written in any world, read back the same, and played again to the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from pydantic import TypeAdapter

from agents.order.chosen import Chosen
from env.base.errors import InputError
from env.sim.check.validate import violations
from env.sim.declared.hardware import ClusterConfig, ServerType, cluster_from_config
from env.sim.declared.images import Images
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.episode.replay import played as replay
from env.sim.events.endings import skip_function, take_down
from env.sim.events.engine import play
from env.sim.node import idle_forecast
from env.sim.view.raw_env import RawEnv
from evaluation.shares import shares_of
from report.timeline import read_timeline
from run.command import CONF
from tests.documents import Change, left_out, put, refused_in_a_line
from tests.env import worlds
from tests.episodes import GOLDEN, assert_sound, begun, end, objections, written
from tests.recorded_worlds import CLUSTER, FUNDING, SPEED, crowded, played, shared, trace, world
from tests.reference_inputs import engine, mean
from tests.strategies import World, plain_worlds
from tests.strategies import worlds as any_worlds

CLUSTERS = sorted((CONF / "cluster").glob("*.yaml"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_format_1_is_converted_when_read(path: Path, tmp_path: Path) -> None:
    """What was declared and decided is written again as it was, the results as of today."""
    write_episode(tmp_path / "again.json", read_episode(path))
    assert read_episode(tmp_path / "again.json") == read_episode(path)
    again, original = (json.loads(file.read_text()) for file in (tmp_path / "again.json", path))
    assert again["format"] == 2
    for key in original.keys() - {"expected", "cluster"}:
        assert again[key] == original[key]
    (first, *_), wanted = again["expected"]["runs"], original["expected"]
    key = {name: first[name] for name in ("workflow_id", "function_id")}
    (function,) = (row for row in wanted["functions"] if key.items() <= row.items())
    assert first["end_time"] == function["completion_time"]
    assert first["server_start_time"] == wanted["decisions"][0]["cold_start_time"]
    for own, server in zip(again["expected"]["servers"], wanted["servers"], strict=True):
        assert own["lease_seconds"] == 3600 * server["hours_rented"]


def test_names_and_probabilities_go_from_the_templates_to_the_file_and_back(tmp_path: Path) -> None:
    golden = read_episode(GOLDEN[1])
    (workflow,) = golden.workflows
    names = tuple(f"step {fn_id} =1+1|<b>" for fn_id in range(len(workflow.functions)))
    template = replace(workflow.template(), name="my pipeline", function_names=names)
    unnamed = replace(template, name="workflow 1", function_names=())
    drawn = np.array([1.0, np.nextafter(1.0, 0.0), 1.0])  # below 1, but every call is made
    other = replace(template, name="my other pipeline", probability=drawn)
    templates = [template, unnamed, other]
    env = RawEnv([0.0, 50.0, 100.0], templates, golden.cluster, record=True)
    path = written(end(env), tmp_path / "named.json")
    document = json.loads(path.read_text())
    first, second, third = document["workflows"]
    assert first["name"] == "my pipeline" and "name" not in second
    assert tuple(function["name"] for function in first["functions"]) == names
    assert not any("name" in function for function in second["functions"])
    assert not any("probability" in edge for edge in second["edges"])
    assert [edge.get("probability", 1) for edge in third["edges"]] == drawn.tolist()
    assert violations(read_episode(path)) == []
    again = replay(read_episode(path))
    assert again.workload.workflows[0].template.function_names == names
    probabilities = [each.probability.tolist() for each in again.workflow_templates]
    assert probabilities == [[1.0] * 3, [1.0] * 3, drawn.tolist()]
    assert episode_of(again, "named", "a test") == read_episode(path)
    timeline = read_timeline(path)
    labels = [timeline.workflow_label(wf_id) for wf_id in range(3)]
    assert labels == ["0 (my pipeline)", "1", "2 (my other pipeline)"]
    assert timeline.function_label(0, 2) == f"2 ({names[2]})"
    assert timeline.function_label(1, 2) == "2"


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_every_cluster_config_is_a_cluster(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARBON", str(tmp_path))
    worlds.write_carbon(tmp_path, 2023)
    config = cluster_from_config(worlds.world(f"cluster={path.stem}")["cluster"], path.name)
    written = TypeAdapter(ClusterConfig).dump_python(config, by_alias=True)
    assert cluster_from_config(written, path.name) == config


def test_hetero_numa_is_the_cluster_of_13_nodes() -> None:
    document = worlds.world("cluster=hetero_numa")["cluster"]
    types = cluster_from_config(document, "hetero_numa").server_types
    assert [one.name for one in types] == ["small", "medium", "large", "fast", "bigmem"]
    assert sum(one.count * one.numa_nodes for one in types) == 13
    assert sum(one.count * one.numa_nodes * one.cpu for one in types) == 124


SPRAWLING = {"server_count": 100_000, "numa_nodes_per_server": 1_000}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            put("server_types", "small", "hourly_rte", to=1.0),
            ["server_types.small.hourly_rte", "'hourly_rate'"],
        ),
        (
            lambda document: document["server_types"]["small"].update(SPRAWLING),
            ["tiny.yaml: 100000002 NUMA nodes, at most 1000000"],
        ),
        (left_out("single_core_speed_ops_per_s"), ["single_core_speed_ops_per_s", "missing"]),
    ],
)
def test_bad_cluster_config_gets_one_clear_line(change: Change, words: list[str]) -> None:
    document = worlds.world("cluster=tiny")["cluster"]
    change(document)
    with refused_in_a_line("conf/cluster/tiny.yaml: ", *words):
        cluster_from_config(document, "conf/cluster/tiny.yaml")


def check_round_trip(env: RawEnv, path: Path) -> EpisodeFile:
    """Written, read back, played again and validated; the episode."""
    episode = episode_of(env, "a world", "a test")
    assert isinstance(episode, EpisodeFile) and episode.expected is not None
    write_episode(path, episode)
    again = read_episode(path)
    assert again == episode
    assert again.cluster == env.cluster_config
    assert_sound(again)
    return episode


@given(world=plain_worlds() | any_worlds())
def test_random_worlds(tmp_path_factory: pytest.TempPathFactory, world: World) -> None:
    path = tmp_path_factory.mktemp("episodes") / "episode.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        check_round_trip(engine(world), path)


@pytest.mark.parametrize(
    "order",
    [*("multi_lottery", "hierarchical_stride", "drf"), *("lottery+funcsched", "stride_workflows")],
)
def test_tenants_take_the_same_turns_again(tmp_path: Path, order: str) -> None:
    """All that is drawn follows from the seed in the file; shares come out the same."""
    env = shared(order)
    episode = check_round_trip(env, tmp_path / "episode.json")
    assert episode.options.queue is not None and episode.options.queue.sharing is not None
    assert episode.options.queue.sharing.mechanism == re.split(r"\+|_workflows", order)[0]
    assert episode.options.queue.turns_seed == 7
    before, after = shares_of(env), shares_of(replay(episode))
    assert before.received[-1].min() > 20.0
    assert after.received.tolist() == before.received.tolist()
    assert after.tenants["error"].tolist() == before.tenants["error"].tolist()


def test_another_seed_draws_other_turns() -> None:
    episode = episode_of(shared("lottery"), "a world", "a test")
    document = episode.model_dump(by_alias=True)
    document["options"]["queue"]["turns_seed"] = 8
    again = EpisodeFile.model_validate(document)
    assert again.expected is not None
    assert differences(replayed(again), again.expected) != []


def test_cores_are_shared_by_tickets_again(tmp_path: Path) -> None:
    """Some nodes have more threads than cores: alike, functions would end at other times."""
    episode = check_round_trip(crowded(), tmp_path / "episode.json")
    assert (episode.cluster.cpu_share, episode.funding) == ("tickets", FUNDING)
    assert objections(episode, put("cluster", "cpu_share", to=None), put("funding", to=None)) != []


@pytest.mark.parametrize("order", ["immediate", "srtf"])
def test_a_sample_of_a_trace(tmp_path: Path, order: str) -> None:
    """Work is drawn, and the policy knows of requests before time 0."""
    episode = check_round_trip(trace(order), tmp_path / "episode.json")
    drawn = {workflow.work for workflow in episode.workflows}
    assert {1_000_000, 1_500_000, 2_000_000} < drawn
    assert [execution.begin for execution in episode.earlier] == [-100.0, -80.0, -60.0, -40.0]
    assert len({id(template) for template in episode.templates()}) == 2


def test_a_choice_is_taken_again_at_its_moment(tmp_path: Path) -> None:
    """The first one waits up to 6 s, at which the patience of the third would have ended."""
    kinds = [WorkflowTemplate(name, [30 * SPEED], [500], [1], [], []) for name in "abc"]
    cluster = replace(CLUSTER, server_types=(ServerType("s", 2, 1.0, 0.0, 1, 4, 4096),))
    rules = Rules(Chosen(), placement="first_fit", patience=5.0)
    images = Images.by_name(kinds, 0.0)
    env = begun([0.0, 0.0, 1.0], kinds, cluster, record=True, rules=rules, images=images)
    for time, declared in [(0.0, 1), (0.0, None), (1.0, 2), (1.0, None), (6.0, 0)]:
        assert env.time == time
        env.choose(declared)
    check_round_trip(env, tmp_path / "episode.json")


def test_what_is_not_recorded_is_refused() -> None:
    env = world("rr", keep_alive="lru")
    with pytest.raises(InputError, match="not recorded, RawEnv"):
        episode_of(env.fork(), "fork", "a test")
    env = world("immediate")
    env.reset()
    with pytest.raises(InputError, match="not over yet"):
        episode_of(env, "begun", "a test")
    for change, index, says in ((take_down, 0, "servers were"), (skip_function, 3, "skipped")):
        env.reset()
        change(env.state, index)
        env._play_on(play(env.state))
        with pytest.raises(InputError, match=says):
            episode_of(played(env), "changed", "a test")
