"""What tenants used and how long they took, by hand."""

from pathlib import Path

import numpy as np
import pytest

from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.workflow_template import WorkflowTemplate
from report import palette
from report.tenants import OTHERS, capacity_used, colours, labels
from report.timeline import Timeline, mean_over
from tests.episodes import begun
from tests.report.evaluations import finished_evaluation, played, rows_of, settings_in, write_page

EDGES = np.array([0.0, 5.0, 10.0])


def shared_node(**label_of: str) -> Timeline:
    """Two functions of 2 threads on a node of 2 cores, so that a thread does 500 operations/s.

    That of `a` has all its memory and does 1,000 a second until 8 s, then 2,000 until 10 s; that of
    `b` has half of it and does 500 a second until 8 s. The other node is idle.
    """
    cluster = ClusterConfig(1_000, 1e9, 1e9, 1e9, (ServerType("box", 1, 0.6, 0.0, 2, 2, 2048),))
    workflows = [
        WorkflowTemplate(str(computation), [computation], [1024], [2], [], [])
        for computation in (12_000, 4_000)
    ]
    env = begun([0.0, 0.0], workflows, cluster, record=True, tenants=["a", "b"])
    env.step("box", 0, 0, 1024)
    env.step("box", 0, 0, 512)
    return Timeline(env, "shared", label_of)


def test_tenants_share_a_node_by_the_speed_of_what_runs() -> None:
    timeline = shared_node(a="a", b="b")
    assert timeline.tenants == ("a", "b")
    used = capacity_used(timeline, EDGES)
    # Of 4,000 operations/s of both nodes.
    assert used["a"] == pytest.approx([1_000 / 4_000, (3 * 1_000 + 2 * 2_000) / 5 / 4_000])
    assert used["b"] == pytest.approx([500 / 4_000, 3 * 500 / 5 / 4_000])


def test_small_tenants_are_together() -> None:
    used = capacity_used(shared_node(a="a", b=OTHERS), EDGES)
    assert used[OTHERS] == pytest.approx([0.125, 0.075])
    together = capacity_used(shared_node(a=OTHERS, b=OTHERS), EDGES)
    assert together[OTHERS] == pytest.approx([0.375, 0.425])


@pytest.mark.parametrize("policy", range(2))
def test_tenants_together_use_what_is_used(policy: int) -> None:
    env = played(policy, 0, 5, 6, 40.0, ["a", "b", "c"])
    timeline = Timeline(env, "several", labels({"a": 1.0, "b": 1.0, "c": 1.0}))
    edges = np.linspace(0.0, timeline.end, 30)
    used = capacity_used(timeline, edges)
    capacities = np.array([node.computing_capacity for node in timeline.nodes])
    assert capacities.tolist() == [4_000_000, 4_000_000, 16_000_000, 16_000_000]
    nodes = [mean_over(node.times, node.cpu, edges) for node in timeline.nodes]
    assert sum(used.values()) == pytest.approx(np.average(nodes, axis=0, weights=capacities))


def test_the_six_largest_have_names_and_colours() -> None:
    shares = {name: float(share) for share, name in enumerate("hgfedcba", start=1)}
    named = labels(shares)
    assert list(named.values()) == [*"abcdef", OTHERS, OTHERS]
    assert colours(named) == {
        **dict(zip("abcdef", palette.SERIES, strict=True)),
        OTHERS: palette.KINDS["reference"],
    }
    assert list(colours(labels({"x": 1.0, "y": 2.0}))) == ["y", "x"]


def test_the_page_shows_tenants_where_there_are_some(tmp_path: Path) -> None:
    folder = finished_evaluation(tmp_path / "run", tenants={"retail": 1.0, "science": 2.0})
    text = write_page(folder).read_text()
    assert ">Tenants</h3>" in text and ">Flow time of tenants</h3>" in text
    rows = rows_of(settings_in(text)["specs"]["tenant-flow-time"])
    # Workflows 0 and 2 of both episodes are retail's, workflow 1 is science's.
    assert dict(zip(rows["tenant"], rows["workflows"], strict=True)) == {"retail": 4, "science": 2}
