"""The records of the central queue and of warm containers: a dtype per entity.

Units, and what `NONE` is, as in records.py.
"""

from enum import IntEnum
from typing import Final

import numpy as np


class NodeBy(IntEnum):
    """Who names the node of a function that waits centrally.

    Of several equally suited ones the placement rule of this name, or whoever plays.
    """

    first_fit = 0
    best_fit = 1
    worst_fit = 2
    asked = 3


class Charged(IntEnum):
    """What tenants that take turns are charged for, besides by `drf`, which looks at what is held.

    `dominant`: seconds of the whole cluster, of the resource that was used most.
    """

    core_seconds = 0
    mb_seconds = 1
    dominant = 2


CARBON: Final = 1  # as it is emitted, since hours or regions differ in it
USES: Final = 2  # runs pay

# How the world works (env/sim/declared/rules.py has the names).
OPTIONS = np.dtype(
    [
        ("queued", np.int64),  # 1: functions wait centrally; 0: each is placed once it is ready
        ("order", np.int64),  # where tenants share, that of the functions of one
        ("shared", np.int64),  # 1: tenants take turns by their tickets
        ("resource", np.int64),  # Charged
        ("cpu_by_tickets", np.int64),  # 1: cores of a node are shared by tickets of tenants
        ("lends", np.int64),  # 1: functions that wait for others lend these their tickets
        ("asks_tickets", np.int64),  # 1: whoever plays says how many each workflow gets
        ("rough", np.int64),  # 1: whole tickets are of those who compete, else of all of the base
        ("placement", np.int64),  # NodeBy
        ("patience", np.float64),  # seconds of waiting after which a server may be started
        ("always_up", np.int64),  # 1: all servers are up from the start
        ("charged", np.int64),  # 1: and are paid for
        ("tick", np.float64),  # seconds from one tick to the next; 0: there are none
        ("watch_leases", np.int64),  # 1: something happens when a lease ends
        ("time_slice", np.float64),  # seconds, inf: no preemption
        ("starve_threshold", np.float64),  # seconds
        ("keep_alive", np.int64),
        ("keep_seconds", np.float64),  # of the policy `fixed`, and while a histogram says nothing
        ("bin", np.float64),  # seconds, of a histogram
        ("time_weight", np.float64),  # of `ecolife`
        ("prewarm_percentile", np.float64),  # this and the next: fields of `hybrid_histogram`
        ("keep_percentile", np.float64),
        ("margin", np.float64),
        ("least_idle_times", np.int64),
        ("least_variation", np.float64),
        ("most_out_of_bounds", np.float64),
        ("forecast_margin", np.float64),
        ("forecast_order", np.int64, (3,)),  # (p, d, q) of the ARIMA model
        ("meters", np.int64),  # bits of what is counted besides energy: CARBON, USES
        ("free_requests", np.int64),  # that are not paid per use, and the next
        ("free_gb_seconds", np.float64),
    ]
)

# An execution before time 0, from which a keep-alive policy learns.
EARLIER = np.dtype([("image", np.int64), ("begin", np.float64), ("end", np.float64)])

QUEUE = np.dtype(
    [
        ("waiting", np.int64),  # functions in it
        ("first_that_waits", np.int64),  # list of entries of `waiting`, as they began to wait
        ("last_that_waits", np.int64),
        ("due", np.int64),  # 1: something has changed at this moment, so one may start
        ("chosen", np.int64),  # entry of `waiting` that goes next, for the order `chosen`
        ("next_number", np.int64),  # of whoever joins, runs or becomes idle next
        ("starvation_timer", np.float64),  # time of the timer that counts, inf for none
        ("patience_timer", np.float64),  # as in the line above
        ("may_start", np.int64),  # 1: the first waiting function may start a server
        ("first_number", np.int64),  # in the trace, of the first of them; NONE if it is no trace
        ("more_arrivals", np.int64),  # 1: the trace goes on behind them
        ("free_idle", np.int64),  # head of the list of idle records given back
        ("idle_used", np.int64),  # idle records that were ever taken; a prefix
        ("forecasts_due", np.int64),  # 1: images may await a forecast
        ("ended_node", np.int64),  # of a container that is still to be released, or NONE
        ("ended_image", np.int64),
        ("ended_memory", np.int64),
        ("container_cold_starts", np.int64),
        ("queueing_time", np.float64),  # seconds, all that left it summed
        ("newcomer", np.int64),  # slot of a workflow that is to get tickets, or NONE
        ("turn", np.int64),  # tenant whose function goes next, NONE: is to be found
        ("tenants_waiting", np.int64),  # of which functions wait
        ("on_node", np.int64),  # tenants on the node that is looked at
        ("fair_clock", np.float64),  # core-seconds for each ticket, see env/sim/queue/sharing.py
    ]
)

