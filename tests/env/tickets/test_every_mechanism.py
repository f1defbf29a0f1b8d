"""What every mechanism can do: join, leave, change, parts of quanta, quanta of one's own."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.tickets.records import MECHANISMS, NOBODY, left_of
from tests.env.tickets.made import SEED, Mechanism, counts, made

every = pytest.mark.parametrize("name", MECHANISMS)
TIMED = [name for name in MECHANISMS if name != "drf"]
"""Those that share time; `drf` shares what is held at a time (test_drf.py)."""
of_time = pytest.mark.parametrize("name", TIMED)
LOTTERIES = {"lottery", "multi_lottery"}


def tolerance(name: str, allocations: int) -> float:
    """Of shares: five deviations of a lottery at most, or a few quanta."""
    return 2.5 / math.sqrt(allocations) if name in LOTTERIES else 4 / allocations


@every
def test_shares_follow_tickets_through_joins_leaves_and_changes(name: str) -> None:
    mechanism = made(name, (3, 2, 1))

    def played() -> list[float]:
        wins = counts(mechanism.allocate_many(6000), 4)
        if name == "drf":  # so that nothing is left of the time before
            for client, held in enumerate(wins):
                mechanism.give_back(client, held)
        return (wins / 6000).tolist()

    near = tolerance(name, 6000)
    assert played() == pytest.approx([1 / 2, 1 / 3, 1 / 6, 0], abs=near)
    mechanism.leave(0)
    assert played() == pytest.approx([0, 2 / 3, 1 / 3, 0], abs=near)
    mechanism.join(0, 5)
    assert played() == pytest.approx([5 / 8, 2 / 8, 1 / 8, 0], abs=near)
    mechanism.change(2, 3)
    assert played() == pytest.approx([5 / 10, 2 / 10, 3 / 10, 0], abs=near)


Uses = Callable[[np.random.Generator], Sequence[float]]
PARTS: dict[str, tuple[tuple[int, ...], Uses]] = {
    "each its own": ((3, 2, 1), lambda draw: (draw.random(), 1.0, 0.3 + 3 * draw.random())),
    "unlike, whosever": ((3, 2, 1), lambda draw: [draw.choice([0.1, 0.5, 2.4])] * 3),
    "case 9, a fifth": ((400, 400), lambda draw: (1.0, 0.2)),
    "case 9, as it likes": ((400, 400), lambda draw: (1.0, draw.random())),
    "case 9, two and a half": ((400, 400), lambda draw: (1.0, 2.5)),
}


@of_time
@pytest.mark.parametrize("tickets, uses", PARTS.values(), ids=PARTS)
def test_the_resource_is_shared_by_tickets_whatever_part_of_quanta_is_used(
    name: str, tickets: tuple[int, ...], uses: Uses
) -> None:
    mechanism, draw = made(name, tickets), np.random.default_rng(SEED)
    amounts = np.zeros(len(tickets))
    for _ in range(40_000):
        client = mechanism.allocate()
        amount = uses(draw)[client]
        mechanism.used(client, amount)
        amounts[client] += amount
    near = 0.04 if name in LOTTERIES else 0.001
    assert amounts / amounts.sum() == pytest.approx(np.array(tickets) / sum(tickets), rel=near)


@of_time
def test_the_resource_is_shared_by_tickets_whatever_quanta_clients_ask_for(name: str) -> None:
    mechanism = Mechanism(name, 3, SEED, quantum=20.0)
    quanta = np.array([10.0, 20.0, 60.0])
    for client, quantum in enumerate(quanta):
        mechanism.join(client, (3, 2, 1)[client], float(quantum))
    amounts = quanta * counts(mechanism.allocate_many(30_000), 3)
    near = 0.03 if name in LOTTERIES else 0.001
    assert amounts / amounts.sum() == pytest.approx([1 / 2, 1 / 3, 1 / 6], abs=near)


@of_time
def test_use_known_late_counts_too(name: str) -> None:
    """Sixteen quanta are out at once, and what each used is known when the next but 15 begins."""
    mechanism = made(name, (1, 1))
    out: list[int] = []
    amounts = np.zeros(2)
    for _ in range(20_000):
        client = mechanism.allocate()
        out.append(client)
        if len(out) == 16:
            ended = out.pop(0)
            amount = (0.25, 1.0)[ended]
            mechanism.used(ended, amount)
            amounts[ended] += amount
    near = 0.03 if name in LOTTERIES else 0.002
    assert amounts[0] / amounts.sum() == pytest.approx(0.5, abs=near)


@of_time
def test_use_that_is_known_after_a_client_has_left(name: str) -> None:
    mechanism = made(name, (1, 1, 1))
    client = mechanism.allocate()
    mechanism.leave(client)
    mechanism.used(client, 9.0)
    mechanism.join(client, 1)
    order = mechanism.allocate_many(12).tolist()
    if name not in LOTTERIES:
        assert order.count(client) <= 2


@of_time
def test_who_leaves_after_each_turn_and_comes_back_at_once(name: str) -> None:
    """Its share of the turns of two: half, but where each leave begins another superquantum.

    Of 8 winners the second is the other client, so that turns go `1` or `0, 1`, equally likely.
    """
    mechanism, count = made(name, (1, 1)), 10_000
    turns = [0, 0]
    for _ in range(count):
        client = mechanism.allocate()
        turns[client] += 1
        if client == 1:
            mechanism.leave(1)
            mechanism.join(1, 1)
    expected = 2 / 3 if name == "multi_lottery" else 1 / 2
    assert turns[1] / count == pytest.approx(expected, abs=tolerance(name, count))


@every
def test_a_seed_gives_one_order_in_one_call_or_in_many(name: str) -> None:
    order = made(name, range(1, 20)).allocate_many(200).tolist()
    again = made(name, range(1, 20))
    assert [again.allocate() for _ in range(200)] == order
    other = made(name, range(1, 20), seed=np.random.SeedSequence(7))
    assert (other.allocate_many(200).tolist() != order) == (name in LOTTERIES)


@every
@given(seed=st.integers(0, 2**32))
def test_at_random_only_those_that_compete_are_chosen(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    slots = int(random.integers(1, 12))
    half_life = float(random.choice([math.inf, 5.0]))
    mechanism = Mechanism(name, slots, SEED, half_life=half_life)
    competing: dict[int, int] = {}
    for step in range(200):
        client, tickets = int(random.integers(slots)), int(random.choice([1, 5, 1 << 20]))
        kind = random.integers(8)
        mechanism.tell_time(step * 0.5)
        if kind == 0 and client not in competing:
            mechanism.join(client, tickets, float(random.choice([0.01, 1.0, 300.0])))
            competing[client] = tickets
        elif kind == 1 and client in competing:
            mechanism.leave(client)
            del competing[client]
        elif kind == 2 and client in competing:
            mechanism.change(client, tickets)
            competing[client] = tickets
        elif kind > 2:
            chosen = mechanism.allocate()
            assert (chosen == NOBODY) == (not competing) and (chosen in competing or not competing)
            if chosen != NOBODY and kind > 5:
                mechanism.used(chosen, float(random.choice([0.0, 0.3, 1.0, 70.0])))
        head = mechanism.shares.head[0]
        assert head["competing"] == len(competing)
        assert head["tickets"] == sum(competing.values())
        if name in LOTTERIES:
            weights = mechanism.shares.clients["weight"]
            assert head["weight"] == sum(int(weights[one]) for one in competing)


# Use remembered with a half-life.


def remembered_rate(mechanism: Mechanism, client: int) -> float:
    """Quanta per second, a mean in which the weight of the past halves per half-life."""
    head, own = mechanism.shares.head[0], mechanism.shares.clients[client]
    return float(left_of(own, head) * math.log(2.0) / head["half_life"])


def test_case_25_constant_use_counts_more_and_more() -> None:
    """Use of 2 a second, told in steps of a thousandth of a half-life."""
    mechanism = made("stride", [1], half_life=100.0)
    remembered = []
    for step in range(1, 3001):
        mechanism.tell_time(step * 0.1)
        mechanism.allocate()
        mechanism.used(0, 2 * 0.1)
        if step % 1000 == 0:
            remembered.append(remembered_rate(mechanism, 0))
    assert remembered == pytest.approx([1, 1.5, 1.75], rel=1e-3)


@every
def test_who_was_away_gets_more_for_a_while_and_then_its_share(name: str) -> None:
    """One client uses all for ten half-lives before another with as many tickets comes."""
    mechanism = made(name, [1], slots=2, half_life=100.0)
    seconds = 0.0

    def share_of_the_other(quanta: int) -> float:
        nonlocal seconds
        order = []
        for _ in range(quanta):
            seconds += 1.0
            mechanism.tell_time(seconds)
            order.append(mechanism.allocate())
            if name == "drf" and len(order) > 50:  # of which so many run at once
                mechanism.give_back(order[-51], 1.0)
        while name == "drf" and order[-50:]:
            mechanism.give_back(order.pop(), 1.0)
            if len(order) < quanta - 50:
                break
        return float(counts(np.array(order), 2)[1] / len(order))

    assert share_of_the_other(1000) == 0
    mechanism.join(1, 1)
    assert share_of_the_other(60) > 0.6
    share_of_the_other(2000)
    assert share_of_the_other(2000) == pytest.approx(0.5, abs=0.06)
