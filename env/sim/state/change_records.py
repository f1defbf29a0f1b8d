"""The records of servers that change by themselves, and of the functions that they kill.

Units, and what `NONE` is, as in records.py. All are empty where no server changes by itself.
"""

from typing import Final

import numpy as np

# What a plan has a server do.
JOIN: Final = 0  # it comes into service
DRAIN: Final = 1  # it takes nothing new; it leaves when it is empty, or after `seconds`
LEAVE: Final = 2  # it goes down, and is back after `seconds`

# Why a function has failed.
PREDECESSOR: Final = 1  # one of its predecessors has
RETRIES: Final = 2  # it was killed too often
NO_SERVER_LEFT: Final = 3  # no server that holds it is in service or to come

# A change of a server that is planned.
PLANNED_CHANGE = np.dtype(
    [
        ("time", np.float64),  # from time 0, or within the period
        ("action", np.int64),
        ("seconds", np.float64),  # of DRAIN and LEAVE; inf: for ever
    ]
)

# How a server changes: by a plan, or by failures at random.
SERVER_PLAN = np.dtype(
    [
        ("first", np.int64),  # range of `plan`
        ("count", np.int64),
        ("period", np.float64),  # after which the plan begins again; inf: it does not
        ("group", np.int64),  # servers of a group are at the same moment of the period at time 0
        ("failure_shape", np.float64),  # Weibull; 0: there are no failures
        ("failure_scale", np.float64),  # seconds, as is the next but one
        ("repair_shape", np.float64),
        ("repair_scale", np.float64),
        ("next", np.int64),  # change of the range
        ("begin", np.float64),  # of this period
        ("draws", np.int64),  # numbers drawn for it so far
    ]
)

# What becomes of killed functions and of data (`Recovery` in env/sim/declared/server_changes.py),
# and what came of it.
RECOVERY = np.dtype(
    [
        ("limit", np.int64),  # retries of a function; NONE: any number
        ("wait", np.float64),  # seconds before the first of them
        ("factor", np.float64),
        ("jitter", np.float64),
        ("data_lost", np.int64),  # 1: with the server that they lie on
        ("checkpoint", np.float64),  # seconds; inf: none
        ("retries", np.int64),  # so far, as are all of the next
        ("failed", np.int64),  # functions
        ("work_lost", np.float64),  # core-seconds at the cluster's core speed
        ("recovered", np.int64),  # kills after which the function has started again
        ("recovery_time", np.float64),  # seconds from these kills to these starts, summed
        ("out_time", np.float64),  # seconds of servers out of service, up to:
        ("out_until", np.float64),
    ]
)

# What else is known of a function where servers change; same index as its FUNCTION.
RETRIED = np.dtype(
    [
        ("reason", np.int64),  # why it has failed
        ("backs_off", np.int64),  # 1: it waits to be submitted again
        ("data_lost", np.int64),  # 1: it has finished, and its data are gone
        ("killed_time", np.float64),  # nan once it has started again
    ]
)
