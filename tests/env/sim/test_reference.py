"""The reference model meets the golden episodes, so what is held to it is held to them."""

from dataclasses import astuple
from pathlib import Path

import pytest

from env.sim.episode.episode_file import read_episode
from tests.reference_simulator import ReferenceSimulator

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))


def test_there_are_six_golden_episodes() -> None:
    assert len(GOLDEN) == 6


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_reference_meets_golden_episode(path: Path) -> None:
    episode = read_episode(path)
    expected = episode.expected
    assert expected is not None
    simulator = ReferenceSimulator(
        episode.arrival_times, episode.templates(), episode.cluster_config()
    )
    for action, wanted in zip(episode.actions, expected.decisions, strict=True):
        assert simulator.current == (action.workflow_id, action.function_id)
        step = simulator.step(
            action.server_type,
            action.server_index,
            action.numa_node_index,
            action.memory_allocated_mb,
        )
        assert step.completed == list(wanted.completed_before_next_decision)
        assert (
            step.submission_time,
            step.cold_start_time,
            step.data_transfer_time,
            step.creation_time,
            step.rent,
        ) == (
            wanted.submission_time,
            wanted.cold_start_time,
            wanted.data_transfer_time,
            wanted.creation_time,
            wanted.rent,
        )
        assert astuple(step.target_node_before) == tuple(
            wanted.target_node_before.model_dump().values()
        )
    assert simulator.current is None
    for times in expected.functions:
        function = (times.workflow_id, times.function_id)
        container = simulator.containers[function]
        assert simulator.submissions[function] == times.submission_time
        assert container.creation_time == times.creation_time
        assert container.start_time == times.start_time
        assert container.completion_time == times.completion_time
    for use in expected.servers:
        server = simulator.servers[use.server_type][use.server_index]
        assert (server.hours_rented, server.lease_end, server.rent) == (
            use.hours_rented,
            use.lease_expiration_time,
            use.rent,
        )
    assert simulator.total_rent == expected.total_rent
