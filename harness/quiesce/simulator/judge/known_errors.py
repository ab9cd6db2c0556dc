"""The file of errors that a user accepts: TOML with one table ``[[error]]`` for each, in the way of known leaks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import Frame

_KEYS: Final = ("function", "line", "code", "reason", "expires")


@dataclass(frozen=True, slots=True)
class KnownError:
    """Calls of ``function`` that may fail at ``line``, which is ``FILE:LINE``; ``*`` stands for anything in both.

    ``line`` is empty where any place will do, ``code`` None where any error will.
    """

    function: str
    line: str
    code: int | None
    reason: str
    expires: date | None

    def covers(self, function: str, code: int, frames: tuple[Frame, ...]) -> bool:
        """Say whether it is about a call that failed with ``code``, made by ``frames``."""
        if not fnmatchcase(function, self.function) or self.code not in (None, code):
            return False
        if self.expires is not None and date.today() > self.expires:
            return False
        return not self.line or any(_is_at(frame, self.line) for frame in frames)

    def __str__(self) -> str:
        return f"{self.function} at {self.line}" if self.line else self.function


def _is_at(frame: Frame, line: str) -> bool:
    return any(
        fnmatchcase(place, line) or fnmatchcase(place, f"*/{line}") for place in (frame.place, frame.shown_place)
    )


def read_known_errors(path: Path) -> tuple[KnownError, ...]:
    """Return the entries of a file. Raises :class:`ConfigurationError` with one line for what makes no sense."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: it can't be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: it is not TOML: {error}") from None
    tables = document.pop("error", [])
    if document or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        named = next(iter(document), "error")
        raise ConfigurationError(f"{path}: '{named}' is not expected; write one table [[error]] for each known error")
    return tuple(_entry(table, f"{path}: entry {number}") for number, table in enumerate(tables, 1))


def _entry(table: Mapping[str, Any], where: str) -> KnownError:
    if unknown := next((key for key in table if key not in _KEYS), ""):
        raise ConfigurationError(f"{where}: there is no '{unknown}'; write {', '.join(_KEYS)}")
    function, reason = _text(table, "function", where), _text(table, "reason", where)
    where = f"{where} ({function})"
    line = _text(table, "line", where) if "line" in table else ""
    code, expires = table.get("code"), table.get("expires")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise ConfigurationError(f"{where}: code is {code!r}; write the number of an error, such as 907")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        raise ConfigurationError(f"{where}: expires is {expires!r}; write a date without quotes, such as 2027-01-31")
    return KnownError(function, line, code, reason, expires)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where}: {key} is {value!r}; write a text")
    return value
