"""The records of the engine: a structured dtype per entity.

Compiled functions take the whole `State` (block.py) and indices. Times are seconds, memory is MB,
data is bytes, speeds are operations per second, rent is USD. `NONE` (-1) stands for no index.
"""

from typing import Final

import numpy as np

INF: Final = np.inf
NONE: Final = -1
HOUR: Final = 3600.0
JOULES_PER_KWH: Final = 3.6e6
MB_PER_GB: Final = 1024
GB: Final = 1e9  # bytes, as egress is charged
# 32 years in seconds: float64 still tells moments 1e-7 s apart.
LONGEST: Final = 1e9
RECYCLED: Final = -2  # slot of a workflow that has ended and given its slot to another

# States of a function.
PENDING: Final = 0
SUBMITTED: Final = 1
RUNNING: Final = 2
FINISHED: Final = 3  # this and the next are its ways out (env/sim/events/submissions.py)
SKIPPED: Final = 4  # by a script
FAILED: Final = 5
NOT_CALLED: Final = 6  # by any of its callers, all of which have ended
STATE_NAMES: Final = (
    *("PENDING", "SUBMITTED", "RUNNING", "FINISHED", "SKIPPED", "FAILED", "NOT_CALLED"),
)

# Ways out of a container.
COMPLETED: Final = 0
PREEMPTED: Final = 1
KILLED: Final = 2

# Conditions of a server; where it is in service, its lease says whether it is off, starting or up.
IN_SERVICE: Final = 0
DRAINING: Final = 1  # what it has goes on, nothing new comes
DOWN: Final = 2

# What `play` stops at, and what went wrong if negative.
DONE: Final = 0
PLACE: Final = 1  # the function `deciding`
CHOOSE: Final = 2  # which waiting function goes next
MORE_ARRIVALS: Final = 3  # those given have all arrived
TAKE_HISTORY: Final = 4  # there may be no room for the entries of the next event
FORECAST: Final = 5  # next idle times of images (env/sim/node/idle_forecast.py)
SHARE: Final = 6  # how many tickets the workflow that has arrived, in slot `newcomer`, gets
MORE_WARM: Final = 7  # the table of warm containers is full
ASIDE: Final = 8  # something has happened, which may be the caller's (env/sim/declared/aside.py)
NO_WORKFLOW_SLOT: Final = -1
NO_CONTAINER_SLOT: Final = -2
NO_SERVER: Final = -3  # no server in service holds what waits, and nothing is to come

# Kinds of timers, in the order in which they fire at one moment.
ARRIVAL: Final = 0
SLICE_END: Final = 1  # of the run with this number, in the container `index`
EXPIRY: Final = 2  # of the warm container `index`, if it still has this number
PREWARMING: Final = 3  # of the image `index`, if it still has this number
STARVATION: Final = 4  # the oldest waiting function may starve
LEASE_END: Final = 5  # of the server `minor`, if its lease still has the number `index`
PATIENCE: Final = 6  # the first waiting function may start a server
RETRY: Final = 7  # of the function `minor`, if it still waits for its attempt `index`
PLANNED: Final = 8  # the next change of the server `minor`; this and the next are no events
FOLLOW_UP: Final = 9  # its notice ends, or it is repaired, if its `follow_up` is still `index`
CHANGE: Final = 10  # the next change of the caller's is due
TICK: Final = 11  # whoever scales decides

FUNCTION = np.dtype(
    [
        ("wf_id", np.int64),
        ("fn_id", np.int64),
        ("slot", np.int64),  # of its workflow
        ("declared", np.int64),  # index into template_functions, and into waiting
        ("computation", np.int64),
        ("memory_req", np.int64),
        ("parallelism", np.int64),
        ("state", np.int64),
        ("memory_alloc", np.int64),
        ("submission_time", np.float64),
        ("joined_time", np.float64),  # when it last began to wait for its placement
        ("creation_time", np.float64),
        ("start_time", np.float64),
        ("completion_time", np.float64),
        ("node", np.int64),  # index into nodes, NONE until placed
        ("unfinished_predecessors", np.int64),
        ("remaining_computation", np.int64),  # when it last began to wait
        ("surplus", np.int64),  # operations drawn over those it declares; negative if below
        ("attempt", np.int64),  # containers of it that were killed
        ("region", np.int64),  # where alone it may run, as somebody has chosen; NONE: anywhere
    ]
)

