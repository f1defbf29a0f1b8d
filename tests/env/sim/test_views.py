"""What the views of workflows say."""

import pytest

from env.base.errors import InputError
from env.sim.episode.episode_file import read_episode
from tests.episodes import GOLDEN, begun


def env_of(episode, **others):
    times = [each.arrival_time for each in episode.workflows]
    return begun(times, episode.templates(), episode.cluster, **others)


CHAIN, _, WAITING, LEASES = map(read_episode, GOLDEN[1:5])


def test_a_workflow_tells_who_is_in_which_state():
    env = env_of(CHAIN)
    workflow = env.workload.workflows[0]
    assert workflow.source_functions == {0}
    assert (workflow.submitted_functions, workflow.pending_functions) == ({0}, {1, 2, 3})
    action = CHAIN.actions[0]
    env.step(*action.place, action.memory_allocated_mb)
    assert (workflow.finished_functions, workflow.submitted_functions) == ({0}, {1})


def test_a_workflow_tells_whose_it_is():
    env = env_of(WAITING, tenants=["a", "b", "a", "c"])
    for seen in (env, env.fork()):
        assert [workflow.tenant for workflow in seen.workload.workflows] == ["a", "b", "a", "c"]
    assert {workflow.tenant for workflow in env_of(WAITING).workload.workflows} == {None}
    with pytest.raises(InputError, match="4 workflow templates but 3 tenants"):
        env_of(WAITING, tenants=["a", "b", "a"])


def test_recycled_slots_change_nothing_but_the_history():
    whole, recycled = env_of(LEASES), env_of(LEASES, workflow_slots=2)
    for action in LEASES.actions:
        decision = (*action.place, action.memory_allocated_mb)
        assert whole.step(*decision) == recycled.step(*decision)
    assert whole.total_rent == recycled.total_rent
    assert whole.workload.workflows[0].completion_time == 4010.0
    with pytest.raises(InputError, match="workflow 0 has ended"):
        recycled.workload.workflows[0].functions[0].completion_time  # noqa: B018


def test_too_few_slots_is_an_error_that_says_so():
    env = env_of(WAITING, workflow_slots=1)
    action = WAITING.actions[0]
    with pytest.raises(InputError, match="more than 1 workflows are active at 1.0 s"):
        env.step(*action.place, action.memory_allocated_mb)


def test_a_workload_moved_on_by_hand():
    """A chain: each function is submitted when the one before it has finished."""
    env = env_of(CHAIN)
    workload = env.workload
    workload.reset()
    for fn_id in range(4):
        function = workload.peek()
        assert (function.wf_id, function.fn_id) == (0, fn_id)
        assert workload.get().state == "SUBMITTED"
        assert workload.peek() is None
        workload.run_function(0, fn_id, env.place_of(0), 100, 10.0 * fn_id)
        workload.finish_function(0, fn_id, 10.0 * fn_id + 5.0)
    assert workload.workflows[0].completion_time == 35.0
    with pytest.raises(InputError, match="no function is submitted now"):
        workload.get()
