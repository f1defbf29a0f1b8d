"""What a decision did."""

from __future__ import annotations

from typing import NamedTuple


class NodeBefore(NamedTuple):
    """A NUMA node at the submission time, before the placement.

    Attributes:
        cpu, memory, load, total_parallelism, free_memory: as in `NodeStatus`.
        time_to_first_completion, time_to_last_completion: seconds; 0 on an empty node.
    """

    cpu: float
    memory: float
    load: float
    total_parallelism: int
    free_memory: int
    time_to_first_completion: float
    time_to_last_completion: float


class StepLog(NamedTuple):
    """What one decision did.

    Attributes:
        wf_id, fn_id: the function placed.
        server_name, server_id, numa_node_id, memory_alloc: the decision; MB.
        submission_time, creation_time: seconds of simulated time.
        cold_start_time, data_transfer_time: seconds.
        rent: USD, for the placement and all completions up to the next decision.
        completed: (wf_id, fn_id) completed before the next decision, by (time, wf_id, fn_id).
        target_node_before: the chosen node just before.
    """

    wf_id: int
    fn_id: int
    server_name: str
    server_id: int
    numa_node_id: int
    memory_alloc: int
    submission_time: float
    cold_start_time: float
    data_transfer_time: float
    creation_time: float
    rent: float
    completed: tuple[tuple[int, int], ...]
    target_node_before: NodeBefore
