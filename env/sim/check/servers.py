"""Checks what a finished schedule says of its servers: starts, data, leases and rent."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from env.sim.check.schedule import Place, Schedule, Server, check_close, close, slack
from env.sim.declared.regions import ANYWHERE, Link, permitted_regions
from env.sim.declared.rules import Lease
from env.sim.episode.model import ChangeModel, RunModel
from env.sim.state.records import GB, HOUR

SAME = 1e-6
"""Steps of a lease: less is rounding."""


def check_servers(schedule: Schedule) -> Iterator[str]:
    """Every server and every run on it."""
    ends: dict[Place, list[float]] = defaultdict(list)
    of_server: dict[Server, list[RunModel]] = defaultdict(list)
    for run in schedule.results.runs:
        ends[run.place].append(run.end_time)
        of_server[run.server].append(run)
    for server in schedule.leases:
        changes = [change for change in schedule.episode.changes if change.server == server]
        yield from _check_service(of_server[server], changes)
        yield from _check_region(schedule, server, of_server[server])
        yield from _check_server(schedule, server, of_server[server], ends, changes)


def _check_service(runs: Sequence[RunModel], changes: Sequence[ChangeModel]) -> Iterator[str]:
    """Nothing new comes to a server that is out of service, nothing runs on where it is down."""
    for run in runs:
        begin, end = run.dispatch_time, run.end_time
        before = ["in service", *(each.condition for each in changes if each.time < begin)][-1]
        if "in service" not in [before, *(c.condition for c in changes if c.time == begin)]:
            yield f"{run}: dispatched to a server that is {before}"
        for change in changes:
            if change.condition == "down" and begin < change.time < end:
                yield f"{run}: ends at {end}, the server goes down at {change.time}"


def _check_server(
    schedule: Schedule,
    server: Server,
    runs: Sequence[RunModel],
    ends: dict[Place, list[float]],
    changes: Sequence[ChangeModel],
) -> Iterator[str]:
    """The starts of a server, its leases and its rent.

    A lease covers, in whole steps, all that is dispatched before it ends. Where float64 leaves open
    how many those are, or how far what was preempted has had it extended, the record decides.
    """
    rules, latency = schedule.episode.options.lease, schedule.types[server[0]].cold_start_latency
    always, down = rules.kind == "always", [c.time for c in changes if c.condition == "down"]
    extended = any(run.outcome != "completed" for run in runs) or bool(down)
    begin, up, earlier, steps = 0.0, 0.0, np.zeros(2, int), np.zeros(2, int)
    end = np.full(2, math.inf if always else 0.0)
    last = max((run.end_time for run in schedule.results.runs), default=0.0)
    there = list(_periods(changes, last))
    for run in runs:
        time = run.dispatch_time
        if always:  # it was launched when it last came
            up = max((first + latency for first, _ in there if 0.0 < first <= time), default=0.0)
        if down and down[0] <= time:
            end = np.minimum(end, max(each for each in down if each <= time))
        over = bool(end[0] <= time + slack(time))
        if over and (extended or end[1] > time - slack(time)):
            over = run.server_start_time > 0 if latency > 0 else not run.warm
            extended = extended or latency == 0  # nobody can tell when its lease began
        if over:
            begin, up, earlier, steps = time, time + latency, earlier + steps, np.zeros(2, int)
            if run.warm:
                yield f"{run}: starts warm on a server that was off"
        # One that is killed before its start has not had all that comes before it.
        if run.outcome != "killed" or run.start_time < run.end_time:
            due = latency if over else 0.0
            yield from check_close(f"{run}: server_start_time", run.server_start_time, due)
            yield from _check_start(schedule, run, up, ends[run.place])
        if not always:
            steps = np.maximum(steps, _steps(run.end_time - begin, rules, run.end_time))
            end = begin + steps * rules.step
    if always and rules.charged:
        steps = _steps(last, rules, last)
        steps = steps + any(close(run.dispatch_time, steps[0] * rules.step) for run in runs)
        end = steps * rules.step
    if always and changes:  # it is leased anew whenever it comes back
        paid = schedule.leases[server].lease_seconds / rules.step
        # A step may begin at the moment at which it goes.
        least = sum(_steps(gone - first, rules, gone)[0] for first, gone in there)
        whole = (int((gone - first) / rules.step + SAME) for first, gone in there)
        most = sum(max(rules.least, 1 + steps) for steps in whole)
        if rules.charged and not least - SAME <= paid <= most + SAME:
            yield f"server {server[0]} {server[1]}: {paid:g} steps paid, {least} to {most} are due"
        yield from _check_rent(schedule, server, round(paid) if rules.charged else 0, len(runs))
        return
    yield from _check_lease(schedule, server, runs, earlier + steps, end, extended)


def _periods(changes: Sequence[ChangeModel], last: float) -> Iterator[tuple[float, float]]:
    """When a server was there, up to the last completion: in service, or draining."""
    begin: float | None = 0.0
    for change in changes:
        if change.condition == "down" and begin is not None:
            if change.events is not None:  # else it is absent at first
                yield begin, change.time
            begin = None
        elif change.condition == "in service" and begin is None:
            begin = change.time
    if begin is not None:
        yield begin, last


def _steps(seconds: float, lease: Lease, late: float) -> np.ndarray:
    """(2,) the fewest and the most whole steps of a lease that cover seconds up to a time."""
    exact = (seconds + np.array([-1, 1]) * slack(late)) / lease.step
    return np.maximum(lease.least, np.ceil(exact).astype(int))


def _check_lease(
    schedule: Schedule,
    server: Server,
    runs: Sequence[RunModel],
    possible: np.ndarray,
    ends: np.ndarray,
    extended: bool,
) -> Iterator[str]:
    """What is recorded of a server; (2,) steps that are possible, and ends of the last lease."""
    rules, shown = schedule.episode.options.lease, f"server {server[0]} {server[1]}"
    row = schedule.leases[server]
    stated_end = math.inf if row.lease_expiration_time is None else row.lease_expiration_time
    steps = round(row.lease_seconds / rules.step)
    if not extended or (rules.kind == "always" and steps <= possible[1]):
        steps = int(np.clip(steps, *possible))
        if possible[1] or rules.kind == "always":
            end = min(ends, key=lambda each: abs(each - stated_end) if each < math.inf else 0.0)
            what = f"{shown}: lease_expiration_time"
            yield from check_close(what, stated_end, float(end), additions=steps)
    if not close(row.lease_seconds, steps * rules.step, additions=steps):
        hours, due = row.lease_seconds / HOUR, steps * rules.step / HOUR
        yield f"{shown}: {hours:g} hours rented, {due:g} are due"
    yield from _check_rent(schedule, server, steps, len(runs))
    for run in runs:
        if run.end_time > stated_end:
            yield f"{run}: ends at {run.end_time}, after the lease ends at {stated_end}"


def _check_rent(schedule: Schedule, server: Server, steps: int, runs: int) -> Iterator[str]:
    """What a server has come to by so many steps of its leases and by its runs."""
    rules = schedule.episode.options.lease
    price = schedule.cluster.rate_of(schedule.types[server[0]]) * (rules.step / HOUR)
    if (
        rules.spot is not None
        and rules.spot.servers(schedule.cluster)[[*schedule.leases].index(server)]
    ):
        price *= rules.spot.price
    found, due = schedule.leases[server].rent, steps * price + schedule.uses[server]
    what = f"server {server[0]} {server[1]}: rent"
    yield from check_close(what, found, due, additions=steps + runs)


def _check_start(schedule: Schedule, run: RunModel, up: float, ends: list[float]) -> Iterator[str]:
    """Container, data and start of a run, whose server is up at `up`; `ends` of all on its node."""
    image, cold = schedule.declared[run.function].image, run.container_cold_start_time
    most = 0.0 if image is None else schedule.episode.images[image].container_cold_start
    if not run.warm:
        yield from check_close(f"{run}: container_cold_start_time", cold, most)
    # Of one that is started ahead, what is left is a difference of times.
    elif cold > most + slack(run.dispatch_time):
        yield f"{run}: container_cold_start_time is {cold}, at most {most} is possible"
    transfer, cluster = 0.0, schedule.cluster
    if not schedule.edges_to(run.function):  # called by a client
        region = schedule.types[run.server_type].region
        transfer += cluster.link(cluster.start, region).round_trip
    for before, data_bytes in schedule.inputs(run):
        transfer += transfer_seconds(schedule, before, run, data_bytes)
    yield from check_close(f"{run}: data_transfer_time", run.data_transfer_time, transfer)
    ready = max(up, run.dispatch_time) + cold + transfer
    if not close(run.start_time, ready):
        if run.start_time < ready:
            yield f"{run}: starts at {run.start_time}, it is ready at {ready}"
        elif run.start_time not in ends:
            yield f"{run}: ready at {ready}, at {run.start_time} no container makes room"


def transfer_seconds(
    schedule: Schedule, source: RunModel, target: RunModel, data_bytes: int
) -> float:
    """What data take from the NUMA node of a run to that of another one."""
    cluster, link = schedule.cluster, _link(schedule, source, target)
    bandwidth = cluster.numa_bandwidth if source.server == target.server else link.bandwidth
    if source.place == target.place:
        bandwidth = cluster.memory_bandwidth
    return link.round_trip + data_bytes / bandwidth


def _link(schedule: Schedule, source: RunModel, target: RunModel) -> Link:
    """Between the regions of two runs."""
    types = schedule.types
    return schedule.cluster.link(types[source.server_type].region, types[target.server_type].region)


def _check_region(schedule: Schedule, server: Server, runs: Sequence[RunModel]) -> Iterator[str]:
    """Who may run where the server stands, and what was paid for data from other regions."""
    region, due = schedule.types[server[0]].region, 0.0
    for run in runs:
        declared = schedule.declared[run.function].regions or ANYWHERE
        if region and not permitted_regions((region,), declared.allowed, declared.disallowed):
            yield f"{run}: must not run in region '{region}'"
        for before, data_bytes in schedule.inputs(run):
            due += data_bytes / GB * _link(schedule, before, run).egress
    stated = schedule.leases[server].egress or 0.0
    shown = f"server {server[0]} {server[1]}: egress"
    yield from check_close(shown, stated, due, additions=len(runs))
