"""Checks what a finished schedule says of warm containers."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from env.sim.check.rounding import slack
from env.sim.check.schedule import Place, Schedule
from env.sim.declared.keep_alive_policy import Fixed
from env.sim.episode.model import WarmModel

Containers = tuple[Place, int | None]
"""Where containers are, and of what image."""


def check_containers(schedule: Schedule) -> Iterator[str]:
    """Who starts warm ends the wait of a container of its image there; others find none.

    A container becomes idle where a run of its image ends, unless it is started ahead of requests.
    """
    policy = schedule.episode.options.keep_alive
    left: Counter[tuple[Containers, int, float]] = Counter()
    used: Counter[tuple[Containers, float]] = Counter()
    waiting: dict[Containers, list[WarmModel]] = defaultdict(list)
    for run in schedule.results.runs:
        where: Containers = run.place, schedule.declared[run.function].image
        left[where, run.memory_allocated_mb, run.end_time] += 1
    for index, warm in enumerate(schedule.results.warm_containers):
        where, shown = (warm.place, warm.image), f"warm_containers.{index}"
        begins = where, warm.memory_mb, warm.begin_time
        ahead = "hybrid_histogram", schedule.episode.images[warm.image].memory_mb
        used[where, warm.end] += 1
        waiting[where].append(warm)
        left[begins] -= 1
        if policy.policy == "none":
            yield f"{shown}: nothing stays warm with keep_alive 'none'"
        elif warm.end < warm.begin_time:
            yield f"{shown}: ends at {warm.end_time}, before it begins"
        elif left[begins] < 0 and (policy.policy, warm.memory_mb) != ahead:
            yield f"{shown}: no run of its image and memory ends on {warm} at {warm.begin_time}"
        end = min(warm.end, schedule.results.last_completion_time)
        if isinstance(policy, Fixed) and end - warm.begin_time > policy.keep + slack(end):
            yield f"{shown}: idle for more than {policy.keep} s"
    for run in schedule.results.runs:
        where, time = (run.place, schedule.declared[run.function].image), run.dispatch_time
        if run.warm:
            used[where, time] -= 1
            if used[where, time] < 0:
                yield f"{run}: starts warm at {time} s where nothing is warm"
        elif any(warm.begin_time < time < warm.end for warm in waiting[where]):
            yield f"{run}: starts cold at {time} s where a container is warm"
