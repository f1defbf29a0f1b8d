"""The `Container` snapshot: a container as it was when it was read."""

from dataclasses import dataclass, fields

import numpy as np

from env.sim.state.block import State


@dataclass(frozen=True)
class Container:
    """A container as it was when it was read.

    Attributes:
        wf_id, fn_id: the function it runs.
        memory_req, memory_alloc: MB needed and given.
        computation: operations in all; `remaining_computation`: at its node's clock.
        parallelism: threads of execution.
        submission_time: seconds, when its function was submitted.
        data_transfer_time: seconds to fetch what the predecessors wrote.
        creation_time: seconds, when it can first start.
        start_time: seconds; None while it waits on its node. May lie in the future.
        completion_time: seconds; projected until it has completed; None while it waits.
    """

    wf_id: int
    fn_id: int
    memory_req: int
    memory_alloc: int
    computation: int
    parallelism: int
    submission_time: float
    creation_time: float
    data_transfer_time: float
    remaining_computation: int
    start_time: float | None
    completion_time: float | None


GIVEN = tuple(each.name for each in fields(Container))[:10]
"""What the record of a container has from the beginning."""


def read_container(state: State, index: int) -> Container:
    """Snapshot of a container record; `completion_time` as last projected."""
    record = state.containers[index]
    started = not np.isnan(record["start_time"])
    return Container(
        **{name: record[name].item() for name in GIVEN},
        start_time=float(record["start_time"]) if started else None,
        completion_time=float(record["completion_time"]) if started else None,
    )
