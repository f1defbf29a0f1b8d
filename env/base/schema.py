"""Validation of declared input: pydantic models in, one clear line out."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from env.base.errors import InputError

Model = TypeVar("Model")

SHOWN_CHARACTERS = 60
"""How much of a refused value an error shows."""
SHOWN_NAMES = 50
"""How many of a list of names an error shows."""
LINE_CHARACTERS = 1000
"""How much of an error a line shows, its beginning and its end."""


class Strict(BaseModel):
    """Base of every declared input: immutable, unknown keys and non-finite numbers refused."""

    # Dumped, numbers that are not finite stay what they are: a mapping is checked by who reads it.
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known_and_given(cls, data: Any) -> Any:
        return _with_known_keys(cls.model_fields, data)


@dataclass(frozen=True)
class StrictRecord:
    """As `Strict`, of what Python code builds, too: by the names of the fields, or by position."""

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known_and_given(cls, data: Any) -> Any:
        return _with_known_keys(cls.__pydantic_fields__, data)  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True)
def strict_record(cls: type[Model]) -> type[Model]:
    """Makes a dataclass of a `StrictRecord`; its constructor raises `InputError`."""
    config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_by_name=True)
    record: Any = dataclass(frozen=True, config=config)(cls)
    construct = record.__init__

    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            construct(self, *values, **named)
        except ValidationError as error:
            raise InputError(f"{cls.__name__}: {_first_error(named, error)}") from None

    record.__init__ = init
    made: type[Model] = record
    return made


def _with_known_keys(declared: Mapping[str, FieldInfo], data: Any) -> Any:
    if isinstance(data, Mapping):
        fields = {field.alias or name: field for name, field in declared.items()}
        for key, value in data.items():
            if key not in fields:
                raise _of(key, f"unknown key, {nearest(str(key), sorted(fields))}")
            if isinstance(value, str) and value == "???":  # Hydra's mark
                raise _of(key, "missing, it has no default and must be given")
            # Pydantic takes true and false for 1 and 0.
            if isinstance(value, bool) and fields[key].annotation in (int, float):
                raise _of(key, f"a number is needed, found {value}")
    return data


class Recorded(BaseModel):
    """Base of what other programs write: unknown keys are left alone, types are not converted."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)


Weight = Annotated[float, Field(gt=0, le=1e9)]
"""Of one among several that are drawn from; sums stay finite."""
LOWER_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""For words that may be written in capitals."""
TenantName = Annotated[str, Field(pattern=r"^[\w.-]{1,40}$")]
"""Of whom workflows belong to: letters, digits, `_`, `.` and `-`, as it fits beside a chart."""


def validated(model: type[Model], data: Any, where: str) -> Model:
    """Builds `model` from `data`.

    Args:
        model: a pydantic model, or a `StrictRecord`. Unions in it need a discriminator.
        data: plain mapping, as read from a file or composed by Hydra.
        where: what to call the source in an error: a file name or a config group.

    Raises:
        InputError: one line with the source, the key, what was found and what is allowed.
    """
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        raise InputError(f"{where}: {_first_error(data, error)}") from None


def as_range(value: Any) -> Any:
    """A whole number as the range of it alone, for fields that take both."""
    return (value, value) if isinstance(value, int) else value


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a field, refused with a `ValueError` if two would be called the same."""
    names = [f"{value:g}" if isinstance(value, float) else value for value in values]
    if len(set(names)) < len(names):
        raise ValueError(f"one of {list(values)} is given twice")
    return values


