"""Autoscaled worlds: who scales is asked at ticks; servers launch, are paid, and leave."""

import numpy as np
import pytest

from agents.baseline import BaselineConfig, ComposedScheduler
from agents.scheduler import play
from env.learn.scaler import FEATURES, FEWER, MORE, SAME, SCALER
from env.score.reward import Objective
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode, EpisodeWorkload
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.rules import Autoscale, Lease, Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.view.raw_env import RawEnv

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


def played(rule: ComposedScheduler, least: int = 1, kind: str = "always") -> RawEnv:
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
    recorded = episode_of(env, "autoscaled", "")
    changes = [(row.time, row.server_index, row.condition) for row in recorded.changes]
    assert changes == [
        *((0.0, 1, "down"), (30.0, 1, "in service")),
        *((120.0, 1, "draining"), (120.0, 1, "down")),
    ]
    assert violations(recorded) == []
    assert differences(replayed(recorded), recorded.expected) == []
