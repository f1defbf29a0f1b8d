"""A sample of a trace is an episode: as `simulate` plays it."""

from itertools import product
from pathlib import Path

import pytest

from agents.baseline import make_baselines
from benchmarks.trace_player import simulate
from env.base.errors import InputError
from env.base.schema import validated
from env.sim.declared.episode import Episode
from env.sim.declared.hardware import ClusterConfig, cluster_from_config
from env.sim.declared.keep_alive_policy import FaasCache, Fixed, KeepAlivePolicy, Lru, NoKeepAlive
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace_samples import TraceConfig, TraceGenerator
from tests.env.small import always_up, ten_second_bins
from tests.env.worlds import composed

# 100 minutes of some 30 functions in one, and as many before it.
SMALL = (
    "+workload=azure_like",
    "+cluster=funcsched",
    "cluster.server_types.worker.server_count=2",
    "cluster.server_types.worker.memory_mb_per_numa_node=6144",
    "workload.source.functions=40",
    "workload.source.minutes=200",
    "workload.sampling.start=100",
    "workload.sampling.minutes=1",
    "workload.sampling.compression=100",
)
KEEP_ALIVES: dict[str, KeepAlivePolicy] = {
    "none": NoKeepAlive(),
    "fixed": Fixed(keep=5.0),
    "lru": Lru(),
    "faascache": FaasCache(),
    "hybrid_histogram": ten_second_bins(24, 0.1),
}


def small(*overrides: str) -> tuple[TraceGenerator, ClusterConfig]:
    told = composed(*SMALL, *overrides)
    cluster = cluster_from_config(told["cluster"], "cluster")
    config = validated(TraceConfig, told["workload"], "workload")
    return TraceGenerator(config, cluster.single_core_speed), cluster


@pytest.mark.parametrize(
    ("order", "keep_alive"),
    [
        *product(("fcfs", "funcsched"), KEEP_ALIVES),
        *product(("sjf", "srf", "rr", "srtf"), ("lru", "hybrid_histogram")),
    ],
)
def test_an_episode_has_the_runs_of_its_trace(order: str, keep_alive: str) -> None:
    generator, cluster = small("workload.sampling.ratio=0.3")
    (scheduler,) = make_baselines([order], queued=True)
    assert scheduler.order is not None and scheduler.fit == "worst_fit"
    rules = always_up(scheduler.order, KEEP_ALIVES[keep_alive])
    env = RawEnv.of(Episode(generator.evaluation_episode(0), cluster, rules))
    sample = generator.sample(0)
    wanted = simulate(sample, cluster, rules)
    assert env.done and len(wanted) >= len(env.workflow_templates) > 100
    for field in set(wanted.dtype.names or ()) - {"declared"}:
        assert env.runs[field].tolist() == wanted[field].tolist(), field
    names = [env.workflow_templates[number].name for number in env.runs["wf_id"]]
    assert names == [sample.profiles.names[index] for index in wanted["declared"]]


def test_functions_of_one_name_in_two_applications_share_nothing(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    calls = [
        f"{app},{func},{20 * number + second},1"
        for number in range(1, 20)
        for app, func, second in (("a", "f", 0), ("a", "g", 3), ("b", "f", 7), ("b", "g", 9))
    ]
    file.write_text("\n".join(["app,func,end_timestamp,duration", *calls]))
    config = validated(
        TraceConfig,
        composed(
            "+workload=azure2021",
            f"workload.source.path='{file}'",
            "workload.sampling.start=3",
            "workload.sampling.minutes=3",
        )["workload"],
        "workload",
    )
    images = TraceGenerator(config, 1_000_000).evaluation_episode(0).images
    assert sorted(of.item() for of in images.of.values()) == [0, 1, 2, 3]
    assert set(images.earlier()["image"]) == {0, 1, 2, 3}


def test_nothing_arrives_is_said_before_anything_is_played() -> None:
    generator, _ = small("workload.sampling.ratio=1e-9", "workload.seed=7")
    says = "workload.sampling: nothing arrives at ratio 1e-09 in episode 2 of seed 7, a higher rat"
    with pytest.raises(InputError, match=says):
        generator.evaluation_templates(2)
    with pytest.raises(InputError, match=says):
        generator.evaluation_episode(2)


def test_episodes_of_a_trace_differ_and_repeat() -> None:
    first, again = (small("workload.sampling.ratio=0.1")[0] for _ in "ab")
    other = small("workload.sampling.ratio=0.1", "workload.seed=2")[0]
    arrivals = [made.evaluation_episode(index) for made in (first, other) for index in range(3)]
    assert len({(one.arrival_times, one.work) for one in arrivals}) == 6
    for index in range(3):
        one, same = first.evaluation_episode(index), again.evaluation_episode(index)
        assert (one.arrival_times, one.work) == (same.arrival_times, same.work)
        names = {template.name for template in first.evaluation_templates(index)}
        assert {template.name for template in one.templates} <= names