def _ascending(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is not None and bounds[0] > bounds[1]:
        raise ValueError(f"found {list(bounds)}, [low, high] is needed")
    return bounds


ASCENDING = AfterValidator(_ascending)
"""For a range: its first number may not be above the second."""


def nothing_or(least: float) -> AfterValidator:
    """For an amount that may be 0: refuses what is less than `least` and not 0."""

    def check(amount: float) -> float:
        if 0 < amount < least:
            raise ValueError(f"found {amount}, 0 or at least {least} is needed")
        return amount

    return AfterValidator(check)


def nearest(word: str, allowed: Sequence[str], prefix: str = "") -> str:
    """`did you mean 'x'?`, or the allowed words where none is near.

    A `prefix` that all words have makes none of them nearer.
    """
    ends = [each.removeprefix(prefix) for each in allowed]
    close = difflib.get_close_matches(word.removeprefix(prefix), ends, n=1)
    return f"did you mean '{prefix}{close[0]}'?" if close else f"allowed: {listed(allowed)}"


def listed(names: Collection[str]) -> str:
    """`a, b, c`, and how many more there are of a long list."""
    shown = [
        each if len(each) <= SHOWN_CHARACTERS else short(each)
        for each in islice(names, SHOWN_NAMES)
    ]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def one_line(text: str) -> str:
    """`as_line` with all white space made one blank."""
    return as_line(" ".join(text.split()))


def as_line(text: str) -> str:
    """`text` as one line of a terminal, its blanks as they are.

    What a terminal would obey, as escape sequences, is spelt out. Of a long text the middle is left
    out.
    """
    line = printable(" ".join(text.splitlines()))
    half = LINE_CHARACTERS // 2
    return line if len(line) <= LINE_CHARACTERS else f"{line[:half]} ... {line[-half:]}"


def printable(text: str) -> str:
    """`text` with control characters spelt out, as escape sequences of terminals."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def names_file(name: str) -> bool:
    """Whether a file can be called so, and a terminal show it."""
    return name.isprintable() and "/" not in name


def _of(key: Any, fault: str) -> PydanticCustomError:
    """What is wrong with a key of a mapping."""
    return PydanticCustomError("of_key", "{fault}", {"key": str(key), "fault": fault})


def _first_error(data: Any, error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    first = errors[0]
    kind, context, message = first["type"], first.get("ctx", {}), first["msg"]
    path = _written(data, first["loc"], kind)
    found = f", found {short(first['input'])}"
    if kind == "of_key":
        path, found = [*path, context["key"]], ""
    elif kind == "missing":
        keys = [_written(data, each["loc"], kind) for each in errors if each["type"] == kind]
        path, message, found = [listed([".".join(key) for key in keys])], "missing, required", ""
    elif kind.startswith("union_tag"):
        path = [*path, context["discriminator"].strip("'")]
        message, found = "missing, required", ""
        if kind == "union_tag_invalid":
            message = _unknown(context["tag"], context["expected_tags"])
    elif kind == "literal_error" and isinstance(first["input"], str):
        message, found = _unknown(first["input"], context["expected"]), ""
    elif kind == "value_error":  # its own text says what was found
        message, found = message.removeprefix("Value error, "), ""
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        message = "a mapping is needed"
    elif kind in ("tuple_type", "list_type"):
        message = "a list is needed"
    elif kind in ("too_short", "too_long"):  # says how many there are
        found = ""
    return one_line(": ".join([".".join(path), message] if path else [message]) + found)


def _unknown(word: str, expected: str) -> str:
    """What is said of a word that is none of those which pydantic quotes."""
    allowed = re.findall(r"'([^']*)'", expected)
    return f"{short(word)} is unknown, {nearest(word, allowed)}"


def _written(data: Any, location: tuple[int | str, ...], kind: str) -> list[str]:
    """The keys of an error's place as they were written: pydantic adds tags of unions to them."""
    path = []
    for place, part in enumerate(location):
        entries = enumerate(data) if isinstance(data, list | tuple) else ()
        inner = {str(k): v for k, v in (data.items() if isinstance(data, Mapping) else entries)}
        if isinstance(part, int) and isinstance(data, Mapping):  # a mapping taken as a list
            part = list(inner)[part]
        if str(part) in inner or (kind == "missing" and place == len(location) - 1):
            path.append(str(part))
            data = inner.get(str(part))
    return path


def short(value: Any) -> str:
    """A value as an error shows it: no more than `SHOWN_CHARACTERS` of it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
