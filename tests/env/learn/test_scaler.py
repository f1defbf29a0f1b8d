"""Autoscaled worlds: who scales is asked at ticks; servers launch, are paid, and leave."""

from pathlib import Path

import numpy as np
import pytest
from pettingzoo.test import api_test

from agents.baseline import BaselineConfig, ComposedScheduler
from agents.learned.cloning import demonstrate
from agents.scheduler import Decision, Scheduler, play
from env.base.errors import InputError
from env.learn.aec import ServerlessAEC
from env.learn.scaler import FEWER, MORE, SAME, SCALER
from env.learn.world import World
from env.score.reward import Objective
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Autoscale, Lease, Rules
from env.sim.declared.server_changes import ListedChanges
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.view.raw_env import RawEnv
from evaluate import prepared as evaluation
from tests.env.worlds import TINY, world
from tests.episodes import checked
from train import prepared as training

# A second on a server costs 0.001 USD, a function takes all of it for 50 s, a launch 10 s.
CLUSTER = ClusterConfig(1000, 1e9, 1e9, 1e9, (ServerType("s", 2, 3.6, 10.0, 1, 1, 100),))
PAIR = WorkflowTemplate("pair", [50_000, 50_000], [100, 100], [1, 1], [], [])
ONE = WorkflowTemplate("one", [50_000], [100], [1], [], [])


def lease(least: int = 1, kind: str = "always") -> Lease:
    return Lease(kind=kind, step=60.0, autoscale=Autoscale(every=30.0, least=least))


def player(**scaling: object) -> ComposedScheduler:
    parts = {"order": {"name": "fcfs"}, "placement": {"name": "worst_fit"}}
    return ComposedScheduler(
        "rule", BaselineConfig(**parts, memory={"name": "required"}, scaling=scaling)
    )


def played(rule: Scheduler, least: int = 1, kind: str = "always") -> RawEnv:
    workload = EpisodeWorkload((0.0, 200.0), (PAIR, ONE))
    rules = Rules(rule.order, rule.fit, lease=lease(least, kind))
    env = RawEnv.of(Episode(workload, CLUSTER, rules, asked=tuple(rule.asked)), record=True)
    play(env, rule, Objective(time_weight=1, cost_weight=1), np.random.SeedSequence(0))
    return env


QUEUE = {"name": "queue_length", "waiting_per_server": 1, "idle_timeout": 30.0}


def test_by_hand() -> None:
    """The second function waits for a server that joins at 30 and is up at 40.

    It ends at 90, and at 120 its server has been idle for 30 s and leaves. Server 0 is paid up to
    300, in 5 steps of 0.06 USD, server 1 from 30 to 150, though it leaves before.
    """
    env = played(player(**QUEUE))
    runs = [tuple(run) for run in env.runs[["node", "dispatch_time", "start_time", "end_time"]]]
    assert runs == [(0, 0.0, 0.0, 50.0), (1, 30.0, 40.0, 90.0), (0, 200.0, 200.0, 250.0)]
    assert env.state.ledger["rent"].tolist() == pytest.approx([0.30, 0.12])
    recorded = checked(env)
    changes = [(row.time, row.server_index, row.condition) for row in recorded.changes]
    assert changes == [
        *((0.0, 1, "down"), (30.0, 1, "in service")),
        *((120.0, 1, "draining"), (120.0, 1, "down")),
    ]
    rows = list(recorded.expected.servers)
    rows[1] = rows[1].model_copy(update={"lease_seconds": 180.0, "rent": 0.18})
    results = recorded.expected.model_copy(update={"servers": tuple(rows), "total_rent": 0.48})
    (found,) = violations(recorded.model_copy(update={"expected": results}))
    assert found == "server s 1: 3 steps paid, 2 to 2 are due"


def test_by_the_hour_a_lease_begins_with_the_first_placement() -> None:
    """Server 0 is started at 0 and again at 200, server 1 at 30: each time 10 s, and one step."""
    env = played(player(**QUEUE), kind="hourly")
    runs = [tuple(run) for run in env.runs[["node", "start_time", "end_time"]]]
    assert runs == [(0, 10.0, 60.0), (1, 40.0, 90.0), (0, 210.0, 260.0)]
    assert env.total_rent == pytest.approx(3 * 0.06)
    checked(env)


class Always(Scheduler):
    """Takes the first of some rows that may be chosen, and notes what it is asked."""

    name, asked, fit = "always", (SCALER,), "worst_fit"

    def __init__(self, *rows: int) -> None:
        self.order = player(**QUEUE).order
        self.rows, self.seen = rows, []

    def choose(self, decision: Decision) -> int:
        rows = decision.rows
        self.seen.append((decision.env.time, rows["feasible"].tolist(), rows[SAME]))
        return next(row for row in self.rows if rows["feasible"][row])


def test_who_never_scales_gets_a_server_when_all_stands_still() -> None:
    """From 200 on nothing more arrives, so at 210 a server has to join, and then it is enough."""
    env = played(lazy := Always(SAME, MORE), least=0)
    assert [run["start_time"] for run in env.runs] == [220.0, 270.0, 320.0]
    forced = [time for time, allowed, _ in lazy.seen if allowed == [0.0, 0.0, 1.0]]
    assert forced == [210.0]


def test_after_more_the_same_type_is_asked_again() -> None:
    env = played(eager := Always(MORE, SAME), least=0)
    assert [time for time, *_ in eager.seen][:3] == [30.0, 30.0, 60.0]
    assert env.runs["start_time"].tolist() == [40.0, 40.0, 200.0]


