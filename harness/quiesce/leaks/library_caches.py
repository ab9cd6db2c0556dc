"""What the standard library keeps only to save time, up to a bound of its own: it is emptied before each round."""

from __future__ import annotations

import functools
import gc
import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from quiesce.leaks.contents import is_bounded


class LibraryCaches:
    """The caches of the standard library, as far as they grow with what passes through them."""

    def __init__(self, objects: Iterable[object]) -> None:
        self._bounded: list[Any] = []
        self._connections: list[object] = []
        connection = getattr(sys.modules.get("sqlite3"), "Connection", None)
        for each in objects:
            kind = type(each)
            if kind is functools._lru_cache_wrapper:
                if is_bounded(each) and _top_package(each) in sys.stdlib_module_names:
                    self._bounded.append(each)
            elif connection is not None and issubclass(kind, connection):
                self._connections.append(each)
        self._by_path = [(cache, frozenset(cache)) for cache in _caches_by_path()]
        self._sources = frozenset(_source_lines())

    def holds(self, cache: object) -> bool:
        """Whether a cache of :func:`functools.lru_cache` is the standard library's."""
        return cache in self._bounded

    def empty(self) -> None:
        """Empty them all."""
        re.purge()
        for cache in self._bounded:
            cache.cache_clear()
        for connection in self._connections:
            _forget_dead_cursors(connection)
        for by_path, known in self._by_path:
            for path in by_path.keys() - known:
                by_path.pop(path, None)
        _forget_source_lines(self._sources)


def _caches_by_path() -> Iterator[dict[str, Any]]:
    """Yield what imports keep of every folder and every archive that was searched (Lib/zipimport.py)."""
    yield sys.path_importer_cache
    archives = getattr(sys.modules.get("zipimport"), "_zip_directory_cache", None)
    if isinstance(archives, dict):
        yield archives


def _source_lines() -> dict[str, Any]:
    """Return what tracebacks keep of every file that they showed lines of (Lib/linecache.py)."""
    lines: dict[str, Any] | None = getattr(sys.modules.get("linecache"), "cache", None)
    return {} if lines is None else lines


def _forget_source_lines(known: frozenset[str]) -> None:
    """Forget the lines of other files than these, but of none that can not be read again.

    Code that is made at run time, as by attrs, puts its lines there without a time of modification.
    """
    lines = _source_lines()
    for name in lines.keys() - known:
        entry = lines.get(name)
        if entry is not None and len(entry) > 1 and entry[1] is not None:
            del lines[name]


def _forget_dead_cursors(connection: object) -> None:
    """Have a connection of :mod:`sqlite3` forget cursors that are gone, as it does itself at each two hundredth.

    It keeps a weak reference to every cursor in a list (Modules/_sqlite/connection.c).
    """
    for each in gc.get_referents(connection):
        if type(each) is list and all(type(item) is weakref.ref for item in each):
            each[:] = [reference for reference in each if reference() is not None]


def _top_package(cache: object) -> str:
    return str(getattr(cache, "__module__", "")).partition(".")[0]
