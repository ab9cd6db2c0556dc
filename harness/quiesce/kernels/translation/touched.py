"""Which bytes of memory a launch reads and writes, noted while it runs.

The runtime has a bit for each byte of memory and each kind of use, as it has one that says whether a use is right
(:mod:`quiesce.kernels.translation.checks`). An access sets its bits. The first one of its kind in a cell of memory asks
the runtime, which lists the cell with the instruction. ``native/kernels/touched.h`` has the same numbers.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Function, Instruction
from quiesce.kernels.translation.accesses import AccessKind
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.roles import effects_of

ORDERS: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
"""Words of accesses that take part in an order of their own."""
TOUCHED: Final = 96
"""Where the context has the address of the bits."""
SHARED_LINE: Final = " ; a byte that several threads change"
"""How a line ends whose access depends on those of other threads."""
_READ, _WRITE, _STRONG_READ, _STRONG_WRITE, _ATOMIC = (1 << kind for kind in range(5))
_KINDS: Final = 5
_STRIDE: Final = 1 << 41
_CELL_SHIFT: Final = 6


def is_ordered(i: Instruction) -> bool:
    """Say whether an access takes part in an order of its own."""
    return i.opcode in ("ld", "st") and not ORDERS.isdisjoint(i.modifiers)


def kinds_of_use(function: Function, i: Instruction, kind: AccessKind) -> int:
    """Return the kinds of use that an access is, a bit for each.

    An atomic operation whose old value is looked at may learn from it what another kernel has done.
    """
    if kind == "atomic":
        return _ATOMIC | (_STRONG_READ if i.opcode == "atom" and _is_looked_at(function, i) else 0)
    if is_ordered(i):
        return _STRONG_READ if kind == "load" else _STRONG_WRITE
    return _READ if kind == "load" else _WRITE


def _is_looked_at(function: Function, i: Instruction) -> bool:
    _, written = effects_of(i)
    others = (each for each in function.instructions() if each is not i)
    return any(register in effects_of(each)[0] for each in others for register in written)


def note_use(e: Emitter, within: str, address: str, bytes_: int, kinds: int) -> str:
    """Set the bits of an access, and say whether it is the first of a kind in its cell.

    ``within`` is the byte that has its first bit.
    """
    touched = e.shape.context(e, TOUCHED, "ptr")
    for number in range(_KINDS):
        if kinds >> number & 1:
            _set_bits(e, e.byte_offset(touched, within), number * _STRIDE, address, bytes_)
    cell = e.byte_offset(e.byte_offset(touched, _KINDS * _STRIDE), e.define(f"lshr i64 {within}, {_CELL_SHIFT}"))
    known = e.define(f"load i8, ptr {cell}, align 1{SHARED_LINE}")
    return e.define(f"icmp ne i8 {e.define(f'and i8 {known}, {kinds}')}, {kinds}")


def was_noted(e: Emitter, within: str, address: str, bytes_: int, kinds: int) -> str:
    """Say whether all bits of an access are set."""
    touched, noted = e.shape.context(e, TOUCHED, "ptr"), "true"
    bits = max(8, bytes_)
    for number in range(_KINDS):
        if not kinds >> number & 1:
            continue
        place = e.byte_offset(e.byte_offset(touched, within), number * _STRIDE)
        found = e.define(f"load i{bits}, ptr {place}, align 1{SHARED_LINE}")
        if bytes_ < 8:
            shift = e.cast(e.define(f"and i64 {address}, 7"), 64, 8)
            found = e.define(f"or i8 {e.define(f'lshr i8 {found}, {shift}')}, {0xFF ^ (1 << bytes_) - 1}")
        noted = e.define(f"and i1 {noted}, {e.define(f'icmp eq i{bits} {found}, -1')}")
    return noted


def _set_bits(e: Emitter, place: str, offset: int, address: str, bytes_: int) -> None:
    bits = e.byte_offset(place, offset)
    if bytes_ >= 8:
        e.emit(f"store i{bytes_} -1, ptr {bits}, align 1{SHARED_LINE}")
        return
    shift = e.cast(e.define(f"and i64 {address}, 7"), 64, 8)
    mask = e.define(f"shl i8 {(1 << bytes_) - 1}, {shift}")
    before = e.define(f"load i8, ptr {bits}, align 1{SHARED_LINE}")
    e.emit(f"store i8 {e.define(f'or i8 {before}, {mask}')}, ptr {bits}, align 1{SHARED_LINE}")
