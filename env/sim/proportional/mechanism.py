"""Proportional shares from Python: a `Mechanism` says which of its clients goes next."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.sim.proportional import drf, memory, operations
from env.sim.proportional.blank import new_shares
from env.sim.proportional.records import (
    MECHANISMS,
    MOST_CLIENTS,
    MOST_QUANTA,
    MOST_WINNERS,
    RESOURCES,
)
from env.sim.records import NONE
from env.tickets.amounts import MOST_TICKETS

MOST_AT_ONCE = 10**8
"""Turns that are asked for in one call."""
OF_WINNERS = ("multi_lottery", "stochastic_remainder")


class Mechanism:
    """A resource shared in proportion to tickets, by one of several mechanisms.

    Attributes:
        name: of the mechanism.
        shares: its records.
    """

    def __init__(
        self,
        name: str,
        clients: int,
        seed: np.random.SeedSequence,
        *,
        quantum: float = 1.0,
        half_life: float = math.inf,
        winners: int | None = None,
        move_to_front: bool | None = None,
        capacity: Sequence[float] | None = None,
    ) -> None:
        """Nobody competes yet.

        Args:
            name: one of `MECHANISMS`.
            clients: how many there can be; they are numbered from 0 on.
            seed: of the lotteries.
            quantum: what a client gets at once, in units of the resource.
            half_life: seconds after which remembered use counts half; inf: nothing is remembered.
            winners: quanta of a superquantum, needed by `multi_lottery`, `stochastic_remainder`.
            move_to_front: for `lottery_list`, has the winner go to the front of the list.
            capacity: cores and MB, needed by `drf`.

        Raises:
            InputError: an argument is not allowed, or missing.
        """
        if name not in MECHANISMS:
            raise InputError(f"mechanism: {short(name)} is unknown, {nearest(name, MECHANISMS)}")
        _only_for(OF_WINNERS, name, "winners", winners, needed=True)
        _only_for(("lottery_list",), name, "move_to_front", move_to_front, needed=False)
        _only_for(("drf",), name, "capacity", capacity, needed=True)
        self.name = name
        _whole("clients", clients, 1, MOST_CLIENTS)
        self.shares = new_shares(name, clients, seed)
        head = self.shares.head
        head["quantum"] = _positive("quantum", quantum, 1e9)
        if half_life != math.inf:
            head["half_life"] = _positive("half_life", half_life, 1e9)
        if winners is not None:
            head["winners"] = head["taken"] = _whole("winners", winners, 1, MOST_WINNERS)
        if move_to_front is not None:
            head["move_to_front"] = move_to_front
        if capacity is not None:
            head["capacity"] = _amounts("capacity", capacity, least=1e-9)
        self._clients = clients

    def join(self, client: int, tickets: int, quantum: float | None = None) -> None:
        """A client starts to compete.

        Args:
            client: who does not compete.
            tickets: whole, from 1 on.
            quantum: of its own, in units of the resource; None: the standard one.

        Raises:
            InputError: an argument is not allowed; nothing has changed.
        """
        self._competes(client, False)
        _whole("tickets", tickets, 1, MOST_TICKETS)
        standard = float(self.shares.head["quantum"][0])
        most = MOST_QUANTA * standard
        own = standard if quantum is None else _positive("quantum", quantum, most)
        operations.join(self.shares, client, tickets, own / standard)

    def leave(self, client: int) -> None:
        """A client stops to compete; what it is ahead or behind counts when it joins again.

        Raises:
            InputError: it does not compete.
        """
        self._competes(client, True)
        operations.leave(self.shares, client)

    def change(self, client: int, tickets: int) -> None:
        """A client that competes gets another number of tickets.

        Raises:
            InputError: it does not compete, or the tickets are not allowed.
        """
        self._competes(client, True)
        operations.change(self.shares, client, _whole("tickets", tickets, 1, MOST_TICKETS))

    def allocate(self) -> int | None:
        """Who goes next, for a quantum of its own; None if nobody can."""
        client = int(operations.allocate(self.shares))
        return None if client == NONE else client

    def used(self, client: int, amount: float) -> None:
        """What a client really used of its last quantum, in units of the resource.

        Raises:
            InputError: the client is unknown or the amount not allowed.
        """
        self._known(client)
        operations.used(self.shares, client, self._checked(amount))

    def forget(self, client: int) -> None:
        """Frees the number of a client that does not compete for another client.

        Raises:
            InputError: it competes.
        """
        self._competes(client, False)
        operations.forget(self.shares, client)

    def allocate_many(self, count: int) -> np.ndarray:
        """int64 (count,): who goes next so many times; `NONE` where nobody can.

        Raises:
            InputError: `count` is not a whole number from 0 to `MOST_AT_ONCE`.
        """
        out = np.empty(_whole("count", count, 0, MOST_AT_ONCE), np.int64)
        operations.allocate_many(self.shares, out)
        return out

    def tell_time(self, seconds: float) -> None:
        """What time it is, by which remembered use fades.

        Raises:
            InputError: time goes back, or is no number.
        """
        now = float(self.shares.head["clock"][0])
        if not (_is_number(seconds) and now <= seconds < math.inf):
            raise InputError(f"seconds: {short(seconds)}, numbers from {now:g} on are allowed")
        self.shares.head["clock"] = seconds

    def remembered_rate(self, client: int) -> float:
        """Standard quanta per second that are remembered of a client; 0 without a half-life."""
        self._known(client)
        return float(memory.remembered_rate(self.shares, client))

    def demand(self, client: int, amounts: Sequence[float]) -> None:
        """For `drf`: cores and MB that a task of a client needs.

        Raises:
            InputError: the client is unknown or an amount not allowed.
        """
        _only_for(("drf",), self.name, "demand", amounts, needed=False)
        self._known(client)
        self.shares.clients["demand"][client] = _amounts("demand", amounts, least=0.0)

    def give_back(self, client: int, amount: float) -> None:
        """For `drf`: a task of a client has ended.

        Args:
            client: whose task.
            amount: that it held: a quantum of the client's own, or what `used` was told.

        Raises:
            InputError: the client is unknown or the amount not allowed.
        """
        _only_for(("drf",), self.name, "give_back", amount, needed=False)
        self._known(client)
        quanta = self._checked(amount) / float(self.shares.head["quantum"][0])
        drf.give_back(self.shares, client, quanta)

    def _checked(self, amount: float) -> float:
        most = MOST_QUANTA * float(self.shares.head["quantum"][0])
        if not (_is_number(amount) and 0 <= amount <= most):
            raise InputError(f"amount: {short(amount)}, numbers of 0 to {most:g} are allowed")
        return float(amount)

    def _known(self, client: int) -> None:
        _whole("client", client, 0, self._clients - 1)

    def _competes(self, client: int, needed: bool) -> None:
        """Refuses a client that competes, or one that does not."""
        self._known(client)
        if bool(self.shares.clients["competing"][client]) != needed:
            state = "does not compete" if needed else "competes already"
            raise InputError(f"client: {client} {state}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _whole(what: str, value: int, least: int, most: int) -> int:
    """A whole number within bounds."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        allowed = f"whole numbers of {least} to {most} are allowed"
        raise InputError(f"{what}: {short(value)}, {allowed}")
    return int(value)


def _positive(what: str, value: float, most: float) -> float:
    """A number above 0."""
    if not (_is_number(value) and 0 < value <= most):
        raise InputError(f"{what}: {short(value)}, numbers above 0 up to {most:g} are allowed")
    return float(value)


def _amounts(what: str, values: Sequence[float], least: float) -> np.ndarray:
    """Cores and MB."""
    if len(values) != RESOURCES:
        raise InputError(f"{what}: {short(list(values))}, cores and MB are needed")
    for value in values:
        if not (_is_number(value) and least <= value <= 1e15):
            raise InputError(f"{what}: {short(value)}, numbers of {least:g} to 1e+15 are allowed")
    return np.array(values, float)


def _only_for(mechanisms: Sequence[str], name: str, what: str, value: object, needed: bool) -> None:
    """Refuses an argument that has no effect on a mechanism, or that it lacks."""
    if value is not None and name not in mechanisms:
        raise InputError(f"{what}: has no effect on {name}, only on {', '.join(mechanisms)}")
    if needed and value is None and name in mechanisms:
        raise InputError(f"{what}: missing, {name} needs it")
