"""Video instructions: of one word, with a second operation behind the first, and of two or four numbers in a word."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import choose, not_executed, require, require_type
from quiesce.simulator.kernels.translation.instructions.integer import part

VIDEO: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#video-instructions")
SIMD_VIDEO: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#simd-video-instructions")
_U32: Final = TYPES["u32"]
_WORDS: Final = ("u32", "s32")
_SECOND: Final = ("add", "min", "max")
_SHIFTS: Final = ("vshl", "vshr")
_WIDE: Final = "i128"
"""It has room for any result: sources are taken as 33 bits with a sign, and shifted by up to 32."""


@VIDEO.translates("vadd", "vsub", "vabsdiff", "vmin", "vmax", *_SHIFTS)
def scalar(e: Emitter, i: Instruction) -> None:
    """Translate one that works on whole words, alone or with a second operation: ``vshr.u32.u32.u32.clamp.add``."""
    modes = ("clamp", "wrap") if i.opcode in _SHIFTS else ()
    second = choose(i, _SECOND, "")
    require(i, ("sat", *modes, *_SECOND), operands=4 if second else 3, types=3)
    to, from_, other = (require_type(i, _WORDS, which) for which in range(3))
    a, b = e.read(i.operands[1], from_), e.read(i.operands[2], other)
    if modes:
        require_type(i, ("u32",), 2)
        wraps = choose(i, modes) == "wrap"
        b = e.define(f"and i32 {b}, 31") if wraps else e.pure("i32", "llvm.umin.i32", f"i32 {b}", "i32 32")
    a, b = _widened(e, a, from_.is_signed), _widened(e, b, other.is_signed)
    result = _wide_result(e, i.opcode, a, b)
    if "sat" in i.modifiers:
        low, high = (-(1 << 31), (1 << 31) - 1) if to.is_signed else (0, (1 << 32) - 1)
        result = e.pure(_WIDE, f"llvm.smax.{_WIDE}", f"{_WIDE} {result}", f"{_WIDE} {low}")
        result = e.pure(_WIDE, f"llvm.smin.{_WIDE}", f"{_WIDE} {result}", f"{_WIDE} {high}")
    result = e.define(f"trunc {_WIDE} {result} to i32")
    if second:
        c = e.read(i.operands[3], to)
        sign = "s" if to.is_signed else "u"
        if second == "add":
            result = e.define(f"add i32 {result}, {c}")
        else:
            result = e.pure("i32", f"llvm.{sign}{second}.i32", f"i32 {result}", f"i32 {c}")
    e.write(i.operands[0], result, to)


def _widened(e: Emitter, word: str, signed: bool) -> str:
    return e.define(f"{'sext' if signed else 'zext'} i32 {word} to {_WIDE}")


def _wide_result(e: Emitter, operation: str, a: str, b: str) -> str:
    if operation in ("vmin", "vmax"):
        return e.pure(_WIDE, f"llvm.s{operation[1:]}.{_WIDE}", f"{_WIDE} {a}", f"{_WIDE} {b}")
    if operation == "vabsdiff":
        return e.pure(_WIDE, f"llvm.abs.{_WIDE}", f"{_WIDE} {e.define(f'sub {_WIDE} {a}, {b}')}", "i1 0")
    word = {"vadd": "add", "vsub": "sub", "vshl": "shl", "vshr": "ashr"}[operation]
    return e.define(f"{word} {_WIDE} {a}, {b}")


_SIMD: Final = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


@SIMD_VIDEO.translates(*(f"{name}{parts}" for name in _SIMD for parts in (2, 4)))
def lanes(e: Emitter, i: Instruction) -> None:
    """Translate one of them. With ``.add`` the results are summed up, and a third source is added."""
    require(i, ("sat", "add"), operands=4, types=3)
    if any(type_.name not in ("u32", "s32") for type_ in i.types) or {"sat", "add"} <= set(i.modifiers):
        raise not_executed(i)
    parts = int(i.opcode[-1])
    bits = 32 // parts
    first, second, third = (e.read(operand, _U32) for operand in i.operands[1:])
    total = third if "add" in i.modifiers else "0"
    for number in range(parts):
        one = part(e, first, number * bits, bits, i.types[1].is_signed)
        other = part(e, second, number * bits, bits, i.types[2].is_signed)
        result = _compute(e, i.opcode[:-1], one, other)
        if "sat" in i.modifiers:
            result = _limited(e, result, bits, i.types[0].is_signed)
        if "add" in i.modifiers:
            total = e.define(f"add i32 {total}, {result}")
        else:
            kept = e.define(f"and i32 {result}, {(1 << bits) - 1}")
            total = e.define(f"or i32 {total}, {e.define(f'shl i32 {kept}, {number * bits}')}")
    e.write(i.operands[0], total, _U32)


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
