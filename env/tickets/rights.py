"""Who is entitled to how much: a graph of currencies over a base that is conserved, exact.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), chapter 2. A refused operation raises an
InputError of one line and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from typing import Annotated, Any, TypeVar

from pydantic import Field

from env.base.errors import InputError
from env.base.schema import nearest, short

Amount = int | float | Fraction

MOST_TICKETS = 1 << 20
"""Of one client; a mechanism takes whole tickets."""
LEAST = Fraction(1, 10**9)
MOST = Fraction(10**12)
Tickets = Annotated[float, Field(ge=float(LEAST), le=float(MOST))]
"""A number of them, as configurations and files say it."""


def exact(where: str, amount: Any) -> Fraction:
    """An amount as a fraction; 0.1 is a tenth, not the nearest binary number.

    Raises:
        InputError: it is no number, or too small or large; `where` says what.
    """
    with suppress(ValueError):
        value = amount if isinstance(amount, Fraction) else Fraction(str(amount))
        if LEAST <= value <= MOST:
            return value
    allowed = f"numbers of {float(LEAST):g} to {float(MOST):g} are allowed"
    raise InputError(f"{where}: {short(amount)}, {allowed}")


def whole_scale(base: Fraction) -> Fraction:
    """Whole tickets for a ticket of a base: as many as can be, and a whole number if above 1."""
    scale = MOST_TICKETS / base
    return Fraction(math.floor(scale)) if scale >= 1 else scale


@dataclass(eq=False)
class Holder:
    """A client or a currency, by a name that no other has."""

    name: str


@dataclass(eq=False)
class Client(Holder):
    """A consumer of the resource, which wants it now if it is `competing`."""

    competing: bool = False


@dataclass(eq=False)
class Currency(Holder):
    """A unit of tickets, worth what the tickets that it holds are worth.

    `inflators` may create and destroy its tickets, which are `issued_amount` together.
    """

    inflators: frozenset[str] = frozenset()
    issued_amount: Fraction = Fraction(0)


@dataclass(eq=False)
class Ticket:
    """A right to the resource, relative to others of its currency.

    Attributes:
        holder: whose right it is now.
        loans: it is part of them, the oldest first, each with the ticket that it was split from.
    """

    amount: Fraction
    currency: Currency
    holder: Holder
    loans: dict[Loan, Ticket] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.amount}.{self.currency.name}"


@dataclass(eq=False)
class Loan:
    """Tickets that somebody has lent and can get back."""

    lender: Holder


H = TypeVar("H", bound=Holder)


class Rights:
    """All clients, currencies and tickets that share one resource.

    Operations take the name of who asks for them, `by`; None is the operator of the cluster, who
    may do everything but create base tickets beyond their amount.

    Attributes:
        base: the currency that all value comes from; a ticket of it is worth its amount.
        base_amount: how many base tickets there can be.
        holders: all clients and currencies, by name.
        tickets: all of them, in the order in which they were created.
    """

    def __init__(self, base_amount: Amount, base: str = "base") -> None:
        """Nobody has a right yet."""
        self.base_amount = exact("base_amount", base_amount)
        self.holders: dict[str, Holder] = {}
        self.tickets: dict[Ticket, None] = {}
        self.base = self.add_currency(base)

    def add_currency(self, name: str, inflators: Iterable[str] = ()) -> Currency:
        """A currency without tickets; `inflators` may also pass on the tickets that back it."""
        return self._add(Currency(name, inflators=frozenset(inflators)))

    def add_client(self, name: str) -> Client:
        """A client without tickets, which does not compete."""
        return self._add(Client(name))

    def held_by(self, name: str) -> list[Ticket]:
        """The tickets of a client or currency."""
        return self._held()[self._find(name, Holder)]

    # Inflation and deflation.

    def issue(self, amount: Amount, currency: str, to: str, by: str | None = None) -> Ticket:
        """Creates a ticket: inflation, if the currency has some already."""
        unit, holder = self._find(currency, Currency), self._find(to, Holder)
        value = exact("amount", amount)
        self._check_permission(by, "inflate", unit)
        if unit is self.base and unit.issued_amount + value > self.base_amount:
            left = f"{self.base_amount - unit.issued_amount} of {self.base_amount} are left"
            raise InputError(f"amount: {value} more of {unit.name!r}, of which {left}")
        self._check_cycle(unit, holder)
        unit.issued_amount += value
        ticket = Ticket(value, unit, holder)
        self.tickets[ticket] = None
        return ticket

    def destroy(self, ticket: Ticket, by: str | None = None) -> None:
        """Destroys a ticket: deflation."""
        self._check_exists(ticket)
        self._check_permission(by, "inflate", ticket.currency)
        ticket.currency.issued_amount -= ticket.amount
        del self.tickets[ticket]

    # Transfers.

    def transfer(
        self, ticket: Ticket, to: str, amount: Amount | None = None, by: str | None = None
    ) -> Ticket:
        """Hands a ticket that is not lent, or a part of it, over for good.

        Args:
            ticket: the whole one, of which `amount` goes if it is given.
            to: the client or currency that gets it.
            by: the holder, or an inflator of the holder if that is a currency.

        Returns:
            the ticket that the receiver has.
        """
        self._check_exists(ticket)
        receiver = self._find(to, Holder)
        part = ticket.amount if amount is None else exact("amount", amount)
        self._check_permission(by, "pass on tickets of", ticket.holder)
        if ticket.loans:
            lender = list(ticket.loans)[-1].lender.name
            raise InputError(f"ticket: {ticket} is lent by {lender!r} and cannot be given away")
        if part > ticket.amount:
            raise InputError(f"amount: {short(amount)} of {ticket}, which has {ticket.amount}")
        self._check_cycle(ticket.currency, receiver)
        if part < ticket.amount:
            ticket = self._split(ticket, part)
        ticket.holder = receiver
        return ticket

    def lend(self, lender: str, to: str | Mapping[str, Amount], by: str | None = None) -> Loan:
        """Lends all tickets of a client or currency, borrowed ones too, until `give_back`.

        Args:
            lender: whose tickets.
            to: who gets them, or how they are split among several: name to proportion.
            by: the lender, or an inflator of it if that is a currency.
        """
        owner, tickets = self._find(lender, Holder), self.held_by(lender)
        proportions = {to: 1} if isinstance(to, str) else to
        parts = {self._find(to, Holder): exact(f"to.{to}", p) for to, p in proportions.items()}
        self._check_permission(by, "pass on tickets of", owner)
        if not parts or owner in parts:
            raise InputError(f"to: {short(to)}, one or more others than {lender!r} are needed")
        for currency in dict.fromkeys(ticket.currency for ticket in tickets):
            for receiver in parts:
                self._check_cycle(currency, receiver)
        loan = Loan(owner)
        total, last = sum(parts.values()), list(parts)[-1]
        for ticket in tickets:
            whole, loans = ticket.amount, {**ticket.loans, loan: ticket}
            for receiver, part in parts.items():
                piece = ticket if receiver is last else self._split(ticket, whole * part / total)
                piece.holder, piece.loans = receiver, loans
        return loan

    def give_back(self, loan: Loan) -> None:
        """Ends a loan: the lender has its tickets again, wherever they have gone meanwhile."""
        whole: dict[Ticket, Ticket] = {}
        for piece in [ticket for ticket in self.tickets if loan in ticket.loans]:
            kept = whole.setdefault(piece.loans[loan], piece)
            earlier = takewhile(lambda each: each is not loan, piece.loans)
            piece.holder, piece.loans = loan.lender, {each: piece.loans[each] for each in earlier}
            if kept is not piece:
                kept.amount += piece.amount
                del self.tickets[piece]

    # Activation.

    def start(self, name: str) -> None:
        """A client starts to compete: its tickets become active, and the currencies behind them."""
        self._find(name, Client).competing = True

    def stop(self, name: str) -> None:
        """A client stops to compete: its tickets become inactive, and currencies left with none."""
        self._find(name, Client).competing = False

    # Values.

    def rate(self, currency: str) -> Fraction:
        """Base tickets that one ticket of a currency is worth; 0 if none of it is active."""
        return self._rates()[self._find(currency, Currency)]

    def values(self) -> dict[str, Fraction]:
        """Base tickets that each competing client is worth; they sum to the active base."""
        rates, held = self._rates(), self._held()
        return {client.name: _worth(held[client], rates) for client in self._competing()}

    def whole_tickets(self, rough: bool = False) -> dict[str, int]:
        """Values as whole tickets, which mechanisms take: at least 1 of each that is worth any.

        If `rough`, the competing clients share as many as else the whole base has, so that rounding
        does not change the ratios of small ones.
        """
        values = self.values()
        scale = whole_scale(sum(values.values(), Fraction(0)) if rough else self.base_amount)
        return {
            name: max(1, math.floor(value * scale + Fraction(1, 2)))
            for name, value in values.items()
            if value > 0
        }

    def _competing(self) -> list[Client]:
        holders = self.holders.values()
        return [each for each in holders if isinstance(each, Client) and each.competing]

    def _held(self) -> dict[Holder, list[Ticket]]:
        """The tickets of all clients and currencies."""
        held: dict[Holder, list[Ticket]] = {holder: [] for holder in self.holders.values()}
        for ticket in self.tickets:
            held[ticket.holder].append(ticket)
        return held

    def _rates(self) -> dict[Currency, Fraction]:
        """`rate` of all currencies."""
        held = self._held()
        from_the_base_on = list(TopologicalSorter(self._funders()).static_order())
        active: dict[Holder, Fraction] = dict.fromkeys(from_the_base_on, Fraction(0))
        for holder in (*self._competing(), *reversed(from_the_base_on)):
            if isinstance(holder, Client) or active[holder]:
                for ticket in held[holder]:
                    active[ticket.currency] += ticket.amount
        rates: dict[Currency, Fraction] = {}
        for unit in from_the_base_on:
            worth = active[unit] if unit is self.base else _worth(held[unit], rates)
            rates[unit] = worth / active[unit] if active[unit] else Fraction(0)
        return rates

    def _funders(self) -> dict[Currency, set[Currency]]:
        """Of each currency those of the tickets that it holds, or will get back."""
        funders: dict[Currency, set[Currency]] = {
            holder: set() for holder in self.holders.values() if isinstance(holder, Currency)
        }
        for ticket in self.tickets:
            for owner in (ticket.holder, *(loan.lender for loan in ticket.loans)):
                if isinstance(owner, Currency):
                    funders[owner].add(ticket.currency)
        return funders

    def _split(self, ticket: Ticket, amount: Fraction) -> Ticket:
        """Takes a new ticket out of a larger one, of the same holder and loans."""
        part = replace(ticket, amount=amount)
        ticket.amount -= amount
        self.tickets[part] = None
        return part

    # What is refused.

    def _add(self, holder: H) -> H:
        if holder.name in self.holders:
            kind = type(self.holders[holder.name]).__name__.lower()
            raise InputError(f"name: {holder.name!r} is that of a {kind} already, names are unique")
        self.holders[holder.name] = holder
        return holder

    def _find(self, name: str, kind: type[H]) -> H:
        holder = self.holders.get(name)
        if isinstance(holder, kind):
            return holder
        names = [each for each, other in self.holders.items() if isinstance(other, kind)]
        raise InputError(
            f"{kind.__name__.lower()}: {short(name)} is unknown, {nearest(name, names)}"
        )

    def _check_exists(self, ticket: Ticket) -> None:
        if ticket not in self.tickets:
            raise InputError(f"ticket: {ticket} has been destroyed")

    def _check_permission(self, by: str | None, act: str, holder: Holder) -> None:
        allowed = holder.inflators if isinstance(holder, Currency) else {holder.name}
        if by is not None and by not in allowed:
            names = ", ".join(sorted(allowed)) or "nobody but the operator"
            raise InputError(f"by: {short(by)} may not {act} {holder.name!r}, allowed: {names}")

    def _check_cycle(self, currency: Currency, holder: Holder) -> None:
        """Refuses that `holder` is funded by `currency`, which it funds itself."""
        if holder is self.base:
            raise InputError(f"holder: {holder.name!r} is the base currency and needs no backing")
        if not isinstance(holder, Currency) or not (holder is currency or holder.issued_amount):
            return  # it funds nobody
        funders = self._funders()
        funders[holder].add(currency)
        try:
            TopologicalSorter(funders).prepare()
        except CycleError as error:
            cycle = " -> ".join(unit.name for unit in error.args[1])
            raise InputError(f"currency: {holder.name!r}, a cycle: {cycle}") from None


def _worth(tickets: Iterable[Ticket], rates: Mapping[Currency, Fraction]) -> Fraction:
    """Base tickets that tickets are worth."""
    return sum((ticket.amount * rates[ticket.currency] for ticket in tickets), Fraction(0))
