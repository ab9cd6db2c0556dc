"""Numbers with a fraction in eight bits, two side by side: conversions from floats and halves, and to halves."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.types import TYPES
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import not_executed, require
from quiesce.kernels.translation.halves import widen

BYTE_FORMATS: Final = frozenset({"e4m3x2", "e5m2x2"})
_B16: Final = TYPES["b16"]
_F16: Final = TYPES["f16"]
_F32: Final = TYPES["f32"]


def convert_bytes(e: Emitter, i: Instruction) -> None:
    """Translate ``cvt`` with such a format as its source or its target, whichever the instruction names first."""
    words = i.name.removesuffix(";").split(".")
    format_ = next(word for word in words if word in BYTE_FORMATS)
    if len(i.types) == 1 and words[-1] == format_:
        _to_halves(e, i, format_)
    elif len(i.types) == 1 and words[-2] == format_:
        _to_bytes(e, i, format_)
    else:
        raise not_executed(i)


def _to_bytes(e: Emitter, i: Instruction, format_: str) -> None:
    source = i.types[0]
    require(i, ("rn", "satfinite", "relu", format_), operands=3 if source == _F32 else 2)
    if source.name not in ("f32", "f16x2") or not {"rn", "satfinite"} <= set(i.modifiers):
        raise not_executed(i)
    if source == _F32:
        high, low = (e.read_float(operand, _F32) for operand in i.operands[1:])
    else:
        both = e.read(i.operands[1], source)
        low, high = (widen(e, e.cast(e.define(f"lshr i32 {both}, {16 * number}"), 32, 16), _F16) for number in range(2))
    high_bits, low_bits = (_narrow(e, i, value, format_) for value in (high, low))
    e.write(i.operands[0], e.define(f"or i16 {e.define(f'shl i16 {high_bits}, 8')}, {low_bits}"), _B16)


def _narrow(e: Emitter, i: Instruction, value: str, format_: str) -> str:
    wide = e.define(f"fpext float {value} to double")
    bits = e.pure("i16", f"quiesce_kernel_narrow_{format_.removesuffix('x2')}", f"double {wide}")
    if "relu" not in i.modifiers:
        return bits
    is_negative = e.define(f"fcmp olt float {value}, 0.0")
    kept = e.select(is_negative, "i16", "0", bits)
    return e.select(e.define(f"icmp eq i16 {kept}, 128"), "i16", "0", kept)


def _to_halves(e: Emitter, i: Instruction, format_: str) -> None:
    require(i, ("rn", "relu", format_), operands=2)
    if i.types[0].name != "f16x2":
        raise not_executed(i)
    bits = e.read(i.operands[1], _B16)
    whole = "0"
    for number in range(2):
        byte = e.define(f"and i16 {e.define(f'lshr i16 {bits}, {8 * number}')}, 255")
        half = e.pure("i16", f"quiesce_kernel_half_of_{format_.removesuffix('x2')}", f"i16 {byte}")
        if "relu" in i.modifiers:
            is_negative = e.define(f"icmp slt i16 {half}, 0")
            half = e.select(is_negative, "i16", "0", half)
        moved = e.define(f"shl i32 {e.cast(half, 16, 32)}, {16 * number}")
        whole = e.define(f"or i32 {whole}, {moved}")
    e.write(i.operands[0], whole, i.types[0])
