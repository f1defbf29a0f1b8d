"""Cores of a NUMA node shared by weight among the sharers that run there."""

from env.base.jit import compiled


@compiled
def cpu_share(rows, count: int, cpu: int, core_speed: int) -> None:
    """Weighted processor sharing, in whole operations per second, rounded down but at least 1.

    A sharer gets no more than its threads can use, a core each; the others share what it leaves.

    Args:
        rows: of `count` sharers, with `weight` and `threads`, from 1 on; `speed` becomes the
            operations per second of each.
        count: of the rows that count.
        cpu: cores.
        core_speed: operations per second of a core.
    """
    left, total = cpu * core_speed, 0
    for row in range(count):
        rows[row].speed = 0
        total += rows[row].weight
    more = True
    while more:
        more = False
        for row in range(count):
            most = rows[row].threads * core_speed
            if rows[row].speed == 0 and part(left, rows[row].weight, total) >= most:
                rows[row].speed = most
                left -= most
                total -= rows[row].weight
                more = total > 0
    for row in range(count):
        if rows[row].speed == 0:
            rows[row].speed = max(1, part(left, rows[row].weight, total))


@compiled
def part(whole, weight, total):
    """Whole * weight / total, rounded down, without a product that 63 bits do not hold."""
    quotient = whole // total
    return quotient * weight + (whole - quotient * total) * weight // total
