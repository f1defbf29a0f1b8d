"""What rights are made of: tickets, and who holds them: clients and currencies.

Waldspurger, "Lottery and Stride Scheduling" (MIT, 1995), chapter 2, figure 2-2. Only `Rights`
changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(eq=False)
class Holder:
    """Who can hold tickets.

    Attributes:
        name: unique among all holders.
        held: its tickets, in the order in which they came.
        loans: what it has lent and not got back.
    """

    name: str
    held: dict[Ticket, None] = field(default_factory=dict, repr=False)
    loans: dict[Loan, None] = field(default_factory=dict, repr=False)

    @property
    def active(self) -> bool:
        """Whether its tickets count."""
        raise NotImplementedError


@dataclass(eq=False)
class Client(Holder):
    """Who consumes the resource.

    Attributes:
        competing: whether it wants the resource now.
    """

    competing: bool = False

    @property
    def active(self) -> bool:
        """Whether its tickets count."""
        return self.competing


@dataclass(eq=False)
class Currency(Holder):
    """A unit of tickets, worth what the tickets that it holds are worth.

    Attributes:
        inflators: names of those who may create and destroy its tickets.
        issued: its tickets, whoever holds them.
        issued_amount: of all these.
        active_amount: of its tickets, those that count.
    """

    inflators: frozenset[str] = frozenset()
    issued: dict[Ticket, None] = field(default_factory=dict, repr=False)
    issued_amount: Fraction = Fraction(0)
    active_amount: Fraction = Fraction(0)

    @property
    def backing(self) -> list[Ticket]:
        """The tickets that it is worth."""
        return list(self.held)

    @property
    def active(self) -> bool:
        """Whether its tickets count: whether some of those that it has issued do."""
        return self.active_amount > 0

    def funders(self) -> Iterator[Currency]:
        """Currencies of the tickets that it holds, or will get back."""
        for ticket in self.held:
            yield ticket.currency
        for loan in self.loans:
            for ticket in loan.pieces:
                yield ticket.currency


@dataclass(eq=False)
class Ticket:
    """A right to the resource, relative to others of its currency.

    Attributes:
        amount: as many tickets as it stands for.
        currency: in which it is denominated.
        holder: whose right it is now.
        active: whether it counts: whether its holder is active.
        loans: those that it is part of, the oldest first.
    """

    amount: Fraction
    currency: Currency
    holder: Holder
    active: bool = False
    loans: tuple[Loan, ...] = ()

    def __str__(self) -> str:
        return f"{self.amount}.{self.currency.name}"


@dataclass(eq=False)
class Loan:
    """Tickets that somebody has lent and can get back.

    Attributes:
        lender: who.
        pieces: tickets that are out, each with the ticket that it was split from.
    """

    lender: Holder
    pieces: dict[Ticket, Ticket] = field(default_factory=dict, repr=False)
