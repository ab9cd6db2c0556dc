"""Conversions between types: ``cvt``. Floats become integers of a range; what is no number becomes zero."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Type, lane_of
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.floating_point import (
    DIRECTED,
    MODES,
    NEAREST,
    TO_INTEGER,
    flush,
    flush_source,
    saturate,
)
from quiesce.simulator.kernels.translation.instructions.forms import choose, not_executed, refuse, require
from quiesce.simulator.kernels.translation.instructions.half_precision import narrow, narrow_double, positive, widen

CONVERSION: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cvt"
)

BYTE_FORMATS: Final = frozenset({"e4m3x2", "e5m2x2"})
_B16: Final = TYPES["b16"]
_F16: Final = TYPES["f16"]
_FLOAT32: Final = TYPES["f32"]


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
    require(i, ("rn", "satfinite", "relu", format_), operands=3 if source == _FLOAT32 else 2)
    if source.name not in ("f32", "f16x2") or not {"rn", "satfinite"} <= set(i.modifiers):
        raise not_executed(i)
    if source == _FLOAT32:
        high, low = (e.read_float(operand, _FLOAT32) for operand in i.operands[1:])
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


_ROUNDINGS = (*MODES, *TO_INTEGER)
_F32 = TYPES["f32"]
_F64 = TYPES["f64"]
_FIRST_KINDS = ("unsigned", "signed", "float")


def convert(e: Emitter, i: Instruction) -> None:
    """Translate ``cvt``."""
    if "tf32" in i.modifiers:
        _convert_to_tf32(e, i)
        return
    require(i, (*_ROUNDINGS, "ftz", "sat", "relu", "satfinite"), operands=(2, 3), types=2)
    target, source = i.types
    if any(each.kind not in _FIRST_KINDS for each in i.types) or "satfinite" in i.modifiers:
        raise refuse(i, f"'{i.name}' is not executed")
    if target.lanes == 2:
        _convert_pair(e, i)
        return
    require(i, (*_ROUNDINGS, "ftz", "sat", "relu"), operands=2, types=2)
    if source.lanes == 2:
        raise refuse(i, f"'{i.name}' is not executed")
    if "relu" in i.modifiers and (not target.is_float or target.bits != 16):
        raise refuse(i, f"'.relu' of 'cvt' is not executed for {target.name}")
    if not (source.is_float or target.is_float) and not {"sat"}.issuperset(i.modifiers):
        raise refuse(i, f"'{i.name}' is not executed: integers are not rounded")
    bits = e.read(i.operands[1], source, wider=True)
    if source.is_float and target.is_float:
        bits = _between_floats(e, i, bits, source, target)
    elif source.is_float:
        bits = _to_integer(e, i, bits, source, target)
    elif target.is_float:
        bits = _from_integer(e, i, bits, source, target)
    else:
        bits = _between_integers(e, i, bits, source, target)
    e.write(i.operands[0], bits, target, wider=not target.is_float or target.bits == 16)


def _between_integers(e: Emitter, i: Instruction, value: str, source: Type, target: Type) -> str:
    if "sat" in i.modifiers:
        bits = max(source.bits, target.bits) + 2
        wide = e.cast(value, source.bits, bits, source.is_signed)
        low = -(1 << (target.bits - 1)) if target.is_signed else 0
        high = (1 << (target.bits - 1 if target.is_signed else target.bits)) - 1
        wide = e.pure(f"i{bits}", f"llvm.smax.i{bits}", f"i{bits} {wide}", f"i{bits} {low}")
        wide = e.pure(f"i{bits}", f"llvm.smin.i{bits}", f"i{bits} {wide}", f"i{bits} {high}")
        return e.cast(wide, bits, target.bits)
    return e.cast(value, source.bits, target.bits, source.is_signed)


def _as_float(e: Emitter, i: Instruction, bits: str, type_: Type) -> tuple[str, Type]:
    """Return the source as a float or a double, whichever its type is or fits in, flushed if that is asked for."""
    if type_.bits == 16:
        return flush(e, i, widen(e, bits, type_), _F32), _F32
    return flush_source(e, i, i.operands[1], e.as_float(bits, type_), type_), type_


def _whole(e: Emitter, rounding: str, value: str, type_: Type) -> str:
    name = f"llvm.{TO_INTEGER[rounding]}.{type_.name}"
    return e.pure(type_.floating, name, f"{type_.floating} {value}")


def _to_integer(e: Emitter, i: Instruction, bits: str, source: Type, target: Type) -> str:
    value, type_ = _as_float(e, i, bits, source)
    rounding = choose(i, TO_INTEGER)
    if rounding != "rzi":
        value = _whole(e, rounding, value, type_)
    sign = "s" if target.is_signed else "u"
    name = f"llvm.fpto{sign}i.sat.{target.integer}.{type_.name}"
    result = e.pure(target.integer, name, f"{type_.floating} {value}")
    if source.bits == 64 or target.bits == 64:  # NaN is zero otherwise
        is_nan = e.define(f"fcmp uno {type_.floating} {value}, {value}")
        result = e.select(is_nan, target.integer, str(1 << (target.bits - 1)), result)
    return result


def _from_integer(e: Emitter, i: Instruction, bits: str, source: Type, target: Type) -> str:
    rounding = choose(i, (NEAREST, *DIRECTED), NEAREST)
    how = f"{'s' if source.is_signed else 'u'}itofp {source.integer} {bits}"
    floating = target.floating
    if target.bits == 16:
        return _finish_half(e, i, narrow_double(e, _odd(e, bits, source), target, rounding), target)
    if rounding == NEAREST:
        value = e.define(f"{how} to {floating}")
    elif target.bits == 32:
        value = e.pure(
            "float", "quiesce_kernel_narrow_f32", f"double {_odd(e, bits, source)}", f"i32 {MODES[rounding]}"
        )
    elif source.bits == 64:
        value = e.pure("double", f"quiesce_kernel_cvt_{rounding}_f64_{source.name}", f"i64 {bits}")
    else:
        value = e.define(f"{how} to double")
    value = saturate(e, i, value, floating)
    return e.define(f"bitcast {floating} {value} to {target.integer}")


def _odd(e: Emitter, bits: str, source: Type) -> str:
    """Return a double that rounds to every shorter format as the integer does."""
    if source.bits == 64:
        return e.pure("double", f"quiesce_kernel_odd_{source.name}", f"i64 {bits}")
    return e.define(f"{'s' if source.is_signed else 'u'}itofp {source.integer} {bits} to double")


def _between_floats(e: Emitter, i: Instruction, bits: str, source: Type, target: Type) -> str:
    value, type_ = _as_float(e, i, bits, source)
    whole = choose(i, TO_INTEGER, "none")
    if whole != "none":
        value = _whole(e, whole, value, type_)
    rounding = choose(i, (NEAREST, *DIRECTED), NEAREST)
    if target.bits == 16:
        if source == target:
            rounded = bits if whole == "none" else narrow(e, value, target)
        elif type_ == _F64:
            rounded = narrow_double(e, value, target, rounding)
        else:
            rounded = narrow(e, value, target, rounding)
        return _finish_half(e, i, rounded, target)
    if target.bits > type_.bits:
        value = e.define(f"fpext float {value} to double")
    elif target.bits < type_.bits and rounding == NEAREST:
        value = e.define(f"fptrunc double {value} to float")
    elif target.bits < type_.bits:
        value = e.pure("float", "quiesce_kernel_narrow_f32", f"double {value}", f"i32 {MODES[rounding]}")
    value = saturate(e, i, flush(e, i, value, target), target.floating)
    return e.define(f"bitcast {target.floating} {value} to {target.integer}")


def _finish_half(e: Emitter, i: Instruction, bits: str, type_: Type) -> str:
    """Return a half with ``.sat`` or ``.relu`` applied."""
    if "sat" in i.modifiers:
        return narrow(e, saturate(e, i, widen(e, bits, type_), "float"), type_)
    if "relu" in i.modifiers:
        return positive(e, bits, type_)
    return bits


def _convert_pair(e: Emitter, i: Instruction) -> None:
    """Translate the forms that put two floats into one register: the first source gets the high half."""
    target, source = i.types
    if not target.is_float or source != _F32:
        raise refuse(i, f"'{i.name}' is not executed")
    require(i, (NEAREST, "rz", "relu"), operands=3, types=2)
    lane = lane_of(target)
    rounding = choose(i, (NEAREST, "rz"))
    high, low = (
        _finish_half(e, i, narrow(e, e.read_float(operand, source), lane, rounding), lane) for operand in i.operands[1:]
    )
    moved = e.define(f"shl i32 {e.cast(high, 16, 32)}, 16")
    e.write(i.operands[0], e.define(f"or i32 {moved}, {e.cast(low, 16, 32)}"), target)


def _convert_to_tf32(e: Emitter, i: Instruction) -> None:
    """Translate ``cvt.rna.tf32.f32`` and its relatives: a float with 10 bits of fraction."""
    require(i, ("tf32", "rna", "rn", "rz"), operands=2)
    rounding = choose(i, ("rna", "rn", "rz"))
    value = e.define(f"fpext float {e.read_float(i.operands[1], _F32)} to double")
    bits = e.pure("i32", "quiesce_kernel_narrow_tf32", f"double {value}", f"i32 {MODES[rounding]}")
    e.write(i.operands[0], bits, TYPES["b32"])


def convert_packed(e: Emitter, i: Instruction) -> None:
    """Translate ``cvt.pack``: two integers saturated to 16 bits, or to 8 bits and put before two others."""
    require(i, ("pack", "sat"), operands=(3, 4), types=len(i.types))
    if len(i.types) not in (2, 3) or i.types[1].name != "s32":
        raise refuse(i, f"'{i.name}' is not executed")
    target = i.types[0]
    if (
        target.name not in (("u8", "s8") if len(i.types) == 3 else ("u16", "s16"))
        or len(i.operands) != len(i.types) + 1
    ):
        raise refuse(i, f"'{i.name}' is not executed")
    source = TYPES["s32"]
    parts = [_between_integers(e, i, e.read(operand, source), source, target) for operand in i.operands[1:3]]
    high, low = (e.cast(part, target.bits, 32) for part in parts)
    value = e.define(f"or i32 {e.define(f'shl i32 {high}, {target.bits}')}, {low}")
    if len(i.types) == 3:
        others = e.define(f"shl i32 {e.read(i.operands[3], source)}, 16")
        value = e.define(f"or i32 {others}, {value}")
    e.write(i.operands[0], value, TYPES["b32"])


@CONVERSION.translates("cvt")
def any_conversion(e: Emitter, i: Instruction) -> None:
    """Translate every form of ``cvt``."""
    if not BYTE_FORMATS.isdisjoint(i.modifiers):
        convert_bytes(e, i)
    else:
        (convert_packed if "pack" in i.modifiers else convert)(e, i)
