"""Rights: the worked examples, cases 1 to 5, and what is refused, on small graphs."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from env.base.errors import InputError
from env.tickets.rights import Rights
from tests.documents import refused_in_a_line
from tests.env.tickets.made import enter, made, picture


@pytest.fixture
def alice_and_bob() -> Rights:
    """Waldspurger 1995, figure 2-3."""
    rights = Rights(5000)
    for name in ("alice", "bob"):
        rights.add_currency(name, inflators=[name])
    rights.issue(3000, "base", to="alice")
    rights.issue(2000, "base", to="bob")
    funding = {"task1": (200, "alice"), "task2": (100, "alice"), "task3": (100, "bob")}
    for task, (amount, currency) in funding.items():
        enter(rights, task, amount, currency, by=currency)
    return rights


def test_case_1_values_follow_the_exchange_rates(alice_and_bob: Rights) -> None:
    assert alice_and_bob.values() == {"task1": 2000, "task2": 1000, "task3": 2000}
    assert alice_and_bob.rate("alice") == 10
    assert alice_and_bob.rate("bob") == 20
    # Inflation stays inside its currency.
    enter(alice_and_bob, "task4", 100, "bob", by="bob")
    assert alice_and_bob.rate("bob") == 10
    values = {"task1": 2000, "task2": 1000, "task3": 1000, "task4": 1000}
    assert alice_and_bob.values() == values


def test_case_2_who_stops_leaves_its_value_to_the_others(alice_and_bob: Rights) -> None:
    """The last of a currency deactivates its backing."""
    alice_and_bob.stop("task1")
    assert alice_and_bob.values() == {"task2": 3000, "task3": 2000}
    assert alice_and_bob.rate("alice") == 30
    alice_and_bob.stop("task2")
    assert alice_and_bob.rate("alice") == 0
    assert alice_and_bob.values() == {"task3": 2000}
    alice_and_bob.start("task2")
    assert alice_and_bob.values() == {"task2": 3000, "task3": 2000}


def test_case_3_an_eighth_of_the_tickets_is_an_eighth_of_the_resource() -> None:
    rights = Rights(1000)
    enter(rights, "one", 125)
    enter(rights, "others", 875)
    tickets = rights.whole_tickets()
    mechanism = made("stride", [tickets["one"], tickets["others"]])
    assert (mechanism.allocate_many(8000) == 0).mean() == 0.125


def test_case_4_funding_of_100_times_comes_close_to_priorities() -> None:
    rights = Rights(1_010_101)
    names = ["c1", "c2", "c3", "c4"]
    for level, name in enumerate(names):
        rights.add_currency(name)
        rights.issue(100**level, "base", to=name)
        enter(rights, f"of_{name}", 1, name)
    while len(names) > 1:
        order = made("stride", list(rights.whole_tickets().values())).allocate_many(10_000)
        assert (order == len(names) - 1).mean() >= 0.99
        rights.stop(f"of_{names.pop()}")


def test_case_5_currencies_divide_like_cohorts_of_quotas() -> None:
    rights = Rights(300)
    for group in ("a", "b"):
        rights.add_currency(group)
        rights.issue(1, "base", to=group)
    for child, weight in {"a1": 1, "a2": 1, "a3": 3, "b1": 7}.items():
        enter(rights, child, weight, child[0])
    shares = {name: 300 * value / 2 for name, value in rights.values().items()}
    assert shares == {"a1": 30, "a2": 30, "a3": 90, "b1": 150}
    assert sum(rights.values().values()) == Fraction(2)


@pytest.fixture
def rights() -> Rights:
    """Base 100; currency `team`, which `boss` may inflate, has 60 of it; `guest` has 40."""
    made = Rights(100)
    made.add_currency("team", inflators=["boss"])
    made.issue(60, "base", to="team")
    for name, amount, currency in (("ann", 1, "team"), ("ben", 2, "team"), ("guest", 40, "base")):
        enter(made, name, amount, currency)
    return made


def test_a_whole_ticket_is_transferred(rights: Rights) -> None:
    (ticket,) = rights.held_by("guest")
    rights.transfer(ticket, to="ann", by="guest")
    assert rights.values() == {"ann": 60, "ben": 40, "guest": 0}
    assert list(rights.whole_tickets()) == ["ann", "ben"]


def test_a_part_of_a_ticket_is_transferred_and_tickets_are_conserved(rights: Rights) -> None:
    (ticket,) = rights.held_by("guest")
    part = rights.transfer(ticket, to="ann", amount=10, by="guest")
    assert str(part) == "10.base" and str(ticket) == "30.base"
    assert rights.values() == {"ann": 30, "ben": 40, "guest": 30}
    assert rights.base.issued_amount == 100


def test_a_loan_is_split_and_comes_back_as_it_was(rights: Rights) -> None:
    before = picture(rights)
    loan = rights.lend("guest", {"ann": 1, "ben": 3}, by="guest")
    rights.stop("guest")
    assert rights.values() == {"ann": 30, "ben": 70}
    rights.give_back(loan)
    rights.start("guest")
    assert picture(rights) == before


def test_borrowed_tickets_can_be_lent_further_and_come_back_to_the_first_lender(
    rights: Rights,
) -> None:
    before = picture(rights)
    first = rights.lend("guest", "ann")
    second = rights.lend("ann", {"ben": 1, "guest": 1})
    assert rights.values() == {"ann": 0, "ben": 70, "guest": 30}
    rights.give_back(first)
    assert rights.values() == {"ann": 0, "ben": 50, "guest": 50}
    rights.give_back(second)
    assert picture(rights) == before


def test_a_tenth_is_a_tenth() -> None:
    rights = Rights(1)
    rights.add_client("c")
    for _ in range(10):
        rights.issue(0.1, "base", to="c")
    assert rights.base.issued_amount == 1


def test_one_of_very_little_gets_a_whole_ticket() -> None:
    rights = Rights(10**9)
    enter(rights, "rich", 10**9 - 1)
    enter(rights, "poor", 1)
    assert rights.whole_tickets() == {"rich": 2**20, "poor": 1}


def ticket_of(rights: Rights, name: str) -> Any:
    return rights.held_by(name)[0]


def destroy_twice(rights: Rights) -> None:
    ticket = rights.issue(1, "team", to="ann")
    rights.destroy(ticket)
    rights.destroy(ticket)


def cycle_through_what_is_lent(rights: Rights) -> None:
    rights.add_currency("x")
    rights.add_currency("y")
    rights.issue(1, "x", to="y")
    rights.lend("y", "ann")
    rights.issue(1, "y", to="x")


ALLOWED = "numbers of 1e-09 to 1e+12 are allowed"
REFUSED: dict[str, tuple[Callable[[Rights], Any], str]] = {
    "zero": (lambda r: r.issue(0, "team", to="ann"), f"amount: 0, {ALLOWED}"),
    "no number": (lambda r: r.issue(True, "team", to="ann"), f"amount: True, {ALLOWED}"),
    "base": (
        lambda r: r.issue(1, "base", to="ann"),
        "amount: 1 more of 'base', of which 0 of 100 are left",
    ),
    "unknown currency": (
        lambda r: r.issue(1, "taem", to="ann"),
        "currency: 'taem' is unknown, did you mean 'team'?",
    ),
    "two of one name": (
        lambda r: r.add_client("team"),
        "name: 'team' is that of a currency already, names are unique",
    ),
    "later cycle": (cycle_through_what_is_lent, "currency: 'x', a cycle: x -> y -> x"),
    "backed base": (
        lambda r: r.issue(1, "team", to="base"),
        "holder: 'base' is the base currency and needs no backing",
    ),
    "inflation": (
        lambda r: r.issue(1, "team", to="ann", by="ann"),
        "by: 'ann' may not inflate 'team', allowed: boss",
    ),
    "theft": (
        lambda r: r.transfer(ticket_of(r, "guest"), to="ann", by="ann"),
        "by: 'ann' may not pass on tickets of 'guest', allowed: guest",
    ),
    "too large a part": (
        lambda r: r.transfer(ticket_of(r, "guest"), to="ann", amount=41),
        "amount: 41 of 40.base, which has 40",
    ),
    "to oneself": (
        lambda r: r.lend("ann", {"ben": 1, "ann": 1}),
        "to: a mapping, one or more others than 'ann' are needed",
    ),
    "destroyed": (destroy_twice, "ticket: 1.team has been destroyed"),
}


@pytest.mark.parametrize("operation, line", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_why(
    rights: Rights, operation: Callable[[Rights], Any], line: str
) -> None:
    with refused_in_a_line(line):
        operation(rights)
    assert sum(rights.values().values()) == 100


def test_a_lent_ticket_cannot_be_given_away(rights: Rights) -> None:
    rights.lend("guest", "ann")
    lent = next(ticket for ticket in rights.held_by("ann") if ticket.loans)
    with pytest.raises(InputError, match="40.base is lent by 'guest' and cannot be given away"):
        rights.transfer(lent, to="ben", by="ann")


def test_tickets_of_a_currency_without_backing_are_worth_nothing(rights: Rights) -> None:
    for name in ("outer", "inner"):
        rights.add_currency(name)
    rights.issue(1, "outer", to="inner")
    enter(rights, "new", 1, "inner")
    assert rights.values() == {"ann": 20, "ben": 40, "guest": 40, "new": 0}