WORKFLOW = np.dtype(
    [
        ("wf_id", np.int64),  # NONE while the slot is unused
        ("template", np.int64),
        ("tenant", np.int64),
        ("arrival_time", np.float64),
        ("completion_time", np.float64),  # of the last function; nan until then
        ("ended", np.int64),  # functions that have gone one of their ways out
        ("placed_work", np.float64),  # core-seconds that are done, placed or will never be
        ("queue_threads", np.int64),  # of its submitted functions
        ("finish_bound", np.float64),  # forecast: see env/sim/forecast/candidates.py
        ("raised_bound", np.float64),  # scratch of the forecast, -inf between calls
        ("next_raised", np.int64),  # scratch of the forecast
        ("tickets", np.float64),  # of its tenant's own currency (env/sim/queue/workflow_tickets.py)
        ("waiting", np.int64),  # functions of it in the central queue, where tenants hold tickets
        ("passed", np.float64),  # core-seconds it was given, over its tickets
    ]
)

CONTAINER = np.dtype(
    [
        ("wf_id", np.int64),
        ("fn_id", np.int64),
        ("function", np.int64),  # index into functions
        ("slot", np.int64),  # of its workflow
        ("dispatch", np.int64),  # number of its dispatch
        ("chain_after", np.float64),  # seconds of the longest chain of best times behind it
        ("memory_req", np.int64),
        ("memory_alloc", np.int64),
        ("memory_ratio", np.float64),  # min(1, memory given / memory required)
        ("computation", np.int64),
        ("parallelism", np.int64),
        ("submission_time", np.float64),
        ("data_transfer_time", np.float64),
        ("creation_time", np.float64),
        ("start_time", np.float64),  # nan while waiting on its node
        ("completion_time", np.float64),  # projected; exact once completed
        ("forecast_completion", np.float64),  # waiting ones included (forecast/play_node.py)
        ("demand", np.float64),  # operations left by each of its threads, had it all its memory
        ("next_in_order", np.int64),  # next of the node's draining or upcoming containers
        ("order_key", np.float64),  # its demand or start, by which that list is sorted
        ("joined_key", np.float64),  # scratch of the forecast, as is the next
        ("next_joined", np.int64),
        ("remaining_computation", np.int64),  # at the node's clock
        ("remaining_at_next", np.int64),  # at the node's next completion
        ("next", np.int64),  # next container of the same list
    ]
)

NUMA_NODE = np.dtype(
    [
        ("server", np.int64),  # index into servers
        ("node_id", np.int64),  # within the server
        ("cpu", np.int64),
        ("memory", np.int64),
        ("single_core_speed", np.int64),
        ("computing_capacity", np.int64),
        ("core_second_price", np.float64),  # of a core of reference speed, USD
        ("clock", np.float64),
        ("first_running", np.int64),  # list in order of admission; future starts included
        ("last_running", np.int64),
        ("running_count", np.int64),
        ("first_waiting", np.int64),  # queue for memory and named resources
        ("last_waiting", np.int64),
        ("waiting_count", np.int64),
        ("allocated_memory", np.int64),  # sum over the running list
        ("waiting_memory", np.int64),  # sum over the queue
        ("first_idle", np.int64),  # list of warm containers, the oldest first
        ("last_idle", np.int64),
        ("idle_memory", np.int64),  # MB they hold, reclaimable
        ("cache_clock", np.float64),  # of the policy `faascache`
        ("parallelism", np.int64),  # sum over both
        ("next_completion", np.float64),  # inf when nothing runs
        ("next_container", np.int64),
        ("last_completion", np.float64),  # valid while `projected` is 1
        ("projected", np.int64),  # 1: completion_time of all running containers is up to date
        ("forecast", np.int64),  # 1: forecast_completion of all its containers is up to date, and:
        ("forecast_last", np.float64),  # last of them
        ("first_draining", np.int64),  # containers started at the clock, by `demand`
        ("draining_parallelism", np.int64),  # sum over them, as is the next
        ("draining_memory", np.int64),
        ("first_upcoming", np.int64),  # admitted containers that start later, by start
        ("backlog", np.int64),  # operations left in all its containers at the clock
        ("source_bytes", np.float64),  # scratch of the forecast: data of the current function here
    ]
)