def test_who_is_busy_drains_and_leaves_when_it_is_empty() -> None:
    """At 60 server 1, which has run for 20 s, is to leave; at 90 it does, and is launched again."""
    rows = {30.0: MORE, 60.0: FEWER, 90.0: MORE}

    class Plan(Always):
        def choose(self, decision: Decision) -> int:
            return rows.get(decision.env.time, SAME)

    changes = [(row.time, row.condition) for row in checked(played(Plan())).changes[1:]]
    assert changes[1:3] == [(60.0, "draining"), (90.0, "down")]
    assert changes[3] == (90.0, "in service")


def test_features_by_hand() -> None:
    """At 30 a function waits for one of two servers of a core and 100 MB; the other one is full."""
    played(lazy := Always(SAME))
    time, allowed, row = lazy.seen[0]
    assert (time, allowed) == (30.0, [0.0, 1.0, 1.0])
    seen = {name: pytest.approx(float(row[name]), abs=1e-6) for name in row.dtype.names[:-1]}
    assert seen == {
        **{"change": 0.0, "servers": np.log(3) / 3, "in_service": 0.5, "launching": 0.0},
        **{"idle": 0.0, "draining": 0.0, "threads": 1.0, "memory": 1.0},
        **{"waiting": np.log(2) / 5, "waiting_threads": np.log(1.5)},
        **{"waiting_memory": np.log(1.5), "core_price": 1.0, "launch_delay": np.log(11) / 8},
    }


AUTOSCALED = (*TINY, "lease=autoscaled", "cluster.server_types.small.server_count=4")
ALONE = (*AUTOSCALED, "agents=scaler", "dispatch=queued", "workload.arrivals.mean_gap=30")


@pytest.mark.parametrize(
    ("utilisation", "expected"),
    [
        ({"target": 0.5, "tolerance": 0.1}, [30.0, 30.0]),  # 1 thread a core: 2 servers
        ({"target": 1.0, "tolerance": 0.1}, []),
        ({"target": 0.95, "tolerance": 0.0}, [30.0]),
        ({"target": 0.95, "tolerance": 0.1}, []),
    ],
)
def test_utilisation_brings_what_the_target_needs(utilisation, expected) -> None:
    env = played(player(name="utilisation", idle_timeout=1e6, **utilisation))
    joined = [row.time for row in episode_of(env, "", "").changes if row.condition == "in service"]
    assert joined == expected[:1]


def test_ray_demand_launches_for_who_waits_and_ends_who_is_idle() -> None:
    """At 90 server 0 has been idle for 40 s: one is too many, and the one that joined leaves."""
    env = played(player(name="ray_demand", idle_timeout=30.0))
    changes = [(row.time, row.condition) for row in episode_of(env, "", "").changes]
    assert changes == [(0.0, "down"), (30.0, "in service"), (90.0, "draining"), (90.0, "down")]


def evaluated(in_process, *more: str) -> list[str]:
    """Who has played; their recorded episodes are valid and replay."""
    told = [*AUTOSCALED, "episodes=2", "record=1", "workload.arrivals.mean_gap=20", *more]
    assert in_process("evaluate", evaluation)(*told, "hydra.run.dir=run").code == 0
    names = []
    for path in sorted(Path("run/episodes").glob("*.json")):
        episode = read_episode(path)
        assert violations(episode) == []
        assert differences(replayed(episode), episode.expected) == []
        names.append(path.name.removesuffix("_0_0000.json"))
    return names


RULES = ["autoscale_queue", "autoscale_ray", "autoscale_utilisation"]


def test_every_rule_plays_in_evaluate(in_process) -> None:
    names = evaluated(in_process, f"baselines=[{','.join(RULES)},earliest_finish]")
    assert names == [*RULES, "earliest_finish"]
    shown = in_process("evaluate", evaluation)(*TINY, "baselines=[autoscale_ray]", "episodes=1")
    assert "'autoscale_ray' scales, which takes lease=autoscaled" in shown.err


@pytest.mark.long
def test_scalers_are_trained_beside_a_layout_and_play_in_evaluate(in_process) -> None:
    told = [*AUTOSCALED, "agents=server_types", "agents.scaler=true", "ray.envs_per_runner=2"]
    brief = ["budget.minutes=null", "budget.iterations=1", "held_out.episodes=2"]
    done = in_process("train", training)(*told, *brief, "algo=ppo", "hydra.run.dir=trained")
    assert done.code == 0
    assert evaluated(in_process, "policy=trained", "baselines=[autoscale_ray]")[1] == "trained"


def test_each_server_type_has_an_agent_that_scales() -> None:
    config = world(*ALONE)
    assert list(World(config).layout.agents) == ["scaler_small", "scaler_large"]
    api_test(ServerlessAEC(config), num_cycles=50)


def test_agents_scale_where_the_lease_lets_them() -> None:
    with pytest.raises(InputError, match="agents.scaler: lease.autoscale is null"):
        World(world(*TINY, "agents=placer", "agents.scaler=true"))
    with pytest.raises(InputError, match="lease.autoscale: servers change by changes"):
        Rules(lease=lease(), changes=ListedChanges(kind="listed", events=()))
    with pytest.raises(InputError, match="cannot be cloned: it does not show agents how to scale"):
        demonstrate("fcfs", 2, world(*ALONE))
