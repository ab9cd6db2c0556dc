"""Comparison and selection: predicates from numbers, and numbers by predicates."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Operand, Pair, Type, lane_of
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.floating_point import flush_source
from quiesce.simulator.kernels.translation.instructions.forms import UNTYPED, choose, refuse, require, require_type
from quiesce.simulator.kernels.translation.instructions.half_precision import for_both, halves_of, widen

COMPARISON: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#comparison-and-selection-instructions"
)

_ORDERED = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOATING = {
    **{name: f"o{name}" for name in _ORDERED},
    **{f"{name}u": f"u{name}" for name in _ORDERED},
    **{"num": "ord", "nan": "uno"},
}
_COMBINATIONS = ("and", "or", "xor")
_COMPARISONS = {*_ORDERED, *_UNSIGNED, *_FLOATING}
_S32 = TYPES["s32"]
_F32 = TYPES["f32"]


def _compare_bits(e: Emitter, i: Instruction, name: str, type_: Type, values: list[str]) -> str:
    """Return a predicate for two operands that were read as integers."""
    if type_.is_float:
        if name not in _FLOATING:
            raise refuse(i, f"'.{name}' does not compare numbers with a fraction")
        if type_.bits == 16:
            floats = [widen(e, value, type_) for value in values]
            return e.define(f"fcmp {_FLOATING[name]} float {floats[0]}, {floats[1]}")
        operands = zip(i.operands[1:3], values, strict=True)
        floats = [flush_source(e, i, operand, e.as_float(value, type_), type_) for operand, value in operands]
        return e.define(f"fcmp {_FLOATING[name]} {type_.floating} {floats[0]}, {floats[1]}")
    if name in _UNSIGNED and not type_.is_signed:
        return e.define(f"icmp u{_UNSIGNED[name]} {type_.integer} {values[0]}, {values[1]}")
    if name not in _ORDERED or (type_.kind == "bits" and name not in ("eq", "ne")):
        raise refuse(i, f"'.{name}' does not compare this type")
    sign = "" if name in ("eq", "ne") else "s" if type_.is_signed else "u"
    return e.define(f"icmp {sign}{_ORDERED[name]} {type_.integer} {values[0]}, {values[1]}")


def _combine(e: Emitter, i: Instruction, value: str) -> str:
    """Return a predicate combined with the third source, if the instruction has one."""
    how = choose(i, _COMBINATIONS, "none")
    if (how == "none") != (len(i.operands) == 3):
        raise refuse(i, f"'{i.opcode}' has {len(i.operands)} operands")
    return value if how == "none" else e.define(f"{how} i1 {value}, {e.read(i.operands[3], PREDICATE)}")


@COMPARISON.translates("setp")
def set_predicate(e: Emitter, i: Instruction) -> None:
    """Translate ``setp``, with one or two destinations."""
    require(i, (*_COMPARISONS, *_COMBINATIONS, "ftz"), operands=(3, 4))
    type_ = i.types[-1]
    name = choose(i, _COMPARISONS)
    values = e.read_all(i.operands[1:3], type_)
    if type_.lanes == 2:
        _set_predicates_of_lanes(e, i, name, type_, values)
        return
    first = _compare_bits(e, i, name, type_, values)
    target: Operand = i.operands[0]
    if isinstance(target, Pair):
        opposite = e.define(f"xor i1 {first}, true")
        e.write(target.first, _combine(e, i, first), PREDICATE)
        e.write(target.second, _combine(e, i, opposite), PREDICATE)
    else:
        e.write(target, _combine(e, i, first), PREDICATE)


def _set_predicates_of_lanes(e: Emitter, i: Instruction, name: str, type_: Type, values: list[str]) -> None:
    target = i.operands[0]
    if not isinstance(target, Pair) or not type_.is_float:
        raise refuse(i, "two comparisons have one destination")
    for number, register in enumerate((target.first, target.second)):
        parts = halves_of(e, values, number)
        e.write(register, _combine(e, i, _compare_bits(e, i, name, lane_of(type_), parts)), PREDICATE)


@COMPARISON.translates("set")
def set_value(e: Emitter, i: Instruction) -> None:
    """Translate ``set``: all ones or 1.0 where the comparison holds."""
    require(i, (*_COMPARISONS, *_COMBINATIONS, "ftz"), operands=(3, 4), types=2)
    result_type, type_ = i.types
    name = choose(i, _COMPARISONS)
    values = e.read_all(i.operands[1:3], type_)
    if type_.lanes == 2:
        _set_lanes(e, i, name, values)
        return
    holds = _combine(e, i, _compare_bits(e, i, name, type_, values))
    if result_type.lanes != 1 or result_type.bits not in (16, 32):
        raise refuse(i, f"'{i.name}' is not executed")
    e.write(i.operands[0], _truth(e, holds, result_type), result_type)


_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def _truth(e: Emitter, holds: str, type_: Type) -> str:
    true = str(_TRUE[type_.name]) if type_.is_float else "-1"
    return e.select(holds, type_.integer, true, "0")


def _set_lanes(e: Emitter, i: Instruction, name: str, values: list[str]) -> None:
    result_type, type_ = i.types
    if not type_.is_float or result_type.bits != 32 or (result_type.is_float and result_type.lanes != 2):
        raise refuse(i, f"'{i.name}' is not executed")
    lane_type = lane_of(result_type) if result_type.is_float else TYPES["u16"]

    def one(parts: list[str]) -> str:
        return _truth(e, _combine(e, i, _compare_bits(e, i, name, lane_of(type_), parts)), lane_type)

    e.write(i.operands[0], for_both(e, values, one), result_type)


@COMPARISON.translates("selp")
def select_by_predicate(e: Emitter, i: Instruction) -> None:
    """Translate ``selp``."""
    require(i, operands=4)
    type_ = require_type(i, (*UNTYPED, "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"))
    first, second = e.read_all(i.operands[1:3], type_)
    e.write(i.operands[0], e.select(e.read(i.operands[3], PREDICATE), type_.integer, first, second), type_)


@COMPARISON.translates("slct")
def select_by_sign(e: Emitter, i: Instruction) -> None:
    """Translate ``slct``: the first source where the third is not negative."""
    require(i, ("ftz",), operands=4, types=2)
    type_ = i.types[0]
    by = require_type(i, ("s32", "f32"))
    first, second = e.read_all(i.operands[1:3], type_)
    if by == _F32:
        value = flush_source(e, i, i.operands[3], e.read_float(i.operands[3], _F32), _F32)
        holds = e.define(f"fcmp oge float {value}, 0.0")
    else:
        holds = e.define(f"icmp sge i32 {e.read(i.operands[3], _S32)}, 0")
    e.write(i.operands[0], e.select(holds, type_.integer, first, second), type_)
