"""What the sums in the engine's records come to when they are counted anew, entity by entity."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.block import State
from env.sim.state.draws import is_called
from env.sim.state.records import (
    DOWN,
    FAILED,
    FINISHED,
    IN_SERVICE,
    NONE,
    NOT_CALLED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUBMITTED,
)


def assert_recounted(state: State) -> None:
    """Counters, sums and lists say the same; between two calls of `play`."""
    functions = _functions(state)
    in_containers = _assert_nodes(state)
    _assert_servers(state)
    assert in_containers == {index for index in functions if _state(state, index) == RUNNING}
    waiting = _assert_queues(state)
    submitted = [index for index in functions if _state(state, index) == SUBMITTED]
    assert Counter(waiting) == Counter(submitted)
    _assert_workflows(state, functions)
    if len(state.images):
        _assert_images(state, functions)
    paid = state.ledger["rent"].sum() + state.ledger["egress"].sum()
    assert paid == pytest.approx(state.cluster[0]["total_rent"])


def listed(records: np.ndarray, head: int, key: str = "next") -> Iterator[int]:
    """Indices of the records of a list."""
    while head != NONE:
        yield int(head)
        head = records[head][key]


def containers_of(state: State, node: int) -> list[int]:
    """Containers of a node: those that run or will, then those that wait for memory."""
    record = state.nodes[node]
    return [
        *listed(state.containers, record["first_running"]),
        *listed(state.containers, record["first_waiting"]),
    ]


def declared_left(state: State) -> np.ndarray:
    """Operations left of every function, of what it declares; of one that overruns, the last."""
    left: np.ndarray = state.functions["remaining_computation"] - state.functions["surplus"]
    return np.maximum(left, 1)


def assert_tracked(state: State) -> None:
    """What is forecast of all active workflows together is the sum over them, one by one."""
    update_finish_bounds(state)
    flow_time = slowdown = 0.0
    for slot, workflow in enumerate(state.workflows):
        if workflow["wf_id"] != NONE and np.isnan(workflow["completion_time"]):
            own = _flow_time(state, slot)
            flow_time += own
            slowdown += own / state.templates[workflow["template"]]["critical_path"]
    assert state.cluster[0]["active_flow_time"] == pytest.approx(flow_time)
    assert state.cluster[0]["active_slowdown"] == pytest.approx(slowdown)


def _flow_time(state: State, slot: int) -> float:
    """Seconds that a workflow takes at least, function by function."""
    workflow = state.workflows[slot]
    template = state.templates[workflow["template"]]
    bounds = []
    for fn_id in range(int(template["function_count"])):
        index = slot * int(state.cluster[0]["functions_per_slot"]) + fn_id
        function = state.functions[index]
        if function["state"] == SUBMITTED:
            known = state.template_functions[int(template["first_function"]) + fn_id]
            bounds.append(state.cluster[0]["time"] + known["upward_rank"])
        elif function["state"] == RUNNING:
            records = state.containers[containers_of(state, function["node"])]
            own = records[records["function"] == index][0]
            bounds.append(own["forecast_completion"] + own["chain_after"])
    return float(max(bounds) - workflow["arrival_time"])


def _state(state: State, function: int) -> int:
    return int(state.functions[function]["state"])


def _functions(state: State) -> dict[int, int]:
    """The functions of all workflows that have arrived, and the slot of each."""
    per_slot = int(state.cluster[0]["functions_per_slot"])
    counts = state.templates["function_count"]
    return {
        slot * per_slot + fn_id: slot
        for slot, workflow in enumerate(state.workflows)
        if workflow["wf_id"] != NONE
        for fn_id in range(counts[workflow["template"]])
    }


def _assert_nodes(state: State) -> set[int]:
    """Returns the functions that have containers."""
    functions: list[int] = []
    used = set()
    for index, node in enumerate(state.nodes):
        every = containers_of(state, index)
        running = list(listed(state.containers, node["first_running"]))
        waiting = every[len(running) :]
        assert node["running_count"] == len(running)
        assert node["waiting_count"] == len(waiting)
        assert node["last_running"] == (running[-1] if running else NONE)
        assert node["last_waiting"] == (waiting[-1] if waiting else NONE)
        memory = state.containers["memory_alloc"]
        assert node["allocated_memory"] == memory[running].sum()
        assert node["waiting_memory"] == memory[waiting].sum()
        _assert_named_resources(state, index, running)
        assert node["parallelism"] == state.containers["parallelism"][every].sum()
        assert (node["next_completion"] < np.inf) == bool(running)
        assert not running or node["next_container"] in running
        assert np.isnan(state.containers["start_time"][waiting]).all()
        own = state.containers["function"][every].tolist()
        assert (state.functions["node"][own] == index).all()
        idle = list(listed(state.idle, node["first_idle"]))
        assert node["idle_memory"] == sum(int(state.idle[one]["memory"]) for one in idle)
        assert all(state.idle[one]["node"] == index for one in idle)
        functions += own
        used.update(every)
    free = set(listed(state.containers, state.cluster[0]["free_container"]))
    assert not free & used
    assert len(free) + len(used) == state.cluster[0]["containers_used"]
    assert state.nodes[state.tree[1]]["next_completion"] == state.nodes["next_completion"].min()
    assert len(set(functions)) == len(functions)
    return set(functions)


def _assert_named_resources(state: State, node: int, running: list[int]) -> None:
    """Admitted containers hold what their functions need, and no more than there is."""
    count, places = len(state.named_first) - 1, len(state.named_kept)
    kind = int(state.servers[state.nodes[node]["server"]]["type"])
    has = state.named_capacity[kind * places : (kind + 1) * places]
    left = state.named_left[node * places : (node + 1) * places]
    taken = state.named_taken.reshape(-1, places)[running].sum(axis=0) if places else left
    assert (has - left == taken).all() and (left >= 0).all()
    held = np.add.reduceat(has - left, state.named_first[:-1]) if places else left
    wanted = np.zeros(count, np.int64)
    for function in state.containers["function"][running]:
        workflow = state.workflows[function // state.cluster[0]["functions_per_slot"]]
        first = state.templates[workflow["template"]]["first_function"]
        declared = int(first + state.functions[function]["fn_id"])
        wanted += state.named_needs[declared * count : (declared + 1) * count]
    assert (held == wanted).all()


def _assert_servers(state: State) -> None:
    time = state.cluster[0]["time"]
    for index, server in enumerate(state.servers):
        nodes = np.flatnonzero(state.nodes["server"] == index)
        containers = [one for node in nodes for one in containers_of(state, node)]
        assert server["container_count"] == len(containers)
        if server["condition"] != IN_SERVICE:
            assert (state.nodes["first_idle"][nodes] == NONE).all()
        if server["condition"] == DOWN:
            assert not containers
            assert server["expiration_time"] <= time
        elif containers:
            assert server["expiration_time"] >= time


def _assert_queues(state: State) -> list[int]:
    """Returns the functions that wait to be placed, or centrally."""
    cluster, workflows = state.cluster[0], state.workflows
    submitted = state.submitted["index"][: int(cluster["queue_size"])]
    assert cluster["queue_threads"] == state.functions["parallelism"][submitted].sum()
    assert cluster["queue_computation"] == declared_left(state)[submitted].sum()
    slots = submitted // cluster["functions_per_slot"]
    threads = np.bincount(slots, state.functions["parallelism"][submitted], len(workflows))
    arrived = workflows["wf_id"] != NONE
    assert (workflows["queue_threads"][arrived] == threads[arrived]).all()
    central = []
    for declared in state.waiting:
        own = list(listed(state.requests, declared["first"]))
        assert declared["count"] == len(own)
        assert declared["last"] == (own[-1] if own else NONE)
        central += own
    assert state.queue[0]["waiting"] == len(central)
    that_wait = list(listed(state.waiting, state.queue[0]["first_that_waits"], "next_that_waits"))
    assert sorted(that_wait) == np.flatnonzero(state.waiting["count"]).tolist()
    assert state.queue[0]["last_that_waits"] == (that_wait[-1] if that_wait else NONE)
    before = state.waiting["previous_that_waits"][that_wait].tolist()
    assert before == [NONE, *that_wait][: len(that_wait)]
    # What no server in service holds waits aside.
    assert not (central and len(submitted)) or (state.servers["condition"] != IN_SERVICE).any()
    return [*submitted.tolist(), *central]


def _assert_workflows(state: State, functions: dict[int, int]) -> None:
    """Functions that have ended, work that is placed or done, and who waits for whom."""
    cluster, records, left = state.cluster[0], state.functions, declared_left(state)
    ended: Counter[int] = Counter()
    placed = np.zeros(len(state.workflows))
    for index, slot in functions.items():
        record = records[index]
        work = float(record["computation"] - record["surplus"])
        if record["state"] in (PENDING, SUBMITTED):
            work -= left[index]
        placed[slot] += work / cluster["single_core_speed"]
        ended[slot] += record["state"] in (FINISHED, SKIPPED, FAILED, NOT_CALLED)
        known = state.templates[state.workflows[slot]["template"]]
        declared = state.template_functions[known["first_function"] + record["fn_id"]]
        begin, count = declared["first_predecessor"], declared["predecessor_count"]
        first = index - int(record["fn_id"])
        sources = first + state.predecessors["function"][begin : begin + count]
        waits_for = [source for source in sources if records[source]["state"] < FINISHED]
        failed = [source for source in sources if records[source]["state"] == FAILED]
        assert record["unfinished_predecessors"] == len(waits_for) + len(failed)
        assert record["state"] != PENDING or waits_for
        assert not failed or record["state"] in (SKIPPED, FAILED, NOT_CALLED)
        if record["state"] in (SUBMITTED, RUNNING, NOT_CALLED) and len(sources) and not waits_for:
            assert is_called(state, index, NONE) == (record["state"] != NOT_CALLED)
    arrived = np.flatnonzero(state.workflows["wf_id"] != NONE)
    counts = state.templates["function_count"][state.workflows["template"]]
    for slot in arrived:
        assert state.workflows[slot]["ended"] == ended[slot]
        assert np.isnan(state.workflows[slot]["completion_time"]) == (ended[slot] < counts[slot])
    over = sum(ended[slot] == counts[slot] for slot in arrived)
    assert cluster["finished_workflows"] == over
    assert cluster["free_slots"] == len(state.workflows) - len(arrived) + over
    assert state.workflows["placed_work"][arrived] == pytest.approx(placed[arrived], abs=1e-6)
    assert cluster["placed_work"] == pytest.approx(placed.sum(), abs=1e-6)


def _assert_images(state: State, functions: dict[int, int]) -> None:
    """Containers of each image at work, requests that wait or run, and idle containers."""
    image_of = {
        index: int(state.waiting[state.functions[index]["declared"]]["image"])
        for index in functions
        if _state(state, index) in (SUBMITTED, RUNNING)
    }
    running = Counter(image for index, image in image_of.items() if _state(state, index) == RUNNING)
    active = Counter(image_of.values())
    warm = Counter(
        int(state.idle[one]["image"])
        for node in state.nodes
        for one in listed(state.idle, node["first_idle"])
    )
    for image, record in enumerate(state.images):
        assert record["running"] == running[image]
        assert record["active"] == active[image]
        assert record["warm"] == warm[image]
        if not running[image] and not warm[image]:
            assert record["frequency"] == 0


def most_memory(runs: np.ndarray, node: int) -> int:
    """MB that runs on a NUMA node hold at most, from dispatch to end."""
    own = runs[runs["node"] == node]
    times = np.concatenate([own["end_time"], own["dispatch_time"]])
    changes = np.concatenate([-own["memory_alloc"], own["memory_alloc"]])
    # Of one moment, ends come first: they stand in front.
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0))
