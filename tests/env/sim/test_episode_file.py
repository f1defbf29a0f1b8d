"""Episode files: read, refused in one line, and written so that they read back the same."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from env.sim.check.validate import violations
from env.sim.declared.cluster_file import ClusterModel, cluster_from_config
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import played
from env.sim.view.raw_env import RawEnv
from report.timeline import read_timeline
from tests.documents import Change, left_out, put, refused_in_a_line
from tests.env.worlds import world

ROOT = Path(__file__).parents[3]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.json"))
CLUSTERS = sorted((ROOT / "conf" / "cluster").glob("*.yaml"))
CHAIN = GOLDEN[1]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_format_1_is_converted_when_read(path: Path, tmp_path: Path) -> None:
    """What was declared and decided is written again as it was, the results as of today."""
    write_episode(tmp_path / "again.json", read_episode(path))
    assert read_episode(tmp_path / "again.json") == read_episode(path)
    again, original = (
        json.loads((tmp_path / "again.json").read_text()),
        json.loads(path.read_text()),
    )
    assert again["format"] == 2
    for key in original.keys() - {"expected"}:
        assert again[key] == original[key]
    (first, *_), wanted = again["expected"]["runs"], original["expected"]
    (function,) = (
        row
        for row in wanted["functions"]
        if (row["workflow_id"], row["function_id"]) == (first["workflow_id"], first["function_id"])
    )
    assert first["end_time"] == function["completion_time"]
    assert first["server_start_time"] == wanted["decisions"][0]["cold_start_time"]
    for own, server in zip(again["expected"]["servers"], wanted["servers"], strict=True):
        assert own["lease_seconds"] == 3600 * server["hours_rented"]


def test_names_go_from_the_templates_to_the_file_and_back(tmp_path: Path) -> None:
    golden = read_episode(CHAIN)
    (workflow,) = golden.workflows
    names = tuple(f"step {fn_id} =1+1|<b>" for fn_id in range(len(workflow.functions)))
    template = replace(workflow.template(), name="my pipeline", function_names=names)
    config = golden.cluster_config()
    env = RawEnv(
        [0.0, 50.0, 100.0],
        [
            template,
            replace(template, name="workflow 1", function_names=()),
            replace(template, name="my other pipeline"),
        ],
        config,
        record=True,
    )
    while not env.done:
        function = env.current_function
        env.step(*env.place_of(0), function.memory_req)
    write_episode(tmp_path / "named.json", episode_of(env, "named", ""))
    document = json.loads((tmp_path / "named.json").read_text())
    first, second, _ = document["workflows"]
    assert first["name"] == "my pipeline" and "name" not in second
    assert tuple(function["name"] for function in first["functions"]) == names
    assert not any("name" in function for function in second["functions"])
    assert violations(read_episode(tmp_path / "named.json")) == []
    again = played(read_episode(tmp_path / "named.json"))
    assert again.workload.workflows[0].template.function_names == names
    assert episode_of(again, "named", "") == read_episode(tmp_path / "named.json")
    timeline = read_timeline(tmp_path / "named.json")
    labels = [timeline.workflow_label(wf_id) for wf_id in range(3)]
    assert labels == ["0 (my pipeline)", "1", "2 (my other pipeline)"]
    assert timeline.function_label(0, 2) == f"2 ({names[2]})"
    assert timeline.function_label(1, 2) == "2"


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_every_cluster_config_is_a_cluster(path: Path) -> None:
    config = cluster_from_config(world(f"cluster={path.stem}")["cluster"], path.name)
    assert ClusterModel.of(config).cluster_config() == config


def test_hetero_numa_is_the_cluster_of_13_nodes() -> None:
    document = world("cluster=hetero_numa")["cluster"]
    types = cluster_from_config(document, "hetero_numa").server_types
    assert [one.name for one in types] == ["small", "medium", "large", "fast", "bigmem"]
    assert sum(one.count * one.numa_nodes for one in types) == 13
    assert sum(one.count * one.numa_nodes * one.cpu for one in types) == 124


def test_a_type_may_have_no_servers_or_a_core_speed_of_its_own() -> None:
    document = world("cluster=hetero_numa")["cluster"]
    document["server_types"]["large"]["server_count"] = 0
    document["server_types"]["small"]["single_core_speed_ops_per_s"] = 1_500_000
    small, *others = cluster_from_config(document, "cluster").server_types
    assert [one.name for one in others] == ["medium", "fast", "bigmem"]
    assert small.single_core_speed == 1_500_000


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
    document = world("cluster=tiny")["cluster"]
    change(document)
    with refused_in_a_line("conf/cluster/tiny.yaml: ", *words):
        cluster_from_config(document, "conf/cluster/tiny.yaml")
