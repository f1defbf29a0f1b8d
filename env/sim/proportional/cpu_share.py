"""Cores of a NUMA node shared by weight among the containers that run there."""

from env.sim.jit import compiled


@compiled
def cpu_share(weights, parallelism, cpu, core_speed, speeds):
    """Weighted processor sharing, in whole operations per second, rounded down but at least 1.

    A container that would have more than its threads can use gets just that, and the others share
    what it leaves.

    Args:
        weights: int64 (C,), of the containers, from 1 on.
        parallelism: int64 (C,), threads of each; a thread uses a core at most.
        cpu: cores.
        core_speed: operations per second of a core.
        speeds: int64 (C,), is filled with the operations per second of each container.
    """
    left, total = cpu * core_speed, 0
    for container in range(len(weights)):
        speeds[container] = 0
        total += weights[container]
    more = True
    while more:
        more = False
        for container in range(len(weights)):
            most = parallelism[container] * core_speed
            if speeds[container] == 0 and left * weights[container] // total >= most:
                speeds[container] = most
                left -= most
                total -= weights[container]
                more = total > 0
    for container in range(len(weights)):
        if speeds[container] == 0:
            speeds[container] = max(1, left * weights[container] // total)
