"""What a simulator has done, as an episode file."""

from env.base.errors import InputError
from env.sim.cluster_file import ClusterModel
from env.sim.episode.episode_parts import ActionModel, EpisodeFile, WorkflowModel
from env.sim.episode.plain_episode import (
    DecisionModel,
    FunctionTimesModel,
    NodeStatusModel,
    PlainEpisode,
    Results,
    ServerUseModel,
)
from env.sim.episode.world_recording import is_plain, world_episode_of
from env.sim.view.raw_env import RawEnv
from env.sim.view.step_log import StepLog


def episode_of(env: RawEnv, name: str, description: str) -> EpisodeFile:
    """The finished run of a `RawEnv(..., record=True)` as an episode file, results included.

    The plain world is recorded in format 1, every other one in format 2.

    Raises:
        InputError: the episode is not over, or its steps were not recorded.
    """
    if not is_plain(env):
        return world_episode_of(env, name, description)
    results = results_of(env)
    return PlainEpisode(
        name=name,
        description=description,
        cluster=ClusterModel.of(env.cluster_config),
        workflows=tuple(
            WorkflowModel.of(
                workflow.wf_id, workflow.arrival_time, workflow.template, workflow.tenant
            )
            for workflow in env.workload.workflows
        ),
        actions=tuple(
            ActionModel(
                workflow_id=log.wf_id,
                function_id=log.fn_id,
                server_type=log.server_name,
                server_index=log.server_id,
                numa_node_index=log.numa_node_id,
                memory_allocated_mb=log.memory_alloc,
            )
            for log in env.logs
        ),
        expected=results,
    )


def results_of(env: RawEnv) -> Results:
    """What a finished `RawEnv(..., record=True)` of the plain world computed.

    Raises:
        InputError: the episode is not over, or its steps were not recorded.
    """
    if not env.done:
        raise InputError("episode: not over yet, every function must be placed and completed")
    functions = [function for workflow in env.workload.workflows for function in workflow.functions]
    if len(env.logs) != len(functions):
        raise InputError(
            f"episode: {len(env.logs)} of {len(functions)} steps are recorded, "
            "RawEnv(..., record=True) is needed"
        )
    rows = tuple(
        FunctionTimesModel.model_validate(
            {
                "workflow_id": function.wf_id,
                "function_id": function.fn_id,
                "submission_time": function.submission_time,
                "creation_time": function.creation_time,
                "start_time": function.start_time,
                "completion_time": function.completion_time,
            }
        )
        for function in functions
    )
    ends = dict.fromkeys((row.workflow_id for row in rows), 0.0)
    for row in rows:
        ends[row.workflow_id] = max(ends[row.workflow_id], row.completion_time)
    return Results(
        decision_count=len(env.logs),
        decisions=tuple(_decision_model(log) for log in env.logs),
        functions=rows,
        servers=tuple(
            ServerUseModel(
                server_type=server_name,
                server_index=server.server_id,
                hours_rented=round(server.hours_rented),
                lease_expiration_time=server.expiration_time if server.hours_rented else 0.0,
                rent=server.rent,
            )
            for server_name, servers in env.cluster.servers.items()
            for server in servers
        ),
        total_rent=env.total_rent,
        last_completion_time=max(ends.values()),
        workflow_completion_times=tuple(ends.values()),
    )


def _decision_model(log: StepLog) -> DecisionModel:
    before = log.target_node_before
    return DecisionModel(
        submission_time=log.submission_time,
        cold_start_time=log.cold_start_time,
        data_transfer_time=log.data_transfer_time,
        creation_time=log.creation_time,
        rent=log.rent,
        completed_before_next_decision=log.completed,
        target_node_before=NodeStatusModel(
            cpu_utilisation=before.cpu,
            memory_utilisation=before.memory,
            load=before.load,
            total_parallelism=before.total_parallelism,
            free_memory_mb=before.free_memory,
            time_to_first_completion=before.time_to_first_completion,
            time_to_last_completion=before.time_to_last_completion,
        ),
    )
