"""Units with ids: conformance cases 2, 3, 5 and 6."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env.base.errors import InputError
from env.resources.instances import Instances
from env.resources.quantity import UNIT, from_text


def units(*amounts: float) -> list[int]:
    return [from_text(str(amount)) for amount in amounts]


def gpus(count: float) -> Instances:
    return Instances("GPU", *units(count), with_ids=True)


def take(instances: Instances, amount: float) -> Any:
    """What is taken of each id."""
    taken = instances.acquire(*units(amount))
    return None if taken is None else taken.tolist()


def test_whole_demands_get_the_first_ids_fractions_the_best_fit() -> None:
    """Resource instance set of Ray: 2 of 4, then 3, then 0.4, 0.7 and 0.3."""
    four = gpus(4)
    assert take(four, 2) == units(1, 1, 0, 0)
    assert take(four, 3) is None and four.left.tolist() == units(0, 0, 1, 1)
    assert take(four, 0.4) == units(0, 0, 0.4, 0)
    assert take(four, 0.7) == units(0, 0, 0, 0.7)
    assert take(four, 0.3) == units(0, 0, 0, 0.3)
    assert four.left.tolist() == units(0, 0, 0.6, 0)


def test_two_halves_never_serve_more_than_a_half() -> None:
    two = gpus(2)
    first, _ = two.acquire(*units(0.5)), two.acquire(*units(0.75))
    half = two.acquire(*units(0.5))
    two.release(two.acquire(*units(0.25)))
    assert half is not None and two.left.tolist() == units(0, 0.25)
    two.release(first)
    assert two.left.tolist() == units(0.5, 0.25) and take(two, 0.75) is None
    assert take(two, 1) is None
    two.release(half)
    assert two.left.tolist() == units(1, 0.25) and take(two, 1) == units(1, 0)


@pytest.mark.parametrize("amount", [1.5, 2.0001])
def test_more_than_one_is_whole_if_units_have_ids(amount: float) -> None:
    with pytest.raises(InputError, match=f"^GPU: {amount} is refused, .* whole number or less"):
        gpus(4).acquire(*units(amount))
    with pytest.raises(InputError, match=f"^GPU: {amount} is refused"):
        gpus(amount)
    cpu = Instances("CPU", *units(4), with_ids=False)
    assert take(cpu, amount) == units(amount) and cpu.available == 4 * UNIT - units(amount)[0]


def test_a_lowered_capacity_takes_what_is_released_first() -> None:
    four = gpus(4)
    three, half = four.acquire(*units(3)), four.acquire(*units(0.5))
    four.set_capacity(*units(2))
    assert (four.total, four.used, four.available) == tuple(units(2, 3.5, 0))
    assert take(four, 0.5) is None
    four.release(half)
    assert (four.available, four.backlog) == tuple(units(0, 1))
    four.release(three)
    assert (four.available, four.backlog) == tuple(units(2, 0))
    assert take(four, 3) is None and take(four, 2) == units(1, 1, 0, 0)


def test_a_raised_capacity_settles_the_backlog_before_ids_are_added() -> None:
    two = gpus(2)
    both = two.acquire(*units(2))
    two.set_capacity(*units(1))
    two.set_capacity(*units(4))
    assert two.backlog == 0 and take(two, 2) == units(0, 0, 1, 1)
    two.release(both)
    assert two.available == 2 * UNIT


@given(
    st.booleans(),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50_000))),
)
def test_all_is_given_back_whatever_happens(
    with_ids: bool, count: int, steps: list[tuple[int, int]]
) -> None:
    """Step 0 takes, 1 gives back, 2 sets the capacity; amounts are whole or fractions with ids."""
    own, held = Instances("x", count * UNIT, with_ids), []
    for step, amount in steps:
        if with_ids and amount > UNIT:
            amount -= amount % UNIT
        if step == 0:
            before = own.left.copy()
            taken = own.acquire(amount)
            if taken is None:
                assert own.left.tolist() == before.tolist()
            else:
                assert taken.sum() == amount and (own.left == before - taken).all()
                held.append(taken)
        elif step == 1 and held:
            own.release(held.pop(amount % len(held)))
        elif step == 2:
            own.set_capacity(amount)
        assert own.used == sum(int(each.sum()) for each in held)
        assert own.available == max(0, own.total - own.used)
        assert own.backlog >= 0 and (own.left >= 0).all()
        assert not with_ids or (own.left <= UNIT).all()
    for taken in held:
        own.release(taken)
    assert (own.used, own.backlog, own.available) == (0, 0, own.total)
