"""What a live cluster refuses, of a platform and of a scheduler: one line, and nothing changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.live import LiveCluster
from agents.own_rule import OwnRule, RuleCode, Source
from agents.scheduler import Decision
from env.base.errors import InputError
from env.learn.layouts import Placement
from env.sim.block import CHANGING
from tests.agents.test_live_events import CHAIN, CLUSTER, LONG, OBJECTIVE, InTurn


class Answers(InTurn):
    """Answers what it is told to, or raises it; later, server 0."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)

    def place(self, decision: Decision) -> Placement:
        # Forecasts write into the records, too.
        decision.candidates(decision.function.memory_req)
        answer = self.answers.pop(0) if self.answers else (0, 3)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def late(*answers: Any) -> LiveCluster:
    """At 10, function 0 of `a` has just begun, to end at 20; from 10 on, `b` waits for a place."""
    live = LiveCluster(CLUSTER, [CHAIN, LONG], Answers((0, 3), *answers), OBJECTIVE, 8)
    live.arrived(0.0, "a", "chain")
    assert live.next_assignment(0.0) is not None
    live.server_up(10.0, "s", 0)
    live.started(10.0, "a", 0)
    live.arrived(10.0, "b", "chain")
    return live


def told(live: LiveCluster) -> dict[str, Any]:
    """All that a live cluster knows, but for what has no meaning between calls."""
    state = live.env.state
    used = {
        "scratch": 0,
        "containers": state.cluster[0]["containers_used"],
        "submitted": state.cluster[0]["queue_size"],
        "timers": state.cluster[0]["timers_size"],
        "completed": state.log[0]["completed_count"],
    }
    records = {name: getattr(state, name)[: used.get(name)].tobytes() for name in CHANGING}
    known = {"up": live._up.tolist(), "started": live._started.tolist(), "slots": {**live._slots}}
    return {**records, **known, "asked": live.env.current_function}


def refused(live: LiveCluster, ask: Callable[[], object], *expected: str) -> None:
    before = told(live)
    with pytest.raises(InputError) as error:
        ask()
    line = str(error.value)
    assert line.isprintable() and len(line) < 250
    for part in expected:
        assert part in line
    assert told(live) == before


NEEDED = "a Placement of NUMA node and MB is needed, whole numbers"
NO_PLACEMENTS: list[tuple[Any, str]] = [
    (None, "None"),
    ((np.nan, 1), "(nan, 1)"),
    ((0.0, 3.0), "(0.0, 3.0)"),
    ((True, 3), "(True, 3)"),
    ((0, "a\nb"), r"(0, 'a\nb')"),
    ((10**30, 5), f"({10**30}, 5)"),
]


@pytest.mark.parametrize(("answer", "found"), NO_PLACEMENTS, ids=lambda value: repr(value)[:20])
def test_an_answer_that_is_no_placement(answer: Any, found: str) -> None:
    """Of a scheduler that a live cluster asks, and of a class of the user's own."""
    live = late(answer)
    says = f"place returned {found}, {NEEDED}"
    refused(live, lambda: live.next_assignment(15.0), f"scheduler in turn: {says}")

    source = b"class Mine:\n    def reset(self, *given): pass\n    def place(self, decision): ..."
    rule = OwnRule("Mine", RuleCode("mine.py", "Mine", {}), Source("/mine.py", source))
    rule._rule.place = lambda decision: answer
    with pytest.raises(InputError) as error:
        rule.place(Decision(live.env, OBJECTIVE))
    assert str(error.value) == says


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((-1, 3), "place returned NUMA node -1, allowed: 0 to 1"),
        ((1, 0), "0 MB on NUMA node 0 of server s 1 are not possible"),
        ((0, 5), "5 MB on NUMA node 0 of server s 0 are not possible"),
    ],
)
def test_a_place_that_is_not_possible(answer: Any, says: str) -> None:
    live = late(answer)
    refused(live, lambda: live.next_assignment(15.0), f"scheduler in turn: {says}")


@pytest.mark.parametrize("kind", [InputError, RuntimeError, KeyError, KeyboardInterrupt])
def test_whatever_a_scheduler_raises_changes_nothing(kind: type[BaseException]) -> None:
    """Even of what is late: at 25, function 0 of `a` should have ended at 20."""
    live = late(kind("no idea"))
    before = told(live)
    with pytest.raises(kind, match="no idea"):
        live.next_assignment(25.0)
    assert told(live) == before


@pytest.mark.parametrize("moment", [15.0, 25.0])
def test_after_a_refusal_all_goes_on_as_if_it_had_not_been_asked(moment: float) -> None:
    """What happened before the refused moment can still be told, and the answers are the same."""
    asked, other = late((-1, 3), RuntimeError("no idea")), late()
    for kind in (InputError, RuntimeError):
        with pytest.raises(kind):
            asked.next_assignment(moment)
    assert asked.env.time == 10.0
    for live in (asked, other):
        live.arrived(12.0, "c", "long")
        live.finished(13.0, "a", 0)
    for _ in range(3):
        assert asked.next_assignment(30.0) == other.next_assignment(30.0)
    assert told(asked) == told(other)
