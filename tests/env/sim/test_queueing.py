"""Traces under queued dispatch, by hand: caches, forecasts, preemption, starvation, streaming."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.order.chosen import Chosen
from agents.order.critical_path import CriticalPath
from agents.order.fcfs import Fcfs
from agents.order.funcsched import FuncSched
from agents.order.heft import Heft
from agents.order.rr import RoundRobin
from agents.order.sjf import Sjf
from agents.order.srtf import Srtf
from benchmarks.trace_player import Requests, Simulation, simulate
from env.base.errors import InputError
from env.base.files import read_yaml
from env.base.schema import validated
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import (
    EcoLife,
    FaasCache,
    Fixed,
    HybridHistogram,
    KeepAlivePolicy,
    Lru,
    NoKeepAlive,
)
from env.sim.declared.ordering import Order
from env.sim.declared.power import Power
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.model import Options
from env.sim.node.idle_forecast import learn, next_idle_time
from env.sim.view.raw_env import RawEnv
from env.workloads.traces.trace import REQUEST, FunctionProfiles
from env.workloads.traces.trace_samples import TraceSample
from run.command import CONF
from tests.documents import refused_in_a_line
from tests.env.small import always_up, chain, cluster_of, functions, ten_second_bins
from tests.recount import most_memory

SPEED = 1_000_000


def cluster(memory: int, cpu: int = 4) -> ClusterConfig:
    return cluster_of(ServerType("server", 1, 0.0, 0.0, 1, cpu, memory), speed=SPEED)


def profiles(*functions: tuple[float, float, int]) -> FunctionProfiles:
    """Functions of (E, D, R)."""
    execution, cold_start, memory = np.array(functions).T
    names = tuple(f"F{index + 1}" for index in range(len(functions)))
    return FunctionProfiles(names, execution, cold_start, memory.astype(np.int64))


def trace(known: FunctionProfiles, requests: list[tuple[float, int, float]]) -> TraceSample:
    """Requests: time, function and duration."""
    return TraceSample(known, lambda: iter([np.array(requests, REQUEST)]))


def play(
    known: FunctionProfiles,
    requests: list[tuple[float, int, float]],
    order: Order,
    keep_alive: KeepAlivePolicy,
    memory: int = 2,
    history: Sequence[tuple[float, int, float]] = (),
) -> Requests:
    rules = always_up(order, keep_alive)
    past = np.array(list(history), REQUEST)
    sample = replace(trace(known, requests), history=lambda: iter([past]))
    return Requests.of(simulate(sample, cluster(memory), rules))


FILES = sorted((CONF / "keep_alive").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_named_after_its_policy(file: Path) -> None:
    config = validated(Options, {"keep_alive": read_yaml(file, file.stem)}, "conf/keep_alive")
    assert config.keep_alive.policy == file.stem


def test_the_histogram_is_that_of_the_paper() -> None:
    """Shahrad et al. 2020: 4 hours by the minute."""
    given = read_yaml(CONF / "keep_alive" / "hybrid_histogram.yaml", "the histogram")
    config = HybridHistogram(**given)
    assert config.bin * config.bins == 4 * 3600
    assert (config.prewarm_percentile, config.keep_percentile) == (5.0, 99.0)
    with refused_in_a_line("evaluate: ", "is 99.5, at most keep_percentile, 99.0"):
        validated(Options, {"keep_alive": given | {"prewarm_percentile": 99.5}}, "evaluate")


def test_fixed_keep_alive_ends() -> None:
    """Ends at 3 s; warm for 10 s from then: a request at 12 s finds it, one 11 s later does not."""
    requests = [(0.0, 0, 1.0), (12.0, 0, 1.0), (24.0, 0, 1.0)]
    known = profiles((1.0, 2.0, 1))
    assert play(known, requests, Fcfs(), Fixed(keep=10.0)).cold_start.tolist() == [2.0, 0.0, 2.0]
    assert play(known, requests, Fcfs(), NoKeepAlive()).cold_start.tolist() == [2.0, 2.0, 2.0]
    assert play(known, requests, Fcfs(), Lru()).cold_start.tolist() == [2.0, 0.0, 0.0]


def test_lru_and_faascache_choose_different_victims() -> None:
    """Room for two. F1 costs 8 s to start and is the older one when F3 needs the room."""
    known = profiles((1.0, 8.0, 1), (1.0, 1.0, 1), (1.0, 1.0, 1))
    requests = [(0.0, 0, 1.0), (20.0, 1, 1.0), (40.0, 2, 1.0), (60.0, 0, 1.0), (80.0, 1, 1.0)]
    lru = play(known, requests, Fcfs(), Lru())
    assert lru.cold_start.tolist() == [8.0, 1.0, 1.0, 8.0, 1.0]
    greedy = play(known, requests, Fcfs(), FaasCache())
    assert greedy.cold_start.tolist() == [8.0, 1.0, 1.0, 0.0, 1.0]


def test_hybrid_histogram_starts_a_container_ahead() -> None:
    """Idle for 99 s each time, bin [90, 100) s: after two such times the container goes at the end
    of its request, another one is started 90 s later and ready 2 s after that.
    """
    policy = ten_second_bins(20, margin=0.0)
    known = profiles((1.0, 2.0, 2))
    requests = [(0.0, 0, 1.0), (102.0, 0, 1.0), (204.0, 0, 1.0), (306.0, 0, 1.0), (405.0, 0, 1.0)]
    played = play(known, requests, Fcfs(), policy)
    # 50 s are not enough for the first three; the last two find a container started ahead, the
    # fourth 9 s, the fifth 8 s after its start.
    assert played.cold_start.tolist() == [2.0, 2.0, 2.0, 0.0, 0.0]


def test_ecolife_keeps_containers_in_clean_hours() -> None:
    """Idle for 99 s each time, and once beyond the 10 bins of 10 s; g is 1.95, then 0.05.

    Without keeping the cost is 2 / 3 * (0.1 + 0.9 * g), that of 100 s is 0.9 * g and the share of
    longer idle times: 1.24 and 1.76 in the first hour, 0.097 and 0.024 + 0.045 in the second.
    """
    policy = EcoLife(bin=10.0, bins=10, least_idle_times=2, fixed_keep=50.0, time_weight=0.1)
    requests = [(time, 0, 1.0) for time in (0.0, 102.0, 204.0, 306.0, 3702.0, 3804.0)]
    power = Power(
        idle_core_w=0.0,
        busy_core_w=1.0,
        memory_w_per_gb=0.0,
        pue=1.0,
        carbon_intensity_g_per_kwh=(390.0, 10.0),
    )
    server = ServerType("server", 1, 0.0, 0.0, 1, cpu=4, memory=2)
    grid = cluster_of(server, speed=SPEED, power=power)
    sample, rules = trace(profiles((1.0, 2.0, 2)), requests), always_up(Fcfs(), policy)
    cold_starts = Requests.of(simulate(sample, grid, rules)).cold_start
    assert cold_starts.tolist() == [2.0, 2.0, 2.0, 2.0, 2.0, 0.0]


def test_histograms_are_learned_from_history() -> None:
    policy = ten_second_bins(20, margin=0.0)
    known = profiles((1.0, 2.0, 2))
    history = [(-300.0, 0, 1.0), (-200.0, 0, 1.0), (-100.0, 0, 1.0)]
    requests = [(0.0, 0, 1.0), (102.0, 0, 1.0)]
    assert play(known, requests, Fcfs(), policy).cold_start.tolist() == [2.0, 2.0]
    played = play(known, requests, Fcfs(), policy, history=history)
    assert played.cold_start.tolist() == [2.0, 0.0]


def test_who_still_runs_from_before_time_0_is_not_idle() -> None:
    """One of the history ends at 99 s: one at 10 s meets it, one at 150 s comes 51 s later."""
    known = profiles((1.0, 1.0, 1))
    rules = always_up(Fcfs(), ten_second_bins(20, margin=0.0))
    simulation = Simulation(known, cluster(4), rules)
    past = trace(known, [(-1.0, 0, 100.0)]).requests
    learn(simulation.state, TraceSample(known, past, past).earlier())
    list(simulation.play(trace(known, [(10.0, 0, 1.0), (150.0, 0, 1.0)]).requests))
    assert np.flatnonzero(simulation.state.histograms[0]).tolist() == [5]
    assert simulation.state.idle_times[0, 0] == 51.0


def test_round_robin_takes_turns_and_keeps_what_was_done() -> None:
    """One place, no cold starts, slices of 1 s: F1 0-1, F2 1-2 and done, F1 2-4 without company."""
    known = profiles((3.0, 0.0, 2), (1.0, 0.0, 2))
    requests = [(0.0, 0, 3.0), (0.0, 1, 1.0)]
    played = play(known, requests, RoundRobin(time_slice=1.0), NoKeepAlive())
    assert played.completion.tolist() == pytest.approx([4.0, 2.0], abs=1e-5)
    assert played.preemptions.tolist() == [1, 0]
    assert played.queueing.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_a_preempted_function_pays_its_cold_start_again() -> None:
    """F1 starts in 2 s, runs 2-3, loses its container to F2 (1 s, 4-5), and starts again at 5."""
    known = profiles((3.0, 2.0, 2), (1.0, 1.0, 2))
    requests = [(0.0, 0, 3.0), (0.5, 1, 1.0)]
    played = play(known, requests, RoundRobin(time_slice=1.0), Lru())
    assert played.cold_start.tolist() == [4.0, 1.0]
    assert played.completion.tolist() == pytest.approx([9.0, 4.5], abs=1e-5)


def test_srtf_preempts_for_less_left_only() -> None:
    """Checked at 1 s: F2 (E 1.5) has less than the 4 s left, F3 (E 4.5) has not."""
    known = profiles((5.0, 0.0, 2), (1.5, 0.0, 2), (4.5, 0.0, 2))
    requests = [(0.0, 0, 5.0), (0.5, 2, 4.5), (0.5, 1, 1.5)]
    played = play(known, requests, Srtf(check_interval=1.0), Lru())
    assert played.preemptions.tolist() == [1, 0, 0]
    assert played.completion.tolist() == pytest.approx([6.5, 10.5, 2.0], abs=1e-5)


def test_who_starves_goes_first_even_where_nothing_else_happens() -> None:
    """3 of 4 MB run until 20 s. F2 (2 MB) is first and fits nowhere; F3 (1 MB) does at 5 s."""
    known = profiles((20.0, 0.0, 3), (0.1, 0.0, 2), (8.0, 0.0, 1))
    requests = [(0.0, 0, 20.0), (1.0, 2, 8.0), (1.0, 1, 0.1)]
    patient = play(known, requests, FuncSched(starve_threshold=100.0), Lru(), memory=4)
    # Smallest P first: F2's 0.2; only when F1 ends does anyone start.
    assert patient.queueing.tolist() == [0.0, 19.0, 19.0]
    hasty = play(known, requests, FuncSched(starve_threshold=4.0), Lru(), memory=4)
    assert hasty.queueing.tolist() == [0.0, 4.0, 19.0]


def day(count: int) -> TraceSample:
    """Requests of 20 functions, about twice as many as fit."""
    rng = np.random.default_rng(3)
    known = FunctionProfiles(
        tuple(f"F{index}" for index in range(20)),
        rng.uniform(0.1, 2.0, 20),
        rng.uniform(0.1, 2.0, 20),
        rng.integers(1, 6, 20),
    )
    requests = np.zeros(count, REQUEST)
    requests["time"] = np.cumsum(rng.exponential(0.3, count))
    requests["function"] = rng.integers(0, 20, count)
    requests["duration"] = rng.exponential(1.0, count)

    def chunks() -> Iterator[np.ndarray]:
        for first in range(0, count, 1000):
            yield requests[first : first + 1000]

    return TraceSample(known, chunks)


@pytest.mark.parametrize("order", [Fcfs(), FuncSched(starve_threshold=60.0)])
def test_records_grow_with_what_waits(order: Order) -> None:
    """Overload: thousands wait. All requests end, each once, and the memory of the node is kept."""
    busy = day(6_000)
    simulation = Simulation(busy.profiles, cluster(6), always_up(order, Lru()))
    at_first = len(simulation.state.workflows)
    runs = np.concatenate(list(simulation.play(busy.requests)))
    assert len(simulation.state.workflows) > at_first
    assert sorted(runs["wf_id"]) == list(range(6_000))
    assert most_memory(runs, 0) <= 6
    if isinstance(order, Fcfs):
        assert (np.diff(np.sort(runs, order="dispatched")["joined"]) > 0).all()


def test_memory_is_bounded_by_what_waits_and_runs() -> None:
    """With room for all, 40,000 requests need no more records than the first of them."""
    busy = day(40_000)
    simulation = Simulation(busy.profiles, cluster(600, cpu=64), always_up(Fcfs(), Lru()))
    at_first = len(simulation.state.workflows)
    assert sum(len(runs) for runs in simulation.play(busy.requests)) == 40_000
    assert len(simulation.state.workflows) == at_first
    # Nobody is left in the queue of those that have just become ready, by any count of it.
    cluster_of_all = simulation.state.cluster[0]
    for count in ("queue_size", "queue_threads", "queue_computation"):
        assert cluster_of_all[count] == 0, count


def of_diamond(order: Order) -> RawEnv:
    """0 -> 1, 2 -> 3; 1 s, 2 s, 5 s, 1 s; the edges over 2 move 1 s worth of data."""
    template = WorkflowTemplate(
        "diamond",
        computation=[SPEED, 2 * SPEED, 5 * SPEED, SPEED],
        memory_req=[1, 1, 1, 1],
        parallelism=[1, 1, 1, 1],
        edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
        data_bytes=[0, 10**9, 0, 10**9],
        function_names=("split", "work", "work", "join"),
    )
    rules, images = always_up(order, Lru()), Images.by_name([template], 1.0)
    return RawEnv([0.0], [template], cluster(1), rules=rules, images=images)


@pytest.mark.parametrize(
    ("order", "rank"),
    [
        # Upward: 1 + 1 + 5 + 1 + 1 along 2; 2 + 1 over 1.
        (Heft(), [-9.0, -3.0, -7.0, -1.0]),
        # And down to them: 0, 1, 1 + 1, 1 + 1 + 5 + 1: all but 1 are on the critical path.
        (CriticalPath(), [-9.0, -4.0, -9.0, -9.0]),
    ],
)
def test_ranks_of_a_workflow(order: Order, rank: list[float]) -> None:
    assert of_diamond(order).state.waiting["rank"].tolist() == pytest.approx(rank)


def test_the_caller_chooses_and_may_try_in_a_fork() -> None:
    env = of_diamond(Chosen())
    assert env.waiting == (0,)
    env.choose(0)
    assert env.waiting == (1, 2)
    fork = env.fork()
    fork.choose(2)
    env.choose(1)
    for one in (env, fork):
        while one.waiting:
            one.choose(one.waiting[0])
        assert one.done
    assert env.runs["fn_id"].tolist() == [0, 1, 2, 3]
    assert fork.runs["fn_id"].tolist() == [0, 2, 1, 3]
    with pytest.raises(InputError, match="choose: no request of declared function 0"):
        env.choose(0)
    env.reset()
    assert env.waiting == (0,)


@pytest.mark.parametrize(
    ("cold_start", "of", "memory", "says"),
    [
        ([1.0], [1], [8], "1 of 'one' is none, 0 to 0 are"),
        ([1.0], [0, 0], [8], "2 are given for the 1 functions of 'one'"),
        ([1.0], [0], [0], "memory: 1 amounts of at least 1 MB are needed"),
        ([-1.0], [0], [8], "a cold start is -1.0 s"),
        ([1e300], [0], [8], r"images: a cold start is 1e\+300 s"),
    ],
)
def test_images_that_are_wrong_are_refused(
    cold_start: list[float], of: list[int], memory: list[int], says: str
) -> None:
    template = functions(10, memory=8, name="one")
    with pytest.raises(InputError, match=says):
        Images(np.array(cold_start), {template: np.array(of)}, np.array(memory))


ORDER = (1, 0, 0)


def test_what_repeats_is_repeated_and_a_long_idle_time_follows_a_short_one() -> None:
    for count in (1, 5):
        assert next_idle_time(np.array([18_000.0] * count), ORDER) == 18_000.0
    rng = np.random.default_rng(0)
    times = 18_000.0 + 3_600.0 * np.tile([-1.0, 1.0], 12) + rng.normal(0.0, 60.0, 24)
    assert next_idle_time(times, ORDER) == pytest.approx(14_400.0, rel=0.1)
    assert next_idle_time(times[:-1], ORDER) == pytest.approx(21_600.0, rel=0.1)


def test_a_container_is_started_ahead_of_the_forecast() -> None:
    """Idle for 300 s each time where the histogram ends at 100 s: started after 0.85 * 300 s."""
    policy = ten_second_bins(10, margin=0.1)
    known = profiles((1.0, 2.0, 1))
    # Cold starts of 2 s and executions of 1 s: ends at 3, 306, 609; then at 910 and, late, at 1256.
    times = [0.0, 303.0, 606.0, 909.0, 1256.0]
    requests = trace(known, [(time, 0, 1.0) for time in times])
    played = Requests.of(simulate(requests, cluster(4), always_up(Fcfs(), policy)))
    # The last comes 346 s after the fourth's end, one second after the container has gone.
    assert played.cold_start.tolist() == [2.0, 2.0, 2.0, 0.0, 2.0]


ONE_NODE = cluster_of(ServerType("s", 1, 0.0, 0.0, 1, 8, 100))


def test_all_images_that_become_idle_together_get_their_forecasts() -> None:
    """Of a workflow of three sources, started anew after 994 s of idle time each."""
    three = functions(1000, 1000, 1000)
    queueing = always_up(Fcfs(), ten_second_bins(10, margin=0.1), "first_fit")
    images = Images(np.array([5.0, 5.0, 5.0]), {three: np.array([2, 0, 1])})
    # Cold starts of 5 s and executions of 1 s: the first ends are at 6.
    env = RawEnv(
        [0.0, 1000.0, 2000.0, 3000.0], [three] * 4, ONE_NODE, rules=queueing, images=images
    )
    assert env.runs["warm"].tolist() == [0] * 9 + [1] * 3
    assert env.state.images["keep_until"] == pytest.approx([994.0 * 1.15] * 3)


def test_a_container_is_kept_by_the_forecast_that_its_successor_asked_for() -> None:
    """The idle time of 0 s between two functions of one image is repeated: nothing is kept."""
    single, pair = functions(1000), chain(1000, 1000)
    policy = ten_second_bins(1, margin=0.1).model_copy(update={"forecast_order": (4, 0, 0)})
    images = Images(np.array([5.0]), {single: np.array([0]), pair: np.array([0, 0])})
    # 1000 s after each end; the third end, at 2018, is the first that knows it.
    env = RawEnv(
        [0.0, 1006.0, 2012.0, 3018.0],
        [single] * 3 + [pair],
        ONE_NODE,
        rules=always_up(Fcfs(), policy, "first_fit"),
        images=images,
    )
    assert env.runs["warm"].tolist() == [0, 0, 0, 1, 0]
    assert env.runs["end_time"].tolist() == [6.0, 1012.0, 2018.0, 3019.0, 3025.0]


def test_the_history_leaves_the_windows_of_the_last_idle_times() -> None:
    """One function became frequent again, the other did not."""
    known = profiles((1.0, 2.0, 1), (1.0, 2.0, 1))
    moments = [(time, 1, 1.0) for time in (-1000.0, -699.0, -398.0)]
    moments += [(time, 0, 1.0) for time in (-1000.0, -699.0, *np.arange(-398.0, -350.0, 6.0))]
    rules = always_up(Fcfs(), ten_second_bins(10, margin=0.1), "first_fit")
    simulation = Simulation(known, ONE_NODE, rules)
    past = trace(known, sorted(moments)).requests
    learn(simulation.state, TraceSample(known, past, past).earlier())
    assert simulation.state.images["prewarm_after"].tolist() == [0.0, 300.0 * 0.85]
    assert simulation.state.images["keep_until"].tolist() == [11.0, 300.0 * 1.15]


# The small example of the FuncSched paper, worked by hand, on one server of 2 units of memory: F1
# to F4 arrive at 0 in this order; F1 to F3 start cold, F4 alone is warm.
EXAMPLE = profiles((0.5, 3.5, 1), (0.5, 3.5, 1), (0.25, 5.75, 2), (1.0, 0.0, 2))
REQUESTS = [(0.0, 0, 0.5), (0.0, 1, 0.5), (0.0, 2, 0.25), (0.0, 3, 1.0)]


@pytest.mark.parametrize(
    ("order", "completions", "mean"),
    [
        # F1 and F2 take F4's memory, F3 needs all of it: 4, 4, then 4 + 6, then 10 + 1.
        (Fcfs(), [4.0, 4.0, 10.0, 11.0], 7.25),
        # F3 first, then F1 and F2 together, then F4.
        (Sjf(), [10.0, 10.0, 6.0, 11.0], 9.25),
        # P = 4, 4, 12, 2: F4 first, in its warm container.
        (FuncSched(starve_threshold=60.0), [5.0, 5.0, 11.0, 1.0], 5.5),
    ],
)
def test_the_example_of_funcsched(order: Order, completions: list[float], mean: float) -> None:
    rules = always_up(order, Lru())
    runs = simulate(trace(EXAMPLE, REQUESTS), cluster(2), rules, warm=[(0, 3)])
    requests = Requests.of(runs)
    assert requests.completion.tolist() == completions
    assert requests.completion.mean() == mean
