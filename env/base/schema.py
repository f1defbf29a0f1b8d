"""Validation of declared input: pydantic models in, one clear line out."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Tag,
    ValidationError,
)

from env.base.errors import InputError

LEFT_OUT = "???"
"""Hydra's mark for a value that must be given."""
NOT_GIVEN = "missing, it has no default and must be given"
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


class Recorded(BaseModel):
    """Base of what other programs write: unknown keys are left alone, types are not converted."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)


Model = TypeVar("Model", bound=BaseModel)

Weight = Annotated[float, Field(gt=0, le=1e9)]
"""Of one among several that are drawn from; sums stay finite."""
LOWER_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""For words that may be written in capitals."""
TenantName = Annotated[str, Field(pattern=r"^[\w.-]{1,40}$")]
"""Of whom workflows belong to: letters, digits, `_`, `.` and `-`, as it fits beside a chart."""


def validated(model: type[Model], data: Any, where: str) -> Model:
    """Builds `model` from `data`.

    Args:
        model: a pydantic model. Unions in it are to be told apart by a discriminator.
        data: plain mapping, as read from a file or composed by Hydra.
        where: what to call the source in an error: a file name or a config group.

    Raises:
        InputError: one line with the source, the key, what was found and what is allowed.
    """
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{where}: {_first_error(model, error)}") from None
    if issubclass(model, Strict):
        for key, wrong in _let_pass(data, made):
            raise InputError(f"{where}: {key}: {wrong}")
    return made


def as_range(value: Any) -> Any:
    """A whole number as the range of it alone, for fields that take both."""
    return (value, value) if isinstance(value, int) else value


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a field, refused if two of them would be called the same.

    Raises:
        ValueError: one is given twice.
    """
    names = [f"{value:g}" if isinstance(value, float) else value for value in values]
    if len(set(names)) < len(names):
        raise ValueError(f"one of {list(values)} is given twice")
    return values


def nothing_or(least: float) -> AfterValidator:
    """For an amount that may be 0: refuses what is less than `least` and not 0."""

    def check(amount: float) -> float:
        if 0 < amount < least:
            raise ValueError(f"found {amount}, 0 or at least {least} is needed")
        return amount

    return AfterValidator(check)


def given(what: str) -> BeforeValidator:
    """For a value that has no default: refuses `???` and says what must be given."""

    def check(value: Any) -> Any:
        if value == LEFT_OUT:
            raise ValueError(f"missing, {what} must be given")
        return value

    return BeforeValidator(check)


def nearest(word: str, allowed: Sequence[str], prefix: str = "") -> str:
    """`did you mean 'x'?`, or the allowed words where none is near.

    Args:
        word: as given.
        allowed: what it may be.
        prefix: that all of them have, and which makes none of them nearer.
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
    return as_line(" ".join(_ends(text, 10 * LINE_CHARACTERS).split()))


def as_line(text: str) -> str:
    """`text` as one line of a terminal, its blanks as they are.

    What a terminal would obey, as escape sequences, is spelt out. Of a long text the middle is left
    out.
    """
    # The first cut spares the work on megabytes.
    lines = _ends(text, 10 * LINE_CHARACTERS).splitlines()
    return _ends(printable(" ".join(lines)), LINE_CHARACTERS)


def _ends(text: str, most: int) -> str:
    """`text` without its middle if it is longer than `most`."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def printable(text: str) -> str:
    """`text` with control characters spelt out, as escape sequences of terminals."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def names_file(name: str) -> bool:
    """Whether a file can be called so, and a terminal show it."""
    return name.isprintable() and "/" not in name


