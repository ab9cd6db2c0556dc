"""Tables of a manifest, read key by key: every surprise is an error that names file and key, and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from quiesce.errors import ConfigurationError

_Word = TypeVar("_Word", bound=StrEnum)
_Json = dict[str, object]


class Table:
    """One table of a manifest. Each key is taken once; :meth:`finish` refuses those left over."""

    def __init__(self, value: object, path: Path, where: str = "") -> None:
        self._path: Final = path
        self._where: Final = where
        if not isinstance(value, dict):
            self.refuse(f"{value!r} is no table", f"a table, such as [{where}]")
        self._left: _Json = dict(value)
        self._known: set[str] = set()

    def refuse(self, what: str, instead: str, key: str = "") -> NoReturn:
        """Raise :class:`ConfigurationError`: what is wrong at ``key``, and what to write instead."""
        place = ".".join(filter(None, (self._where, key)))
        raise ConfigurationError(f"{self._path}: {place + ': ' if place else ''}{what}; write {instead}")

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def _take(self, key: str) -> object:
        self._known.add(key)
        return self._left.pop(key, None)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a text that is not empty; without a default it is needed."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            self.refuse("missing" if value is None else f"{value!r} is no text", f'{key} = "…"', key)
        return value

    def optional_text(self, key: str) -> str | None:
        """Take a text, or None where there is none."""
        self._known.add(key)
        return self.text(key) if key in self else None

    def word(self, key: str, words: type[_Word], default: _Word | None = None) -> _Word:
        """Take one of the words of an enumeration."""
        value = self.text(key, default)
        if value not in list(words):
            self.refuse(f"'{value}' means nothing", " or ".join(f'"{word}"' for word in words), key)
        return words(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false."""
        value = self._take(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(f"{value!r} is neither true nor false", f"{key} = true, or leave it out", key)
        return default if value is None else value

    def whole(self, key: str, default: int | None) -> int | None:
        """Take a whole number that is not negative."""
        value = self._take(key)
        if value is None:
            return default
        if type(value) is not int or value < 0:
            self.refuse(f"{value!r} is no whole number from 0", f"{key} = 1000", key)
        return value

    def seconds(self, key: str, default: float) -> float:
        """Take a number of seconds above 0."""
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            self.refuse(f"{value!r} is no number of seconds above 0", f"{key} = 60", key)
        return float(value)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Take a list of texts; without a default it is needed, and not empty."""
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or not value:
            self.refuse("missing" if value is None else f"{value!r} is no list of texts", f'{key} = ["…"]', key)
        return tuple(value)

    def one_or_more(self, key: str) -> tuple[str, ...]:
        """Take a text or a list of texts; there is one at least."""
        value = self._left.get(key)
        return self.texts(key) if isinstance(value, list) else (self.text(key),)

    def lists(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Take a list of lists of texts, or nothing."""
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(_is_words(item) for item in value):
            advice = f'{key} = [["program", "argument"]], a list of words for each command'
            self.refuse(f"{value!r} is no list of commands", advice, key)
        return tuple(tuple(item) for item in value)

    def mapping(self, key: str) -> dict[str, str]:
        """Take a table of texts, or an empty one."""
        value = self._take(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            self.refuse(f"{value!r} is no table of texts", f'{key} = {{ NAME = "…" }}', key)
        return dict(value)

    def table(self, key: str) -> Table | None:
        """Take a table of its own, or None where there is none."""
        value = self._take(key)
        return None if value is None else Table(value, self._path, self._place(key))

    def tables(self, key: str) -> Iterator[Table]:
        """Take a list of tables, each ``[[key]]``."""
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            self.refuse("it is no list of tables", f"[[{self._place(key)}]] above each", key)
        for number, item in enumerate(value or ()):
            yield Table(item, self._path, f"{self._place(key)}[{number}]")

    def named_tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """Take the tables ``[key.NAME]`` by their names."""
        table = self.table(key)
        if table is not None:
            for name in list(table._left):
                yield name, Table(table._left.pop(name), self._path, f"{self._place(key)}.{name}")

    def _place(self, key: str) -> str:
        return ".".join(filter(None, (self._where, key)))

    def finish(self) -> None:
        """Refuse what nobody took."""
        for key in self._left:
            near = difflib.get_close_matches(key, self._known, n=1) or sorted(self._known)
            self.refuse("unknown key", " or ".join(f"'{name}'" for name in near), key)


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
