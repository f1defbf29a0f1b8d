"""Episode files as the reference model computes them."""

from env.sim.cluster_file import ClusterModel
from env.sim.episode.episode_parts import ActionModel, WorkflowModel
from env.sim.episode.plain_episode import (
    DecisionModel,
    FunctionTimesModel,
    NodeStatusModel,
    PlainEpisode,
    Results,
    ServerUseModel,
)
from tests.reference_simulator import ReferenceSimulator, Status, Step
from tests.strategies import Scenario


def reference_episode(scenario: Scenario) -> PlainEpisode:
    """Runs `scenario` on the reference model; servers that were never rented are left out."""
    simulator = ReferenceSimulator(scenario.arrival_times, scenario.templates, scenario.cluster)
    steps = []
    while simulator.current is not None:
        steps.append(simulator.step(*scenario.placements[simulator.current]))
    return PlainEpisode(
        name="reference",
        cluster=ClusterModel.of(scenario.cluster),
        workflows=tuple(
            WorkflowModel.of(wf_id, arrival, template)
            for wf_id, (arrival, template) in enumerate(
                zip(scenario.arrival_times, scenario.templates, strict=True)
            )
        ),
        actions=tuple(_action(scenario, step) for step in steps),
        expected=_results(simulator, steps),
    )


def _action(scenario: Scenario, step: Step) -> ActionModel:
    name, server_id, node_id, memory = scenario.placements[step.wf_id, step.fn_id]
    return ActionModel(
        workflow_id=step.wf_id,
        function_id=step.fn_id,
        server_type=name,
        server_index=server_id,
        numa_node_index=node_id,
        memory_allocated_mb=memory,
    )


def _results(simulator: ReferenceSimulator, steps: list[Step]) -> Results:
    functions = tuple(
        FunctionTimesModel(
            workflow_id=wf_id,
            function_id=fn_id,
            submission_time=simulator.submissions[wf_id, fn_id],
            creation_time=container.creation_time,
            start_time=container.start_time,
            completion_time=container.completion_time,
        )
        for (wf_id, fn_id), container in sorted(simulator.containers.items())
    )
    ends = [
        max(row.completion_time for row in functions if row.workflow_id == wf_id)
        for wf_id in range(len(simulator.templates))
    ]
    return Results(
        decision_count=len(steps),
        decisions=tuple(
            DecisionModel(
                submission_time=step.submission_time,
                cold_start_time=step.cold_start_time,
                data_transfer_time=step.data_transfer_time,
                creation_time=step.creation_time,
                rent=step.rent,
                completed_before_next_decision=tuple(step.completed),
                target_node_before=_status(step.target_node_before),
            )
            for step in steps
        ),
        functions=functions,
        servers=tuple(
            ServerUseModel(
                server_type=name,
                server_index=server.server_id,
                hours_rented=server.hours_rented,
                lease_expiration_time=server.lease_end,
                rent=server.rent,
            )
            for name, servers in simulator.servers.items()
            for server in servers
            if server.hours_rented
        ),
        total_rent=simulator.total_rent,
        last_completion_time=max(ends),
        workflow_completion_times=tuple(ends),
    )


def _status(status: Status) -> NodeStatusModel:
    return NodeStatusModel(
        cpu_utilisation=status.cpu,
        memory_utilisation=status.memory,
        load=status.load,
        total_parallelism=status.total_parallelism,
        free_memory_mb=status.free_memory,
        time_to_first_completion=status.time_to_first_completion,
        time_to_last_completion=status.time_to_last_completion,
    )
