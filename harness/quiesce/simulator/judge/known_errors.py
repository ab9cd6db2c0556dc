"""The file of errors that a user accepts: TOML with one table ``[[error]]`` for each, in the way of known leaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import Frame
from quiesce.model.known_tables import expiry_in, known_tables, refuse_other_keys, text_in

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
        tables = known_tables(path, "error")
        return tuple(_entry(table, f"entry {number}") for number, table in enumerate(tables, 1))
    except OSError as error:
        raise ConfigurationError(f"{path}: it can't be read ({error.strerror})") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _entry(table: Mapping[str, Any], where: str) -> KnownError:
    refuse_other_keys(table, _KEYS, where)
    function, reason = text_in(table, "function", where), text_in(table, "reason", where)
    where = f"{where} ({function})"
    line = text_in(table, "line", where) if "line" in table else ""
    code, expires = table.get("code"), expiry_in(table, where)
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise ConfigurationError(f"{where}: code is {code!r}; write the number of an error, such as 907")
    return KnownError(function, line, code, reason, expires)
