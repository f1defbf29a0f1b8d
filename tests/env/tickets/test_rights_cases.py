"""The worked examples of rights: cases 1 to 5 of proportional shares."""

from fractions import Fraction

import pytest

from env.tickets.rights import Rights
from tests.env.tickets.made import enter, made


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


def test_case_1_inflation_stays_inside_its_currency(alice_and_bob: Rights) -> None:
    enter(alice_and_bob, "task4", 100, "bob", by="bob")
    assert alice_and_bob.rate("bob") == 10
    values = {"task1": 2000, "task2": 1000, "task3": 1000, "task4": 1000}
    assert alice_and_bob.values() == values


def test_case_2_who_stops_leaves_its_value_to_the_others(alice_and_bob: Rights) -> None:
    alice_and_bob.stop("task1")
    assert alice_and_bob.values() == {"task2": 3000, "task3": 2000}
    assert alice_and_bob.rate("alice") == 30


def test_case_2_the_last_of_a_currency_deactivates_its_backing(alice_and_bob: Rights) -> None:
    alice_and_bob.stop("task1")
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
