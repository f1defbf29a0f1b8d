"""Random graphs of currencies under random operations, against a recount from scratch."""

from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.tickets.rights import Client, Currency, Holder, Loan, Rights, Ticket
from tests.env.tickets.made import enter, picture

OPERATIONS = 60


def active_of(currency: Holder, tickets: list[Ticket]) -> Fraction:
    """Of a currency, the amount of active tickets, by its definition and slowly."""
    own = [ticket for ticket in tickets if ticket.currency is currency]
    return sum((ticket.amount for ticket in own if is_active(ticket.holder, tickets)), Fraction(0))


def is_active(holder: Holder, tickets: list[Ticket]) -> bool:
    return holder.competing if isinstance(holder, Client) else active_of(holder, tickets) > 0


def worth_of(holder: Holder, tickets: list[Ticket]) -> Fraction:
    """What the tickets of an active holder are worth, by its definition and slowly."""
    if holder.name == "base":
        return active_of(holder, tickets)
    held = [ticket for ticket in tickets if ticket.holder is holder]
    rates = (worth_of(t.currency, tickets) / active_of(t.currency, tickets) for t in held)
    return sum((t.amount * rate for t, rate in zip(held, rates, strict=True)), Fraction(0))


def check(rights: Rights) -> None:
    """Everything that must hold at any time."""
    values, tickets = rights.values(), list(rights.tickets)
    assert sum(values.values()) == active_of(rights.base, tickets)
    assert rights.base.issued_amount <= rights.base_amount
    for holder in rights.holders.values():
        assert all(ticket.amount > 0 for ticket in tickets)
        if isinstance(holder, Currency):
            own = (ticket.amount for ticket in tickets if ticket.currency is holder)
            assert holder.issued_amount == sum(own)
        elif isinstance(holder, Client) and holder.competing:
            assert values[holder.name] == worth_of(holder, tickets)


def graph(random: Random) -> Rights:
    """Up to six currencies, funded by some of those before them, and clients of any of them."""
    rights = Rights(10_000)
    currencies = ["base"]
    for index in range(random.randint(1, 6)):
        name = f"currency{index}"
        rights.add_currency(name, inflators=[f"owner{index % 2}"])
        for funder in random.sample(currencies, random.randint(1, min(2, len(currencies)))):
            rights.issue(random.randint(1, 500), funder, to=name)
        currencies.append(name)
    for index in range(random.randint(1, 6)):
        rights.add_client(f"client{index}")
        for _ in range(random.randint(1, 2)):
            currency = random.choice(currencies)
            rights.issue(random.randint(1, 300), currency, to=f"client{index}")
        rights.start(f"client{index}")
    return rights


class AtRandom:
    """Does one thing after the other to rights."""

    def __init__(self, rights: Rights, random: Random) -> None:
        self.rights = rights
        self.random = random
        self.loans: list[Loan] = []

    def anybody(self) -> str:
        return self.random.choice(list(self.rights.holders))

    def ticket(self) -> Ticket | None:
        tickets = list(self.rights.tickets)
        return self.random.choice(tickets) if tickets else None

    def amount(self) -> float:
        bad = self.random.random() < 0.1
        return self.random.choice([0, -1, float("nan"), 1e308] if bad else [0.3, 7, 50, 400])

    def by(self) -> str | None:
        return self.random.choice([None, None, None, "owner0", "owner1", self.anybody()])

    def once(self) -> None:
        """One operation, which may be refused."""
        rights, ticket = self.rights, self.ticket()
        kind = self.random.randrange(7)
        if kind == 0:
            rights.issue(self.amount(), self.anybody(), to=self.anybody(), by=self.by())
        elif kind == 1 and ticket:
            rights.destroy(ticket, by=self.by())
        elif kind == 2 and ticket:
            part = self.random.choice([None, self.amount()])
            rights.transfer(ticket, self.anybody(), part, by=self.by())
        elif kind == 3:
            to = {self.anybody(): self.amount() for _ in range(self.random.randint(1, 2))}
            self.loans.append(rights.lend(self.anybody(), to, by=self.by()))
        elif kind == 4 and self.loans:
            rights.give_back(self.random.choice(self.loans))
        elif kind == 5:
            rights.start(self.anybody())
        elif kind == 6:
            rights.stop(self.anybody())


@given(st.integers(0, 2**32))
def test_values_sum_to_the_base_whatever_happens(seed: int) -> None:
    random = Random(seed)
    rights = graph(random)
    check(rights)
    play = AtRandom(rights, random)
    for _ in range(OPERATIONS):
        before = picture(rights)
        try:
            play.once()
        except InputError as refused:
            assert "\n" not in str(refused)
            assert picture(rights) == before
        check(rights)


@given(st.integers(0, 2**32))
def test_whoever_inflates_only_its_own_currency_harms_nobody_outside(seed: int) -> None:
    """An owner does as it likes inside its currency: others have exactly what they had."""
    random = Random(seed)
    rights = Rights(1000)
    for tenant in ("mine", "theirs"):
        rights.add_currency(tenant, inflators=[tenant])
        rights.issue(random.randint(1, 500), "base", to=tenant)
        for index in range(3):
            enter(rights, f"{tenant}{index}", random.randint(1, 9), tenant)
    others = {name: value for name, value in rights.values().items() if "theirs" in name}
    for _ in range(OPERATIONS):
        kind, own = random.randrange(3), f"mine{random.randrange(3)}"
        ticket, amount = random.choice(list(rights.tickets)), random.choice([1, 10**9])
        try:
            if kind == 0:
                currency = random.choice(["mine", "theirs", "base"])
                rights.issue(amount, currency, own, by="mine")
            elif kind == 1 and len(rights.tickets) > 10:
                rights.destroy(ticket, by="mine")
            else:
                rights.transfer(ticket, own, by="mine")
        except InputError:
            pass
        now = rights.values()
        assert {name: now[name] for name in others} == others


@given(st.integers(0, 2**32))
def test_loans_that_all_come_back_leave_no_trace(seed: int) -> None:
    random = Random(seed)
    rights = graph(random)
    before = picture(rights)
    loans = []
    clients = [name for name in rights.holders if name.startswith("client")]
    for _ in range(8):
        lender, *to = random.sample(clients, min(len(clients), random.randint(2, 4)))
        if to:
            loans.append(rights.lend(lender, {name: random.randint(1, 5) for name in to}))
            check(rights)
    random.shuffle(loans)
    for loan in loans:
        rights.give_back(loan)
        check(rights)
    assert picture(rights) == before
