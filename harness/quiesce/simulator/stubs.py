"""Stub libraries, written byte by byte: every function fails by name when it is called.

A client's loader wants every function to exist that the client could call. A stub library defines those that nobody
simulates; each says its name to ``quiesce_not_simulated`` in the simulated runtime (``control.h``) and answers what
that returns. No compiler is needed: the file has one layout, and its code is three instructions for each function.

The file needs one version of the C library although it imports nothing from there: a library without a version table
makes glibc's loader give up (an assertion in ``check_match``) when a client asks it for a versioned symbol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

REPORTER: Final = "quiesce_not_simulated"
_C_LIBRARY: Final = ("libc.so.6", "GLIBC_2.2.5")
_PAGE: Final = 4096
_HEADER_BYTES: Final = 64
_SEGMENT_BYTES: Final = 56
_SEGMENTS: Final = 4
_STUB_BYTES: Final = 24


@dataclass(slots=True)
class _Strings:
    data: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    _places: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self.data)
            self.data += text.encode("latin-1") + b"\0"
        return self._places[text]


def write_stub_library(soname: str, functions: Iterable[str], runtime: str) -> bytes:
    """Return the bytes of a shared library that defines ``functions``.

    ``runtime`` is the name or the path of the library that defines ``quiesce_not_simulated``.
    """
    names = sorted(set(functions))
    strings = _Strings()
    symbols = [REPORTER, *names]
    name_places = [strings.add(name) for name in symbols]
    library_place = strings.add(soname)
    needed = [strings.add(runtime), strings.add(_C_LIBRARY[0])]
    versions = _version_needs(strings)

    parts = _Layout(_HEADER_BYTES + _SEGMENTS * _SEGMENT_BYTES)
    symbol_table = parts.place(24 * (len(symbols) + 1))
    hash_table = parts.place(4 * (2 + len(symbols) + len(symbols) + 1))
    version_table = parts.place(2 * (len(symbols) + 1))
    needs = parts.place(len(versions))
    relocations = parts.place(24)
    text = parts.place(len(strings.data))
    code = parts.place(_STUB_BYTES * len(names), 16)
    end_of_code = parts.end
    slot = parts.place(8, _PAGE)
    dynamic = parts.place(16 * 16)

    entries = [
        *((1, place) for place in needed),
        *((14, library_place), (4, hash_table), (5, text), (6, symbol_table), (10, len(strings.data)), (11, 24)),
        *((7, relocations), (8, 24), (9, 24)),
        *((0x6FFFFFF0, version_table), (0x6FFFFFFE, needs), (0x6FFFFFFF, 1), (0, 0)),
    ]
    image = bytearray(parts.end)

    def put(place: int, data: bytes) -> None:
        image[place : place + len(data)] = data

    put(0, _header())
    put(_HEADER_BYTES, _segments(end_of_code, slot, parts.end, dynamic, 16 * len(entries)))
    put(symbol_table + 24, struct.pack("<IBBHQQ", name_places[0], 0x10, 0, 0, 0, 0))
    for number, place in enumerate(name_places[1:]):
        address = code + _STUB_BYTES * number
        put(symbol_table + 24 * (number + 2), struct.pack("<IBBHQQ", place, 0x12, 0, 1, address, _STUB_BYTES))
        put(address, _stub(address, text + place, text + library_place, slot))
    put(hash_table, _hash_table(symbols))
    put(version_table, struct.pack(f"<{len(symbols) + 1}H", 0, *[1] * len(symbols)))
    put(needs, versions)
    put(relocations, struct.pack("<QQq", slot, (1 << 32) | 6, 0))  # R_X86_64_GLOB_DAT of the first symbol
    put(text, bytes(strings.data))
    put(dynamic, b"".join(struct.pack("<qQ", tag, value) for tag, value in entries))
    return bytes(image)


class _Layout:
    def __init__(self, begin: int) -> None:
        self.end = begin

    def place(self, size: int, alignment: int = 8) -> int:
        start = -(-self.end // alignment) * alignment
        self.end = start + size
        return start


def _header() -> bytes:
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    fields = (3, 62, 1, 0, _HEADER_BYTES, 0, 0, _HEADER_BYTES, _SEGMENT_BYTES, _SEGMENTS, 64, 0, 0)
    return identity + struct.pack("<HHIQQQIHHHHHH", *fields)


def _segments(end_of_code: int, writable: int, end: int, dynamic: int, dynamic_bytes: int) -> bytes:
    def segment(kind: int, flags: int, start: int, size: int, alignment: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, alignment)

    return (
        segment(1, 5, 0, end_of_code, _PAGE)
        + segment(1, 6, writable, end - writable, _PAGE)
        + segment(2, 6, dynamic, dynamic_bytes, 8)
        + segment(0x6474E551, 6, 0, 0, 16)  # the stack is not executable
    )


def _stub(address: int, name: int, library: int, slot: int) -> bytes:
    """Return ``lea rdi, name; lea rsi, library; jmp [slot]``."""
    return (
        b"\x48\x8d\x3d"
        + struct.pack("<i", name - (address + 7))
        + b"\x48\x8d\x35"
        + struct.pack("<i", library - (address + 14))
        + b"\xff\x25"
        + struct.pack("<i", slot - (address + 20))
    ).ljust(_STUB_BYTES, b"\xcc")


def _version_needs(strings: _Strings) -> bytes:
    library, version = _C_LIBRARY
    return struct.pack("<HHIII", 1, 1, strings.add(library), 16, 0) + struct.pack(
        "<IHHII", system_v_hash(version), 0, 2, strings.add(version), 0
    )


def _hash_table(symbols: list[str]) -> bytes:
    count = len(symbols)
    buckets, chains = [0] * count, [0] * (count + 1)
    for number, name in enumerate(symbols, 1):
        bucket = system_v_hash(name) % count
        chains[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + count + count + 1}I", count, count + 1, *buckets, *chains)


def system_v_hash(name: str) -> int:
    """Return the hash of a name (System V ABI, "Hash Table")."""
    value = 0
    for byte in name.encode("latin-1"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value
