"""What a loader reads of an ELF file: its name, the libraries and symbols that it needs, and what it defines.

ELF-64 for x86-64 as the System V ABI describes it, with the symbol versions of the Linux Standard Base.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MACHINE_X86_64: Final = 62
_LOAD: Final = 1
_DYNAMIC: Final = 2
_NEEDED, _HASH, _STRTAB, _SYMTAB, _SONAME, _RPATH, _RUNPATH = 1, 4, 5, 6, 14, 15, 29
_GNU_HASH, _VERSYM, _VERNEED, _VERNEEDNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
_GLOBAL: Final = 1
_SYMBOL: Final = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class ElfFile:
    """The dynamic part of one file.

    ``undefined`` maps every strong symbol that the file needs to the library that its version names, or to "".
    """

    path: Path
    soname: str = ""
    needed: tuple[str, ...] = ()
    search_paths: tuple[str, ...] = ()
    undefined: Mapping[str, str] = field(default_factory=dict)
    defined: frozenset[str] = frozenset()


class _Image:
    """A mapped file whose addresses can be read."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self._loads: list[tuple[int, int, int]] = []
        self.dynamic: list[tuple[int, int]] = []
        offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        dynamic = (0, 0)
        for number in range(count):
            kind, _, start, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + number * size)
            if kind == _LOAD:
                self._loads.append((address, start, length))
            elif kind == _DYNAMIC:
                dynamic = (start, length)
        for place in range(dynamic[0], dynamic[0] + dynamic[1], 16):
            tag, value = struct.unpack_from("<qQ", data, place)
            if tag == 0:
                break
            self.dynamic.append((tag, value))
        self.tags = dict(self.dynamic)

    def at(self, tag: int) -> int:
        """Return the offset in the file of what a dynamic entry points to, or 0."""
        address = self.tags.get(tag, 0)
        for start, offset, length in self._loads:
            if address and start <= address < start + length:
                return address - start + offset
        return 0

    def text(self, offset: int) -> str:
        """Return an entry of the string table."""
        start = self.at(_STRTAB) + offset
        return self.data[start : self.data.find(b"\0", start)].decode("latin-1")


def read_elf(path: Path, *, symbols: bool = True) -> ElfFile | None:
    """Return the dynamic part of a file, or None for one that is no x86-64 ELF file or cannot be read as one."""
    try:
        with path.open("rb") as opened:
            head = opened.read(20)
            if head[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", head, 18)[0] != MACHINE_X86_64:
                return None
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(path, _Image(data), symbols)
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _read(path: Path, image: _Image, symbols: bool) -> ElfFile:
    texts = {tag: [image.text(value) for seen, value in image.dynamic if seen == tag] for tag in (_NEEDED, _SONAME)}
    paths = [image.text(value) for tag, value in image.dynamic if tag in (_RPATH, _RUNPATH)]
    undefined: dict[str, str] = {}
    defined: set[str] = set()
    if symbols and image.at(_SYMTAB):
        _read_symbols(image, undefined, defined)
    return ElfFile(
        path,
        next(iter(texts[_SONAME]), ""),
        tuple(texts[_NEEDED]),
        tuple(part for text in paths for part in text.split(":") if part),
        undefined,
        frozenset(defined),
    )


def _read_symbols(image: _Image, undefined: dict[str, str], defined: set[str]) -> None:
    table, versions, libraries = image.at(_SYMTAB), image.at(_VERSYM), _versions(image)
    for number in range(1, _symbol_count(image)):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(image.data, table + number * _SYMBOL.size)
        if section:
            defined.add(image.text(name))
        elif info >> 4 == _GLOBAL:
            version = struct.unpack_from("<H", image.data, versions + 2 * number)[0] & 0x7FFF if versions else 0
            undefined[image.text(name)] = libraries.get(version, "")


def _versions(image: _Image) -> dict[int, str]:
    """Return the library that each needed version belongs to."""
    libraries: dict[int, str] = {}
    place = image.at(_VERNEED)
    for _ in range(image.tags.get(_VERNEEDNUM, 0)):
        _, count, file, first, following = struct.unpack_from("<HHIII", image.data, place)
        entry = place + first
        for _ in range(count):
            _, _, number, _, behind = struct.unpack_from("<IHHII", image.data, entry)
            libraries[number] = image.text(file)
            entry += behind
        place += following
    return libraries


def _symbol_count(image: _Image) -> int:
    """Return the number of dynamic symbols: the file says it only through its hash tables."""
    data = image.data
    if place := image.at(_HASH):
        return int(struct.unpack_from("<I", data, place + 4)[0])
    place = image.at(_GNU_HASH)
    if not place:
        return 0
    buckets, first, words, _ = struct.unpack_from("<IIII", data, place)
    heads = place + 16 + 8 * words
    last = max(struct.unpack_from(f"<{buckets}I", data, heads), default=0)
    if last < first:
        return int(first)
    chain = heads + 4 * buckets
    while not struct.unpack_from("<I", data, chain + 4 * (last - first))[0] & 1:
        last += 1
    return last + 1
