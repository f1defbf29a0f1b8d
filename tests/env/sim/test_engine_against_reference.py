"""The compiled engine computes what the reference model computes, number for number."""

import numpy as np
from hypothesis import example, given

from env.sim.check.validate import violations
from env.sim.episode.recording import episode_of
from env.sim.episode.replay import differences, replayed
from env.sim.hardware import ClusterConfig, ServerType
from env.sim.view.raw_env import RawEnv
from env.sim.workflow_template import WorkflowTemplate
from tests.reference_episode import reference_episode
from tests.strategies import Scenario, scenarios


def _run(scenario: Scenario) -> RawEnv:
    env = RawEnv(scenario.arrival_times, scenario.templates, scenario.cluster, record=True)
    while (function := env.current_function) is not None:
        env.step(*scenario.placements[function.wf_id, function.fn_id])
    return env


def function(computation: int) -> WorkflowTemplate:
    """A workflow of one function with a thread that needs 1 MB."""
    one, none = np.array([1]), np.empty(0, np.int64)
    return WorkflowTemplate(
        "one", np.array([computation]), one, one, np.empty((0, 2), np.int64), none
    )


EIGHTEEN_YEARS = Scenario(
    (0.0, 0.0, 0.0),
    (function(1), function(1_000_000), function(4_000_000_000)),
    ClusterConfig(1_000_000, 1e3, 3e2, 12.5, (ServerType("slow", 1, 0.0, 0.0, 1, 2, 4, 7),)),
    {(0, 0): ("slow", 0, 0, 4), (1, 0): ("slow", 0, 0, 1), (2, 0): ("slow", 0, 0, 1)},
)
"""At 7 operations a second: so long that float64 no longer holds a nanosecond."""


@given(scenario=scenarios())
@example(EIGHTEEN_YEARS)
def test_random_episodes(scenario: Scenario) -> None:
    """Same decisions, times, sets, leases and rents as the reference; the checker agrees."""
    wanted = reference_episode(scenario)
    computed = episode_of(_run(scenario), wanted.name, wanted.description)
    assert computed.actions == wanted.actions
    assert computed.expected is not None and wanted.expected is not None
    assert computed.expected.functions == wanted.expected.functions
    assert differences(computed.expected, wanted.expected) == []
    assert violations(computed) == []


@given(scenario=scenarios())
def test_replay_and_fork(scenario: Scenario) -> None:
    """Reset, replay from a file and a fork at any moment all end the same way."""
    env = _run(scenario)
    episode = episode_of(env, "first", "")
    assert replayed(episode) == episode.expected
    first = env.logs
    env.reset()
    half = len(first) // 2
    for log in first[:half]:
        env.step(log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
    fork = env.fork()
    for log in first[half:]:
        place = (log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
        assert fork.step(*place) == log
    assert fork.done
    assert len(env.logs) == half
    for log in first[half:]:
        place = (log.server_name, log.server_id, log.numa_node_id, log.memory_alloc)
        assert env.step(*place) == log
    assert env.logs == first
    assert env.total_rent == fork.total_rent
