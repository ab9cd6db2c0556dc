"""The machine code of a stub library: one short entry for each function, and the routine that all of them call.

x86-64 code for the System V calling convention, assembled by hand so that no compiler is needed at run time::

    report:                        # edi: the function's index; keeps what a called function must keep
        push rbx; push r12; push rax
        lea r12, [image]           # the address at which the library was loaded
        imul eax, edi, 24
        lea rbx, [r12+rax+records]
        mov eax, edi; mov cl, 1
        xchg cl, [r12+rax+said]    # one line for each function and process, whatever the threads do
        test cl, cl; jnz ledger
        mov edi, 2; mov esi, [rbx+4]; add rsi, r12; mov edx, [rbx+8]
        call [write]
    ledger:
        mov rax, [handler]         # weak: null where no simulator is loaded
        test rax, rax; jz answer
        mov edi, [rbx]; add rdi, r12
        mov rsi, [rsp+40]          # where the stub returns to: after three words here and two of the function's
        call rax
    answer:
        mov eax, [rbx+12]; test eax, eax; jz number
        add rax, r12; jmp leave    # a text
    number:
        mov rax, [rbx+16]
    leave:
        pop rcx; pop r12; pop rbx; ret

    report_and_end:
        push rax
        call report
        call [abort]
        ud2

    a function:                    # calls, so that its name stands in stack traces
        push rax; mov edi, index; call report or report_and_end; pop rcx; ret

    a function that goes on elsewhere:
        jmp [target]

The unwinding tables (DWARF call frame information, as the Linux Standard Base has it in ``.eh_frame``) let a debugger,
``backtrace`` and the simulator's own stack capture see through a stub to its caller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RECORD: Final = struct.Struct("<IIIIq")
"""Addresses of name and message, the message's length, the address of the text to return or 0, the number to return."""
ENTRY_BYTES: Final = 16

