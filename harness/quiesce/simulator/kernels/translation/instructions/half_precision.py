"""Arithmetic of half precision and bfloat, one number or two side by side.

Sums and products of floats that were halves round to the right half: a float has more than twice as many digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Type, lane_of
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.floating_point import MODES, NEAREST, saturate
from quiesce.simulator.kernels.translation.instructions.forms import refuse, require, require_type

HALF_PRECISION: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#half-precision-floating-point-instructions"
)

_F32 = TYPES["f32"]


def widen(e: Emitter, bits: str, type_: Type) -> str:
    """Return the float that the 16 bits of a half or a bfloat stand for."""
    if type_.name == "f16":
        return e.define(f"fpext half {e.as_float(bits, type_)} to float")
    return e.as_float(e.define(f"shl i32 {e.cast(bits, 16, 32)}, 16"), _F32)


def narrow(e: Emitter, value: str, type_: Type, rounding: str = NEAREST) -> str:
    """Return the 16 bits of a half or a bfloat for a float."""
    if rounding != NEAREST:
        return narrow_double(e, e.define(f"fpext float {value} to double"), type_, rounding)
    if type_.name == "f16":
        half = e.define(f"fptrunc float {value} to half")
        return e.define(f"bitcast half {half} to i16")
    bits = e.define(f"bitcast float {value} to i32")
    odd = e.define(f"and i32 {e.define(f'lshr i32 {bits}, 16')}, 1")
    raised = e.define(f"add i32 {e.define(f'add i32 {bits}, {odd}')}, 32767")
    rounded = e.define(f"lshr i32 {raised}, 16")
    is_nan = e.define(f"fcmp uno float {value}, {value}")
    return e.cast(e.select(is_nan, "i32", "32767", rounded), 32, 16)


def narrow_double(e: Emitter, value: str, type_: Type, rounding: str = NEAREST) -> str:
    """Return the 16 bits of a half or a bfloat for a double, rounded once."""
    return e.pure("i16", f"quiesce_kernel_narrow_{type_.name}", f"double {value}", f"i32 {MODES[rounding]}")


def halves_of(e: Emitter, sources: list[str], number: int) -> list[str]:
    """Return the low half of each source, or the high one."""
    return [e.cast(e.define(f"lshr i32 {source}, {16 * number}"), 32, 16) for source in sources]


def for_both(e: Emitter, sources: list[str], compute: Callable[[list[str]], str]) -> str:
    """Return what is computed for the low halves of sources and for the high ones, side by side."""
    whole = "0"
    for number in range(2):
        moved = e.define(f"shl i32 {e.cast(compute(halves_of(e, sources, number)), 16, 32)}, {16 * number}")
        whole = e.define(f"or i32 {whole}, {moved}")
    return whole


_TYPES = ("f16", "bf16", "f16x2", "bf16x2")
_B16 = TYPES["b16"]
_Lane = Callable[[list[str], Type], str]


def lanes(e: Emitter, i: Instruction, translate: _Lane) -> None:
    """Translate an instruction for each of its numbers: bits of the sources to bits of the result."""
    type_ = require_type(i, _TYPES)
    sources = e.read_all(i.operands[1:], type_)
    if type_.lanes == 1:
        e.write(i.operands[0], translate(sources, type_), type_)
        return
    e.write(i.operands[0], for_both(e, sources, lambda parts: translate(parts, lane_of(type_))), type_)


def _flushed(e: Emitter, i: Instruction, bits: str, lane: Type) -> str:
    """Return a zero of the same sign for a subnormal half, if the instruction says ``.ftz``."""
    if "ftz" not in i.modifiers:
        return bits
    exponent = e.define(f"and i16 {bits}, {0x7C00 if lane.name == 'f16' else 0x7F80}")
    sign = e.define(f"and i16 {bits}, {0x8000}")
    return e.select(e.define(f"icmp eq i16 {exponent}, 0"), "i16", sign, bits)


@HALF_PRECISION.translates("add", "sub", "mul")
def basic(e: Emitter, i: Instruction) -> None:
    """Translate ``add``, ``sub`` and ``mul``."""
    require(i, ("rn", "ftz", "sat"))

    def one(sources: list[str], lane: Type) -> str:
        first, second = (widen(e, _flushed(e, i, source, lane), lane) for source in sources)
        value = saturate(e, i, e.define(f"f{i.opcode} float {first}, {second}"), "float")
        return _flushed(e, i, narrow(e, value, lane), lane)

    lanes(e, i, one)


@HALF_PRECISION.translates("fma")
def fused_multiply_add(e: Emitter, i: Instruction) -> None:
    """Translate ``fma``."""
    require(i, ("rn", "ftz", "sat", "relu"), operands=4)

    def one(sources: list[str], lane: Type) -> str:
        arguments = [f"i16 {_flushed(e, i, source, lane)}" for source in sources]
        bits = _flushed(e, i, e.pure("i16", f"quiesce_kernel_fma_{lane.name}", *arguments, "i32 0"), lane)
        if "sat" in i.modifiers:
            return narrow(e, saturate(e, i, widen(e, bits, lane), "float"), lane)
        return positive(e, bits, lane) if "relu" in i.modifiers else bits

    lanes(e, i, one)


def positive(e: Emitter, bits: str, lane: Type) -> str:
    """Return zero for what is negative, and the one NaN for every NaN."""
    value = widen(e, bits, lane)
    kept = e.select(e.define(f"fcmp ogt float {value}, 0.0"), "i16", bits, "0")
    return e.select(e.define(f"fcmp uno float {value}, {value}"), "i16", str(0x7FFF), kept)


@HALF_PRECISION.translates("neg")
def negate(e: Emitter, i: Instruction) -> None:
    """Translate ``neg``."""
    require(i, ("ftz",), operands=2)
    lanes(e, i, lambda sources, lane: _flushed(e, i, e.define(f"xor i16 {sources[0]}, {0x8000}"), lane))


@HALF_PRECISION.translates("abs")
def absolute(e: Emitter, i: Instruction) -> None:
    """Translate ``abs``."""
    require(i, ("ftz",), operands=2)
    lanes(e, i, lambda sources, lane: _flushed(e, i, e.define(f"and i16 {sources[0]}, {0x7FFF}"), lane))


@HALF_PRECISION.translates("min", "max")
def least_or_greatest(e: Emitter, i: Instruction) -> None:
    """Translate ``min`` and ``max``."""
    require(i, ("ftz", "NaN", "xorsign", "abs"))
    by_size = "xorsign" in i.modifiers
    if by_size != ("abs" in i.modifiers):
        raise refuse(i, "'.xorsign' and '.abs' stand together")
    name = {"min": "minimum", "max": "maximum"}[i.opcode] + ("" if "NaN" in i.modifiers else "num")

    def one(sources: list[str], lane: Type) -> str:
        flushed = [_flushed(e, i, source, lane) for source in sources]
        sizes = [e.define(f"and i16 {each}, {0x7FFF}") for each in flushed] if by_size else flushed
        first, second = (widen(e, each, lane) for each in sizes)
        value = e.pure("float", f"llvm.{name}.f32", f"float {first}", f"float {second}")
        bits = narrow(e, value, lane)
        if by_size:
            sign = e.define(f"and i16 {e.define(f'xor i16 {flushed[0]}, {flushed[1]}')}, {0x8000}")
            bits = e.define(f"or i16 {bits}, {sign}")
        return e.select(e.define(f"fcmp uno float {value}, {value}"), "i16", str(0x7FFF), bits)

    lanes(e, i, one)


_FUNCTIONS = {"ex2": "exp2f", "tanh": "tanhf"}


@HALF_PRECISION.translates(*_FUNCTIONS)
def approximate(e: Emitter, i: Instruction) -> None:
    """Translate ``ex2`` and ``tanh``."""
    require(i, ("approx", "ftz"), operands=2)

    def one(sources: list[str], lane: Type) -> str:
        value = widen(e, _flushed(e, i, sources[0], lane), lane)
        result = narrow(e, e.pure("float", _FUNCTIONS[i.opcode], f"float {value}"), lane)
        return _flushed(e, i, result, lane)

    lanes(e, i, one)
