"""A policy of one cluster decides on others: more servers, other types, other names."""

from pathlib import Path

import numpy as np
import pytest

from agents.learned.learned_scheduler import LearnedScheduler
from agents.scheduler import play
from env.learn.world import World
from env.sim.check.validate import violations
from env.sim.episode.recording import episode_of
from env.sim.view.raw_env import RawEnv
from tests.agents.learned.test_queue_policy import save_untrained
from tests.env.worlds import LAYOUTS, TINY, world


@pytest.mark.parametrize("network", ["pooling", "attention"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_policy_of_the_tiny_cluster_schedules_any_other(
    layout: str, network: str, tmp_path: Path
) -> None:
    save_untrained(tmp_path, f"agents={layout}", base=TINY, network=network)
    trained = World(world(*TINY, f"agents={layout}")).cluster
    for name in ("hetero_numa", "homogeneous", "large"):
        given = World(world(*TINY, f"cluster={name}", f"agents={layout}"))
        assert given.cluster.server_types != trained.server_types
        workload = given.generator.evaluation_episode(0)
        env = RawEnv(workload.arrival_times, workload.templates, given.cluster, record=True)
        scheduler = LearnedScheduler(
            tmp_path, given.cluster, given.objective, agents=None, queued=False
        )
        play(env, scheduler, given.objective, np.random.SeedSequence(0))
        assert env.decisions == sum(each.function_count for each in workload.templates)
        assert violations(episode_of(env, name, "a test")) == []
