"""The records of the central queue and of warm containers: `Controller`, and a dtype per entity.

Units, and what `NONE` is, as in records.py.
"""

from typing import NamedTuple

import numpy as np

# How the controller works (env/sim/controller.py has the names).
OPTIONS = np.dtype(
    [
        ("order", np.int64),
        ("placement", np.int64),
        ("time_slice", np.float64),  # seconds, inf: no preemption
        ("starve_threshold", np.float64),  # seconds
        ("keep_alive", np.int64),
        ("keep_seconds", np.float64),  # of the policy `fixed`, and while a histogram says nothing
        ("bin_seconds", np.float64),  # the rest: of the policy `hybrid_histogram`
        ("prewarm_percentile", np.float64),
        ("keep_percentile", np.float64),
        ("histogram_margin", np.float64),
        ("least_idle_times", np.int64),
        ("least_variation", np.float64),
        ("most_out_of_bounds", np.float64),
        ("forecast_margin", np.float64),
        ("forecast_p", np.int64),  # orders of the ARIMA model: autoregression,
        ("forecast_d", np.int64),  # differences,
        ("forecast_q", np.int64),  # moving average
    ]
)

QUEUE = np.dtype(
    [
        ("waiting", np.int64),  # functions in it
        ("due", np.int64),  # 1: something has changed at this moment, so one may start
        ("chosen", np.int64),  # entry of `waiting` that goes next, for the order `chosen`
        ("chosen_node", np.int64),  # where it starts, or NONE: by the placement rule
        ("next_number", np.int64),  # of whoever joins, runs or becomes idle next
        ("starvation_timer", np.float64),  # time of the timer set, inf for none
        ("arrivals_left", np.int64),  # of those given
        ("first_number", np.int64),  # in the trace, of the first of them; NONE if it is no trace
        ("more_arrivals", np.int64),  # 1: the trace goes on behind them
        ("runs_size", np.int64),
        ("free_idle", np.int64),  # head of the list of idle records given back
        ("idle_used", np.int64),  # idle records that were ever taken; a prefix
        ("forecasts_due", np.int64),  # 1: images may await a forecast
        ("ended_node", np.int64),  # of a container that is still to be released, or NONE
        ("ended_image", np.int64),
    ]
)

# Requests of one declared function that wait in the central queue.
WAITING = np.dtype(
    [
        ("image", np.int64),
        ("next_of_image", np.int64),  # next entry that runs on the same image
        ("execution", np.float64),  # E: mean seconds
        ("rank", np.float64),  # of its order, where that is fixed; the smallest goes first
        ("priority", np.float64),  # of its first request; the smallest goes first
        ("number", np.int64),  # of its first request
        ("first", np.int64),  # index into requests, as is the next
        ("last", np.int64),
        ("count", np.int64),
    ]
)

# What the controller knows of a function of a workflow; same index as its FUNCTION.
REQUEST = np.dtype(
    [
        ("wf_id", np.int64),  # the number of the request in a trace
        ("declared", np.int64),  # index into waiting
        ("number", np.int64),  # in the order of joining the queue
        ("run", np.int64),  # number of its present run
        ("next", np.int64),  # of the same declared function
        ("joined_time", np.float64),
        ("dispatch_time", np.float64),
        ("warm", np.int64),  # 1: its present run is in a warm container
        ("remaining_computation", np.int64),  # when it joined
        ("queueing_time", np.float64),  # seconds in all its runs so far, as are the next
        ("cold_start_time", np.float64),
        ("data_transfer_time", np.float64),
        ("execution_time", np.float64),
    ]
)

# What a container of a function is started from, and how often it is used.
IMAGE = np.dtype(
    [
        ("cold_start", np.float64),  # D: seconds
        ("memory", np.int64),  # R: MB
        ("first_declared", np.int64),  # list of entries of `waiting`
        ("warm", np.int64),  # W: idle containers of it
        ("running", np.int64),  # containers of it at work
        ("active", np.int64),  # requests of it that wait or run
        ("frequency", np.int64),  # runs since it last had a container
        ("last_end", np.float64),  # of a request, nan before the first
        ("prewarm_after", np.float64),  # seconds from the last end, 0: it stays warm
        ("keep_until", np.float64),  # seconds from the last end
        ("number", np.int64),  # of the prewarming that is due
        ("idle_times", np.int64),  # how many were observed
        ("out_of_bounds", np.int64),  # of them beyond the histogram
        ("awaits_forecast", np.int64),  # 1: its windows follow from a forecast that is still due
    ]
)

# An idle container: warm, its memory reclaimable.
IDLE = np.dtype(
    [
        ("node", np.int64),
        ("image", np.int64),
        ("number", np.int64),
        ("ready_time", np.float64),  # seconds: when a prewarmed one has started
        ("expiration_time", np.float64),
        ("clock", np.float64),  # of its node's cache when it became idle
        ("next", np.int64),  # younger one on the node
        ("previous", np.int64),
        ("newer", np.int64),  # younger one of the same image on the node
        ("older", np.int64),
    ]
)

# The idle containers of a NUMA node.
CACHE = np.dtype(
    [
        ("first", np.int64),  # oldest
        ("last", np.int64),
        ("memory", np.int64),  # MB they hold
        ("clock", np.float64),  # of the policy `faascache`
    ]
)

# A function's time in one container, which ends with the function or with its preemption.
RUN = np.dtype(
    [
        ("wf_id", np.int64),  # in a trace the number of the request
        ("fn_id", np.int64),
        ("declared", np.int64),  # function of a trace
        ("image", np.int64),
        ("node", np.int64),
        ("memory_alloc", np.int64),
        ("warm", np.int64),  # 1: in a warm container
        ("joined", np.int64),  # number of its joining the queue for this run; one count, with the
        ("dispatched", np.int64),  # number of its dispatch: who has the smaller one came first
        ("submission_time", np.float64),
        ("joined_time", np.float64),
        ("dispatch_time", np.float64),
        ("start_time", np.float64),
        ("end_time", np.float64),
        ("finished", np.int64),  # 1: the function has ended, 0: it was preempted
        ("queueing_time", np.float64),  # seconds in all its runs up to here, as are the next
        ("cold_start_time", np.float64),
        ("data_transfer_time", np.float64),
        ("execution_time", np.float64),
    ]
)


class Controller(NamedTuple):
    """The central queue, the warm containers, and the log of runs of an episode.

    D is the number of declared functions, J of images, N of NUMA nodes; F * slots as in `State`.
    """

    options: np.ndarray  # OPTIONS (1,)
    queue: np.ndarray  # QUEUE (1,)
    waiting: np.ndarray  # WAITING (D,), one a declared function
    by_priority: np.ndarray  # int64 (2 * L,), tournament of `waiting`, winner at 1
    by_age: np.ndarray  # int64 (2 * L,), the same by the number of the first request
    requests: np.ndarray  # REQUEST (slots * F,)
    images: np.ndarray  # IMAGE (J,)
    newest: np.ndarray  # int64 (N * J,), newest idle container of image j on node n at n * J + j
    idle: np.ndarray  # IDLE
    caches: np.ndarray  # CACHE (N,)
    histograms: np.ndarray  # int64 (J, B), idle times by bin
    idle_times: np.ndarray  # float64 (J, H), ring of the last idle times, seconds
    draws: np.ndarray  # int64, operations of each request given of a trace
    runs: np.ndarray  # RUN, those that have ended since they were last taken
