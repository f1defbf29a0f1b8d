"""A folder of configs of somebody else cannot make a value grow, nor read the environment."""

import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from env.base.errors import InputError
from run.command import plain, run
from run.interpolation import check_named, check_written, leaves

TEXT = "\n".join(["a0: laugh", *(f"a{n}: '${{a{n - 1}}}${{a{n - 1}}}'" for n in range(1, 50))])
TREE = "\n".join(
    ["a0: {x: 1}", *(f"a{n}: {{x: '${{a{n - 1}}}', y: '${{a{n - 1}}}'}}" for n in range(1, 50))]
)
NOT_ALLOWED = "an interpolation has to be the whole value and of the form ${KEY}"
NAMES_MANY = "an interpolation of a mapping or list, only of single values is allowed"
WORLD = "# @package _global_\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        # What is merged with a mapping is resolved while the config is composed.
        (TEXT + "\nobjective: ${a49}", "a1: '${a0}${a0}': " + NOT_ALLOWED),
        (TREE, "a1.x: " + NAMES_MANY),
        ("algo: {a: [1], b: '${.a}'}", "algo.b: " + NAMES_MANY),
        ("seed: ${oc.env:HOME}", "seed: '${oc.env:HOME}': " + NOT_ALLOWED),
        ("seed: ${oc.decode:${oc.env:HOME}}", "seed: '${oc.decode:${oc.env:HOME}}': "),
        ("algo: {hidden: [64, '${oc.create:[1]}']}", "algo.hidden.1: '${oc.create:[1]}': "),
        ('resume: "\\x24{seed}x"', "resume: '${seed}x': "),  # as YAML may write a dollar
        (r"resume: \\${seed}x", "seed}x': " + NOT_ALLOWED),  # two backslashes are one, no text
        ("seed: " + "${" * 5_000, "seed: '${${${"),
        ("defaults: ['/objective@objective: ${oc.env:HOME}']", "defaults.0: "),
        ("hydra: {run: {dir: '${oc.env:HOME}'}}", "hydra.run.dir: '${oc.env:HOME}': at most 10 "),
    ],
)
def test_interpolations_of_others(
    content: str,
    says: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = elsewhere / "theirs" / "experiment" / "laughs.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(WORLD + content)
    for how in ([], ["--cfg", "job", "--resolve"]):
        told = ["train.py", "--config-dir", "theirs", "experiment=laughs", *how]
        monkeypatch.setattr(sys, "argv", told)
        with pytest.raises(SystemExit) as caught:
            run(lambda config: pytest.fail("it ran"), "train", lambda config: None)
        assert caught.value.code == 2
        error = capsys.readouterr().err
        assert says in error
        assert str(file) in error or NAMES_MANY in error
        assert error.startswith("error: ") and error.count("\n") == 1 and len(error) < 400


def test_what_is_allowed(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = elsewhere / "mine" / "experiment" / "own.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"{WORLD}seed: 7\nworkload: {{seed: '${{seed}}', note: 'a\\${{b}}'}}\n")
    told = ["--config-dir", "mine", "experiment=own", "budget.minutes=${.iterations}"]
    more = ["budget.iterations=3", "hydra.run.dir=runs/${now:%Y}/${seed}"]
    monkeypatch.setattr(sys, "argv", ["train.py", *told, *more])
    seen: list[tuple[int, int, str]] = []

    def main(config: dict) -> None:
        found = plain(config)
        workload = found["workload"]
        seen.append((workload["seed"], found["budget"]["minutes"], workload["note"]))

    run(main, "train", lambda config: None)
    assert seen == [(7, 3, "a${b}")]
    assert [path.name for path in elsewhere.glob("runs/*/*")] == ["7"]


def test_leaves_of_a_tree() -> None:
    tree = {"a": {"b": 1, "c": {}}, "d": [2, {"e": []}], "f": None}
    assert dict(leaves("k", tree)) == {
        "k.a.b": 1,
        "k.a.c": {},
        "k.d.0": 2,
        "k.d.1.e": [],
        "k.f": None,
    }
    assert list(leaves("", {})) == [("", {})]


def test_a_folder_may_have_ten_interpolations() -> None:
    check_written("hydra.run.dir", 10 * "${seed}", "x")
    with pytest.raises(InputError, match="at most 10"):
        check_written("hydra.run.dir", 11 * "${seed}", "x")


def test_lists_are_not_named_either() -> None:
    check_named(OmegaConf.create({"a": [1, "${b}"], "b": 2, "c": "???", "d": "${c}"}))
    with pytest.raises(InputError, match=r"^a\.1: an interpolation of a"):
        check_named(OmegaConf.create({"a": [1, "${b}"], "b": [2]}))
