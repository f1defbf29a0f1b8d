"""Agents of tenants between trainer and evaluation: saved, played, refused."""

from pathlib import Path

import numpy as np
import pytest

from agents.learned.cloning import demonstrate
from agents.learned.learned_scheduler import LearnedScheduler
from env.base.errors import InputError
from env.learn.multi_agent import ServerlessEnv
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import played
from env.sim.view.raw_env import RawEnv
from tests.agents.learned.test_queue_policy import save_untrained
from tests.documents import refused_in_a_line
from tests.env.worlds import TENANTS, world

NAMES = ("alice", "bob", "carol")


def test_a_recorded_episode_has_what_was_granted_and_replays() -> None:
    environment = ServerlessEnv(world(*TENANTS))
    workload, cluster = environment.world.training_episode(0, 0, 0, 0)
    env = RawEnv.of(Episode(workload, cluster, environment.world.rules), record=True)
    rng, levels = np.random.default_rng(0), environment.world.agents.tenants.levels
    granted = {}
    while env.newcomer is not None:
        granted[env.newcomer] = float(rng.choice(levels))
        env.grant(granted[env.newcomer])
    recorded = episode_of(env, "granted", "")
    assert {own.workflow_id: own.tickets for own in recorded.workflows} == granted
    assert violations(recorded) == []
    again = played(recorded)
    assert again.runs.tolist() == env.runs.tolist()


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    save_untrained(tmp_path, base=TENANTS)
    environment = ServerlessEnv(world(*TENANTS))
    told = environment.world.cluster, environment.objective
    for queued, tenants in ((False, NAMES), (True, ())):
        says = "has agents of tenants, it needs dispatch=queued and workload.tenants with tickets"
        with refused_in_a_line("", says):
            LearnedScheduler(tmp_path, *told, None, queued, tenants)
    with pytest.raises(InputError, match="no teacher grants tickets"):
        demonstrate("fcfs", 1, world(*TENANTS))
