"""Validation of declared input: pydantic models in, one clear line out."""

import difflib
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
SHOWN_NAMES = 40
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
            fault = ""
            if key not in fields:
                fault = f"unknown key, {nearest(str(key), sorted(fields))}"
            elif isinstance(value, str) and value == "???":  # Hydra's mark
                fault = "missing, it has no default and must be given"
            elif isinstance(value, bool) and fields[key].annotation in (int, float):
                # Pydantic takes true and false for 1 and 0.
                fault = f"a number is needed, found {value}"
            if fault:
                raise PydanticCustomError("of_key", "{fault}", {"key": key, "fault": fault})
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


def _ascending(bounds: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if bounds is not None and list(bounds) != sorted(bounds):
        raise ValueError(f"found {list(bounds)}, ascending numbers are needed")
    return bounds


ASCENDING = AfterValidator(_ascending)
"""For a range or a list of numbers: none may be above the next."""


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
    more = len(names) - SHOWN_NAMES
    return ", ".join(islice(names, SHOWN_NAMES)) + (f" and {more:,} more" if more > 0 else "")


def one_line(text: str) -> str:
    """`as_line` with all white space made one blank."""
    return as_line(" ".join(text.split()))


def as_line(text: str) -> str:
    """`text` as one printable line, its blanks as they are, without the middle of a long text."""
    line = printable(" ".join(text.splitlines()))
    half = LINE_CHARACTERS // 2
    return line if len(line) <= LINE_CHARACTERS else f"{line[:half]} ... {line[-half:]}"


def printable(text: str) -> str:
    """`text` with control characters spelt out: a terminal would obey escape sequences."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def names_file(name: str) -> bool:
    """Whether a file can be called so, and a terminal show it."""
    return name.isprintable() and "/" not in name


def _first_error(data: Any, error: ValidationError) -> str:
    """The place and the words of the first of pydantic's errors; all places that are missing."""
    errors = error.errors(include_url=False)
    first = errors[0]
    kind, context = first["type"], first.get("ctx", {})
    path, message = _written(data, first["loc"]), first["msg"].removeprefix("Value error, ")
    if kind == "of_key":
        path = [*path, str(context["key"])]
    elif kind == "union_tag_not_found":
        path, message = [*path, context["discriminator"].strip("'")], "missing, required"
    elif kind == "missing":
        missing = [each["loc"] for each in errors if each["type"] == kind]
        keys = [".".join([*_written(data, loc[:-1]), str(loc[-1])]) for loc in missing]
        path, message = [listed(keys)], "missing, required"
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        message = f"a mapping is needed, found {short(first['input'])}"
    elif kind not in ("value_error", "union_tag_invalid", "too_short"):  # they say it themselves
        message += f", found {short(first['input'])}"
    return one_line(f"{'.'.join(path)}: {message}" if path else message)


def _written(data: Any, location: Sequence[int | str]) -> list[str]:
    """The keys of an error's place as they were written: pydantic adds tags of unions to them."""
    path = []
    for part in location:
        pairs = enumerate(data) if isinstance(data, list | tuple) else ()
        inner = {str(k): v for k, v in (data.items() if isinstance(data, Mapping) else pairs)}
        if isinstance(part, int) and isinstance(data, Mapping):  # a mapping taken as a list
            part = list(inner)[part]
        if str(part) in inner:
            path.append(str(part))
            data = inner[str(part)]
    return path


def short(value: Any) -> str:
    """A value as an error shows it: no more than `SHOWN_CHARACTERS` of it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