SERVER = np.dtype(
    [
        ("type", np.int64),  # index into the config's server types
        ("server_id", np.int64),  # within the type
        ("hourly_rate", np.float64),
        ("lease_step", np.float64),  # seconds: a lease is paid in whole steps
        ("step_price", np.float64),  # USD
        ("least_steps", np.int64),  # of a lease that begins
        ("cold_start_latency", np.float64),
        ("watts", np.float64),  # drawn while it is leased and nothing is at work
        ("condition", np.int64),
        ("absent", np.int64),  # 1: it is not there at time 0
        ("retires", np.int64),  # 1: it goes down once it is empty
        ("follow_up", np.int64),  # another whenever its condition or its notice changes
        ("first_node", np.int64),
        ("node_count", np.int64),
        ("ready_time", np.float64),  # since when it is up: when its last cold start ends
        ("lease_begin", np.float64),  # only where it is paid for
        ("expiration_time", np.float64),  # -inf before the first lease
        ("lease_number", np.int64),  # another whenever the lease is extended or ends early
        ("container_count", np.int64),  # created and not completed
        ("source_bytes", np.float64),  # as in NUMA_NODE
        ("region", np.int64),  # index into regions
        ("request_price", np.float64),  # USD of a run that is paid per use, and the next
        ("gb_second_price", np.float64),  # of 1024 MB
    ]
)

CLUSTER = np.dtype(
    [
        ("memory_bandwidth", np.float64),
        ("numa_bandwidth", np.float64),
        ("network_bandwidth", np.float64),
        ("single_core_speed", np.int64),
        ("largest_node_cpu", np.int64),
        ("largest_node_memory", np.int64),
        ("core_watts", np.float64),  # drawn in addition by a core at work, where all are alike
        ("cores", np.int64),  # of all nodes
        ("computing_capacity", np.int64),  # of all nodes, operations per second
        ("core_second_price", np.float64),  # of the cheapest that is not free, USD
        ("cheapest_server_cores", np.int64),  # of the largest server with the cheapest cores
        ("functions_per_slot", np.int64),
        ("time", np.float64),  # of the last event
        ("total_rent", np.float64),
        ("cold_starts", np.int64),
        ("out_of_service", np.int64),  # servers that are draining or down
        ("overcommits", np.int64),  # admissions after which the projection exceeds a node's memory
        ("decisions", np.int64),
        ("deciding", np.int64),  # index of the function in decision, when one is due
        ("queue_size", np.int64),
        ("timers_size", np.int64),
        ("listens", np.int64),  # 1: somebody does, so that the history gets entries
        ("entries", np.int64),  # of it, since they were last taken
        ("aside", np.int64),  # `play` stops after every event: 1, or at ticks and changes: 2
        ("happened", np.int64),  # 1: one since it last did
        ("ticked", np.int64),  # 1: that is a tick
        ("again", np.int64),  # 1: whoever scaled last at this tick is asked again
        ("events", np.int64),  # so far, where it does or somebody listens, but for changes
        ("changes", np.int64),  # that are due or have been made
        ("free_container", np.int64),  # head of the list of containers given back
        ("containers_used", np.int64),  # records that were ever taken; a prefix
        ("first_free_slot", np.int64),  # ring of free workflow slots
        ("free_slots", np.int64),
        ("arrivals_left", np.int64),  # of those given
        ("arrived", np.int64),
        ("arrived_work", np.float64),  # core-seconds of all workflows that have arrived
        ("declared_work", np.float64),  # the same of all that ever arrive
        ("placed_work", np.float64),  # core-seconds of them that are done, placed or will never be
        ("queue_threads", np.int64),  # of all submitted functions, as is the next
        ("queue_computation", np.int64),  # operations
        ("backing_off", np.int64),  # killed functions that are not yet submitted again
        # Active workflows, but for those of one function that waits centrally: `waiting` has these.
        ("tracked_count", np.int64),
        ("finished_workflows", np.int64),
        ("finished_slowdown", np.float64),  # sum over finished workflows, as is the next
        ("finished_flow_time", np.float64),  # seconds
        ("arrived_path", np.float64),  # critical paths of all that have arrived, summed: seconds
        ("declared_path", np.float64),  # the same of all that ever arrive
        ("source_bytes", np.float64),  # as in NUMA_NODE
        ("active_slowdown", np.float64),  # forecast: sum over active workflows, as are the next
        ("active_flow_time", np.float64),  # seconds
        ("parallel_cores", np.float64),  # core-seconds not placed / seconds to the finish bound
        ("begin_time", np.float64),  # s from hour 0 of carbon intensities
        ("seed", np.uint64),  # of what is drawn of servers, back-offs and conditional calls
        ("drawn_until", np.float64),  # seconds; functions that end later call all that they can
        ("core_second_carbon", np.float64),  # gCO2e where a core of reference speed emits least
        ("home", np.int64),  # region where clients are
        ("transfer_kwh", np.float64),  # of a byte that goes from one region to another
        ("forecast_error", np.float64),  # of grid intensities, standard deviation / value
        ("forecast_hours", np.float64),  # so far ahead agents see them
        ("requests", np.float64),  # that were paid per use or free, and the next
        ("gb_seconds", np.float64),
    ]
)

