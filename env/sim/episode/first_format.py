"""Episode files of format 1, which are converted when they are read.

They hold episodes in which each function is placed once it is ready, leases are hourly, and no
container starts cold or stays warm. tests/golden has some.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import Strict, validated
from env.sim.declared.hardware import ClusterConfig
from env.sim.episode.model import MOMENTS, ActionModel, EpisodeFile, Results, WorkflowModel
from env.sim.state.records import HOUR


class FirstEpisode(Strict):
    """A whole episode."""

    format: Literal[1] = 1
    name: str
    description: str = ""
    exercises: tuple[str, ...] = ()
    options: Annotated[dict[str, Any], Field(max_length=0)] | None = None  # there was one world
    cluster: ClusterConfig
    workflows: Annotated[tuple[WorkflowModel, ...], Field(min_length=1)]
    actions: tuple[ActionModel, ...]
    expected: dict[str, Any] | None = None

    def converted(self) -> EpisodeFile:
        """The same as an episode file of today.

        Raises:
            InputError: its results are not those of its actions.
        """
        kept = {"name", "description", "exercises", "cluster", "workflows", "actions"}
        results = None
        if self.expected is not None:
            try:
                results = self._results(self.expected)
            except (KeyError, TypeError) as error:
                raise InputError(f"expected: {error!r}, all that format 1 has is needed") from None
        return EpisodeFile(**{key: getattr(self, key) for key in kept}, expected=results)

    def _results(self, expected: dict[str, Any]) -> Results:
        same = ("server_type", "server_index", "lease_expiration_time", "rent")
        leases = [
            {key: row[key] for key in same} | {"lease_seconds": row["hours_rented"] * HOUR}
            for row in expected["servers"]
        ]
        sums = ("total_rent", "last_completion_time", "workflow_completion_times")
        results = {key: expected[key] for key in sums}
        results |= {"runs": list(self._runs(expected)), "servers": leases}
        return validated(Results, results, "expected")

    def _runs(self, expected: dict[str, Any]) -> Iterator[dict[str, Any]]:
        decisions = expected["decisions"]
        times = {(row["workflow_id"], row["function_id"]): row for row in expected["functions"]}
        placed = [action.function for action in self.actions]
        if len(decisions) != len(placed) or sorted(times) != sorted(placed):
            counts = f"{len(decisions)} decisions and {len(times)} functions"
            raise InputError(f"expected: {counts} found, there are {len(placed)} actions")
        for action, decision in zip(self.actions, decisions, strict=True):
            row = times[action.function]
            start, end = row["start_time"], row["completion_time"]
            yield {
                **action.model_dump(exclude={"dispatch_time"}),
                "warm": False,
                "outcome": "completed",
                **dict.fromkeys(MOMENTS, row["submission_time"]),
                "start_time": start,
                "end_time": end,
                "queueing_time": 0.0,
                "server_start_time": decision["cold_start_time"],
                "container_cold_start_time": 0.0,
                "data_transfer_time": decision["data_transfer_time"],
                "execution_time": end - start,
            }
