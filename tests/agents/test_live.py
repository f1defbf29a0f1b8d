"""A cluster that is told what happens: by the simulator itself, and by a world of other times."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from agents.baseline import make_baselines
from agents.learned.learned_scheduler import LearnedScheduler
from agents.live import LiveCluster
from agents.scheduler import Scheduler, play
from env.learn.world import World
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig
from env.sim.view.raw_env import RawEnv, StepLog
from tests.env.worlds import STUDY, TINY, world
from tests.platform_loop import Platform
from tests.recount import assert_recounted

OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)


@cache
def episodes(*overrides: str) -> tuple[ClusterConfig, tuple[EpisodeWorkload, ...]]:
    """A cluster and its first held-out episodes."""
    given = World(world(*overrides))
    return given.cluster, tuple(given.generator.evaluation_episode(index) for index in range(3))


def baseline(name: str) -> Scheduler:
    return make_baselines([name])[0]


def learned(cluster: ClusterConfig, name: str = "hetero_numa") -> Scheduler:
    return LearnedScheduler(name, cluster, OBJECTIVE, agents=None, queued=False)


def live_of(cluster: ClusterConfig, episode: EpisodeWorkload, scheduler: Scheduler) -> LiveCluster:
    """A live cluster for what arrives in an episode."""
    known = {template.name: template for template in episode.templates}
    return LiveCluster(
        cluster, list(known.values()), scheduler, OBJECTIVE, most_active=len(episode.templates)
    )


class Simulated:
    """The simulator as reality: what it does between two decisions is told to a live cluster."""

    def __init__(self, env: RawEnv, live: LiveCluster) -> None:
        self.env, self.live = env, live
        self.arrived = 0
        self.started: set[tuple[int, int]] = set()
        self.ready = np.full(len(env.state.servers), -np.inf)

    def play(self) -> None:
        """To the end, placing as the live cluster says."""
        completed: list[tuple[float, int, int]] = []
        while True:
            self.tell(completed)
            if self.env.done:
                break
            found = self.live.next_assignment(self.env.time)
            function = self.env.current_function
            assert (int(found.workflow), found.function) == (function.wf_id, function.fn_id)
            self.env.step(*found[2:6])
            entries = self.env.state.completed[: int(self.env.state.log[0]["completed_count"])]
            completed = entries[["time", "major", "minor"]].tolist()
        assert self.live.next_assignment(self.env.time) is None

    def tell(self, completed: list[tuple[float, int, int]]) -> None:
        """All since the last decision: at one moment what ends, then what comes, then what starts.

        Args:
            completed: (time, workflow, function), in the order in which they ended.
        """
        live, env, state = self.live, self.env, self.env.state
        events: list[tuple[float, int, Callable[..., None], tuple]] = [
            (time, 0, live.finished, (str(wf_id), fn_id)) for time, wf_id, fn_id in completed
        ]
        while self.arrived < len(env.arrival_times):
            time = env.arrival_times[self.arrived]
            if time > env.time:
                break
            name = env.workflow_templates[self.arrived].name
            events.append((time, 1, live.arrived, (str(self.arrived), name)))
            self.arrived += 1
        for server, record in enumerate(state.servers):
            if self.ready[server] < record["ready_time"] <= env.time:
                self.ready[server] = record["ready_time"]
                place = env.place_of(int(record["first_node"]))[:2]
                events.append((self.ready[server], 2, live.server_up, place))
        for workflow in env.workload.workflows[: self.arrived]:
            for fn_id in workflow.running_functions | workflow.finished_functions:
                start = workflow.functions[fn_id].start_time
                key = (workflow.wf_id, fn_id)
                if key not in self.started and start is not None and start <= env.time:
                    self.started.add(key)
                    events.append((start, 3, live.started, (str(workflow.wf_id), fn_id)))
        for time, _, tell, told in sorted(events, key=lambda event: event[:2]):
            tell(float(time), *told)


def played(env: RawEnv, scheduler: Scheduler) -> list[StepLog]:
    """What an ordinary evaluation does."""
    play(env, scheduler, OBJECTIVE, np.random.SeedSequence(0))
    return env.logs


POLICIES = ("hetero_numa", "hetero_numa_hierarchical")


@pytest.mark.parametrize("name", [*POLICIES, "greedy_per_core", "random"])
@pytest.mark.parametrize("overrides", [TINY, STUDY], ids=["tiny", "study"])
def test_what_happens_as_projected_is_the_evaluation(name: str, overrides: tuple[str, ...]) -> None:
    """Every decision, all times, J, and the records of what was paid and waited for."""
    cluster, workloads = episodes(*overrides)
    for episode in workloads:
        schedulers = [
            learned(cluster, name) if name in POLICIES else baseline(name) for _ in range(2)
        ]
        ordinary = RawEnv.of(Episode(episode, cluster), record=True)
        expected = played(ordinary, schedulers[0])
        live = live_of(cluster, episode, schedulers[1])
        real = RawEnv.of(Episode(episode, cluster), record=True)
        Simulated(real, live).play()
        assert real.logs == expected
        states = real.state, ordinary.state
        np.testing.assert_equal(*(episode_metrics(state, OBJECTIVE) for state in states))
        assert_recounted(live.env.state)
        assert live.env.fork().time == live.env.time
        same = ("total_rent", "finished_slowdown", "finished_workflows", "decisions", "cold_starts")
        for field_name in (*same, "overcommits", "time", "finished_flow_time", "arrived_work"):
            assert live.env.state.cluster[0][field_name] == real.state.cluster[0][field_name]
        assert (live.env.state.ledger == real.state.ledger).all()


@pytest.mark.parametrize("spread", [1.0, 4.0])
@pytest.mark.parametrize("mean_gap", [np.inf, 300.0], ids=["servers stay", "servers go"])
@pytest.mark.parametrize("name", ["hetero_numa", "random"])
def test_times_that_differ_from_the_projected(name: str, mean_gap: float, spread: float) -> None:
    """Every placement is possible, every workflow finishes, and the records stay consistent."""
    for overrides, every, count in ((TINY, 1, 3), (STUDY, 50, 1)):
        cluster, workloads = episodes(*overrides)
        for index, episode in enumerate(workloads[:count]):
            scheduler = learned(cluster) if name == "hetero_numa" else baseline(name)
            live = live_of(cluster, episode, scheduler)
            times: list[float] = []

            def check(
                live: LiveCluster = live, times: list[float] = times, every: int = every
            ) -> None:
                times.append(live.env.time)
                if len(times) % every == 0:  # counting anew takes a while
                    assert_recounted(live.env.state)

            rng = np.random.default_rng(index)
            platform = Platform(live, cluster, episode, rng, spread, mean_gap, check)
            platform.play()
            assert times == sorted(times)
            finished = live.env.state.cluster[0]["finished_workflows"]
            assert finished == len(episode.templates)
            ends = [workflow.completion_time for workflow in live.env.workload.workflows]
            assert max(ends) == platform.now == live.env.time
            state = live.env.state
            functions = sum(template.function_count for template in episode.templates)
            assert state.cluster[0]["decisions"] == functions + platform.killed
            assert state.functions["attempt"].sum() == platform.killed


@pytest.mark.parametrize("name", ["hetero_numa", "random"])
def test_the_same_calls_give_the_same_answers(name: str) -> None:
    """Of a platform that keeps its calls in a log, after a restart; another answer, another end."""
    cluster, (episode, *_) = episodes(*TINY)

    def at_the_end() -> np.void:
        scheduler = learned(cluster) if name == "hetero_numa" else baseline(name)
        live = live_of(cluster, episode, scheduler)
        Platform(live, cluster, episode, np.random.default_rng(0), 4.0, 30.0, lambda: None).play()
        return live.env.state.cluster[0]

    assert at_the_end() == at_the_end()
