"""What a scheduler is shown: all of the cluster, nothing of which it can write."""

import numpy as np
import pytest

from agents.live import LiveCluster
from agents.scheduler import Decision, play
from env.base.errors import InputError
from env.score.reward import Objective
from env.sim.state.block import FIELDS
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import BALANCED, FAST, TWO_TYPES, Fn, workflow

PAIR = workflow(Fn(), Fn(), edges={(0, 1): 100})


class Looks:
    """Places on the fast node; keeps what it is shown of the episode at its beginning."""

    name, kind, order, fit, tiers, asked = "looks", "baseline", None, "asked", (1.0,), ()
    times = 0

    def reset(self, env: RawEnv, objective: Objective, seed: np.random.SeedSequence) -> None:
        self.env = env

    def choose(self, decision: Decision) -> int:
        self.times += 1
        for env in (decision.env, self.env):
            assert env.current_function.fn_id == decision.function.fn_id
            assert not any(getattr(env.state, name).flags.writeable for name in FIELDS)
            with pytest.raises(ValueError, match="read-only"):
                env.state.nodes["memory"] = 10**6
            with pytest.raises(InputError, match=r"fork\(\) gives a copy to play on"):
                env.step("fast", 0, 0, 100)
        with pytest.raises(ValueError, match="read-only"):
            decision.rows["feasible"] = 1
        return FAST


def test_nothing_of_an_episode_can_be_written() -> None:
    env, scheduler = RawEnv([0.0], [PAIR], TWO_TYPES), Looks()
    play(env, scheduler, BALANCED, np.random.SeedSequence(0))
    assert env.done and scheduler.times == 2


def test_nothing_of_a_live_cluster_can_be_written() -> None:
    scheduler = Looks()
    live = LiveCluster(TWO_TYPES, [PAIR], scheduler, BALANCED)
    live.arrived(0.0, "a", "test")
    assert live.next_assignment(0.0) is not None
    assert scheduler.times == 1


def test_a_copy_plays_on_by_itself() -> None:
    env = RawEnv([0.0], [PAIR], TWO_TYPES)
    copy = Decision(env, BALANCED).env.fork()
    copy.step("fast", 0, 0, 100)
    copy.state.nodes["memory"] = 10**6
    assert (copy.decisions, env.decisions) == (1, 0)
    assert env.state.nodes["memory"].max() == 4000
