"""Memory rules on states small enough to work out by hand."""

import pytest

from agents.memory.required import Required
from agents.memory.stingy import Stingy
from agents.rule_kinds import MemoryRule
from agents.scheduler import Decision
from tests.agents.moments import BALANCED, Fn, moment


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (Required(name="required"), 1001),
        (Stingy(name="stingy", ratio=0.5), 501),
        (Stingy(name="stingy", ratio=0.001), 2),
        (Stingy(name="stingy", ratio=1.0), 1001),
    ],
)
def test_a_share_of_what_is_required_rounded_up(rule: MemoryRule, given: int) -> None:
    decision = Decision(moment(ask=Fn(memory=1001)).env, BALANCED, (rule.ratio,))
    assert decision.placement(1) == (1, given)