# An entry of a heap: ordered by time, then major, then minor.
EVENT = np.dtype(
    [("time", np.float64), ("major", np.int64), ("minor", np.int64), ("index", np.int64)]
)

TEMPLATE = np.dtype(
    [
        ("first_function", np.int64),
        ("function_count", np.int64),
        ("critical_path", np.float64),  # seconds at full speed, no transfer, no cold start
        ("work", np.float64),  # core-seconds at the cluster's core speed
    ]
)

TEMPLATE_FUNCTION = np.dtype(
    [
        ("computation", np.int64),
        ("memory_req", np.int64),
        ("parallelism", np.int64),
        ("first_predecessor", np.int64),  # range of `predecessors`
        ("predecessor_count", np.int64),
        ("first_successor", np.int64),  # range of `successors`
        ("successor_count", np.int64),
        ("best_time", np.float64),  # seconds at full speed on the largest node
        ("upward_rank", np.float64),  # best_time and the longest chain of best times after it
        ("conditional", np.int64),  # 1: calls of its workflow are
        ("regions", np.int64),  # where it may run: a bit for each; 0: everywhere
    ]
)

EDGE = np.dtype([("function", np.int64), ("data_bytes", np.int64)])

REGION = np.dtype(
    [
        ("core_watts", np.float64),  # drawn in addition by a core at work
        ("pue", np.float64),
        ("first_hour", np.int64),  # range of `intensity`
        ("hours", np.int64),  # after which the intensities begin again
        ("cycle", np.float64),  # sum over them
    ]
)

# From one region to another; within one it is the cluster's network, without delay or price.
LINK = np.dtype(
    [
        ("round_trip", np.float64),  # seconds
        ("bandwidth", np.float64),  # bytes/s
        ("egress", np.float64),  # USD of a byte
    ]
)

# An hour of a region's electricity.
INTENSITY = np.dtype(
    [
        ("grams", np.float64),  # gCO2e per kWh
        ("before", np.float64),  # sum over the earlier hours of the cycle
    ]
)

ARRIVING = np.dtype(
    [
        ("time", np.float64),
        ("wf_id", np.int64),
        ("template", np.int64),
        ("tenant", np.int64),
        ("computation", np.int64),  # of the request of a trace; 0: as its template declares
        ("tickets", np.float64),  # of its tenant's own currency
    ]
)

