"""Who is entitled to how much: a graph of currencies over a base that is conserved, exact.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), chapter 2. A refused operation raises an
InputError of one line and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from typing import TypeVar

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.tickets.amounts import Amount, exact, whole_scale


@dataclass(eq=False)
class Holder:
    """A client or a currency, by a name that no other has.

    Attributes:
        held: its tickets, in the order in which they came.
    """

    name: str
    held: dict[Ticket, None] = field(default_factory=dict, repr=False)


@dataclass(eq=False)
class Client(Holder):
    """Who consumes the resource.

    Attributes:
        competing: whether it wants the resource now.
    """

    competing: bool = False


@dataclass(eq=False)
class Currency(Holder):
    """A unit of tickets, worth what the tickets that it holds are worth.

    Attributes:
        inflators: names of those who may create and destroy its tickets.
        issued_amount: of all its tickets, whoever holds them.
    """

    inflators: frozenset[str] = frozenset()
    issued_amount: Fraction = Fraction(0)


@dataclass(eq=False)
class Ticket:
    """A right to the resource, relative to others of its currency.

    Attributes:
        amount: as many tickets as it stands for.
        holder: whose right it is now.
        loans: those that it is part of, the oldest first, each with the ticket it was split from.
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

    Whoever does something gives a name, `by`; None is the operator of the cluster, who may do
    everything but create base tickets beyond their amount.

    Attributes:
        base: the currency that all value comes from; a ticket of it is worth its amount.
        base_amount: how many base tickets there can be.
        holders: all clients and currencies, by name.
    """

    def __init__(self, base_amount: Amount, base: str = "base") -> None:
        """Nobody has a right yet."""
        self.base_amount = exact("base_amount", base_amount)
        self.holders: dict[str, Holder] = {}
        self.base = self.add_currency(base)

    # Who there is.

    def add_currency(self, name: str, inflators: Iterable[str] = ()) -> Currency:
        """A currency without tickets.

        Args:
            name: no client or currency has it.
            inflators: names of those who may create and destroy its tickets, and pass on what
                backs it.
        """
        return self._add(Currency(name, inflators=frozenset(inflators)))

    def add_client(self, name: str) -> Client:
        """A client without tickets, which does not compete."""
        return self._add(Client(name))

    # Inflation and deflation.

    def issue(self, amount: Amount, currency: str, to: str, by: str | None = None) -> Ticket:
        """Creates a ticket: inflation, if the currency has some already."""
        unit, holder = self._find(currency, Currency), self._find(to, Holder)
        value = exact("amount", amount)
        self._may_inflate(unit, value, by)
        self._no_cycle(unit, holder)
        unit.issued_amount += value
        ticket = Ticket(value, unit, holder)
        holder.held[ticket] = None
        return ticket

    def destroy(self, ticket: Ticket, by: str | None = None) -> None:
        """Destroys a ticket: deflation."""
        self._exists(ticket)
        self._may_inflate(ticket.currency, -ticket.amount, by)
        ticket.currency.issued_amount -= ticket.amount
        del ticket.holder.held[ticket]

    # Transfers.

    def transfer(
        self, ticket: Ticket, to: str, amount: Amount | None = None, by: str | None = None
    ) -> Ticket:
        """Hands a ticket over for good.

        Args:
            ticket: that is not lent.
            to: the client or currency that gets it.
            amount: None: the whole ticket; else the part of it that goes.
            by: the holder, or an inflator of the holder if that is a currency.

        Returns:
            the ticket that the receiver has.
        """
        self._exists(ticket)
        receiver = self._find(to, Holder)
        part = ticket.amount if amount is None else exact("amount", amount)
        self._may_pass_on(ticket.holder, by)
        if ticket.loans:
            lender = list(ticket.loans)[-1].lender.name
            raise InputError(f"ticket: {ticket} is lent by {lender!r} and cannot be given away")
        if part > ticket.amount:
            raise InputError(f"amount: {short(amount)} of {ticket}, which has {ticket.amount}")
        self._no_cycle(ticket.currency, receiver)
        if part < ticket.amount:
            ticket = self._split(ticket, part)
        self._move(ticket, receiver)
        return ticket

    def lend(self, lender: str, to: str | Mapping[str, Amount], by: str | None = None) -> Loan:
        """Lends all tickets of a client or currency.

        Args:
            lender: whose; borrowed ones are lent further.
            to: who gets them, or how they are split among several: name to proportion.
            by: the lender, or an inflator of it if that is a currency.

        Returns:
            the loan, for `give_back`.
        """
        owner = self._find(lender, Holder)
        proportions = {to: 1} if isinstance(to, str) else to
        parts = {self._find(to, Holder): exact(f"to.{to}", p) for to, p in proportions.items()}
        self._may_pass_on(owner, by)
        if not parts or owner in parts:
            raise InputError(f"to: {short(to)}, one or more others than {lender!r} are needed")
        for ticket in owner.held:
            for receiver in parts:
                self._no_cycle(ticket.currency, receiver)
        loan = Loan(owner)
        total, last = sum(parts.values()), list(parts)[-1]
        for ticket in list(owner.held):
            whole = ticket.amount
            for receiver, part in parts.items():
                piece = ticket if receiver is last else self._split(ticket, whole * part / total)
                piece.loans = {**ticket.loans, loan: ticket}
                self._move(piece, receiver)
        return loan

    def give_back(self, loan: Loan) -> None:
        """Ends a loan: the lender has its tickets again, wherever they have gone meanwhile."""
        whole: dict[Ticket, Ticket] = {}
        for piece in [ticket for ticket in self._tickets() if loan in ticket.loans]:
            origin = piece.loans[loan]
            before = takewhile(lambda earlier: earlier is not loan, piece.loans)
            piece.loans = {earlier: piece.loans[earlier] for earlier in before}
            self._move(piece, loan.lender)
            kept = whole.setdefault(origin, piece)
            if kept is not piece:
                kept.amount += piece.amount
                del loan.lender.held[piece]

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
        rates = self._rates()
        return {
            client.name: sum((t.amount * rates[t.currency] for t in client.held), Fraction(0))
            for client in self._competing()
        }

    def whole_tickets(self, rough: bool = False) -> dict[str, int]:
        """Values as whole tickets, which mechanisms take: at least 1 of each that is worth any.

        Args:
            rough: there are as many for those that compete, and not for all of the base, so that
                rounding does not change the ratios of small ones.
        """
        values = self.values()
        scale = whole_scale(sum(values.values(), Fraction(0)) if rough else self.base_amount)
        return {
            name: max(1, math.floor(value * scale + Fraction(1, 2)))
            for name, value in values.items()
            if value > 0
        }

    def _competing(self) -> list[Client]:
        everybody = self.holders.values()
        return [who for who in everybody if isinstance(who, Client) and who.competing]

    def _rates(self) -> dict[Currency, Fraction]:
        """`rate` of all currencies."""
        from_the_base_on = list(TopologicalSorter(self._funders()).static_order())
        active = dict.fromkeys(from_the_base_on, Fraction(0))
        for client in self._competing():
            for ticket in client.held:
                active[ticket.currency] += ticket.amount
        for unit in reversed(from_the_base_on):
            if active[unit]:
                for ticket in unit.held:
                    active[ticket.currency] += ticket.amount
        rates = {self.base: Fraction(int(active[self.base] > 0))}
        for unit in from_the_base_on:
            if unit is not self.base:
                worth = sum((t.amount * rates[t.currency] for t in unit.held), Fraction(0))
                rates[unit] = worth / active[unit] if active[unit] else Fraction(0)
        return rates

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
        known = [each for each, who in self.holders.items() if isinstance(who, kind)]
        what = kind.__name__.lower()
        raise InputError(f"{what}: {short(name)} is unknown, {nearest(name, known)}")

    def _exists(self, ticket: Ticket) -> None:
        if ticket not in ticket.holder.held:
            raise InputError(f"ticket: {ticket} has been destroyed")

    def _may_inflate(self, currency: Currency, more: Fraction, by: str | None) -> None:
        if by is not None and by not in currency.inflators:
            allowed = ", ".join(sorted(currency.inflators)) or "nobody but the operator"
            raise InputError(
                f"by: {short(by)} may not inflate {currency.name!r}, allowed: {allowed}"
            )
        if currency is self.base and currency.issued_amount + more > self.base_amount:
            left = f"{self.base_amount - currency.issued_amount} of {self.base_amount} are left"
            raise InputError(f"amount: {more} more of {currency.name!r}, of which {left}")

    def _may_pass_on(self, holder: Holder, by: str | None) -> None:
        allowed = holder.inflators if isinstance(holder, Currency) else {holder.name}
        if by is not None and by not in allowed:
            raise InputError(f"by: {short(by)} may not pass on tickets of {holder.name!r}")

    def _no_cycle(self, currency: Currency, holder: Holder) -> None:
        """Refuses that `holder` is funded by `currency`, which it funds itself."""
        if holder is self.base:
            raise InputError(f"holder: {holder.name!r} is the base currency and needs no backing")
        if not isinstance(holder, Currency):
            return
        if holder is not currency and holder.issued_amount == 0:
            return  # it funds nobody
        funders = self._funders()
        funders[holder].add(currency)
        try:
            TopologicalSorter(funders).prepare()
        except CycleError as error:
            cycle = " -> ".join(unit.name for unit in error.args[1])
            raise InputError(f"currency: {holder.name!r}, a cycle: {cycle}") from None

    def _funders(self) -> dict[Currency, set[Currency]]:
        """Of each currency those of the tickets that it holds, or will get back."""
        funders: dict[Currency, set[Currency]] = {
            who: set() for who in self.holders.values() if isinstance(who, Currency)
        }
        for ticket in self._tickets():
            for owner in (ticket.holder, *(loan.lender for loan in ticket.loans)):
                if isinstance(owner, Currency):
                    funders[owner].add(ticket.currency)
        return funders

    # How tickets come, move and go.

    def _tickets(self) -> list[Ticket]:
        return [ticket for who in self.holders.values() for ticket in who.held]

    def _move(self, ticket: Ticket, to: Holder) -> None:
        del ticket.holder.held[ticket]
        ticket.holder = to
        to.held[ticket] = None

    def _split(self, ticket: Ticket, amount: Fraction) -> Ticket:
        """Takes a new ticket out of a larger one, of the same holder and loans."""
        part = replace(ticket, amount=amount)
        ticket.amount -= amount
        ticket.holder.held[part] = None
        return part
