"""Episode files of format 1, which are converted when they are read.

They hold episodes in which each function is placed once it is ready, leases are hourly, and no
container starts cold or stays warm. tests/golden has some.
"""

from typing import Annotated, Literal

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Recorded, Strict
from env.sim.declared.cluster_file import ClusterModel, Whole
from env.sim.episode.model import EpisodeFile
from env.sim.episode.rows import (
    ActionModel,
    Amount,
    Results,
    RunModel,
    ServerLeaseModel,
    WorkflowModel,
)

SECONDS_PER_HOUR = 3600.0


class FirstDecision(Recorded):
    """What came of one action (s)."""

    cold_start_time: Amount
    data_transfer_time: Amount


class FirstFunction(Recorded):
    """When a function was submitted, started and completed (s)."""

    workflow_id: Whole
    function_id: Whole
    submission_time: Amount
    start_time: Amount
    completion_time: Amount


class FirstServer(Recorded):
    """Whole hours rented, the end of the last lease (s) and the rent (USD) of a server."""

    server_type: str
    server_index: Whole
    hours_rented: Whole
    lease_expiration_time: Amount
    rent: Amount


class FirstResults(Recorded):
    """What came of an episode; a decision for each action."""

    decisions: list[FirstDecision]
    functions: list[FirstFunction]
    servers: list[FirstServer]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: list[Amount]


class NoOptions(Strict):
    """The rules of the world were always the same."""


class FirstEpisode(Strict):
    """A whole episode."""

    format: Literal[1] = 1
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: NoOptions = NoOptions()
    cluster: ClusterModel
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...]
    expected: FirstResults | None = None

    def converted(self) -> EpisodeFile:
        """The same as an episode file of today, without results."""
        kept = {"name", "description", "exercises", "cluster", "workflows", "actions"}
        return EpisodeFile(**{key: getattr(self, key) for key in kept})

    def results(self) -> Results | None:
        """The results as an episode file has them today.

        Raises:
            InputError: they are not those of the actions.
        """
        if self.expected is None:
            return None
        first = self.expected
        times = {(row.workflow_id, row.function_id): row for row in first.functions}
        placed = [action.function for action in self.actions]
        if len(first.decisions) != len(placed) or sorted(times) != sorted(placed):
            raise InputError(
                f"expected: {len(first.decisions)} decisions and {len(times)} functions found, one "
                f"of each is needed for each of the {len(placed)} actions"
            )
        runs = []
        for action, decision in zip(self.actions, first.decisions, strict=True):
            own = times[action.function]
            runs.append(
                RunModel(
                    **action.model_dump(exclude={"dispatch_time"}),
                    warm=False,
                    outcome="completed",
                    submission_time=own.submission_time,
                    joined_time=own.submission_time,
                    dispatch_time=own.submission_time,
                    start_time=own.start_time,
                    end_time=own.completion_time,
                    queueing_time=0.0,
                    server_start_time=decision.cold_start_time,
                    container_cold_start_time=0.0,
                    data_transfer_time=decision.data_transfer_time,
                    execution_time=own.completion_time - own.start_time,
                )
            )
        return Results(
            runs=tuple(runs),
            servers=tuple(
                ServerLeaseModel(
                    server_type=row.server_type,
                    server_index=row.server_index,
                    lease_seconds=row.hours_rented * SECONDS_PER_HOUR,
                    lease_expiration_time=row.lease_expiration_time,
                    rent=row.rent,
                )
                for row in first.servers
            ),
            total_rent=first.total_rent,
            last_completion_time=first.last_completion_time,
            workflow_completion_times=tuple(first.workflow_completion_times),
        )
