"""Episode files of format 1: the plain world, in which all is decided by who plays.

Functions are placed once they are ready, leases are hourly, no container starts cold or stays warm.
"""

from typing import Annotated, Literal

from pydantic import Field

from env.base.schema import Strict
from env.sim.bounds import LARGEST_WHOLE
from env.sim.cluster_file import Name, Whole
from env.sim.episode.episode_parts import Amount, EpisodeFile


class NodeStatusModel(Strict):
    """A NUMA node's projected use at a moment; free memory is negative when over-committed."""

    cpu_utilisation: Amount
    memory_utilisation: Amount
    load: Amount
    total_parallelism: Whole
    free_memory_mb: Annotated[int, Field(strict=True, ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]
    time_to_first_completion: Amount
    time_to_last_completion: Amount


class DecisionModel(Strict):
    """What came of one action: times in s, rent in USD charged up to the next decision."""

    submission_time: Amount
    cold_start_time: Amount
    data_transfer_time: Amount
    creation_time: Amount
    rent: Amount
    completed_before_next_decision: tuple[tuple[Whole, Whole], ...]
    target_node_before: NodeStatusModel


class FunctionTimesModel(Strict):
    """When a function was submitted, could first start, started and completed (s)."""

    workflow_id: Whole
    function_id: Whole
    submission_time: Amount
    creation_time: Amount
    start_time: Amount
    completion_time: Amount


class ServerUseModel(Strict):
    """Whole hours rented, the end of the last lease (s) and the rent (USD) of a server."""

    server_type: Name
    server_index: Whole
    hours_rented: Whole
    lease_expiration_time: Amount
    rent: Amount


class Results(Strict):
    """Everything that comes of an episode's actions."""

    decision_count: Whole
    decisions: tuple[DecisionModel, ...]
    functions: tuple[FunctionTimesModel, ...]
    servers: tuple[ServerUseModel, ...]
    total_rent: Amount
    last_completion_time: Amount
    workflow_completion_times: tuple[Amount, ...]


class Options(Strict):
    """Rules that differ from the simulator's own: there are none to choose from."""


class PlainEpisode(EpisodeFile):
    """A whole episode of the plain world."""

    format: Literal[1] = 1
    options: Options = Options()
    expected: Results | None = None

    def check_references(self) -> None:
        """See `EpisodeFile`; each function is placed once."""
        super().check_references()
        self.check_placed_once()
