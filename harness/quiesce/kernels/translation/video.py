"""Two or four short integers in a register at once: ``vadd2``, ``vabsdiff4`` and their relatives, with all lanes."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.types import TYPES
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import not_executed, require

_U32: Final = TYPES["u32"]
_OPERATIONS: Final = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


def lanes(e: Emitter, i: Instruction) -> None:
    """Translate one of them. With ``.add`` the results are summed up, and a third source is added."""
    require(i, ("sat", "add"), operands=4, types=3)
    if any(type_.name not in ("u32", "s32") for type_ in i.types) or {"sat", "add"} <= set(i.modifiers):
        raise not_executed(i)
    count = int(i.opcode[-1])
    bits = 32 // count
    first, second, third = (e.read(operand, _U32) for operand in i.operands[1:])
    total = third if "add" in i.modifiers else "0"
    for number in range(count):
        one = _lane(e, first, number * bits, bits, i.types[1].is_signed)
        other = _lane(e, second, number * bits, bits, i.types[2].is_signed)
        result = _compute(e, i.opcode[:-1], one, other)
        if "sat" in i.modifiers:
            result = _limited(e, result, bits, i.types[0].is_signed)
        if "add" in i.modifiers:
            total = e.define(f"add i32 {total}, {result}")
        else:
            kept = e.define(f"and i32 {result}, {(1 << bits) - 1}")
            total = e.define(f"or i32 {total}, {e.define(f'shl i32 {kept}, {number * bits}')}")
    e.write(i.operands[0], total, _U32)


def _lane(e: Emitter, value: str, start: int, bits: int, signed: bool) -> str:
    raised = e.define(f"shl i32 {value}, {32 - start - bits}")
    return e.define(f"{'ashr' if signed else 'lshr'} i32 {raised}, {32 - bits}")


def _compute(e: Emitter, operation: str, one: str, other: str) -> str:
    if operation in ("vadd", "vsub"):
        return e.define(f"{operation[1:]} i32 {one}, {other}")
    if operation in ("vmin", "vmax"):
        return e.pure("i32", f"llvm.s{operation[1:]}.i32", f"i32 {one}", f"i32 {other}")
    if operation == "vabsdiff":
        return e.pure("i32", "llvm.abs.i32", f"i32 {e.define(f'sub i32 {one}, {other}')}", "i1 0")
    total = e.define(f"add i32 {one}, {other}")  # the average is rounded away from zero
    raised = e.define(f"add i32 {total}, {e.cast(e.define(f'icmp sge i32 {total}, 0'), 1, 32)}")
    return e.define(f"ashr i32 {raised}, 1")


def _limited(e: Emitter, value: str, bits: int, signed: bool) -> str:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    value = e.pure("i32", "llvm.smax.i32", f"i32 {value}", f"i32 {low}")
    return e.pure("i32", "llvm.smin.i32", f"i32 {value}", f"i32 {high}")


HANDLERS: Final = {f"{name}{count}": lanes for name in _OPERATIONS for count in (2, 4)}
