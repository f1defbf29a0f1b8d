"""What joining, leaving and a change of tickets are in every mechanism."""

from env.sim.jit import compiled


@compiled
def enter(shares, client, tickets, quanta):
    """A client starts to compete with some tickets and a quantum of its own."""
    head, clients = shares.head, shares.clients
    if clients[client].known == 0:
        clients[client].known = 1
        clients[client].compensation = 1.0 / quanta
    clients[client].tickets = tickets
    clients[client].quanta = quanta
    clients[client].competing = 1
    head[0].competing += 1
    head[0].tickets += tickets


@compiled
def withdraw(shares, client):
    """A client stops to compete; its record remembers the rest."""
    shares.clients[client].competing = 0
    shares.head[0].competing -= 1
    shares.head[0].tickets -= shares.clients[client].tickets


@compiled
def hold(shares, client, tickets):
    """A client that competes gets another number of tickets."""
    shares.head[0].tickets += tickets - shares.clients[client].tickets
    shares.clients[client].tickets = tickets
