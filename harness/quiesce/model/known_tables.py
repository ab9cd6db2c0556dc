"""Files of known leaks and known errors, which a user accepts: TOML with one table for each entry, for review."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from quiesce.model.errors import ConfigurationError


def known_tables(path: Path, name: str) -> list[dict[str, Any]]:
    """Return the tables ``[[name]]`` of a file of known leaks or errors, which has no others.

    Raises :class:`OSError`, and :class:`ConfigurationError` with one line for what makes no sense.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"it is not TOML: {error}") from None
    tables = document.pop(name, [])
    if document or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        named = next(iter(document), name)
        raise ConfigurationError(f"'{named}' is not expected; write one table [[{name}]] for each known {name}")
    return tables


def lines_of_tables(path: Path, name: str) -> list[int]:
    """Return the line of each header ``[[name]]``; more than there are tables where a text of the file has such a line.

    :mod:`tomllib` does not say where a table begins. Raises :class:`OSError`.
    """
    header = re.compile(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]")
    lines = path.read_text(encoding="utf-8").split("\n")
    return [number for number, line in enumerate(lines, 1) if header.match(line)]


def refuse_other_keys(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Raise :class:`ConfigurationError` for a key of a table that is none of ``keys``."""
    if unknown := next((key for key in table if key not in keys), ""):
        raise ConfigurationError(f"{where}: there is no '{unknown}'; write {', '.join(keys)}")


def text_in(table: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text that a table has to have. Raises :class:`ConfigurationError` where it has none."""
    value = table.get(key, "")
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where}: {key} is {value!r}; write a text")
    return value


def expiry_in(table: Mapping[str, Any], where: str) -> date | None:
    """Return the date in ``expires``, if there is one. Raises :class:`ConfigurationError` for another value."""
    expires = table.get("expires")
    if expires is None or (isinstance(expires, date) and not isinstance(expires, datetime)):
        return expires
    raise ConfigurationError(f"{where}: expires is {expires!r}; write a date without quotes, such as 2027-01-31")
