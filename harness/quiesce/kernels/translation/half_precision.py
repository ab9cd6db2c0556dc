"""Arithmetic of half precision and bfloat, one number or two side by side.

Sums and products of floats that were halves round to the right half: a float has more than twice as many digits.
A fused multiplication does not, and is a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.types import TYPES, Type, lane_of
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.floating_point import saturate
from quiesce.kernels.translation.forms import refuse, require, require_type
from quiesce.kernels.translation.halves import narrow, widen

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
    lane = lane_of(type_)
    result = "0"
    for number in range(2):
        parts = [e.cast(e.define(f"lshr i32 {source}, {16 * number}"), 32, 16) for source in sources]
        moved = e.define(f"shl i32 {e.cast(translate(parts, lane), 16, 32)}, {16 * number}")
        result = e.define(f"or i32 {result}, {moved}")
    e.write(i.operands[0], result, type_)


def _flushed(e: Emitter, i: Instruction, bits: str, lane: Type) -> str:
    """Return a zero of the same sign for a subnormal half, if the instruction says ``.ftz``."""
    if "ftz" not in i.modifiers:
        return bits
    exponent = e.define(f"and i16 {bits}, {0x7C00 if lane.name == 'f16' else 0x7F80}")
    sign = e.define(f"and i16 {bits}, {0x8000}")
    return e.select(e.define(f"icmp eq i16 {exponent}, 0"), "i16", sign, bits)


def basic(e: Emitter, i: Instruction) -> None:
    """Translate ``add``, ``sub`` and ``mul``."""
    require(i, ("rn", "ftz", "sat"))

    def one(sources: list[str], lane: Type) -> str:
        first, second = (widen(e, _flushed(e, i, source, lane), lane) for source in sources)
        value = saturate(e, i, e.define(f"f{i.opcode} float {first}, {second}"), "float")
        return _flushed(e, i, narrow(e, value, lane), lane)

    lanes(e, i, one)


def fused_multiply_add(e: Emitter, i: Instruction) -> None:
    """Translate ``fma``."""
    require(i, ("rn", "ftz", "sat", "relu"), operands=4)

    def one(sources: list[str], lane: Type) -> str:
        arguments = [f"i16 {_flushed(e, i, source, lane)}" for source in sources]
        bits = _flushed(e, i, e.pure("i16", f"quiesce_kernel_fma_{lane.name}", *arguments, "i32 0"), lane)
        if "sat" in i.modifiers:
            return narrow(e, saturate(e, i, widen(e, bits, lane), "float"), lane)
        return _positive(e, bits, lane) if "relu" in i.modifiers else bits

    lanes(e, i, one)


def _positive(e: Emitter, bits: str, lane: Type) -> str:
    """Return zero for what is negative, and the one NaN for every NaN."""
    value = widen(e, bits, lane)
    kept = e.select(e.define(f"fcmp ogt float {value}, 0.0"), "i16", bits, "0")
    return e.select(e.define(f"fcmp uno float {value}, {value}"), "i16", str(0x7FFF), kept)


def negate(e: Emitter, i: Instruction) -> None:
    """Translate ``neg``."""
    require(i, ("ftz",), operands=2)
    lanes(e, i, lambda sources, lane: _flushed(e, i, e.define(f"xor i16 {sources[0]}, {0x8000}"), lane))


def absolute(e: Emitter, i: Instruction) -> None:
    """Translate ``abs``."""
    require(i, ("ftz",), operands=2)
    lanes(e, i, lambda sources, lane: _flushed(e, i, e.define(f"and i16 {sources[0]}, {0x7FFF}"), lane))


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


def approximate(e: Emitter, i: Instruction) -> None:
    """Translate ``ex2`` and ``tanh``."""
    require(i, ("approx", "ftz"), operands=2)

    def one(sources: list[str], lane: Type) -> str:
        value = widen(e, _flushed(e, i, sources[0], lane), lane)
        result = narrow(e, e.pure("float", _FUNCTIONS[i.opcode], f"float {value}"), lane)
        return _flushed(e, i, result, lane)

    lanes(e, i, one)


HANDLERS = {
    "add": basic,
    "sub": basic,
    "mul": basic,
    "fma": fused_multiply_add,
    "neg": negate,
    "abs": absolute,
    "min": least_or_greatest,
    "max": least_or_greatest,
    **dict.fromkeys(_FUNCTIONS, approximate),
}
