"""`python evaluate.py` with a rule of the user's own that is refused or fails: in one line."""

import re
from pathlib import Path

import pytest

from evaluate import check, evaluate
from evaluation.contest import Contest
from tests.commands import Command, InProcess, refused
from tests.evaluate_command import interrupted, results_of
from tests.own_rules import LINE_OF_WISH, RULE, TOLD

ODD_RULES = """
class Ok:
    def __init__(self, a=None):
        pass

    def reset(self, env, objective, seed):
        pass

    def place(self, decision):
        pass


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise Odd("mute")


class Raises(Ok):
    def __init__(self, what):
        raise {"odd": Odd("odd"), "closed": GeneratorExit("closed"), "mute": Mute()}[what]


class NoKind(Ok):
    @property
    def kind(self):
        raise AttributeError("no kind")


class NoFit(Ok):
    @property
    def fit(self):
        raise Odd("no fit")


class NoOrder(Ok):
    @property
    def order(self):
        raise Mute


class Unsigned(Ok):
    __signature__ = "no"


class Number(Ok):
    def __new__(cls):
        return 5


class Nothing(Ok):
    def __new__(cls):
        return None


class Mixed(Ok):
    def __new__(cls):
        return Ok()

    def choose(self, decision):
        return 0


class Emptied(Ok):
    def __init__(self):
        self.place = None
"""


@pytest.fixture
def command(in_process: InProcess, tmp_path: Path) -> Command:
    (tmp_path / "my_rules.py").write_text(RULE)
    (tmp_path / "odd.py").write_text(ODD_RULES)
    (tmp_path / "closed.py").write_text("raise GeneratorExit('closed')\n")
    (tmp_path / "left.py").write_text("from os import _exit\n\n_exit(0)\n")
    (tmp_path / "broken.py").write_text("import numpy\n\nnumpy.no_such_thing\n")
    (tmp_path / "untyped.py").write_text("class MyRule\n    pass\n")
    return in_process("evaluate", evaluate, check)


