"""Bad input becomes one line that names the key, what was found and what is allowed."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from env.base.errors import InputError
from env.base.schema import LINE_CHARACTERS, Recorded, Strict, as_line, one_line, validated


class Circle(Strict):
    kind: Literal["circle"]
    radius: float = Field(gt=0)


class Square(Strict):
    kind: Literal["square"]
    side: float = Field(gt=0)


class Drawing(Strict):
    title: str
    style: Literal["plain", "dotted"] = "plain"
    shapes: dict[str, Annotated[Circle | Square, Field(discriminator="kind")]]
    layers: tuple[Circle, ...] = ()
    frame: Square | None = None
    step: int | None = Field(default=None, alias="every")
    dashes: Annotated[tuple[float, ...], Field(min_length=2)] = (1, 2)
    filled: bool = False
    extra: Any = None


KEYS = "dashes, every, extra, filled, frame, layers, shapes, style, title"


class Note(Recorded):
    text: str


GOOD: dict[str, Any] = {
    "title": "t",
    "style": "dotted",
    "shapes": {"a": {"kind": "circle", "radius": 1}, "b": {"kind": "square", "side": 2}},
    "layers": [{"kind": "circle", "radius": 3}],
    "frame": {"kind": "square", "side": 9},
    "every": 2,
    "dashes": [1, 0.5],
    "filled": True,
    "extra": [True],
}


def test_good_input() -> None:
    drawing = validated(Drawing, GOOD, "drawing.yaml")
    assert isinstance(drawing.shapes["b"], Square)
    assert drawing.step == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": 3}, "title: Input should be a valid string, found 3"),
        ({"frame": {"kind": "square", "side": True}}, "frame.side: a number is needed, found True"),
        ({"title": "???"}, "title: missing, it has no default and must be given"),
        ({"style": "doted"}, "style: Input should be 'plain' or 'dotted', found 'doted'"),
        (
            {"shapes": {"a": {"kind": "circel"}}},
            "shapes.a: Input tag 'circel' found using 'kind' does not match any of the expected "
            "tags: 'circle', 'square'",
        ),
        ({"shapes": {"a": {"radius": 1}}}, "shapes.a.kind: missing, required"),
        (
            {"shapes": {"a": {"kind": "square"}}, "layers": [{"kind": "circle"}]},
            "shapes.a.side, layers.0.radius: missing, required",
        ),
        (
            {"shapes": {"a": {"kind": "square", "side": -1}}},
            "shapes.a.side: Input should be greater than 0, found -1",
        ),
        (
            {"frame": {"kind": "square", "side": float("nan")}},
            "frame.side: Input should be a finite number, found nan",
        ),
        ({"dashes": []}, "dashes: Tuple should have at least 2 items after validation, not 0"),
        ({"zzz": 2}, f"zzz: unknown key, allowed: {KEYS}"),
        ({"evry": 2}, "evry: unknown key, did you mean 'every'?"),
    ],
)
def test_bad_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        validated(Drawing, GOOD | changes, "drawing.yaml")
    assert str(caught.value) == f"drawing.yaml: {message}"


def test_a_whole_that_is_no_mapping() -> None:
    with pytest.raises(InputError, match="^drawing.yaml: a mapping is needed, found a list of 1$"):
        validated(Drawing, [1], "drawing.yaml")


def test_what_others_wrote_is_read_leniently_but_not_converted() -> None:
    assert validated(Note, {"text": "???", "more": 1}, "note.json").text == "???"
    with pytest.raises(InputError, match="^note.json: text: Input should be a valid string"):
        validated(Note, {"text": 3}, "note.json")


@pytest.mark.parametrize("length", [LINE_CHARACTERS + 1, 20 * LINE_CHARACTERS, 10**8])
def test_of_a_long_text_a_line_shows_both_ends(length: int) -> None:
    line = one_line(f"first\n{'x' * length}\x1b last")
    assert line.startswith("first x") and line.endswith(r"x\x1b last")
    assert " ... " in line
    assert len(line) <= LINE_CHARACTERS + len(" ... ")
    assert one_line("a\tshort\n  one ") == "a short one"
    assert as_line("key='a  word to\tpaste'\nof two") == r"key='a  word to\tpaste' of two"
