"""Names in an ELF shared object: the table that holds them, their hash, and the versions that go with them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

C_LIBRARY: Final = "libc.so.6"
_C_LIBRARY_VERSION: Final = "GLIBC_2.2.5"  # the first of glibc on x86-64


class Names:
    """A table of names that end with NUL."""

    def __init__(self) -> None:
        self._content = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}

    def add(self, name: str) -> int:
        """Return where a name stands in the table."""
        if name not in self._offsets:
            self._offsets[name] = len(self._content)
            self._content += name.encode("utf-8", "surrogateescape") + b"\0"
        return self._offsets[name]

    def content(self) -> bytes:
        """Return the table."""
        return bytes(self._content)


def elf_hash(name: str) -> int:
    """Return the hash of the System V ABI."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def versions_defined(names: Names, versions: Sequence[str]) -> tuple[bytes, int]:
    """Return the versions that a library defines, its own name first, and how many there are."""
    made = b""
    for number, name in enumerate(versions, 1):
        following = 28 if number < len(versions) else 0
        made += struct.pack("<HHHHIII", 1, int(number == 1), number, 1, elf_hash(name), 20, following)
        made += struct.pack("<II", names.add(name), 0)
    return made, len(versions)


def version_wanted(names: Names, number: int) -> bytes:
    """Return the one version of the C library that is needed, which has this number in the library."""
    version = struct.pack("<IHHII", elf_hash(_C_LIBRARY_VERSION), 0, number, names.add(_C_LIBRARY_VERSION), 0)
    return struct.pack("<HHIII", 1, 1, names.add(C_LIBRARY), 16, 0) + version