# Requests of one declared function that wait in the central queue.
WAITING = np.dtype(
    [
        ("image", np.int64),
        ("next_of_image", np.int64),  # next entry that runs on the same image
        ("tree", np.int64),  # where the tournament of its tenant, or of all, begins
        ("leaf", np.int64),  # its place in there
        ("execution", np.float64),  # E: mean seconds
        ("rank", np.float64),  # of its order, where that is fixed; the smallest goes first
        ("priority", np.float64),  # of its first request; the smallest goes first
        ("number", np.int64),  # of its first request
        ("first", np.int64),  # index into requests, as is the next
        ("last", np.int64),
        ("count", np.int64),
        ("next_that_waits", np.int64),  # entry that began to wait after it
        ("previous_that_waits", np.int64),
        ("alone", np.int64),  # 1: its workflow has no other function, so
        ("arrivals", np.float64),  # seconds, those of the workflows summed
    ]
)

# Who shares a cluster, where tenants hold tickets.
TENANT = np.dtype(
    [
        ("currency", np.int64),  # of its tickets
        ("amount", np.float64),  # of them
        ("tickets", np.float64),  # of the base that they are worth now; 0: it does not compete
        ("waiting", np.int64),  # functions of it in the central queue
        ("workflow_clock", np.float64),  # `passed` of that of its workflows that went last
        ("tree", np.int64),  # where its tournament begins, where tenants take turns
        ("row", np.int64),  # of it in `on_node`, or NONE
        ("clock", np.float64),  # `fair_clock` up to which `entitled` counts
        ("entitled", np.float64),  # core-seconds
        ("received", np.float64),
    ]
)

# A unit of tickets: first the base, then groups of tenants or of other currencies.
CURRENCY = np.dtype(
    [
        ("currency", np.int64),  # of the tickets that back it; NONE: it is the base
        ("amount", np.float64),  # of them
        ("sums", np.float64, (3,)),  # its own tickets of ALL, COMPETING and ON_THE_NODE
        ("rest", np.float64),  # what rounding left out of that of COMPETING
        ("holders", np.int64),  # who hold these
    ]
)
BASE: Final = 0
ALL: Final = 0  # tenants
COMPETING: Final = 1
ON_THE_NODE: Final = 2  # that is looked at (env/sim/node/cpu_by_tickets.py)

# A tenant on the NUMA node that is looked at (env/sim/node/cpu_by_tickets.py).
ON_NODE = np.dtype(
    [
        ("tenant", np.int64),
        ("weight", np.int64),
        ("threads", np.int64),
        ("speed", np.int64),  # operations per second, of all its threads together
    ]
)

# What else is known of a function of a workflow; same index as its FUNCTION.
REQUEST = np.dtype(
    [
        ("wf_id", np.int64),  # the number of the request in a trace
        ("number", np.int64),  # in the order of joining the queue
        ("aside", np.int64),  # 1: it has left the queue, as no server in service holds it
        ("run", np.int64),  # number of its present run
        ("next", np.int64),  # of the same declared function
        ("dispatch_time", np.float64),
        ("warm", np.int64),  # 1: its present run is in a warm container
        ("contested", np.int64),  # 1: several tenants waited when that began
        ("cold_start", np.float64),  # seconds of its present run
        ("served_time", np.float64),  # seconds of execution, in runs since it last began anew
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
        ("memory", np.int64),  # MB it holds
        ("number", np.int64),
        ("ready_time", np.float64),  # seconds: when a prewarmed one has started
        ("clock", np.float64),  # of its node's cache when it became idle
        ("next", np.int64),  # younger one on the node
        ("previous", np.int64),
        ("newer", np.int64),  # younger one of the same image on the node
        ("older", np.int64),
    ]
)
