"""What lies at an address of code: the function of an ELF file that was mapped there.

The symbol table is read through the section headers, for the loader's own tables know no local functions; where a file
was stripped, the dynamic symbols are what is left. A file that changed, went away or was never one has no symbols.
"""

from __future__ import annotations

import bisect
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_FILE_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SEGMENT_LOAD: Final = 1
_SECTION_SYMBOLS: Final = 2
_SECTION_DYNAMIC_SYMBOLS: Final = 11
_FUNCTIONS: Final = (2, 10)  # and those that are resolved when the program is loaded


class _Function(NamedTuple):
    start: int
    end: int
    name: str


class Symbols:
    """The functions of one file."""

    def __init__(self, path: Path) -> None:
        self._segments: list[tuple[int, int, int]] = []
        self._functions: list[_Function] = []
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                self._segments = list(_segments(content))
                self._functions = sorted(_functions(content))
        except (OSError, struct.error, IndexError, ValueError):
            return

    def address(self, offset: int) -> int | None:
        """Return the address that the file itself gives the byte at ``offset``, or None where none is loaded there."""
        for start, size, address in self._segments:
            if start <= offset < start + size:
                return offset - start + address
        return None

    def name(self, offset: int) -> str | None:
        """Return the name of the function that has the byte at ``offset`` of the file, or None."""
        address = self.address(offset)
        return None if address is None else self._name_at(address)

    def _name_at(self, address: int) -> str | None:
        place = bisect.bisect_right(self._functions, address, key=lambda each: each.start)
        # a shorter function may begin inside a longer one, such as an alias of its second half
        for function in reversed(self._functions[max(0, place - 8) : place]):
            if address < function.end:
                return function.name
        return None


def _segments(content: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    fields = _FILE_HEADER.unpack_from(content)
    if fields[0][:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    for number in range(fields[10]):
        kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack_from(content, fields[5] + number * _SEGMENT.size)
        if kind == _SEGMENT_LOAD:
            yield offset, size, address


def _functions(content: mmap.mmap) -> Iterator[_Function]:
    fields = _FILE_HEADER.unpack_from(content)
    sections = [_SECTION.unpack_from(content, fields[6] + number * _SECTION.size) for number in range(fields[12])]
    for kind in (_SECTION_SYMBOLS, _SECTION_DYNAMIC_SYMBOLS):
        for section in sections:
            if section[1] == kind:
                names = sections[section[6]][4]
                yield from _functions_in(content[section[4] : section[4] + section[5]], content, names)


def _functions_in(table: bytes, content: mmap.mmap, names: int) -> Iterator[_Function]:
    for name, information, _, section, address, size in _SYMBOL.iter_unpack(table[: len(table) // 24 * 24]):
        if information & 15 in _FUNCTIONS and section and size:
            start = names + name
            end = content.find(b"\0", start)
            yield _Function(address, address + size, content[start:end].decode("utf-8", "replace"))
