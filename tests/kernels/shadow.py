"""The bits that the runtime has for each byte of a device's memory: terabytes of them, of which hardly any exist."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import Final

from quiesce.simulator.kernels.translation import checks

MEMORY_BASE: Final = 0x020000000000
CONSTANTS_BASE: Final = MEMORY_BASE + checks.CONSTANTS_OFFSET
"""Where tests of the compiler have the memory of a device: the simulated machine may be in this process as well."""
TOUCHED_STRIDE: Final = 1 << 41
KINDS: Final = 5
_NORESERVE, _FIXED = 0x4000, 0x100000  # the second one fails where something is, instead of replacing it
_TOUCHED_BYTES: Final = 6 * TOUCHED_STRIDE
_TOUCHED_PLACE, _KNOWN_PLACE = 0x100000000000, 0x200000000000
"""Far from where the system puts mappings by itself: between two parts of one object of machine code, terabytes are
more than a relocation can reach, and then LLVM ends the process."""


@cache
def touched_bits() -> int:
    """Return the address of bits that say which bytes were used, for each kind of use, and of those of cells."""
    return _mapped(_TOUCHED_BYTES, _TOUCHED_PLACE)


@cache
def known_bits() -> int:
    """Return the address of bits that say of which bytes every use is right: none, to begin with."""
    return _mapped(checks.MEMORY_BYTES // 8 + mmap.PAGESIZE, _KNOWN_PLACE)


@cache
def device_memory(address: int) -> int:
    """Map a page of a device's memory, at an address that has bits, and return it."""
    return _mapped(mmap.PAGESIZE, address)


def set_bits(place: int, address: int, count: int, value: bool) -> None:
    """Set the bits of some bytes of memory, or clear them."""
    for number in range(address - MEMORY_BASE, address - MEMORY_BASE + count):
        byte = ctypes.c_uint8.from_address(place + number // 8)
        byte.value = byte.value | 1 << number % 8 if value else byte.value & ~(1 << number % 8)


def bits_of(place: int, address: int, count: int) -> list[bool]:
    """Return the bits of some bytes of memory."""
    numbers = range(address - MEMORY_BASE, address - MEMORY_BASE + count)
    return [bool(ctypes.c_uint8.from_address(place + number // 8).value >> number % 8 & 1) for number in numbers]


def cell_of(address: int) -> ctypes.c_uint8:
    """Return what is known of the cell of memory that an address is in: a bit for each kind of use."""
    return ctypes.c_uint8.from_address(touched_bits() + KINDS * TOUCHED_STRIDE + (address - MEMORY_BASE) // 8 // 64)


def _mapped(size: int, address: int) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED
    found = library.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    assert found == address, f"no memory can be mapped at {address:#x}: {ctypes.get_errno()}"
    return address
