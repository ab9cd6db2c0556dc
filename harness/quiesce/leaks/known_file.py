"""The file of known leaks: TOML that people review, in a stable order, with one table ``[[leak]]`` for each."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from quiesce.files import write_atomically
from quiesce.leaks.known import KnownLeak
from quiesce.leaks.quantities import FAMILIES
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import bytes_from, exact_size

_KEYS: Final = ("test", "gauge", "up_to", "versions", "reason", "expires")
_HEAD: Final = """\
# Known leaks. A test that leaks more than its entries say fails, and so does a run with an entry that is not needed.
# Written by pytest --quiesce-leak-write-baseline, which keeps reasons and dates but no other comments.
"""


def read_known(path: Path) -> tuple[KnownLeak, ...]:
    """Return the entries of a file.

    Raises :class:`OSError`, and :class:`ConfigurationError` with one line for what makes no sense.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"it is not TOML: {error}") from None
    tables = document.pop("leak", [])
    if document or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        named = next(iter(document), "leak")
        raise ConfigurationError(f"'{named}' is not expected; write one table [[leak]] for each known leak")
    entries: dict[str, KnownLeak] = {}
    for number, table in enumerate(tables, 1):
        entry = _entry(table, f"entry {number}")
        if entry.key in entries:
            raise ConfigurationError(f"entry {number}: there is one for {entry.key} already; remove one")
        entries[entry.key] = entry
    return tuple(entries.values())


def _entry(table: Mapping[str, Any], where: str) -> KnownLeak:
    if unknown := next((key for key in table if key not in _KEYS), ""):
        raise ConfigurationError(f"{where}: there is no '{unknown}'; write {', '.join(_KEYS)}")
    test, reason = _text(table, "test", where), _text(table, "reason", where)
    where = f"{where} ({test})"
    gauge = _text(table, "gauge", where) if "gauge" in table else ""
    up_to = _up_to(table["up_to"], gauge, where) if "up_to" in table else None
    expires = table.get("expires")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        raise ConfigurationError(f"{where}: expires is {expires!r}; write a date without quotes, such as 2027-01-31")
    if up_to is None and expires is None:
        raise ConfigurationError(f"{where}: it would hide any growth for ever; write up_to, or a date that it expires")
    versions, is_size = _versions(table.get("versions", {}), where), isinstance(table.get("up_to"), str)
    return KnownLeak(test, gauge, up_to, reason, versions, expires, is_size)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where}: {key} is {value!r}; write a text")
    return value


def _up_to(value: object, gauge: str, where: str) -> int:
    if not gauge:
        raise ConfigurationError(f"{where}: up_to needs a gauge; write one of {', '.join(FAMILIES)}")
    try:
        amount = bytes_from(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ConfigurationError(f"{where}: up_to is {value!r}; {error}") from None
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 1:
        raise ConfigurationError(f"{where}: up_to is {value!r}; write a size such as '2 KiB', or a whole number")
    return amount


def _versions(value: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(each, str) and each for each in value.values()):
        raise ConfigurationError(f'{where}: versions is {value!r}; write {{ python = "3.12" }}')
    return tuple(sorted(value.items()))


def write_known(path: Path, entries: Iterable[KnownLeak]) -> None:
    """Write a file whole. Raises :class:`OSError`, which names it."""
    write_atomically(path, _HEAD + "".join(map(_table, entries)))


def _table(entry: KnownLeak) -> str:
    lines = ["", "[[leak]]", f"test = {_quoted(entry.test)}"]
    if entry.gauge:
        lines.append(f"gauge = {_quoted(entry.gauge)}")
    if entry.up_to is not None:
        lines.append(f"up_to = {_quoted(exact_size(entry.up_to)) if entry.is_size else entry.up_to}")
    if entry.versions:
        pairs = ", ".join(f"{_key(name)} = {_quoted(version)}" for name, version in entry.versions)
        lines.append(f"versions = {{ {pairs} }}")
    lines.append(f"reason = {_quoted(entry.reason)}")
    if entry.expires is not None:
        lines.append(f"expires = {entry.expires}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON's escapes are valid there, but for halves of characters."""
    return json.dumps(text.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False).replace("\x7f", "\\u007f")