IMPORTS: Final = ("write", "abort", "quiesce_not_simulated")
"""What the code calls, through one pointer each; the last one may be missing."""


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses in the image that the code refers to."""

    text: int
    records: int
    said: int
    pointers: Mapping[str, int]
    targets: int
    """Where the pointers begin to the functions in which others go on."""


class _Assembly:
    """Bytes, and places in them where a distance from the next instruction goes."""

    def __init__(self) -> None:
        self.code = bytearray()
        self._distances: list[tuple[int, Callable[[Places], int]]] = []

    def add(self, code: str) -> int:
        self.code += bytes.fromhex(code)
        return len(self.code)

    def add_distance(self, code: str, target: Callable[[Places], int]) -> None:
        self.code += bytes.fromhex(code) + bytes(4)
        self._distances.append((len(self.code), target))

    def add_address(self, code: str, target: Callable[[Places], int]) -> None:
        """Add an instruction that ends with an address in the image."""
        self.code += bytes.fromhex(code) + bytes(4)
        end = len(self.code)
        self._distances.append((end, lambda places: target(places) + places.text + end))

    def placed(self, places: Places) -> bytes:
        code = bytearray(self.code)
        for end, target in self._distances:
            struct.pack_into("<i", code, end - 4, target(places) - places.text - end)
        return bytes(code)


def _routines() -> tuple[_Assembly, int]:
    """Return the two routines, and where the second one begins."""
    made = _Assembly()
    made.add("53 41 54 50")
    made.add_distance("4c 8d 25", lambda places: 0)
    made.add("6b c7 18")
    made.add_address("49 8d 9c 04", lambda places: places.records)
    made.add("89 f8 b1 01")
    made.add_address("41 86 8c 04", lambda places: places.said)
    made.add("84 c9 75 14")
    made.add("bf 02 00 00 00 8b 73 04 4c 01 e6 8b 53 08")
    made.add_distance("ff 15", lambda places: places.pointers["write"])
    made.add_distance("48 8b 05", lambda places: places.pointers["quiesce_not_simulated"])
    made.add("48 85 c0 74 0c")
    made.add("8b 3b 4c 01 e7 48 8b 74 24 28 ff d0")
    made.add("8b 43 0c 85 c0 74 05")
    made.add("4c 01 e0 eb 04")
    made.add("48 8b 43 10")
    made.add("59 41 5c 5b c3")
    second = made.add("")
    made.add_distance("50 e8", lambda places: places.text)
    made.add_distance("ff 15", lambda places: places.pointers["abort"])
    made.add("0f 0b")
    made.code += b"\xcc" * (-len(made.code) % ENTRY_BYTES)
    return made, second


_ROUTINES, _SECOND = _routines()
ENTRIES_OFFSET: Final = len(_ROUTINES.code)
"""Where the first function begins in the text."""


def text_bytes(functions: int) -> int:
    """Return the size of the code for so many functions."""
    return ENTRIES_OFFSET + ENTRY_BYTES * functions


def text(places: Places, ends: Sequence[bool], forwards: int = 0) -> bytes:
    """Return the code; `ends` says for each function whether a call of it ends the process.

    `forwards` is how many functions follow these that go on elsewhere.
    """
    made = bytearray(_ROUTINES.placed(places))
    for index, function_ends in enumerate(ends):
        after_call = len(made) + 11
        distance = (_SECOND if function_ends else 0) - after_call
        made += struct.pack("<BBIBi5s", 0x50, 0xBF, index, 0xE8, distance, b"\x59\xc3\xcc\xcc\xcc")
    for index in range(forwards):
        distance = places.targets + 8 * index - (places.text + len(made) + 6)
        made += struct.pack("<BBi10s", 0xFF, 0x25, distance, b"\xcc" * 10)
    return bytes(made)


_FIRST_FRAME: Final = bytes.fromhex("0c 07 08 90 01")  # the frame begins at rsp+8; the return address lies below
_LEAVE: Final = _SECOND - 5  # pop rcx; pop r12; pop rbx; ret
_REPORT_FRAME: Final = bytes.fromhex(
    "41 0e 10 83 02"  # push rbx: after one byte, 16 bytes up; rbx lies there
    "42 0e 18 8c 03"  # push r12
    f"41 0e 20  02 {_LEAVE + 1 - 4:02x} 0e 18"  # push rax; pop rcx, so many bytes later
    "42 0e 10  41 0e 08"  # pop r12; pop rbx
)
_END_FRAME: Final = bytes.fromhex("41 0e 10")
# Within an entry: rsp+16 from its second byte to its twelfth, else rsp+8, told by the address, as compilers do it for
# a PLT: breg7+8 breg16-1 lit15 and lit10 le lit3 shl plus. (Valgrind knows no "dup" here, and fails.)
_ENTRY_FRAME: Final = bytes.fromhex("0f 0b  77 08 80 7f 3f 1a 3a 2c 33 24 22")


def _aligned(entry: bytes) -> bytes:
    entry += bytes(-(len(entry) + 4) % 8)
    return struct.pack("<I", len(entry)) + entry


def frames(address: int, text_address: int, functions: int) -> tuple[bytes, bytes]:
    """Return ``.eh_frame_hdr`` for `address`, and ``.eh_frame``, which follows it at once."""
    covered = [(0, _SECOND, _REPORT_FRAME), (_SECOND, ENTRIES_OFFSET - _SECOND, _END_FRAME)]
    if functions:
        covered.append((ENTRIES_OFFSET, ENTRY_BYTES * functions, _ENTRY_FRAME))
    start = address + 12 + 8 * len(covered)
    # version 1, "zR", factors 1 and -8, return address in column 16, addresses as 4-byte distances
    made = bytearray(_aligned(struct.pack("<IB", 0, 1) + b"zR\0\x01\x78\x10\x01\x1b" + _FIRST_FRAME))
    table = b""
    for offset, size_bytes, frame in covered:
        begins = text_address + offset
        at = start + len(made)
        table += struct.pack("<ii", begins - address, at - address)
        made += _aligned(struct.pack("<IiIB", len(made) + 4, begins - (at + 8), size_bytes, 0) + frame)
    header = struct.pack("<BBBBiI", 1, 0x1B, 0x03, 0x3B, start - (address + 4), len(covered))
    return header + table, bytes(made) + bytes(4)
