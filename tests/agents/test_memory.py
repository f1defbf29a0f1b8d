"""Memory rules on states small enough to work out by hand."""

import pytest

from agents.memory.required import Required
from agents.memory.stingy import Stingy
from agents.memory.tiered import Tiered
from tests.agents.moments import FAST, FAST_TOO, LONG, SLOW, Fn, moment


def test_required_gives_all() -> None:
    assert Required(name="required").allocate(moment(ask=Fn(memory=333))) == 333


@pytest.mark.parametrize(("ratio", "given"), [(0.5, 501), (0.001, 2), (1.0, 1001)])
def test_stingy_gives_a_share_rounded_up(ratio: float, given: int) -> None:
    assert Stingy(name="stingy", ratio=ratio).allocate(moment(ask=Fn(memory=1001))) == given


@pytest.mark.parametrize(
    ("held", "given"),
    [
        (0, 1000),
        (240, 750),  # 760 MB are free
        (250, 750),
        (251, 500),
        (500, 500),
        (501, 1000),  # no tier could start at once: all, and it waits
    ],
)
def test_tiered_gives_what_can_start_at_once(held: int, given: int) -> None:
    taken = [(FAST, Fn(LONG, 4000)), (FAST_TOO, Fn(LONG, 4000))]
    if held:
        taken.append((SLOW, Fn(LONG, held)))
    rule = Tiered(name="tiered", tiers=(0.5, 1.0, 0.75))
    assert rule.allocate(moment(*taken, ask=Fn(memory=1000))) == given


def test_tiered_takes_what_is_free_by_the_time_it_starts() -> None:
    # The slow node is full until 10 + 1 s; the others, cold, start at 60 s and are empty.
    everywhere = moment((SLOW, Fn(1000, 1000)), ask=Fn(memory=1000))
    assert Tiered(name="tiered", tiers=(0.5, 1.0)).allocate(everywhere) == 1000
