"""The entities' own methods: an episode driven by hand, in the steps that `RawEnv.step` takes."""

import pytest

from env.base.errors import InputError
from env.sim.episode.episode_file import read_episode
from env.sim.view.container import Container
from env.sim.view.raw_env import RawEnv
from run.command import PROJECT

GOLDEN = sorted((PROJECT / "tests" / "golden").glob("*.json"))


def env_of(episode, **others):
    return RawEnv(episode.arrival_times, episode.templates(), episode.cluster_config(), **others)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_episode_driven_through_the_entities(path):
    episode = read_episode(path)
    env = env_of(episode)
    workload, cluster = env.workload, env.cluster
    cluster.reset()
    workload.reset()
    rent = 0.0
    places = {}

    def complete_first() -> None:
        container = cluster.on_container_completion()
        workload.finish_function(container.wf_id, container.fn_id, container.completion_time)

    for action in episode.actions:
        # Completions may submit functions that come before the one that is next now.
        while workload.peek() is None or not _is_due(workload, cluster):
            complete_first()
        function = workload.get()
        assert (function.wf_id, function.fn_id) == (action.workflow_id, action.function_id)
        place = action.place
        time = function.submission_time
        cluster.start_server(*place[:2], time)
        workflow = workload.workflows[function.wf_id]
        transfer = 0.0
        for source in workflow.predecessors(function.fn_id):
            edge = (workflow.template.edges == (source, function.fn_id)).all(axis=1)
            data_bytes = int(workflow.template.data_bytes[edge][0])
            source_place = places[function.wf_id, source]
            transfer += data_bytes / cluster.get_data_transfer_speed(source_place, place)
        node = cluster.servers[place[0]][place[1]].numa_nodes[place[2]]
        creation = max(node.current_time, time) + transfer
        workload.run_function(
            function.wf_id, function.fn_id, place, action.memory_allocated_mb, creation
        )
        rent += cluster.on_container_creation(
            *place,
            Container(
                wf_id=function.wf_id,
                fn_id=function.fn_id,
                memory_req=function.memory_req,
                memory_alloc=action.memory_allocated_mb,
                computation=function.computation,
                parallelism=function.parallelism,
                submission_time=time,
                creation_time=creation,
                data_transfer_time=transfer,
            ),
        )
        places[function.wf_id, function.fn_id] = place
        assert function.state == "RUNNING"
    while cluster.earliest_finished_time < float("inf"):
        complete_first()
    for run in episode.expected.runs:
        function = workload.workflows[run.workflow_id].functions[run.function_id]
        assert function.completion_time == pytest.approx(run.end_time, abs=1e-9)
    assert env.total_rent == pytest.approx(episode.expected.total_rent, abs=1e-9)


def _is_due(workload, cluster) -> bool:
    """Whether the next function comes before the next completion."""
    function = workload.peek()
    arrival = workload.workflows[function.wf_id].arrival_time
    time = function.submission_time if function.submission_time is not None else arrival
    return time < cluster.earliest_finished_time


CHAIN, _, WAITING, LEASES = map(read_episode, GOLDEN[1:5])


def test_a_workflow_tells_who_is_in_which_state():
    env = env_of(CHAIN)
    workflow = env.workload.workflows[0]
    assert workflow.source_functions == {0}
    assert (workflow.submitted_functions, workflow.pending_functions) == ({0}, {1, 2, 3})
    action = CHAIN.actions[0]
    env.step(*action.place, action.memory_allocated_mb)
    assert (workflow.finished_functions, workflow.submitted_functions) == ({0}, {1})
    assert env.workload.peek().fn_id == 1
    assert [function.fn_id for function in env.workload.queue] == [1]


def test_a_workflow_tells_whose_it_is():
    env = env_of(WAITING, tenants=["a", "b", "a", "c"])
    for seen in (env, env.fork()):
        assert [workflow.tenant for workflow in seen.workload.workflows] == ["a", "b", "a", "c"]
    assert {workflow.tenant for workflow in env_of(WAITING).workload.workflows} == {None}
    with pytest.raises(InputError, match="4 workflow templates but 3 tenants"):
        env_of(WAITING, tenants=["a", "b", "a"])
    with pytest.raises(InputError, match="4 workflow templates but 1 tickets"):
        env_of(WAITING, tenants=["a", "b", "a", "c"], tickets=[2.0])


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
