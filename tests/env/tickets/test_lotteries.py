"""Lotteries: the worked examples, cases 6 to 12, and what the source states about chance.

Each statistical test would fail by chance for one seed in a million (or 500,000 where it looks at
two sides of two figures); the seed is fixed.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from env.tickets import lottery, trees
from env.tickets.lottery import PARTS, begin, draw, offset_of, spread
from env.tickets.records import HEAD
from tests.env.tickets.made import ONE_CHANCE_IN_A_MILLION, SEED, Mechanism, counts, made

FIVE = (10, 2, 5, 1, 2)
"""Tickets of figures 3-1 and 3-8, 20 in all."""
CHANCE = 1e-6
SINGLE = ["lottery_list", "lottery"]
EVERY = [*SINGLE, "multi_lottery"]


def test_draws_are_those_of_the_published_generator() -> None:
    """Reference values of splitmix64 from the seed 1234567."""
    head = np.zeros(1, HEAD)
    head["random"] = 1234567
    drawn = [int(draw(head)) & (2**64 - 1) for _ in range(3)]
    assert drawn == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_case_6_ticket_13_of_20_is_the_third_client_s_and_every_ticket_its_holder_s() -> None:
    expected = np.repeat(np.arange(5), FIVE).tolist()
    assert expected[13] == 2
    in_list, in_tree = made("lottery_list", FIVE).shares, made("lottery", FIVE).shares
    for ticket, client in enumerate(expected):
        for offset in (ticket * PARTS, ticket * PARTS + PARTS - 1):
            assert in_list.nodes["client"][lottery.place_of(in_list.nodes, offset)] == client
            assert trees.holder(in_tree.nodes, offset) == client


def test_case_7_offsets_on_the_way_down_a_tree() -> None:
    """8 clients, 48 tickets; 10 of them left of the root, 10 left in the right half's left half."""
    nodes = made("lottery", (2, 3, 1, 4, 12, 10, 8, 8)).shares.nodes
    assert nodes["key"][1] == 48 * PARTS
    node, offset, offsets = 1, 25 * PARTS, [25]
    while node < 8:
        node, offset = trees.follow(nodes, node, offset)
        offsets.append(offset // PARTS)
    assert offsets == [25, 15, 15, 3]
    assert node - 8 == 5


@pytest.mark.parametrize("name", EVERY)
def test_case_8_expected_wins(name: str) -> None:
    allocations = 200_000
    wins = counts(made(name, FIVE).allocate_many(allocations), 5)
    shares = np.array(FIVE) / 20
    deviations = np.sqrt(allocations * shares * (1 - shares))
    # Bonferroni over five clients; with several winners deviations are smaller still.
    bound = stats.norm.isf(CHANCE / 10)
    assert np.all(np.abs(wins - allocations * shares) < bound * deviations)


@pytest.mark.parametrize("name", SINGLE)
def test_case_8_the_variance_of_wins_is_n_p_1_minus_p(name: str) -> None:
    """Of 20,000 lots of 64 allocations; the variance of a sample is chi-square distributed."""
    lots, n, share = 20_000, 64, 0.25
    order = made(name, FIVE).allocate_many(lots * n).reshape(lots, n)
    variance = (order == 2).sum(axis=1).var(ddof=1)
    low, high = stats.chi2.interval(1 - CHANCE, lots - 1)
    assert low < (lots - 1) * variance / (n * share * (1 - share)) < high


@pytest.mark.parametrize("name", SINGLE)
def test_case_8_the_error_grows_as_the_square_root_of_allocations(name: str) -> None:
    """Mean squared errors of lots 100 times as long are 100 times as large, by an F test."""
    lots, short, long = 1000, 25, 2500
    mechanism = made(name, FIVE)

    def squared_error(n: int) -> float:
        order = mechanism.allocate_many(lots * n).reshape(lots, n)
        return float((((order == 0).sum(axis=1) - n / 2) ** 2).mean())

    low, high = stats.f.interval(1 - CHANCE, lots, lots)
    assert low < squared_error(long) / squared_error(short) / (long / short) < high


def test_case_8_the_expected_wait_is_tickets_over_own_tickets() -> None:
    order = made("lottery", FIVE).allocate_many(400_000)
    waits = np.diff(np.flatnonzero(order == 3)) - 1
    expected, deviation = 20 / 1 - 1, np.sqrt(1 - 1 / 20) * 20
    bound = ONE_CHANCE_IN_A_MILLION * deviation / np.sqrt(len(waits))
    assert abs(waits.mean() - expected) < bound


@pytest.mark.parametrize("name", SINGLE)
def test_case_9_who_uses_a_fifth_counts_five_times(name: str) -> None:
    mechanism = made(name, (400, 400))
    while mechanism.allocate() != 1:
        pass
    mechanism.used(1, 0.2)
    assert mechanism.shares.clients["weight"].tolist() == [400 * PARTS, 2000 * PARTS]
    assert mechanism.shares.head["weight"][0] == 2400 * PARTS
    while mechanism.allocate() != 1:  # and only until it has won again
        pass
    assert mechanism.shares.clients["weight"].tolist() == [400 * PARTS, 400 * PARTS]


def use_of(mechanism: Mechanism, allocations: int, uses: Callable[[], float]) -> tuple[int, float]:
    """Quanta that client 0 used, and what client 1 used with `uses` of each quantum."""
    whole, parts = 0, 0.0
    for _ in range(allocations):
        client = mechanism.allocate()
        if client == 0:
            whole += 1
        else:
            amount = uses()
            mechanism.used(1, amount)
            parts += amount
    return whole, parts


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("use", ["a fifth", "as it likes", "two and a half"])
def test_case_9_the_resource_is_shared_by_tickets_however_much_is_used(name: str, use: str) -> None:
    """Use in 40,000 allocations; a client that varies its use gains nothing.

    The ratio of two clients' uses has a standard deviation below 0.02: that of 40,000 wins of
    probability 1/6 at most, and of as many amounts of which none is above 2.5.
    """
    random = np.random.default_rng(SEED)
    uses = {"a fifth": lambda: 0.2, "as it likes": random.random, "two and a half": lambda: 2.5}
    whole, parts = use_of(made(name, (400, 400)), 40_000, uses[use])
    assert abs(parts / whole - 1) < ONE_CHANCE_IN_A_MILLION * 0.02


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


def test_case_11_offsets_of_the_winners_and_their_order() -> None:
    numbers, step = [], 0
    for _ in range(4):
        number, step = spread(step, 4)
        numbers.append(number)
    in_order = offsets_of(4)
    assert in_order == [13, 18, 3, 8]
    assert [in_order[number] for number in numbers] == [13, 3, 18, 8]
    assert offsets_of(2) == [13, 3]
    assert begun(4, 13 * PARTS).allocate_many(4).tolist() == [2, 0, 4, 0]


@pytest.mark.parametrize("winners", [1, 2, 3, 16, 39])
def test_case_11_every_winner_has_its_turn(winners: int) -> None:
    numbers, step = [], 0
    for _ in range(winners):
        number, step = spread(step, winners)
        numbers.append(number)
    assert sorted(numbers) == list(range(winners))


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


def test_move_to_front_brings_winners_forward_and_changes_no_share() -> None:
    tickets = [1] * 99 + [300]
    mechanism = made("lottery_list", tickets, move_to_front=True)
    wins = counts(mechanism.allocate_many(100_000), 100)
    nodes, clients = mechanism.shares.nodes, mechanism.shares.clients
    assert sorted(nodes["client"][:100]) == list(range(100))
    assert all(nodes["client"][clients["place"][client]] == client for client in range(100))
    assert clients["place"][99] < 5
    bound = ONE_CHANCE_IN_A_MILLION * np.sqrt(100_000 * 300 / 399 * 99 / 399)
    assert abs(wins[99] - 100_000 * 300 / 399) < bound


@pytest.mark.parametrize("name", ["lottery", "multi_lottery"])
def test_who_wins_rarely_gets_no_more_where_quanta_are_unlike(name: str) -> None:
    """Tickets 3 : 2 : 1; functions use 0.1, 0.5 or 2.4 quanta, whosever they are."""
    mechanism, used = made(name, [3, 2, 1]), np.zeros(3)
    for amount in np.random.default_rng(5).choice([0.1, 0.5, 2.4], 60_000).tolist():
        client = mechanism.allocate()
        assert client is not None
        mechanism.used(client, amount)
        used[client] += amount
    assert used / used.sum() == pytest.approx([3 / 6, 2 / 6, 1 / 6], rel=0.04)