# What a server has come to on behalf of a tenant.
LEDGER = np.dtype(
    [
        ("lease_seconds", np.float64),  # leased; who extends a lease pays for all of it
        ("earlier_seconds", np.float64),  # of them, before the present lease
        ("rent", np.float64),  # USD
        ("egress_bytes", np.float64),  # read from other servers
        ("energy", np.float64),  # J, of leases up to the end that was paid, and of work
        ("egress", np.float64),  # USD, of data from other regions
        # gCO2e of that energy, and of data from other regions; 0 where it is not counted.
        ("carbon", np.float64),
    ]
)

# What placing the current function on a node would do (env/sim/forecast/candidates.py).
CANDIDATE = np.dtype(
    [
        ("twin", np.int64),  # an earlier node for which all of this is the same, or NONE
        ("feasible", np.int64),  # 1: it can be placed there (`suits` in env/sim/node/fit.py)
        ("waits", np.int64),  # 1: it would wait there for memory or a named resource
        ("cold_start_time", np.float64),  # of the server
        ("container_cold_start", np.float64),
        ("data_transfer_time", np.float64),
        ("creation_time", np.float64),
        ("finish_time", np.float64),  # inf where it is not feasible
        ("rent_increase", np.float64),  # USD
        ("delay_own", np.float64),  # growth of its workflow's finish bound / critical path
        ("delay_others", np.float64),  # the same, summed over all other workflows
        ("later_ends", np.float64),  # growth of its containers' ends / critical paths, summed
        ("later_ends_tight", np.float64),  # the same, each times its share of (slack + growth)
        ("lease_left", np.float64),  # seconds, 0 without a lease
        ("lease_left_after", np.float64),
        ("allocated_memory", np.int64),  # MB given to running and waiting containers
        ("parallelism", np.int64),  # threads of running and waiting containers
        ("first_completion", np.float64),  # seconds from now, 0 on an empty node
        ("last_completion", np.float64),
    ]
)

# An entry of a node's projection (env/sim/node/projection.py).
PROJECTED = np.dtype(
    [
        ("container", np.int64),
        ("start", np.float64),
        ("completion", np.float64),  # inf until projected
        ("remaining", np.int64),
        ("remaining_at_first", np.int64),  # when the first container completes
        ("parallelism", np.int64),
        ("ratio", np.float64),  # `memory_ratio` of the container
        ("speed", np.int64),
        ("active", np.int64),  # at position j: the j-th running entry, in order of admission
        ("share", np.int64),  # operations per second of a thread, where tenants differ in it
    ]
)


# What the last placement did, and the state of the chosen node just before it.
LOG = np.dtype(
    [
        ("wf_id", np.int64),
        ("fn_id", np.int64),
        ("submission_time", np.float64),
        ("cold_start_time", np.float64),
        ("data_transfer_time", np.float64),
        ("creation_time", np.float64),
        ("rent", np.float64),  # for the placement and all completions up to the next decision
        ("completed_count", np.int64),
    ]
)

# What happens (history.py); which fields count depends on the kind.
ENTRY = np.dtype(
    [
        ("time", np.float64),
        ("kind", np.int64),
        ("wf_id", np.int64),
        ("fn_id", np.int64),
        ("declared", np.int64),
        ("node", np.int64),  # or server
        ("image", np.int64),
        ("memory", np.int64),  # MB
        ("computation", np.int64),  # operations left
        # Of the dispatch, of the idle container, or of events before; NONE: from the start.
        ("number", np.int64),
        ("joined", np.int64),  # number of joining the queue
        ("flag", np.int64),  # 1: in a warm container; or the outcome, or the condition
        ("submission_time", np.float64),
        ("joined_time", np.float64),
        ("start_time", np.float64),
        ("end_time", np.float64),
        ("server_start", np.float64),  # seconds, as are the next
        ("cold_start", np.float64),
        ("transfer", np.float64),
        ("rent", np.float64),  # USD
    ]
)
