r"""Values of the model as JSON values, and back, by the fields of their classes: the keys of a report are their names.

Text is such that every reader takes it. Lone surrogates (undecodable output of a driver) are written as ``\udc80``:
strict JSON readers refuse them. What is read is checked, and refused with the name of the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from itertools import repeat
from types import UnionType
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from quiesce.model.findings import Finding, Quotation, RoundReadings
from quiesce.model.program_run import MemoryHistory, ProgramRun
from quiesce.model.results import Result
from quiesce.model.wording import redacted

Value = TypeVar("Value")

OPTIONAL: Final[Mapping[type, frozenset[str]]] = {
    Finding: frozenset({"readings", "call_sites", "seen", "tests", "kept", "quoted"}),
    ProgramRun: frozenset({"failed_calls", "out_of_memory"}),
    RoundReadings: frozenset({"rounds"}),
    Result: frozenset({"attempt", "must_conclude", "caught", "rounds", "not_checked", "timeline", "program"}),
}
"""Fields that are written only if they differ from their default."""
UNWRITTEN: Final[Mapping[type, frozenset[str]]] = {Finding: frozenset({"failed_call"})}
"""Fields that no report has: the facts behind a text that it does have."""


class RecordError(ValueError):
    """A JSON value does not have the shape of a result; the text names the key."""


class Codec(NamedTuple):
    """How values of one type become JSON values, and how a JSON value of a name is read as one."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def record_of(value: Any) -> dict[str, Any]:
    """Return a value of the model as a JSON object."""
    kind: Any = type(value)
    record: dict[str, Any] = _codec(kind).write(value)
    return record


def value_from(kind: type[Value], record: object) -> Value:
    """Return the value that :func:`record_of` wrote. Raises :class:`RecordError` for any other shape."""
    hint: Any = kind
    try:
        value: Value = _codec(hint).read(record, f"a {kind.__name__.lower()}")
    except ValueError as error:  # an enumeration says itself what it does not have
        raise RecordError(str(error)) from None
    return value


def encodable(text: str) -> str:
    """Return text that JSON can hold; secrets in command lines do not get into a report."""
    return redacted(text).encode("utf-8", "backslashreplace").decode("utf-8")


def mapping_of(value: object, meaning: str) -> Mapping[str, Any]:
    """Return a JSON object. Raises :class:`RecordError`, which names its ``meaning``, for anything else."""
    if not isinstance(value, dict):
        raise RecordError(f"{meaning} is a JSON object, not {type(value).__name__}")
    return value


def _checked(is_right: Callable[[Any], bool], meaning: str) -> Callable[[Any, str], Any]:
    def read(value: Any, name: str) -> Any:
        if not is_right(value):
            raise RecordError(f"{name} is {meaning}")
        return value

    return read


def _same(value: Any) -> Any:
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_text = _checked(lambda value: isinstance(value, str), "not a string")
_number = _checked(_is_integer, "not an integer")
_items = _checked(lambda value: isinstance(value, list), "not a list")
_integers = _checked(lambda values: all(map(_is_integer, values)), "not a list of integers")


def _read_pair(value: Any, name: str) -> tuple[str, int]:
    pair = mapping_of(value, name)
    return _text(pair.get("rule"), "'rule'"), _number(pair.get("count"), "'count'")


_SIMPLE: Final[Mapping[Any, Codec]] = {
    str: Codec(encodable, _text),
    int: Codec(_same, _number),
    float: Codec(_same, _checked(_is_finite, "not a finite number")),
    bool: Codec(_same, _checked(lambda value: isinstance(value, bool), "neither true nor false")),
    tuple[int, ...]: Codec(list, lambda value, name: tuple(_integers(_items(value, name), name))),
    tuple[str, ...]: Codec(
        lambda texts: list(map(encodable, texts)), lambda value, name: tuple(map(str, _items(value, name)))
    ),
    tuple[str, int]: Codec(lambda pair: {"rule": encodable(pair[0]), "count": pair[1]}, _read_pair),
}


@cache
def _codec(hint: Any) -> Codec:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    first, *_ = get_args(hint) or (None,)
    if get_origin(hint) is UnionType:  # or None
        some = _codec(first)
        return Codec(
            lambda value: None if value is None else some.write(value),
            lambda value, name: None if value is None else some.read(value, name),
        )
    if get_origin(hint) is tuple:
        write, read = _codec(first)
        return Codec(
            lambda values: list(map(write, values)),
            lambda value, name: tuple(map(read, _items(value, name), repeat(f"an item of {name}"))),
        )
    if issubclass(hint, StrEnum):
        return Codec(str, lambda value, name: hint(_text(value, name)))
    return _codec_of_class(hint)


def _codec_of_class(kind: type) -> Codec:
    hints, optional = get_type_hints(kind), OPTIONAL.get(kind, frozenset())
    written = [each.name for each in fields(kind) if each.name not in UNWRITTEN.get(kind, frozenset())]
    parts = [(name, f"'{name}'", *_codec(hints[name])) for name in written]
    defaults = {each.name: each.default for each in fields(kind) if each.name in optional}
    sound = _sound if kind in (RoundReadings, Quotation, MemoryHistory) else _same

    def write(value: Any) -> dict[str, Any]:
        record = {}
        for name, _, write_part, _ in parts:
            part = getattr(value, name)
            if name not in optional or part != defaults[name]:
                record[name] = part if write_part is _same else write_part(part)
        return record

    def read(value: Any, name: str) -> Any:
        get = mapping_of(value, name).get
        wanted = ((key, said, part) for key, said, _, part in parts if key not in optional or key in value)
        return sound(kind(**{key: read_part(get(key), said) for key, said, read_part in wanted}))

    return Codec(write, read)


def _sound(value: Any) -> Any:
    """Return a value that pages can draw. Raises :class:`RecordError` for any other."""
    match value:
        case RoundReadings(grown=()):
            raise RecordError("'grown' is not a list of integers with a first one")
        case Quotation(lines=()):
            raise RecordError("'lines' of a quotation is empty")
        case MemoryHistory(moments=moments, series=series) if any(len(each.bytes) != len(moments) for each in series):
            raise RecordError("'series' does not have the bytes of each of 'moments'")
    return value
