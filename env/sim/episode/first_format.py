"""Episode files of format 1, which are converted when they are read.

They hold episodes in which each function is placed once it is ready, leases are hourly, and no
container starts cold or stays warm. tests/golden has some.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.sim.declared.hardware import ClusterConfig
from env.sim.episode.model import EpisodeFile
from env.sim.episode.rows import ActionModel, Results, WorkflowModel

SECONDS_PER_HOUR = 3600.0


class NoOptions(Strict):
    """The rules of the world were always the same."""


class FirstEpisode(Strict):
    """A whole episode."""

    format: Literal[1] = 1
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: NoOptions = NoOptions()
    cluster: ClusterConfig
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...]
    expected: dict[str, Any] | None = None

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
        try:
            return self._results(self.expected)
        except (KeyError, TypeError) as error:
            raise InputError(f"expected: {error!r}, all that format 1 has is needed") from None

    def _results(self, expected: dict[str, Any]) -> Results:
        decisions, servers = expected["decisions"], expected["servers"]
        times = {(row["workflow_id"], row["function_id"]): row for row in expected["functions"]}
        placed = [action.function for action in self.actions]
        if len(decisions) != len(placed) or sorted(times) != sorted(placed):
            raise InputError(
                f"expected: {len(decisions)} decisions and {len(times)} functions found, one of "
                f"each is needed for each of the {len(placed)} actions"
            )
        runs = []
        for action, decision in zip(self.actions, decisions, strict=True):
            own = times[action.function]
            submitted, started, ended = (
                own[f"{moment}_time"] for moment in ("submission", "start", "completion")
            )
            runs.append(
                {
                    **action.model_dump(exclude={"dispatch_time"}),
                    "warm": False,
                    "outcome": "completed",
                    "submission_time": submitted,
                    "joined_time": submitted,
                    "dispatch_time": submitted,
                    "start_time": started,
                    "end_time": ended,
                    "queueing_time": 0.0,
                    "server_start_time": decision["cold_start_time"],
                    "container_cold_start_time": 0.0,
                    "data_transfer_time": decision["data_transfer_time"],
                    "execution_time": ended - started,
                }
            )
        leases = [
            {
                "server_type": row["server_type"],
                "server_index": row["server_index"],
                "lease_seconds": row["hours_rented"] * SECONDS_PER_HOUR,
                "lease_expiration_time": row["lease_expiration_time"],
                "rent": row["rent"],
            }
            for row in servers
        ]
        kept = ("total_rent", "last_completion_time", "workflow_completion_times")
        sums = {key: expected[key] for key in kept}
        return validated(Results, {"runs": runs, "servers": leases, **sums}, "expected")
