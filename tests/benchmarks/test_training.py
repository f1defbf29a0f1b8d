"""The benchmark of training prints what later runs are compared by."""

import json
from collections.abc import Iterator

import pytest
import ray

from benchmarks import own_loop, training
from benchmarks.training import LAYOUT_UNITS, LAYOUTS, SCALING_UNITS, UNITS, main, measure
from run.ray_session import start_ray
from tests.agents.learned.conftest import ray_settings

TINY = [
    *("cluster=tiny", "workflow=tiny", "workload=tiny", "ray.envs_per_runner=4"),
    *("algo.batch_size=48", "algo.minibatch_size=16", "algo.epochs=1"),
]


@pytest.fixture
def running_ray(no_ray: None) -> Iterator[None]:
    """Ray, of this test alone."""
    start_ray(ray_settings(num_cpus=1), 0)
    yield
    ray.shutdown()


def with_cpu(names: dict[str, str]) -> set[str]:
    timed = {f"{name}_cpu" for name in names if name.endswith(("_ratio", "_per_s"))}
    return set(names) | timed


@pytest.mark.long
def test_all_figures_are_there(running_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "ENVIRONMENTS", (2,))
    monkeypatch.setattr(training, "MULTIPLES", (1,))
    figures = measure(TINY, repeats=1, scaling=True)
    json.dumps(figures)
    assert set(figures) == with_cpu(UNITS) | {*LAYOUTS, "scaling"}
    assert figures["environments"] == 4
    assert figures["batch_size"] == 48
    for layout in LAYOUTS:
        assert set(figures[layout]) == with_cpu(LAYOUT_UNITS)
        assert all(value > 0 for value in figures[layout].values())
    worst = min(figures[layout]["ppo_ratio"] for layout in LAYOUTS)
    assert figures["ppo_ratio"] == worst
    assert all(set(row) == with_cpu(SCALING_UNITS) for row in figures["scaling"])
    points = [(row["layout"], row["environments"], row["numa_nodes"]) for row in figures["scaling"]]
    # The tiny cluster has 4 NUMA nodes.
    assert points == [(layout, *point) for layout in LAYOUTS for point in ((2, 4), (4, 12))]
    hierarchical = figures["scaling"][0]
    assert hierarchical["simulator_agent_steps_per_s"] == pytest.approx(
        3 * hierarchical["simulator_decisions_per_s"]
    )


@pytest.mark.long
def test_so_they_are_of_a_loop_of_others(running_ray: None) -> None:
    figures = own_loop.measure(TINY, repeats=1)
    assert set(figures) == with_cpu(own_loop.UNITS)
    assert all(value > 0 for value in figures.values())


def test_tables_name_all_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = dict.fromkeys(with_cpu(SCALING_UNITS), 1.0) | {"layout": "placer"}
    figures = dict.fromkeys(with_cpu(UNITS), 1.0) | {"scaling": [row]}
    figures |= {layout: dict.fromkeys(with_cpu(LAYOUT_UNITS), 1.0) for layout in LAYOUTS}
    monkeypatch.setattr(training, "measure", lambda *given: figures)
    monkeypatch.setattr(training, "start_ray", lambda settings, cores: None)
    monkeypatch.setenv("COLUMNS", "200")
    main([])
    printed = capsys.readouterr().out
    assert all(name in printed for name in UNITS)
    assert all(f"{layout}.{name}" in printed for layout in LAYOUTS for name in LAYOUT_UNITS)
    assert all(name in printed for name in ("simulator", "bytes_per_env", "rss_mb"))
    main(["--json"])
    assert json.loads(capsys.readouterr().out) == figures


def test_without_sb3_there_is_no_loop_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_loop, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="sb3-contrib is not installed"):
        own_loop.main([])
