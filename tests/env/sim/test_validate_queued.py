"""The checker of queued runs finds what is wrong with a schedule that was right."""

import numpy as np
import pytest

from env.sim.check.validate_queued import queued_violations
from env.sim.queue_records import RUN
from env.sim.records import COMPLETED, KILLED

MEMORY = np.array([2])
RANK = np.array([1.0, 2.0])


def _run(wf_id: int, **fields: float) -> np.ndarray:
    """A run of function 0 of a workflow; queued at 0, cold start 1 s, executed 2 s."""
    values = {"wf_id": wf_id, "memory_alloc": 2, "outcome": COMPLETED, "cold_start_time": 1.0}
    values |= {"execution_time": 2.0} | fields
    run = np.zeros(1, RUN)
    for key, value in values.items():
        run[key] = value
    return run


def _killed() -> np.ndarray:
    """A function is killed at work, then while its container starts, and completes at last.

    It takes 2 s, its cold start 1 s: 0 to 1 and 1 to 2.5; 4 to 4.5; 5 to 6 and 6 to 8.
    """
    return np.concatenate(
        [
            _run(
                0,
                dispatched=1,
                outcome=KILLED,
                start_time=1.0,
                end_time=2.5,
                execution_time=1.5,
            ),
            _run(
                0,
                joined=2,
                dispatched=3,
                outcome=KILLED,
                joined_time=2.5,
                dispatch_time=4.0,
                start_time=4.5,
                end_time=4.5,
                queueing_time=1.5,
                cold_start_time=1.5,
                execution_time=1.5,
            ),
            _run(
                0,
                joined=4,
                dispatched=5,
                joined_time=4.5,
                dispatch_time=5.0,
                start_time=6.0,
                end_time=8.0,
                queueing_time=2.0,
                cold_start_time=2.5,
                execution_time=3.5,
            ),
        ]
    )


def test_one_that_was_killed_begins_anew() -> None:
    assert queued_violations(_killed(), MEMORY, RANK, least=np.array([2.0])) == []


@pytest.mark.parametrize(
    ("row", "values", "says"),
    [
        (2, {"end_time": 7.5, "execution_time": 3.0}, "completes after 1.5 s since it began anew"),
        (1, {"execution_time": 2.0}, "execution_time is 2.0 at 4.5 s, it executed 1.5"),
    ],
)
def test_what_is_wrong_of_one_that_was_killed_is_told(
    row: int, values: dict[str, float], says: str
) -> None:
    runs = _killed()
    for field, value in values.items():
        runs[row][field] = value
    found = queued_violations(runs, MEMORY, RANK, least=np.array([2.0]))
    assert any(says in line for line in found), found
