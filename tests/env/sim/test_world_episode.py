"""Episode files: recorded in any world, read back, and played again to the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given

from agents.order.chosen import Chosen
from env.base.errors import InputError
from env.sim.check.validate import violations
from env.sim.declared.hardware import ServerType
from env.sim.declared.images import Images
from env.sim.declared.resources import names_of
from env.sim.declared.rules import Rules
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.episode.episode_file import read_episode, write_episode
from env.sim.episode.model import EpisodeFile
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.episode.replay import played as replay_of
from env.sim.events.endings import skip_function, take_down
from env.sim.events.engine import play
from env.sim.node import idle_forecast
from env.sim.view.raw_env import RawEnv
from evaluation.shares import shares_of
from tests.episodes import begun
from tests.recorded_worlds import CLUSTER, FUNDING, SPEED, crowded, played, shared, trace, world
from tests.reference_inputs import engine, mean
from tests.strategies import World, plain_worlds, worlds


def check_round_trip(env: RawEnv, path: Path) -> EpisodeFile:
    """Written, read back, played again and validated; the episode."""
    episode = episode_of(env, "a world", "a test")
    assert isinstance(episode, EpisodeFile) and episode.expected is not None
    write_episode(path, episode)
    again = read_episode(path)
    assert again == episode
    assert again.cluster_config() == env.cluster_config
    assert differences(replayed(again), episode.expected) == []
    assert violations(again) == []
    return episode


@given(world=plain_worlds() | worlds())
def test_random_worlds(tmp_path_factory: pytest.TempPathFactory, world: World) -> None:
    assume(not names_of(world.episode.declared))  # of which an episode file knows nothing
    path = tmp_path_factory.mktemp("episodes") / "episode.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_forecast, "next_idle_time", mean)
        check_round_trip(engine(world), path)


@pytest.mark.parametrize(
    "order",
    [
        *("multi_lottery", "hierarchical_stride", "drf"),
        *("lottery+funcsched", "stride_workflows"),
    ],
)
def test_tenants_take_the_same_turns_again(tmp_path: Path, order: str) -> None:
    """All that is drawn follows from the seed in the file; shares come out the same."""
    env = shared(order)
    episode = check_round_trip(env, tmp_path / "episode.json")
    assert episode.options.queue is not None and episode.options.queue.sharing is not None
    assert episode.options.queue.sharing.mechanism == re.split(r"\+|_workflows", order)[0]
    assert episode.options.queue.turns_seed == 7
    before, after = shares_of(env), shares_of(replay_of(episode))
    assert before.received[-1].min() > 20.0
    assert after.received.tolist() == before.received.tolist()
    assert after.error.tolist() == before.error.tolist()


def test_another_seed_draws_other_turns() -> None:
    episode = episode_of(shared("lottery"), "a world", "a test")
    document = episode.model_dump(by_alias=True)
    document["options"]["queue"]["turns_seed"] = 8
    again = EpisodeFile.model_validate(document)
    assert again.expected is not None
    assert differences(replayed(again), again.expected) != []


def test_cores_are_shared_by_tickets_again(tmp_path: Path) -> None:
    """Some nodes have more threads than cores: alike, functions would end at other times."""
    episode = check_round_trip(crowded(), tmp_path / "episode.json")
    assert (episode.cluster.cpu_share, episode.funding) == ("tickets", FUNDING)
    document = episode.model_dump(by_alias=True)
    document["cluster"]["cpu_share"] = document["funding"] = None
    assert violations(EpisodeFile.model_validate(document)) != []


@pytest.mark.parametrize("order", ["immediate", "srtf"])
def test_a_sample_of_a_trace(tmp_path: Path, order: str) -> None:
    """Work is drawn, and the policy knows of requests before time 0."""
    episode = check_round_trip(trace(order), tmp_path / "episode.json")
    drawn = {workflow.work for workflow in episode.workflows}
    assert {1_000_000, 1_500_000, 2_000_000} < drawn
    assert [execution.begin for execution in episode.earlier] == [-100.0, -80.0, -60.0, -40.0]
    assert len({id(template) for template in episode.templates()}) == 2


def test_a_choice_is_taken_again_at_its_moment(tmp_path: Path) -> None:
    """The first one waits up to 6 s, at which the patience of the third would have ended."""
    kinds = [WorkflowTemplate(name, [30 * SPEED], [500], [1], [], []) for name in "abc"]
    cluster = replace(CLUSTER, server_types=(ServerType("s", 2, 1.0, 0.0, 1, 4, 4096),))
    rules = Rules(Chosen(), placement="first_fit", patience=5.0)
    images = Images.by_name(kinds, 0.0)
    env = begun([0.0, 0.0, 1.0], kinds, cluster, record=True, rules=rules, images=images)
    for time, declared in [(0.0, 1), (0.0, None), (1.0, 2), (1.0, None), (6.0, 0)]:
        assert env.time == time
        env.choose(declared)
    check_round_trip(env, tmp_path / "episode.json")


def test_what_is_not_recorded_is_refused() -> None:
    env = world("rr", keep_alive="lru")
    with pytest.raises(InputError, match="not recorded, RawEnv"):
        episode_of(env.fork(), "fork", "a test")
    env = world("immediate")
    env.reset()
    with pytest.raises(InputError, match="not over yet"):
        episode_of(env, "begun", "a test")
    for change, index, says in ((take_down, 0, "servers were"), (skip_function, 3, "skipped")):
        env.reset()
        change(env.state, index)
        env._play_on(play(env.state))
        with pytest.raises(InputError, match=says):
            episode_of(played(env), "changed", "a test")
