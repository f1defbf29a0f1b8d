"""What the views of workflows say."""

import pytest

from env.base.errors import InputError
from env.sim.episode.episode_file import read_episode
from env.sim.view.raw_env import RawEnv
from run.command import PROJECT
from tests.episodes import begun


def test_a_workflow_tells_who_is_in_which_state():
    episode = read_episode(PROJECT / "tests" / "golden" / "02_chain_with_transfers.json")
    env = RawEnv(episode.arrival_times, episode.templates(), episode.cluster_config())
    workflow = env.workload.workflows[0]
    assert workflow.source_functions == {0}
    assert (workflow.submitted_functions, workflow.pending_functions) == ({0}, {1, 2, 3})
    action = episode.actions[0]
    env.step(
        action.server_type,
        action.server_index,
        action.numa_node_index,
        action.memory_allocated_mb,
    )
    assert (workflow.finished_functions, workflow.submitted_functions) == ({0}, {1})
    assert [function.fn_id for function in env.workload.queue] == [1]


def test_a_workflow_tells_whose_it_is():
    episode = read_episode(PROJECT / "tests" / "golden" / "04_memory_waiting_queue.json")
    given = episode.arrival_times, episode.templates(), episode.cluster_config()
    env = begun(*given, tenants=["a", "b", "a", "c"])
    for seen in (env, env.fork()):
        assert [workflow.tenant for workflow in seen.workload.workflows] == ["a", "b", "a", "c"]
    assert {workflow.tenant for workflow in RawEnv(*given).workload.workflows} == {None}
    with pytest.raises(InputError, match="4 workflow templates but 3 tenants"):
        begun(*given, tenants=["a", "b", "a"])
    with pytest.raises(InputError, match="4 workflow templates but 1 tickets"):
        begun(*given, tenants=["a", "b", "a", "c"], tickets=[2.0])


def test_recycled_slots_change_nothing_but_the_history():
    episode = read_episode(PROJECT / "tests" / "golden" / "05_lease_renewal_and_restart.json")
    given = episode.arrival_times, episode.templates(), episode.cluster_config()
    whole, recycled = RawEnv(*given), begun(*given, workflow_slots=2)
    for action in episode.actions:
        place = (action.server_type, action.server_index, action.numa_node_index)
        assert whole.step(*place, action.memory_allocated_mb) == recycled.step(
            *place, action.memory_allocated_mb
        )
    assert whole.total_rent == recycled.total_rent
    assert whole.workload.workflows[0].completion_time == 4010.0
    with pytest.raises(InputError, match="workflow 0 has ended"):
        recycled.workload.workflows[0].functions[0].completion_time  # noqa: B018


def test_too_few_slots_is_an_error_that_says_so():
    episode = read_episode(PROJECT / "tests" / "golden" / "04_memory_waiting_queue.json")
    given = episode.arrival_times, episode.templates(), episode.cluster_config()
    env = begun(*given, workflow_slots=1)
    action = episode.actions[0]
    with pytest.raises(InputError, match="more than 1 workflows are active at 1.0 s"):
        env.step(
            action.server_type,
            action.server_index,
            action.numa_node_index,
            action.memory_allocated_mb,
        )
