"""Past use, remembered with a half-life: a client that had more than its share pays more.

The price of a quantum is 2^(u / s - 1), at least 1/2 and at most 2: u is the client's share of all
remembered use, s its share of the tickets. The formula is Slurm's fair-share factor 2^(-u / s),
turned from a priority into a price that is 1 at the entitled share.
"""

from env.base.jit import compiled
from env.tickets.records import INF, Shares


@compiled
def left_of(record, head):
    """Quanta that are still remembered of a client, or of all."""
    return record.remembered * 2.0 ** (-(head.clock - record.remembered_at) / head.half_life)


@compiled
def remember(shares: Shares, client: int, quanta) -> None:
    """A client has used some standard quanta; less than 0 takes some back."""
    head, clients = shares.head, shares.clients
    if head[0].half_life < INF:
        clients[client].remembered = max(0.0, left_of(clients[client], head[0]) + quanta)
        clients[client].remembered_at = head[0].clock
        head[0].remembered = max(0.0, left_of(head[0], head[0]) + quanta)
        head[0].remembered_at = head[0].clock


@compiled
def price(shares: Shares, client: int):
    """What a quantum of a client counts as."""
    head, row = shares.head[0], shares.clients[client]
    if head.half_life == INF or row.tickets == 0:
        return 1.0
    everything = left_of(head, head)
    if everything <= 0.0:
        return 1.0
    all_tickets = head.tickets + (0 if row.competing == 1 else row.tickets)
    share = row.tickets / all_tickets
    return 2.0 ** min(1.0, left_of(row, head) / everything / share - 1.0)
