"""Memory rules on states small enough to work out by hand."""

import pytest

from agents.memory.required import Required
from agents.memory.stingy import Stingy
from tests.agents.moments import Fn, moment


def test_required_gives_all() -> None:
    assert Required(name="required").allocate(moment(ask=Fn(memory=333))) == 333


@pytest.mark.parametrize(("ratio", "given"), [(0.5, 501), (0.001, 2), (1.0, 1001)])
def test_stingy_gives_a_share_rounded_up(ratio: float, given: int) -> None:
    assert Stingy(name="stingy", ratio=ratio).allocate(moment(ask=Fn(memory=1001))) == given
