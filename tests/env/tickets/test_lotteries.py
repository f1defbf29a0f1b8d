"""Lotteries: the worked examples, cases 6 to 12, and what the source states about chance.

Each statistical test would fail by chance for one seed in a million (or 500,000 where it looks at
two sides of two figures); the seed is fixed.
"""

import numpy as np
import pytest
from scipy import stats

from env.tickets.lottery import PARTS, begin, draw, offset_of, spread
from env.tickets.records import HEAD, follow, holder
from tests.env.tickets.made import ONE_CHANCE_IN_A_MILLION, Mechanism, counts, made

FIVE = (10, 2, 5, 1, 2)
"""Tickets of figures 3-1 and 3-8, 20 in all."""
CHANCE = 1e-6


def test_draws_are_those_of_the_published_generator() -> None:
    """Reference values of splitmix64 from the seed 1234567."""
    head = np.zeros(1, HEAD)
    head["random"] = 1234567
    drawn = [int(draw(head)) & (2**64 - 1) for _ in range(3)]
    assert drawn == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_case_6_ticket_13_of_20_is_the_third_client_s_and_every_ticket_its_holder_s() -> None:
    expected = np.repeat(np.arange(5), FIVE).tolist()
    assert expected[13] == 2
    nodes = made("lottery", FIVE).shares.nodes
    for ticket, client in enumerate(expected):
        for offset in (ticket * PARTS, ticket * PARTS + PARTS - 1):
            assert holder(nodes, offset) == client


def test_case_7_offsets_on_the_way_down_a_tree() -> None:
    """8 clients, 48 tickets; 10 of them left of the root, 10 left in the right half's left half."""
    nodes = made("lottery", (2, 3, 1, 4, 12, 10, 8, 8)).shares.nodes
    assert nodes["key"][1] == 48 * PARTS
    node, offset, offsets = 1, 25 * PARTS, [25]
    while node < 8:
        node, offset = follow(nodes, node, offset)
        offsets.append(offset // PARTS)
    assert offsets == [25, 15, 15, 3]
    assert node - 8 == 5


@pytest.mark.parametrize("name", ["lottery", "multi_lottery"])
def test_case_8_expected_wins(name: str) -> None:
    allocations = 200_000
    wins = counts(made(name, FIVE).allocate_many(allocations), 5)
    shares = np.array(FIVE) / 20
    deviations = np.sqrt(allocations * shares * (1 - shares))
    # Bonferroni over five clients; with several winners deviations are smaller still.
    bound = stats.norm.isf(CHANCE / 10)
    assert np.all(np.abs(wins - allocations * shares) < bound * deviations)


@pytest.mark.parametrize("n", [25, 2500])
def test_case_8_the_variance_of_wins_is_n_p_1_minus_p(n: int) -> None:
    """So errors grow as the square root of n; variances of samples are chi-square distributed."""
    lots, share = 2000, 0.25
    order = made("lottery", FIVE).allocate_many(lots * n).reshape(lots, n)
    variance = (order == 2).sum(axis=1).var(ddof=1)
    low, high = stats.chi2.interval(1 - CHANCE, lots - 1)
    assert low < (lots - 1) * variance / (n * share * (1 - share)) < high


def test_case_8_the_expected_wait_is_tickets_over_own_tickets() -> None:
    order = made("lottery", FIVE).allocate_many(400_000)
    waits = np.diff(np.flatnonzero(order == 3)) - 1
    expected, deviation = 20 / 1 - 1, np.sqrt(1 - 1 / 20) * 20
    bound = ONE_CHANCE_IN_A_MILLION * deviation / np.sqrt(len(waits))
    assert abs(waits.mean() - expected) < bound


def test_case_9_who_uses_a_fifth_counts_five_times() -> None:
    mechanism = made("lottery", (400, 400))
    while mechanism.allocate() != 1:
        pass
    mechanism.used(1, 0.2)
    assert mechanism.shares.clients["weight"].tolist() == [400 * PARTS, 2000 * PARTS]
    assert mechanism.shares.head["weight"][0] == 2400 * PARTS
    while mechanism.allocate() != 1:  # and only until it has won again
        pass
    assert mechanism.shares.clients["weight"].tolist() == [400 * PARTS, 400 * PARTS]


def begun(winners: int, first: int) -> Mechanism:
    """A superquantum of the five clients whose first ticket is not drawn but given."""
    mechanism = made("multi_lottery", FIVE, winners=winners)
    begin(mechanism.shares, first)
    return mechanism


def offsets_of(winners: int) -> list[float]:
    """Of the winners in the order of their numbers, if the first has the ticket 13."""
    head = begun(winners, 13 * PARTS).shares.head
    return [offset_of(head, number) / PARTS for number in range(winners)]


@pytest.mark.parametrize("first", range(20))
def test_case_10_two_and_one_of_four_quanta_whatever_is_drawn(first: int) -> None:
    for part in (0, 1, PARTS - 1):
        of_four = counts(begun(4, first * PARTS + part).allocate_many(4), 5)
        assert of_four[0] >= 2 and of_four[2] >= 1


@pytest.mark.parametrize("winners", [3, 4, 7, 16])
def test_case_10_whole_quanta_of_a_share_are_certain(winners: int) -> None:
    certain = winners * np.array(FIVE) // 20
    order = made("multi_lottery", FIVE, winners=winners).allocate_many(500 * winners)
    for lot in order.reshape(500, winners):
        assert np.all(counts(lot, 5) >= certain)


def order_of(winners: int) -> list[int]:
    """The numbers of the winners in their turn."""
    numbers, step = [], 0
    for _ in range(winners):
        number, step = spread(step, winners)
        numbers.append(number)
    return numbers


def test_case_11_offsets_of_the_winners_and_their_order() -> None:
    in_order = offsets_of(4)
    assert in_order == [13, 18, 3, 8]
    assert [in_order[number] for number in order_of(4)] == [13, 3, 18, 8]
    assert offsets_of(2) == [13, 3]
    assert begun(4, 13 * PARTS).allocate_many(4).tolist() == [2, 0, 4, 0]


@pytest.mark.parametrize("winners", [1, 2, 3, 16, 39])
def test_case_11_every_winner_has_its_turn(winners: int) -> None:
    assert sorted(order_of(winners)) == list(range(winners))


@pytest.mark.parametrize("what", ["join", "leave", "change"])
def test_case_12_a_change_ends_the_superquantum(what: str) -> None:
    mechanism = made("multi_lottery", (*FIVE, 1), winners=16)
    mechanism.leave(5)
    mechanism.allocate_many(3)
    before = mechanism.shares.head["random"][0]
    mechanism.allocate()
    assert mechanism.shares.head["random"][0] == before  # within one nothing is drawn
    operations = {
        "join": lambda: mechanism.join(5, 1),
        "leave": lambda: mechanism.leave(3),
        "change": lambda: mechanism.change(3, 9),
    }
    operations[what]()
    mechanism.allocate()
    assert mechanism.shares.head["taken"][0] == 1
    assert mechanism.shares.head["random"][0] != before