def _let_pass(data: Any, made: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Keys and faults of what pydantic takes: `???` as a text, true and false as numbers.

    Args:
        data: as given.
        made: what pydantic made of it.
        path: keys that lead to both.
    """
    if isinstance(data, str) and data == LEFT_OUT:
        yield ".".join(path), NOT_GIVEN
    elif isinstance(data, bool) and isinstance(made, int | float) and made is not data:
        yield ".".join(path), f"a number is needed, found {data}"
    elif isinstance(data, Mapping | list | tuple):
        for key, value in data.items() if isinstance(data, Mapping) else enumerate(data):
            if type(value) not in (int, float):  # most of a large file
                yield from _let_pass(value, _part(made, key), (*path, str(key)))


def _part(made: Any, key: Any) -> Any:
    """What pydantic made of one entry; None where the whole was given another form."""
    if isinstance(made, Mapping):
        return made.get(key)
    if isinstance(made, list | tuple):
        return made[key] if isinstance(key, int) and key < len(made) else None
    if not isinstance(made, BaseModel):
        return None
    values = vars(made)
    if key in values:
        return values[key]
    fields = type(made).model_fields.items()
    return next((values[name] for name, field in fields if field.alias == key), None)


def _first_error(model: type[BaseModel], error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    # A misspelt key is both unknown and missing: the unknown one tells the reader more.
    first = min(errors, key=lambda found: found["type"] != "extra_forbidden")
    place = _Place((), model).follow(first["loc"])
    key, kind, context = ".".join(place.path), first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        return one_line(f"{key}: unknown key, {nearest(place.path[-1], place.outer_keys)}")
    if kind == "missing":
        missing = [each["loc"] for each in errors if each["type"] == "missing"]
        keys = [".".join(_Place((), model).follow(location).path) for location in missing]
        return one_line(f"{listed(keys)}: missing, required")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = ".".join((*place.path, str(context["discriminator"]).strip("'")))
        if kind == "union_tag_not_found":
            return one_line(f"{key}: missing, required; allowed: {listed(place.tags)}")
        tag = str(context["tag"])
        return one_line(f"{key}: {short(tag)} is unknown, {nearest(tag, place.tags)}")
    found = first["input"]
    if found == LEFT_OUT and kind != "value_error":
        return one_line(f"{key}: {NOT_GIVEN}")
    if kind == "literal_error" and isinstance(found, str):
        words = [str(word) for word in get_args(_bare(_options(place.annotation)[0]))]
        return one_line(f"{key}: {short(found)} is unknown, {nearest(found, words)}")
    message = str(first["msg"]).removeprefix("Value error, ")
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        message = "a mapping is needed"
    if kind in ("tuple_type", "list_type"):
        message = "a list is needed"
    if kind in ("too_short", "too_long"):
        bound = "at least" if kind == "too_short" else "at most"
        count = context[f"{'min' if kind == 'too_short' else 'max'}_length"]
        message = f"{bound} {count} {'entry is' if count == 1 else 'entries are'} needed"
    # A validator's own text already says what it found.
    shown = "" if kind == "value_error" else f", found {short(found)}"
    return one_line(f"{key}: {message}{shown}" if key else f"{message}{shown}")


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


@dataclass(frozen=True)
class _Place:
    """Where an error is: the keys a user wrote, and what the model declares there.

    Attributes:
        path: keys and list positions, without the tags pydantic adds for unions.
        annotation: the type declared at that place, None where nothing is declared.
        outer_keys: known keys of the mapping that holds the last key.
    """

    path: tuple[str, ...]
    annotation: Any
    outer_keys: tuple[str, ...] = ()

    @property
    def tags(self) -> list[str]:
        """Names of the alternatives of a union."""
        return [tag for option in _options(self.annotation) for tag in _tags_of(option)]

    def follow(self, location: tuple[int | str, ...]) -> "_Place":
        """The place reached along an error location of pydantic."""
        place = self
        for part in location:
            place = place._step(part)
        return place

    def _step(self, part: int | str) -> "_Place":
        options = _options(self.annotation)
        if len(options) > 1:
            chosen = [option for option in options if part in _tags_of(option)]
            if chosen:
                return _Place(self.path, chosen[0], self.outer_keys)
        model = _bare(options[0]) if options else None
        path = (*self.path, str(part))
        if isinstance(model, type) and issubclass(model, BaseModel):
            fields = {field.alias or name: field for name, field in model.model_fields.items()}
            field = fields.get(str(part))
            # A second argument is needed even where the field has no metadata.
            declared = Annotated[field.annotation, *field.metadata, None] if field else None
            return _Place(path, declared, tuple(sorted(fields)))
        if get_origin(model) in (dict, Mapping):
            return _Place(path, get_args(model)[1])
        if get_origin(model) in (list, tuple):
            items = get_args(model)
            inner = items[part] if isinstance(part, int) and part < len(items) else items[0]
            return _Place(path, inner)
        return _Place(path, None)


def _bare(annotation: Any) -> Any:
    """The type without the metadata of `Annotated`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _options(annotation: Any) -> list[Any]:
    """The alternatives of a union but None, each with its metadata; one where it is no union."""
    bare = _bare(annotation)
    if annotation is None or bare is type(None):
        return []
    if get_origin(bare) is None or get_origin(bare) in (dict, Mapping, list, tuple, Literal):
        return [annotation]
    return [option for inner in get_args(bare) for option in _options(inner)]


def _tags_of(option: Any) -> list[str]:
    """What pydantic may call one alternative of a union in an error location."""
    marked = [part.tag for part in get_args(option) if isinstance(part, Tag)]
    if marked:
        return marked
    model = _bare(option)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return []
    # One word tells alternatives apart; where none has one word alone, the first does so.
    literals = [
        get_args(field.annotation)
        for field in model.model_fields.values()
        if get_origin(field.annotation) is Literal
    ]
    alone = [words for words in literals if len(words) == 1]
    return [str(word) for words in alone or literals[:1] for word in words]
