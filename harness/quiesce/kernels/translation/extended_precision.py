"""Numbers of several registers: sums and differences that hand a carry on to the next instruction."""

from __future__ import annotations

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.types import PREDICATE
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import require, require_type
from quiesce.kernels.translation.roles import CARRY

_TYPES = ("u32", "s32", "u64", "s64")
_WITH_CARRY = frozenset({"addc", "subc", "madc"})


def add_with_carry(e: Emitter, i: Instruction, product: str | None = None) -> None:
    """Translate ``add.cc``, ``addc``, ``sub.cc``, ``subc``, and with a product ``mad.cc`` and ``madc``."""
    require(i, ("cc",) if product is None else ("cc", "lo", "hi"), operands=3 if product is None else 4)
    type_ = require_type(i, _TYPES)
    bits = type_.bits
    first = e.read(i.operands[1], type_) if product is None else product
    second = e.read(i.operands[-1], type_)
    operation = "sub" if i.opcode.startswith("sub") else "add"
    # One more bit takes what is carried, or borrowed.
    wide = f"i{bits + 1}"
    total = e.define(f"{operation} {wide} {e.cast(first, bits, bits + 1)}, {e.cast(second, bits, bits + 1)}")
    if i.opcode in _WITH_CARRY:
        total = e.define(f"{operation} {wide} {total}, {e.cast(e.read(CARRY, PREDICATE), 1, bits + 1)}")
    if "cc" in i.modifiers:
        e.write(CARRY, e.cast(e.define(f"lshr {wide} {total}, {bits}"), bits + 1, 1), PREDICATE)
    e.write(i.operands[0], e.cast(total, bits + 1, bits), type_)