NAMED = "FILE.py:CLASS is needed, or {class: FILE.py:CLASS, PARAMETER: VALUE}, found "
BAD = {
    "no file": ("nowhere.py:MyRule", "baselines: nowhere.py: no such file"),
    "no class named": ("my_rules.py", f"{NAMED}'my_rules.py'"),
    "no name of a class": ("my_rules.py:1st", f"{NAMED}'my_rules.py:1st'"),
    "no such class": ("my_rules.py:MyRul", "no class 'MyRul', did you mean 'MyRule'?"),
    "no class": ("my_rules.py:Placemen", "my_rules.py: no class 'Placemen', "),
    "no method": ("my_rules.py:NoPlace", "my_rules.py:NoPlace has no method place"),
    "no method choose": ("my_rules.py:Undecided", "Undecided has no method choose: "),
    "a method choose for nothing": ("my_rules.py:Outspoken", "a method choose and another order"),
    "no method grant": (
        "my_rules.py:Ungenerous",
        "Ungenerous has no method grant: grant and `order",
    ),
    "a method grant for nothing": ("my_rules.py:Lavish", "a method grant and another order"),
    "an order where none waits": ("my_rules.py:LastFirst", "dispatch=queued is needed"),
    "an unknown kind": ("my_rules.py:Boastful", "kind: 'winner', allowed: learned, baseline"),
    "a word for an order": ("my_rules.py:Ordered", "order: 'fcfs', one of agents/order"),
    "an unknown parameter": (
        "{class: my_rules.py:MyRule, nod: 3}",
        "my_rules.py:MyRule: parameter 'nod' is unknown, did you mean 'node'?",
    ),
    "a missing parameter": (
        "my_rules.py:Needs",
        "parameter 'wish' is missing: {class: my_rules.py:Needs, wish: VALUE}",
    ),
    "a constructor that raises": (
        "{class: my_rules.py:Needs, wish: -1}",
        f"my_rules.py:Needs: line {LINE_OF_WISH}: ValueError: no wish is below 0",
    ),
    "a module that raises": ("broken.py:MyRule", "broken.py: line 3: AttributeError: module"),
    "no Python": ("untyped.py:MyRule", "untyped.py: line 1: SyntaxError: expected ':'"),
    "no class in a mapping": ("{node: 3}", f"{NAMED}a mapping without class"),
    "a class that is no name": ("{class: 5}", f"{NAMED}class: 5"),
    "a module that raises what is no Exception": (
        "closed.py:Ok",
        "closed.py: line 1: GeneratorExit: closed",
    ),
    "a module that ends the process": ("left.py:Ok", "left.py: line 3: SystemExit: os._exit(0)"),
    "what is no Exception": ("{class: odd.py:Raises, what: odd}", ": Odd: odd"),
    "an exit of a generator": ("{class: odd.py:Raises, what: closed}", ": GeneratorExit: closed"),
    "an exception without a text": ("{class: odd.py:Raises, what: mute}", ": Mute"),
    "a kind that raises": ("odd.py:NoKind", ": AttributeError: no kind"),
    "a fit that raises": ("odd.py:NoFit", "odd.py:NoFit: fit: line "),
    "an order that raises": ("odd.py:NoOrder", "odd.py:NoOrder: order: line "),
    "a signature that is none": ("odd.py:Unsigned", "odd.py:Unsigned: TypeError: "),
    "a number made": ("odd.py:Number", "odd.py:Number makes int, which has no method reset"),
    "nothing made": ("odd.py:Nothing", "makes NoneType, which has no method reset"),
    "another one made": ("odd.py:Mixed", "odd.py:Mixed makes Ok, which has no method choose"),
    "a method taken away": ("odd.py:Emptied", "odd.py:Emptied has no method place"),
    "a parameter that is not finite": (
        "{class: odd.py:Ok, a: inf}",
        "odd.py:Ok: parameter 'a': what JSON can hold is needed, as a finite number, found inf",
    ),
    "one in a list": ("{class: odd.py:Ok, a: [nan]}", "as a finite number, found a list of 1"),
    "a number": ("5", "the name of a baseline or FILE.py:CLASS is needed"),
    "a class twice": ("my_rules.py:MyRule,./my_rules.py:MyRule", "'MyRule' is given twice"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_code_gets_one_line(case: str, command: Command) -> None:
    entry, says = BAD[case]
    refused(command(*TOLD, f"baselines=[{entry}]"), says)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Lost", "error: Lost: episode 0 of seed 0: place returned NUMA node 99, allowed: 0 to 3"),
        ("Greedy", "error: Greedy: episode 0 of seed 0: function (0, 0): memory_alloc is 1000000"),
        ("Silent", "error: Silent: episode 0 of seed 0: place returned None, a Placement"),
    ],
)
def test_a_place_that_there_is_not(name: str, says: str, workers: int, command: Command) -> None:
    done = command(*TOLD, f"baselines=[my_rules.py:{name}]", f"workers={workers}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    # Of two processes either may be the first to get there.
    assert re.sub(r"episode \d+", "episode 0", done.err).startswith(says)


@pytest.mark.parametrize(
    ("name", "raised", "line", "workers"),
    [
        ("Broken", "KeyError: 'of nobody'", 'return {}["of nobody"]', 1),
        ("Broken", "KeyError: 'of nobody'", 'return {}["of nobody"]', 2),
        ("Leaves", "SystemExit: 0", "raise SystemExit(0)", 1),
        ("Vanishes", "SystemExit: os._exit(0)", "os._exit(0)", 1),
        ("Closed", "GeneratorExit: closed", 'raise GeneratorExit("closed")', 1),
        ("Refuses", "InputError: ", 'decision.env.step("nowhere", 0, 0, 1)', 1),
    ],
)
def test_what_a_rule_raises_is_shown(
    name: str, raised: str, line: str, workers: int, command: Command, tmp_path: Path
) -> None:
    """One line with what was raised, one with the line of the rule, and no folder is left."""
    told = f"baselines=[random,my_rules.py:{name}]"
    done = command(*TOLD, told, f"workers={workers}", "hydra.run.dir=run")
    assert done.code == 2
    first, below = done.err.splitlines()
    said = re.sub(r"episode \d+", "episode 0", first)
    assert said.startswith(f"error: {name}: episode 0 of seed 0: place raised {raised}")
    number = RULE[: RULE.index(line)].count("\n") + 1
    assert below == f"  my_rules.py: line {number}, in place: {line}"
    assert not (tmp_path / "run").exists()


def test_the_last_lines_of_a_rule_that_calls_itself(command: Command) -> None:
    done = command(*TOLD, "baselines=[my_rules.py:Endless]")
    assert done.code == 2
    first, *below = done.err.splitlines()
    assert "place raised RecursionError: " in first
    assert 1 <= len(below) <= 5
    assert all("in place: return self.place(decision)" in line for line in below)


def test_a_rule_that_fails_in_a_resumed_evaluation_costs_no_rows(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [*TOLD, "baselines=[my_rules.py:Moody]"]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Contest, "play", interrupted(Contest.play))
        command(*told, "hydra.run.dir=run")
    rows = (tmp_path / "run" / "unfinished.jsonl").read_bytes()
    assert rows.count(b"\n") == 1
    (tmp_path / "mood").touch()
    assert command(*told, "resume=run").code == 2
    assert (tmp_path / "run" / "unfinished.jsonl").read_bytes() == rows
    (tmp_path / "mood").unlink()
    assert command(*told, "resume=run").code == 0
    assert len(results_of(tmp_path / "run")) == 2


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        ("# @package _global_\nbaselines: ['my_rules.py:MyRule']\n", []),
        ("# @package _global_\nbaselines: [{class: 'my_rules.py:MyRule', node: 3}]\n", []),
        ("# @package _global_\nworkload: {seed: 'my_rules.py:MyRule'}\n", ["${workload.seed}"]),
    ],
)
def test_a_folder_of_others_names_no_code(
    content: str, typed: list[str], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "theirs" / "experiment").mkdir(parents=True)
    (tmp_path / "theirs" / "experiment" / "mine.yaml").write_text(content)
    (tmp_path / "my_rules.py").write_text("open('executed', 'w')\n" + RULE)
    told = [f"baselines=[{','.join(typed)}]"] if typed else []
    done = command(*TOLD, "experiment=mine", *told, "--config-dir", "theirs")
    refused(done, "my_rules.py:MyRule: only the command line itself may name code")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("- baselines=[my_rules.py:MyRule]", "what runs here is typed: give it again"),
        ("- +hydra.callbacks.mine._target_=my_rules.MyRule", "what runs here is typed"),
        ("- ++ray.runtime_env.py_executable=./theirs", "what runs here is typed"),
        ("cluster: tiny", "overrides.yaml: a list of texts is needed, found a mapping"),
        ("- cluster", "overrides.yaml: 'cluster': no value, KEY=VALUE"),
    ],
)
def test_nor_does_an_evaluation_of_others_that_goes_on(
    told: str, says: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "theirs" / ".hydra").mkdir(parents=True)
    (tmp_path / "theirs" / ".hydra" / "overrides.yaml").write_text(told)
    refused(command("resume=theirs"), says)
