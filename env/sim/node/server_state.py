"""What state a server is in: in service it is off, starting or up, else draining or down."""

from typing import Final

from env.base.jit import compiled
from env.sim.state.block import State
from env.sim.state.records import IN_SERVICE

STATES: Final = ("off", "starting", "up", "draining", "down")
OUT_OF_SERVICE: Final = ("draining", "down")


@compiled
def is_leased(state: State, server: int):
    """Whether new containers may come to a server now: its lease runs, and it is in service."""
    servers = state.servers
    # One that is always up is renewed at the moment its lease ends.
    runs = (
        servers[server].expiration_time > state.cluster[0].time or state.options[0].always_up == 1
    )
    return runs and servers[server].condition == IN_SERVICE


@compiled
def may_be_started(state: State, server: int):
    """Whether a lease of a server that has none may begin now."""
    servers = state.servers
    over = servers[server].expiration_time <= state.cluster[0].time
    return over and servers[server].condition == IN_SERVICE


@compiled
def server_state(state: State, server: int):
    """Index into STATES."""
    servers = state.servers
    if servers[server].condition != IN_SERVICE:
        return 2 + servers[server].condition  # DRAINING or DOWN
    if not is_leased(state, server):
        return 0
    return 1 if servers[server].ready_time > state.cluster[0].time else 2
