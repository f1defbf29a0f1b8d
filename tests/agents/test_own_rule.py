"""A rule of the user's own: what is taken for one, what it is called, what its errors show."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.own_rule import OwnRule, RuleCode, code_in, own_rules
from agents.scheduler import play
from env.base.errors import InputError
from env.sim.view.raw_env import RawEnv
from tests.agents.moments import BALANCED, TWO_TYPES, Fn, workflow

RULES = """
from agents.order.chosen import Chosen


class First:
    def __init__(self, node=0):
        self.node = node

    def reset(self, env, objective, seed):
        pass

    def choose(self, decision):
        return decision.rows["feasible"].argmax()


class Broken(First):
    def choose(self, decision):
        return {}["of nobody"]


class Leaves(First):
    def choose(self, decision):
        raise SystemExit(0)


class Refuses(First):
    def choose(self, decision):
        decision.env.step("nowhere", 0, 0, 1)


class Lost(First):
    def choose(self, decision):
        return 99


class Unfit(First):
    fit = "nowhere"


class LastFirst(First):
    order = Chosen()


class NoChoice:
    def reset(self, env, objective, seed):
        pass
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rules.py"
    path.write_text(RULES)
    return str(path)


def played(rule: OwnRule) -> RawEnv:
    env = RawEnv([0.0], [workflow(Fn())], TWO_TYPES)
    play(env, rule, BALANCED, np.random.SeedSequence(0))
    return env


def one(file: str, name: str, **parameters: Any) -> OwnRule:
    (rule,) = own_rules([RuleCode(file, name, parameters)], queued=False)
    return rule


def test_a_rule_plays_and_says_what_it_is(file: str) -> None:
    rule = one(file, "First")
    assert (rule.name, rule.kind, rule.fit, rule.order) == ("First", "baseline", "asked", None)
    assert played(rule).done


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "no such class": ("Fist", {}, "no class 'Fist', did you mean 'First'?"),
    "no method": ("NoChoice", {}, "NoChoice has no method choose, reset and choose are needed"),
    "an unknown fit": ("Unfit", {}, "fit is 'nowhere', allowed: first_fit, best_fit, worst_fit"),
    "an order where none waits": ("LastFirst", {}, "dispatch=queued is needed"),
    "an unknown parameter": ("First", {"nod": 3}, "unexpected keyword argument 'nod'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_rule_is_refused(case: str, file: str) -> None:
    name, parameters, says = BAD[case]
    with pytest.raises(InputError) as refused:
        one(file, name, **parameters)
    assert says in str(refused.value)


def test_a_file_that_cannot_be_executed(file: str) -> None:
    Path(file).write_text("class First\n    pass\n")
    with pytest.raises(InputError) as refused:
        one(file, "First")
    assert "SyntaxError: expected ':' (rules.py, line 1)" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says", "line"),
    [
        ("Broken", "choose raised KeyError: 'of nobody'", 'return {}["of nobody"]'),
        ("Leaves", "choose raised SystemExit: 0", "raise SystemExit(0)"),
        ("Refuses", "choose raised InputError: ", 'decision.env.step("nowhere", 0, 0, 1)'),
        ("Lost", "choose: row: a whole number from 0 to 2 is needed, found 99", None),
    ],
)
def test_what_a_rule_does_wrong_is_shown(name: str, says: str, line: str | None, file: str) -> None:
    """With a traceback that begins in its file."""
    with pytest.raises(InputError) as failed:
        played(one(file, name))
    assert str(failed.value).startswith(says)
    if line is not None:
        first = failed.value.__notes__[:2]
        number = RULES[: RULES.index(line)].count("\n") + 1
        assert first == [f'  File "{file}", line {number}, in choose', f"    {line}"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("rules.py", "FILE.py:CLASS, or {class: FILE.py:CLASS, PARAMETER: VALUE} is needed"),
        ({"node": 3}, "is needed, found a mapping"),
    ],
)
def test_what_names_no_class(entry: Any, says: str) -> None:
    with pytest.raises(ValueError) as refused:
        code_in(entry)
    assert says in str(refused.value)


def test_rows_are_told_apart(file: str, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(RULES)
    other = str(tmp_path / "more.py")
    codes = [RuleCode(file, "First", {}), RuleCode(other, "First", {})]
    codes += [RuleCode(file, "First", {"node": value}) for value in (1, True, "1")]
    rules = own_rules(codes, queued=False)
    assert [rule.name for rule in rules] == [
        "rules.py:First",
        "more.py:First",
        "First(node=1)",
        "First(node=true)",
        'First(node="1")',
    ]
    assert len({rule.sha256 for rule in rules}) == 4  # of two files with one content the same
    with pytest.raises(InputError, match="'rules.py:First' is given twice"):
        own_rules([codes[0], codes[0]], queued=False)


def test_another_process_needs_no_file(file: str) -> None:
    rule = one(file, "First", node=3)
    Path(file).unlink()
    kind, given = rule.__reduce__()
    again = kind(*given)
    assert (again.name, again.sha256) == (rule.name, rule.sha256)
