"""Who is entitled to how much: a graph of currencies over a base that is conserved, exact.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), chapter 2. A refused operation raises an
InputError of one line and changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

from env.base.errors import InputError
from env.base.schema import nearest, short
from env.tickets.amounts import Amount, exact, whole_scale
from env.tickets.ticket import Client, Currency, Holder, Loan, Ticket

NAME = re.compile(r"[\w.-]{1,40}")
H = TypeVar("H", bound=Holder)


class Rights:
    """All clients, currencies and tickets that share one resource.

    Whoever does something gives a name, `by`; None is the operator of the cluster, who may do
    everything but create base tickets beyond their amount.

    Attributes:
        base: the currency that all value comes from; a ticket of it is worth its amount.
        base_amount: how many base tickets there can be.
    """

    def __init__(self, base_amount: Amount, base: str = "base") -> None:
        """Nobody has a right yet."""
        self.base_amount = exact("base_amount", base_amount)
        self._holders: dict[str, Holder] = {}
        self._rates: dict[Currency, Fraction] = {}  # those known since the last change
        self.base = self.add_currency(base)

    # Who there is.

    def add_currency(self, name: str, inflators: Iterable[str] = ()) -> Currency:
        """A currency without tickets.

        Args:
            name: letters, digits, `_`, `.` and `-`; no client or currency has it.
            inflators: names of those who may create and destroy its tickets, and pass on what
                backs it.
        """
        currency = Currency(self._new_name(name), inflators=frozenset(inflators))
        self._holders[name] = currency
        return currency

    def add_client(self, name: str) -> Client:
        """A client without tickets, which does not compete."""
        client = Client(self._new_name(name))
        self._holders[name] = client
        return client

    def remove_client(self, name: str) -> None:
        """A client goes: loans go back to who lent, and its own tickets are destroyed."""
        client = self.client(name)
        self._set_competing(client, False)
        for loan in list(client.loans):
            self.give_back(loan)
        for ticket in list(client.held):
            if ticket.loans:
                self._take_back(ticket.loans[-1], [ticket])
            else:
                self._drop(ticket)
        del self._holders[name]

    def client(self, name: str) -> Client:
        """The client of a name."""
        return self._found("client", name, Client)

    def currency(self, name: str) -> Currency:
        """The currency of a name."""
        return self._found("currency", name, Currency)

    def holder(self, name: str) -> Holder:
        """The client or currency of a name."""
        return self._found("holder", name, Holder)

    # Inflation and deflation.

    def issue(self, amount: Amount, currency: str, to: str, by: str | None = None) -> Ticket:
        """Creates a ticket: inflation, if the currency has some already."""
        unit, holder = self.currency(currency), self.holder(to)
        value = exact("amount", amount)
        self._may_inflate(unit, by)
        self._within_base(unit, value)
        self._no_cycle(unit, holder)
        return self._make(value, unit, holder)

    def destroy(self, ticket: Ticket, by: str | None = None) -> None:
        """Destroys a ticket: deflation."""
        self._exists(ticket)
        self._may_inflate(ticket.currency, by)
        self._drop(ticket)

    def resize(self, ticket: Ticket, amount: Amount, by: str | None = None) -> None:
        """Gives a ticket another amount: inflation or deflation."""
        self._exists(ticket)
        value = exact("amount", amount)
        self._may_inflate(ticket.currency, by)
        self._within_base(ticket.currency, value - ticket.amount)
        self._set_amount(ticket, value)

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
        receiver = self.holder(to)
        part = ticket.amount if amount is None else exact("amount", amount)
        self._may_pass_on(ticket.holder, by)
        if ticket.loans:
            lender = ticket.loans[-1].lender.name
            raise InputError(f"ticket: {ticket} is lent by {lender!r} and cannot be given away")
        if part > ticket.amount:
            raise InputError(f"amount: {short(amount)} of {ticket}, which has {ticket.amount}")
        self._no_cycle(ticket.currency, receiver)
        if part < ticket.amount:
            ticket = self._split(ticket, part)
        self._move(ticket, receiver)
        return ticket

    def lend(self, lender: str, to: str | Mapping[str, Amount], by: str | None = None) -> Loan:
        """Lends all that a holder has, borrowed tickets too; loans of several lenders add up.

        Args:
            lender: a client, typically one that waits, or a currency.
            to: who gets it; or several, each with its proportion.
            by: the lender, or an inflator of the lender if that is a currency.

        Returns:
            the loan, for `give_back`.
        """
        owner = self.holder(lender)
        told = {to: 1} if isinstance(to, str) else to
        parts = {self.holder(name): exact(f"to.{name}", part) for name, part in told.items()}
        self._may_pass_on(owner, by)
        if not parts or owner in parts:
            raise InputError(f"to: {short(to)}, one or more others than {lender!r} are needed")
        if not owner.held:
            raise InputError(f"lender: {lender!r} has no tickets")
        for ticket in owner.held:
            for receiver in parts:
                self._no_cycle(ticket.currency, receiver)
        loan = Loan(owner)
        owner.loans[loan] = None
        for ticket in list(owner.held):
            self._lend_one(ticket, loan, parts)
        return loan

    def give_back(self, loan: Loan) -> None:
        """Ends a loan: the lender has its tickets again, wherever they have gone meanwhile."""
        if loan not in loan.lender.loans:
            raise InputError(f"loan: of {loan.lender.name!r}, has been given back already")
        self._take_back(loan, list(loan.pieces))
        del loan.lender.loans[loan]

    # Activation.

    def start(self, name: str) -> None:
        """A client starts to compete: its tickets become active, and the currencies behind them."""
        client = self.client(name)
        if not client.held:
            raise InputError(f"client: {name!r} has no tickets")
        for ticket in client.held:
            unbacked = self._unbacked(ticket.currency)
            if unbacked is not None:
                raise InputError(f"currency: {unbacked.name!r} has no backing, {name!r} needs it")
        self._set_competing(client, True)

    def stop(self, name: str) -> None:
        """A client stops to compete: its tickets become inactive, and currencies left with none."""
        self._set_competing(self.client(name), False)

    # Values.

    def rate(self, currency: str) -> Fraction:
        """Base tickets that one ticket of a currency is worth; 0 if none of it is active."""
        return self._rate(self.currency(currency))

    def value(self, ticket: Ticket) -> Fraction:
        """Base tickets that a ticket is worth; 0 if it is inactive."""
        return ticket.amount * self._rate(ticket.currency) if ticket.active else Fraction(0)

    def values(self) -> dict[str, Fraction]:
        """Base tickets that each competing client is worth; they sum to the active base."""
        return {
            name: sum(map(self.value, who.held), Fraction(0))
            for name, who in self._holders.items()
            if isinstance(who, Client) and who.competing
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

    # What is refused.

    def _found(self, what: str, name: object, kind: type[H]) -> H:
        found = self._holders.get(name) if isinstance(name, str) else None
        if isinstance(found, kind):
            return found
        known = [each for each, who in self._holders.items() if isinstance(who, kind)]
        raise InputError(f"{what}: {short(name)} is unknown, {nearest(str(name), known)}")

    def _new_name(self, name: str) -> str:
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            allowed = "1 to 40 letters, digits, '_', '.' and '-' are allowed"
            raise InputError(f"name: {short(name)}, {allowed}")
        if name in self._holders:
            kind = "currency" if isinstance(self._holders[name], Currency) else "client"
            raise InputError(f"name: {name!r} is that of a {kind} already, names are unique")
        return name

    def _exists(self, ticket: Ticket) -> None:
        if ticket not in ticket.currency.issued:
            raise InputError(f"ticket: {ticket} has been destroyed")

    def _may_inflate(self, currency: Currency, by: str | None) -> None:
        if by is not None and by not in currency.inflators:
            allowed = ", ".join(sorted(currency.inflators)) or "nobody but the operator"
            raise InputError(
                f"by: {short(by)} may not inflate {currency.name!r}, allowed: {allowed}"
            )

    def _may_pass_on(self, holder: Holder, by: str | None) -> None:
        allowed = holder.inflators if isinstance(holder, Currency) else {holder.name}
        if by is not None and by not in allowed:
            raise InputError(f"by: {short(by)} may not pass on tickets of {holder.name!r}")

    def _within_base(self, currency: Currency, more: Fraction) -> None:
        left = self.base_amount - self.base.issued_amount
        if currency is self.base and more > left:
            of_all = f"{left} of {self.base_amount} are left"
            raise InputError(f"amount: {more} more of {self.base.name!r}, of which {of_all}")

    def _no_cycle(self, currency: Currency, holder: Holder) -> None:
        """Refuses that `holder` is funded by `currency`, which it funds itself."""
        if holder is self.base:
            raise InputError(f"holder: {holder.name!r} is the base currency and needs no backing")
        if not isinstance(holder, Currency):
            return
        came_from: dict[Currency, Currency] = {}
        open_ends = [currency]
        while open_ends:
            found = open_ends.pop()
            if found is holder:
                names = [holder.name]
                while found is not currency:
                    found = came_from[found]
                    names.append(found.name)
                names.append(holder.name)
                raise InputError(f"currency: {holder.name!r}, a cycle: {' -> '.join(names)}")
            for funder in found.funders():
                if funder not in came_from:
                    came_from[funder] = found
                    open_ends.append(funder)

    def _unbacked(self, currency: Currency) -> Currency | None:
        """A currency from which `currency` has no value, if it has none: it holds no tickets."""
        seen: dict[Currency, None] = {}
        open_ends, without = [currency], None
        while open_ends:
            found = open_ends.pop()
            if found is self.base:
                return None
            if not found.held:
                without = found
            new = [each.currency for each in found.held if each.currency not in seen]
            seen.update(dict.fromkeys(new))
            open_ends.extend(new)
        return without

    # How tickets come, move and go.

    def _make(self, amount: Fraction, currency: Currency, holder: Holder) -> Ticket:
        ticket = Ticket(amount, currency, holder)
        currency.issued[ticket] = None
        currency.issued_amount += amount
        holder.held[ticket] = None
        self._activate(ticket, holder.active)
        return ticket

    def _set_competing(self, client: Client, competing: bool) -> None:
        client.competing = competing
        for ticket in client.held:
            self._activate(ticket, competing)

    def _activate(self, ticket: Ticket, active: bool) -> None:
        """Counts a ticket, or no longer, and with it what backs a currency that this decides on."""
        self._rates.clear()
        due = [ticket]
        while due:
            changed = due.pop()
            if changed.active == active:
                continue
            changed.active = active
            unit = changed.currency
            was_active = unit.active
            unit.active_amount += changed.amount if active else -changed.amount
            if unit.active != was_active:
                due.extend(unit.held)

    def _set_amount(self, ticket: Ticket, amount: Fraction) -> None:
        # Not by way of inactive, which would reach as far as the base and back.
        if ticket.active:
            ticket.currency.active_amount += amount - ticket.amount
        ticket.currency.issued_amount += amount - ticket.amount
        ticket.amount = amount
        self._rates.clear()

    def _move(self, ticket: Ticket, to: Holder) -> None:
        self._activate(ticket, False)
        del ticket.holder.held[ticket]
        ticket.holder = to
        to.held[ticket] = None
        self._activate(ticket, to.active)

    def _split(self, ticket: Ticket, amount: Fraction) -> Ticket:
        """Takes a new ticket out of a larger one, of the same holder and loans."""
        self._set_amount(ticket, ticket.amount - amount)
        part = self._make(amount, ticket.currency, ticket.holder)
        part.loans = ticket.loans
        for loan in ticket.loans:
            loan.pieces[part] = loan.pieces[ticket]
        return part

    def _drop(self, ticket: Ticket) -> None:
        self._activate(ticket, False)
        del ticket.holder.held[ticket]
        del ticket.currency.issued[ticket]
        ticket.currency.issued_amount -= ticket.amount
        for loan in ticket.loans:
            del loan.pieces[ticket]

    def _lend_one(self, ticket: Ticket, loan: Loan, parts: Mapping[Holder, Fraction]) -> None:
        """Splits a ticket among the receivers; the last has what is left of it."""
        whole, total = ticket.amount, sum(parts.values(), Fraction(0))
        *others, last = parts
        for receiver in others:
            piece = self._split(ticket, whole * parts[receiver] / total)
            self._hand_out(piece, loan, ticket, receiver)
        self._hand_out(ticket, loan, ticket, last)

    def _hand_out(self, piece: Ticket, loan: Loan, origin: Ticket, to: Holder) -> None:
        piece.loans = (*piece.loans, loan)
        loan.pieces[piece] = origin
        self._move(piece, to)

    def _take_back(self, loan: Loan, pieces: Iterable[Ticket]) -> None:
        """Gives pieces of a loan back to the lender and puts together what was one ticket."""
        whole: dict[Ticket, Ticket] = {}
        for piece in pieces:
            origin = loan.pieces[piece]
            depth = piece.loans.index(loan)
            for ended in piece.loans[depth:]:
                del ended.pieces[piece]
            piece.loans = piece.loans[:depth]
            self._move(piece, loan.lender)
            kept = whole.setdefault(origin, piece)
            if kept is not piece:
                amount = piece.amount
                self._drop(piece)
                self._set_amount(kept, kept.amount + amount)

    def _rate(self, currency: Currency) -> Fraction:
        """As `rate`; of those that it depends on, the innermost first."""
        due = [currency]
        while due:
            unit = due[-1]
            if unit in self._rates:
                due.pop()
            elif unit is self.base or not unit.active:
                self._rates[unit] = Fraction(int(unit.active))
            else:
                funders = [each.currency for each in unit.held]
                missing = [each for each in funders if each not in self._rates]
                due.extend(missing)
                if not missing:
                    worth = sum(
                        (t.amount * self._rates[t.currency] for t in unit.held), Fraction(0)
                    )
                    self._rates[unit] = worth / unit.active_amount
        return self._rates[currency]
