"""Registers that never hold a subnormal float, because each instruction that writes them flushes its result.

With ``.ftz`` an instruction takes its subnormal sources for zeros, and gives zeros for subnormal results. CUDA's
compilers and CuPy write whole kernels that way. Most sources of an instruction are then results that were flushed.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Float, Operand, Register
from quiesce.simulator.kernels.translation.data_flow import definitions_of

_FLUSHING: Final = frozenset(
    [
        *("add", "sub", "mul", "div", "fma", "mad", "neg", "abs", "min", "max", "rcp", "sqrt", "rsqrt"),
        *("sin", "cos", "ex2", "lg2", "tanh"),
    ]
)
_MOVING: Final = {"mov": slice(1, 2), "selp": slice(1, 3)}
"""Instructions whose result is one of their sources, and which of their operands these are."""
_FRACTION_BITS: Final = 23
_EXPONENT_MASK: Final = 0xFF


def never_subnormal(operand: Operand, flushed: frozenset[Register] | set[Register]) -> bool:
    """Say whether an operand is no subnormal float; ``flushed`` are the registers that hold none."""
    if isinstance(operand, Float):
        bits = operand.bits_as(32)
        return bool(bits >> _FRACTION_BITS & _EXPONENT_MASK) or not bits & ((1 << _FRACTION_BITS) - 1)
    return operand in flushed


def flushed_registers(function: Function) -> frozenset[Register]:
    """Return the registers of a function that never hold a subnormal float."""
    if not any(_flushes(i) for i in function.instructions()):
        return frozenset()
    passed = {each.name for each in function.parameters if each.is_register}
    definitions = {
        register: made
        for register, made in definitions_of(function).items()
        if register.type.bits == 32 and register.name not in passed
    }
    found = {register for register, made in definitions.items() if all(map(_may_give_none, made))}
    before = -1
    while before != len(found):
        before = len(found)
        found = {register for register in found if all(_gives_none(i, found) for i in definitions[register])}
    return frozenset(found)


def _flushes(i: Instruction) -> bool:
    return i.opcode in _FLUSHING and "ftz" in i.modifiers and [each.name for each in i.types] == ["f32"]


def _is_of_an_integer(i: Instruction) -> bool:
    return i.opcode == "cvt" and len(i.types) == 2 and i.types[0].name == "f32" and not i.types[1].is_float


def _may_give_none(i: Instruction) -> bool:
    """Say whether an instruction gives no subnormal float if its sources are none. It has to write one register."""
    is_known = _flushes(i) or _is_of_an_integer(i) or i.opcode in _MOVING
    return is_known and bool(i.operands) and isinstance(i.operands[0], Register)


def _gives_none(i: Instruction, flushed: set[Register]) -> bool:
    sources = i.operands[_MOVING[i.opcode]] if i.opcode in _MOVING else ()
    return all(never_subnormal(each, flushed) for each in sources)
