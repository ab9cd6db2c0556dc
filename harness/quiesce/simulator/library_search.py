"""Finds the file that the dynamic loader would open for a needed library, in the order of ld.so(8).

The system's own folders are known from the loader's cache, whose format is glibc's (``sysdeps/generic/dl-cache.h``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.simulator.elf_reading import Dependencies

_CACHE: Final = Path("/etc/ld.so.cache")
_CACHE_MAGIC: Final = b"glibc-ld.so.cache1.1"
_CACHE_HEADER_BYTES: Final = 48
_CACHE_ENTRY: Final = struct.Struct("<iIIIQ")
_FOR_X86_64: Final = 0x0300
_TRUSTED: Final = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def find_library(name: str, client: Path, dependencies: Dependencies, paths: Sequence[str] = ()) -> Path | None:
    """Return what the loader opens for `name`, needed by `client`; `paths` is what LD_LIBRARY_PATH will hold."""
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    rpath = () if dependencies.runpath else dependencies.rpath
    for folder in (*rpath, *paths, *dependencies.runpath):
        if (path := _inside(folder, name, client)) is not None:
            return path
    cached = system_libraries().get(name)
    if cached is not None and Path(cached).is_file():
        return Path(cached)
    return next((path for folder in _TRUSTED if (path := _inside(folder, name, client))), None)


def places_searched(client: Path, dependencies: Dependencies, paths: Sequence[str] = ()) -> Iterator[Path]:
    """Yield everything whose change can change an answer of :func:`find_library`: folders, and the loader's cache."""
    for folder in (*dependencies.rpath, *paths, *dependencies.runpath):
        yield Path(_expanded(folder, client))
    yield from (_CACHE, *map(Path, _TRUSTED))


def _expanded(folder: str, client: Path) -> str:
    if "$" not in folder:
        return folder
    # a link's own folder, as the loader has it
    origin = os.path.dirname(os.path.abspath(client))  # noqa: PTH100, PTH120
    return folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def _inside(folder: str, name: str, client: Path) -> Path | None:
    path = f"{_expanded(folder, client)}/{name}"
    return Path(path) if os.path.isfile(path) else None  # noqa: PTH113 - called thousands of times


@cache
def system_libraries() -> Mapping[str, str]:
    """Return the 64-bit libraries in the loader's cache: SONAME to path. Empty where there is no such cache."""
    try:
        content = _CACHE.read_bytes()
    except OSError:
        return {}
    return read_cache(content)


def read_cache(content: bytes) -> Mapping[str, str]:
    """Return the libraries in the text of a cache; what is damaged in it is left out."""
    start = content.find(_CACHE_MAGIC)
    if start < 0 or len(content) < start + _CACHE_HEADER_BYTES:
        return {}
    table = content[start:]
    (count,) = struct.unpack_from("<I", table, len(_CACHE_MAGIC))
    found: dict[str, str] = {}
    end = min(len(table), _CACHE_HEADER_BYTES + count * _CACHE_ENTRY.size)
    for offset in range(_CACHE_HEADER_BYTES, end - _CACHE_ENTRY.size + 1, _CACHE_ENTRY.size):
        flags, name, path, _, _ = _CACHE_ENTRY.unpack_from(table, offset)
        if flags & 0xFF00 == _FOR_X86_64:
            found.setdefault(_text(table, name), _text(table, path))
    return found


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return os.fsdecode(table[offset:end]) if end >= 0 else ""
