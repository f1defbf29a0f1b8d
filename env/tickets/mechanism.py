"""Proportional shares from Python: a `Mechanism` says which of its clients goes next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.tickets import clients as use
from env.tickets import drf, operations
from env.tickets.amounts import MOST_TICKETS
from env.tickets.records import (
    MECHANISMS,
    MOST_CLIENTS,
    MOST_QUANTA,
    MOST_WINNERS,
    NOBODY,
    RESOURCES,
    new_shares,
)

MOST_AT_ONCE: Final = 10**8
"""Turns that are asked for in one call."""
LEAST: Final = 5e-324
"""Above 0."""


class Mechanism:
    """A resource shared in proportion to tickets, by one of several mechanisms.

    All methods raise an `InputError` for an argument that is not allowed; nothing has changed then.

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
            winners: quanta of a superquantum, needed by `multi_lottery`.
            move_to_front: for `lottery_list`, has the winner go to the front of the list.
            capacity: cores and MB, needed by `drf`.
        """
        if name not in MECHANISMS:
            raise InputError(f"mechanism: {short(name)} is unknown, {nearest(name, MECHANISMS)}")
        self.name = name
        self._only_for("multi_lottery", winners=winners)
        self._only_for("lottery_list", move_to_front=move_to_front)
        self._only_for("drf", capacity=capacity)
        self._clients = _whole("clients", clients, 1, MOST_CLIENTS)
        self.shares = new_shares(name, clients, seed)
        head = self.shares.head
        head["quantum"] = _number("quantum", quantum, LEAST, 1e9)
        if half_life != math.inf:
            head["half_life"] = _number("half_life", half_life, LEAST, 1e9)
        if name == "multi_lottery":
            head["winners"] = head["taken"] = _whole("winners", winners, 1, MOST_WINNERS)
        if name == "drf":
            head["capacity"] = _amounts("capacity", capacity, 1e-9)
        head["move_to_front"] = bool(move_to_front)

    def join(self, client: int, tickets: int, quantum: float | None = None) -> None:
        """A client that does not compete does.

        Args:
            client: its number.
            tickets: whole, from 1 on.
            quantum: of its own, in units of the resource; None: the standard one.
        """
        self._competes(client, False)
        _whole("tickets", tickets, 1, MOST_TICKETS)
        standard = self._standard
        own = standard if quantum is None else quantum
        _number("quantum", own, LEAST, MOST_QUANTA * standard)
        operations.join(self.shares, client, tickets, own / standard)

    def leave(self, client: int) -> None:
        """A client stops to compete; what it is ahead or behind counts when it joins again."""
        self._competes(client, True)
        operations.leave(self.shares, client)

    def change(self, client: int, tickets: int) -> None:
        """A client that competes gets another number of tickets."""
        self._competes(client, True)
        operations.change(self.shares, client, _whole("tickets", tickets, 1, MOST_TICKETS))

    def allocate(self) -> int | None:
        """Who goes next, for a quantum of its own; None if nobody can."""
        client = int(operations.allocate(self.shares))
        return None if client == NOBODY else client

    def used(self, client: int, amount: float) -> None:
        """What a client really used of its last quantum, in units of the resource."""
        self._known(client)
        operations.used(self.shares, client, self._amount(amount))

    def forget(self, client: int) -> None:
        """Frees the number of a client that does not compete for another client."""
        self._competes(client, False)
        operations.forget(self.shares, client)

    def allocate_many(self, count: int) -> np.ndarray:
        """int64 (count,): who goes next so many times; `NOBODY` where nobody can."""
        out = np.empty(_whole("count", count, 0, MOST_AT_ONCE), np.int64)
        operations.allocate_many(self.shares, out)
        return out

    def tell_time(self, seconds: float) -> None:
        """What time it is, by which remembered use fades; it does not go back."""
        now = float(self.shares.head["clock"][0])
        self.shares.head["clock"] = _number("seconds", seconds, now, 1e300)

    def remembered_rate(self, client: int) -> float:
        """Standard quanta per second that are remembered of a client; 0 without a half-life."""
        self._known(client)
        return float(use.remembered_rate(self.shares, client))

    def demand(self, client: int, amounts: Sequence[float]) -> None:
        """For `drf`: cores and MB that a task of a client needs."""
        self._only_for("drf", demand=amounts)
        self._known(client)
        self.shares.clients["demand"][client] = _amounts("demand", amounts, 0.0)

    def give_back(self, client: int, amount: float) -> None:
        """For `drf`: a task of a client has ended.

        Args:
            client: whose task.
            amount: that it held: a quantum of the client's own, or what `used` was told.
        """
        self._only_for("drf", give_back=amount)
        self._known(client)
        drf.give_back(self.shares, client, self._amount(amount) / self._standard)

    @property
    def _standard(self) -> float:
        """The standard quantum."""
        return float(self.shares.head["quantum"][0])

    def _amount(self, amount: float) -> float:
        return _number("amount", amount, 0, MOST_QUANTA * self._standard)

    def _known(self, client: int) -> None:
        _whole("client", client, 0, self._clients - 1)

    def _competes(self, client: int, needed: bool) -> None:
        """Refuses a client that competes, or one that does not."""
        self._known(client)
        if bool(self.shares.clients["competing"][client]) != needed:
            state = "does not compete" if needed else "competes already"
            raise InputError(f"client: {client} {state}")

    def _only_for(self, mechanism: str, **argument: object) -> None:
        """Refuses an argument that another mechanism does not have."""
        for what, value in argument.items():
            if value is not None and self.name != mechanism:
                raise InputError(f"{what}: has no effect on {self.name}, only on {mechanism}")


def _number(what: str, value: Any, least: float, most: float, whole: bool = False) -> float:
    """A number within bounds."""
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return float(value)
    bounds = f"whole numbers of {least} to {most}" if whole else f"numbers of {least:g} to {most:g}"
    raise InputError(f"{what}: {short(value)}, {bounds} are allowed")


def _whole(what: str, value: Any, least: int, most: int) -> int:
    return int(_number(what, value, least, most, whole=True))


def _amounts(what: str, values: Any, least: float) -> np.ndarray:
    """Cores and MB."""
    if values is None or len(values) != RESOURCES:
        raise InputError(f"{what}: {short(values)}, cores and MB are needed")
    return np.array([_number(what, value, least, 1e15) for value in values])
