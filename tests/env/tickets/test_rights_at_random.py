"""Random graphs of currencies under random operations, against a recount from scratch."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.tickets.rights import Rights
from env.tickets.ticket import Client, Currency, Loan, Ticket
from tests.env.tickets.pictures import holders, picture

OPERATIONS = 60


def recounted_value(ticket: Ticket) -> Fraction:
    """The value of an active ticket, by its definition and slowly."""
    unit = ticket.currency
    if unit.name == "base":
        return ticket.amount
    worth = sum((recounted_value(each) for each in unit.held if each.active), Fraction(0))
    active = sum(each.amount for each in unit.issued if each.holder.active)
    return ticket.amount * worth / active


def check(rights: Rights) -> None:
    """Everything that must hold at any time."""
    values = rights.values()
    assert sum(values.values()) == rights.base.active_amount
    assert rights.base.issued_amount <= rights.base_amount
    for holder in holders(rights):
        for ticket in holder.held:
            assert ticket.holder is holder and ticket in ticket.currency.issued
            assert ticket.active == holder.active
            assert ticket.amount > 0
            assert all(ticket in loan.pieces and loan in loan.lender.loans for loan in ticket.loans)
        for loan in holder.loans:
            assert all(loan in piece.loans for piece in loan.pieces)
        if isinstance(holder, Currency):
            issued = list(holder.issued)
            assert holder.issued_amount == sum(each.amount for each in issued)
            assert holder.active_amount == sum(each.amount for each in issued if each.active)
            assert all(each in each.holder.held for each in issued)
        elif holder.competing:
            recounted = sum(map(recounted_value, holder.held), Fraction(0))
            assert values[holder.name] == recounted


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
        return self.random.choice(holders(self.rights)).name

    def ticket(self) -> Ticket | None:
        tickets = [ticket for holder in holders(self.rights) for ticket in holder.held]
        return self.random.choice(tickets) if tickets else None

    def amount(self) -> float:
        bad = self.random.random() < 0.1
        return self.random.choice([0, -1, float("nan"), 1e308] if bad else [0.3, 7, 50, 400])

    def by(self) -> str | None:
        return self.random.choice([None, None, None, "owner0", "owner1", self.anybody()])

    def once(self) -> None:
        """One operation, which may be refused."""
        rights, ticket = self.rights, self.ticket()
        kind = self.random.randrange(8)
        if kind == 0:
            rights.issue(self.amount(), self.anybody(), to=self.anybody(), by=self.by())
        elif kind == 1 and ticket:
            rights.destroy(ticket, by=self.by())
        elif kind == 2 and ticket:
            rights.resize(ticket, self.amount(), by=self.by())
        elif kind == 3 and ticket:
            part = self.random.choice([None, self.amount()])
            rights.transfer(ticket, self.anybody(), part, by=self.by())
        elif kind == 4:
            to = {self.anybody(): self.amount() for _ in range(self.random.randint(1, 2))}
            self.loans.append(rights.lend(self.anybody(), to, by=self.by()))
        elif kind == 5 and self.loans:
            rights.give_back(self.random.choice(self.loans))
        elif kind == 6:
            rights.start(self.anybody())
        elif kind == 7:
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
            name = f"{tenant}{index}"
            rights.add_client(name)
            rights.issue(random.randint(1, 9), tenant, to=name)
            rights.start(name)
    others = {name: value for name, value in rights.values().items() if "theirs" in name}
    for _ in range(OPERATIONS):
        kind, own = random.randrange(4), f"mine{random.randrange(3)}"
        ticket = random.choice(list(rights.currency("mine").issued))
        anything = random.choice(list(rights.base.issued) + list(rights.currency("theirs").issued))
        try:
            if kind == 0:
                rights.issue(
                    random.choice([1, 10**6]),
                    random.choice(["mine", "theirs", "base"]),
                    own,
                    by="mine",
                )
            elif kind == 1:
                rights.resize(
                    random.choice([ticket, anything]), random.choice([1, 10**9]), by="mine"
                )
            elif kind == 2 and len(rights.currency("mine").issued) > 3:
                rights.destroy(random.choice([ticket, anything]), by="mine")
            else:
                rights.transfer(anything, own, by="mine")
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
    clients = [each.name for each in holders(rights) if isinstance(each, Client)]
    for _ in range(8):
        lender, *to = random.sample(clients, min(len(clients), random.randint(2, 4)))
        if not to or not rights.client(lender).held:
            continue
        loans.append(rights.lend(lender, {name: random.randint(1, 5) for name in to}))
        check(rights)
    random.shuffle(loans)
    for loan in loans:
        rights.give_back(loan)
        check(rights)
    assert picture(rights) == before


@pytest.mark.long
def test_a_chain_of_a_thousand_currencies_is_no_problem() -> None:
    rights = Rights(1)
    above = "base"
    for level in range(1000):
        rights.add_currency(f"c{level}")
        rights.issue(1, above, to=f"c{level}")
        above = f"c{level}"
    rights.add_client("last")
    rights.issue(3, above, to="last")
    rights.start("last")
    assert rights.values() == {"last": 1}
    rights.stop("last")
    assert rights.base.active_amount == 0
