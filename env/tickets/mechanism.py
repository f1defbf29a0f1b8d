"""Proportional shares from Python: a `Mechanism` says which of its clients goes next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.tickets import drf, operations, use
from env.tickets.amounts import MOST_TICKETS
from env.tickets.records import MECHANISMS, NOBODY, new_shares


class Mechanism:
    """A resource shared in proportion to tickets, by one of several mechanisms.

    Attributes:
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
        winners: int = 1,
        move_to_front: bool = False,
        capacity: Sequence[float] = (1.0, 1.0),
    ) -> None:
        """Nobody competes yet.

        Args:
            name: one of `MECHANISMS`.
            clients: how many there can be; they are numbered from 0 on.
            seed: of the lotteries.
            quantum: what a client gets at once, in units of the resource.
            half_life: seconds after which remembered use counts half; inf: nothing is remembered.
            winners: for `multi_lottery`, quanta of a superquantum.
            move_to_front: for `lottery_list`, has the winner go to the front of the list.
            capacity: for `drf`, cores and MB.

        Raises:
            InputError: there is no such mechanism.
        """
        if name not in MECHANISMS:
            raise InputError(f"mechanism: {short(name)} is unknown, {nearest(name, MECHANISMS)}")
        self.shares = new_shares(name, clients, seed)
        head = self.shares.head
        head["quantum"], head["half_life"], head["winners"] = quantum, half_life, winners
        head["move_to_front"], head["capacity"] = move_to_front, capacity

    def join(self, client: int, tickets: int, quantum: float | None = None) -> None:
        """A client that does not compete does.

        Args:
            client: its number.
            tickets: whole, from 1 to `MOST_TICKETS`.
            quantum: of its own, in units of the resource; None: the standard one.

        Raises:
            InputError: it competes, or has too few or too many tickets.
        """
        self._check(client, False, tickets)
        own = 1.0 if quantum is None else quantum / self.shares.head["quantum"][0]
        operations.join(self.shares, client, index(tickets), own)

    def leave(self, client: int) -> None:
        """A client stops to compete; what it is ahead or behind counts when it joins again."""
        self._check(client, True)
        operations.leave(self.shares, client)

    def change(self, client: int, tickets: int) -> None:
        """A client that competes gets another number of tickets."""
        self._check(client, True, tickets)
        operations.change(self.shares, client, index(tickets))

    def allocate(self) -> int | None:
        """Who goes next, for a quantum of its own; None if nobody can."""
        client = int(operations.allocate(self.shares))
        return None if client == NOBODY else client

    def used(self, client: int, amount: float) -> None:
        """What a client really used of its last quantum, in units of the resource."""
        self._check(client)
        operations.used(self.shares, client, float(amount))

    def forget(self, client: int) -> None:
        """Frees the number of a client that does not compete for another client."""
        self._check(client, False)
        operations.forget(self.shares, client)

    def allocate_many(self, count: int) -> np.ndarray:
        """int64 (count,): who goes next so many times; `NOBODY` where nobody can."""
        out = np.empty(count, np.int64)
        operations.allocate_many(self.shares, out)
        return out

    def tell_time(self, seconds: float) -> None:
        """What time it is, by which remembered use fades; it does not go back."""
        self.shares.head["clock"] = seconds

    def remembered_rate(self, client: int) -> float:
        """Standard quanta per second that are remembered of a client; 0 without a half-life."""
        self._check(client)
        return float(use.remembered_rate(self.shares, client))

    def demand(self, client: int, amounts: Sequence[float]) -> None:
        """For `drf`: cores and MB that a task of a client needs."""
        self.shares.clients["demand"][client] = amounts

    def give_back(self, client: int, amount: float) -> None:
        """For `drf`: a task of a client has ended.

        Args:
            client: whose task.
            amount: that it held: a quantum of the client's own, or what `used` was told.
        """
        self._check(client)
        drf.give_back(self.shares, client, amount / self.shares.head["quantum"][0])

    def _check(self, client: int, competes: bool | None = None, tickets: int = 1) -> None:
        competing = self.shares.clients["competing"][client]
        if competes is not None and competing != competes:
            state = "does not compete" if competes else "competes already"
            raise InputError(f"client: {client} {state}")
        if not 1 <= tickets <= MOST_TICKETS:
            raise InputError(f"tickets: {tickets}, 1 to {MOST_TICKETS} are allowed")
