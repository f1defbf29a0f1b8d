"""The checker of queued runs finds what is wrong with a schedule that was right."""

import numpy as np
import pytest

from env.sim.check.validate_queued import queued_violations
from env.sim.queue_records import RUN
from env.sim.records import COMPLETED, KILLED, PREEMPTED

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


def _schedule() -> np.ndarray:
    """On a node of 2 MB: function 0 cold, then, warm, preempted and resumed, function 1 of it."""
    return np.concatenate(
        [
            _run(0, joined=0, dispatched=2, start_time=1.0, end_time=3.0),
            _run(
                1,
                declared=1,
                joined=1,
                dispatched=3,
                warm=1,
                outcome=PREEMPTED,
                dispatch_time=3.0,
                start_time=3.0,
                end_time=4.0,
                queueing_time=3.0,
                cold_start_time=0.0,
                execution_time=1.0,
            ),
            _run(
                1,
                declared=1,
                joined=4,
                dispatched=5,
                warm=1,
                joined_time=4.0,
                dispatch_time=6.0,
                start_time=6.0,
                end_time=7.0,
                queueing_time=5.0,
                cold_start_time=0.0,
            ),
        ]
    )


def test_a_right_schedule_passes() -> None:
    assert queued_violations(_schedule(), MEMORY, RANK) == []


@pytest.mark.parametrize(
    ("row", "field", "value", "says"),
    [
        (0, "start_time", -1.0, "dispatch_time 0.0 is after start_time -1.0"),
        (1, "outcome", COMPLETED, "outcomes of its runs are [0, 0]"),
        (2, "execution_time", 1.0, "completion time 7.0 sum to 6.0"),
        (1, "execution_time", 2.0, "execution_time is 2.0 at 4.0 s, it executed 1.0"),
        (1, "dispatch_time", 2.5, "node 0: 4 MB are in use at 2.5 s, it has 2"),
        (0, "image", 1, "starts warm at 3.0 s where nothing is warm"),
    ],
)
def test_what_is_wrong_is_told(row: int, field: str, value: float, says: str) -> None:
    runs = _schedule()
    runs[row][field] = value
    found = queued_violations(runs, MEMORY, RANK)
    assert any(says in line for line in found), found


def test_who_goes_before_its_turn_is_told() -> None:
    (told,) = queued_violations(_schedule(), MEMORY, RANK[::-1])
    assert told == "function 0 of workflow 0: starts at 0.0 s before its turn"


def test_containers_started_ahead_need_no_run_before() -> None:
    runs = _schedule()
    runs["image"] = [1, 0, 0]
    assert queued_violations(runs, MEMORY, RANK, prewarmed=True) == []


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
