"""Strict JSON objects: one line from a driver, read field by field, every surprise a :class:`WireError`.

What Python's ``json`` lets pass and RFC 8259 does not promise (duplicate keys, ``NaN``) is refused here, and so is
an unknown key: a mistyped ``"obsevations"`` must not read as "nothing was seen".
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Final, NoReturn, TypeVar

ADDRESS_MAX: Final = (1 << 64) - 1
"""The largest address and the largest size that a driver can name: 64 bits."""
PREVIEW_CHARACTERS: Final = 160

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}\Z")
_Member = TypeVar("_Member", bound=StrEnum)


class WireError(ValueError):
    """A driver's line is not what the protocol allows; the text says what was read and what belongs there."""


def preview(value: object) -> str:
    """Return a short printable form of something a driver wrote, safe for a terminal."""
    try:
        shown = ascii(value)
    except RecursionError:  # json reads a little deeper than ascii() writes
        shown = f"a {type(value).__name__} nested too deeply to show"
    return shorten(shown.removeprefix("b") if isinstance(value, bytes) else shown)


def shorten(text: str) -> str:
    """Return ``text``, cut where it would drown a message."""
    return text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]}… ({len(text)} characters)"


class Fields:
    """The fields of one JSON object, taken one by one; :meth:`finish` refuses those left over."""

    def __init__(self, value: object, where: str) -> None:
        """Begin to read ``value``, which the reading empties; ``where`` names it in errors.

        Raises :class:`WireError` unless it is an object.
        """
        if not isinstance(value, dict):
            raise WireError(f"{where} is {preview(value)}, not a JSON object")
        self._fields: dict[str, object] = value
        self._where = where

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def finish(self) -> None:
        """Refuse what nobody took. Raises :class:`WireError`."""
        for key in self._fields:
            raise WireError(f"{self._where} has the unknown key {preview(key)}")

    def value(self, key: str) -> object:
        """Take a field of any type. Raises :class:`WireError` where it is missing."""
        if key not in self._fields:
            raise WireError(f"{self._where} lacks the key '{key}'")
        return self._fields.pop(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a string, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if not isinstance(value, str) or not _encodable(value):
            return self._refuse(key, value, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Take a string or null."""
        if key in self._fields and self._fields[key] is None:
            del self._fields[key]
            return None
        return self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false, or ``default`` where there is no such key."""
        value = self.value(key) if key in self._fields else default
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false")

    def whole(self, key: str, lowest: int = 0, default: int | None = None) -> int:
        """Take a whole number from ``lowest`` to 2^64 - 1, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if type(value) is not int or not lowest <= value <= ADDRESS_MAX:
            return self._refuse(key, value, f"a whole number from {lowest} to 2^64 - 1")
        return value

    def address(self, key: str) -> int:
        """Take an address: a string such as ``"0x7f00"``, because not every JSON library keeps 64 bits of a number."""
        value = self.value(key)
        if not isinstance(value, str) or not _ADDRESS.match(value):
            return self._refuse(key, value, 'a string of up to 16 hexadecimal digits such as "0x7f00"')
        return int(value, 16)

    def member(self, key: str, kind: type[_Member], default: _Member | None = None) -> _Member:
        """Take one word of an enumeration, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if not isinstance(value, str) or value not in set(kind):
            return self._refuse(key, value, f"one of {', '.join(kind)}")
        return kind(value)

    def members(self, key: str, kind: type[_Member]) -> frozenset[_Member]:
        """Take a list of words of an enumeration."""
        taken = self.items(key)
        for word in taken:
            if not isinstance(word, str) or word not in set(kind):
                self._refuse(key, word, f"only words of {', '.join(kind)}", verb="holds")
        return frozenset(kind(word) for word in taken if isinstance(word, str))

    def items(self, key: str) -> list[object]:
        """Take a list."""
        value = self.value(key)
        return value if isinstance(value, list) else self._refuse(key, value, "a list")

    def keys(self) -> tuple[str, ...]:
        """Return the keys not yet taken, in the order of the line."""
        return tuple(self._fields)

    def _refuse(self, key: str, value: object, wanted: str, verb: str = "is") -> NoReturn:
        raise WireError(f"{self._where}: '{key}' {verb} {preview(value)}, not {wanted}")


def read_object(line: bytes) -> Fields:
    """Return the fields of the one JSON object that ``line`` holds (without its line ending).

    Raises :class:`WireError` for bad UTF-8, anything but one object, duplicate keys, ``NaN`` and its like,
    numbers too long to read, and nesting too deep to read.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"{preview(line)} is not UTF-8 (byte {error.start})") from None
    try:
        value = _DECODER.decode(text)
    except WireError:
        raise
    except RecursionError:
        raise WireError(f"{preview(line)} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise WireError(f"{preview(line)} is not JSON ({error.msg} at column {error.colno})") from None
    except ValueError:  # an integer beyond sys.get_int_max_str_digits()
        raise WireError(f"{preview(line)} holds a number too long to read") from None
    return Fields(value, "the reply")


def _encodable(text: str) -> bool:
    """Whether a report can hold the text: JSON can name half of a surrogate pair, UTF-8 cannot."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise WireError(f"the key {preview(twice)} appears twice in one object")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise WireError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
"""Made once: ``json.loads`` would make one for each line."""
