"""Episode files of format 2: recorded in any world, read back, and played again to the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from env.sim import idle_forecast
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from tests.env.sim.test_world_against_reference import World, engine, worlds
from tests.reference_inputs import mean

RANDOM = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@RANDOM
@given(world=worlds())
def test_random_worlds_read_back_and_play_again(
    tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    path: Path = tmp_path_factory.mktemp("episodes") / "episode.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        episode = episode_of(engine(world), "random", "a test")
        write_episode(path, episode)
        again = read_episode(path)
        assert again == episode
        assert again.expected is not None
        assert differences(replayed(again), again.expected) == []
