"""Registers that are computed again where a thread goes on, instead of being kept while it waits.

A register with one definition, from parameters and from where the thread is, always has the same value in a thread.
Computed again it costs no memory, and LLVM sees how addresses follow from the number of the thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quiesce.kernels.ptx.function import Function, Instruction
from quiesce.kernels.ptx.operands import Address, Float, Integer, Operand, Register, Special, Symbol
from quiesce.kernels.translation.roles import effects_of, written_operands

_PURE: Final = frozenset(
    [
        *("mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg"),
        *("min", "max", "cvt", "cvta", "setp", "selp"),
    ]
)
_CHANGING: Final = ("%clock", "%globaltimer", "%pm", "%envreg")
_INSTRUCTIONS_MAX: Final = 16
"""A register that takes more instructions is kept."""


class Recomputed:
    """Which registers of a kernel are computed again, and from which instructions."""

    def __init__(self, function: Function) -> None:
        self._parameters = {each.name for each in function.parameters} if function.is_entry else set()
        self._orders: dict[Register, tuple[Instruction, ...]] = {}
        for register, definition in _single_definitions(function).items():  # in the order of the text
            order = self._order(definition)
            if order:
                self._orders[register] = order

    def __contains__(self, register: Register) -> bool:
        return register in self._orders

    def instructions(self, registers: Iterable[Register]) -> tuple[Instruction, ...]:
        """Return what computes these registers, each instruction once and after those that it needs."""
        found: dict[int, Instruction] = {}
        for register in registers:
            found.update((id(each), each) for each in self._orders[register])
        return tuple(found.values())

    def _order(self, definition: Instruction) -> tuple[Instruction, ...]:
        """Return what has to be computed for an instruction and itself; nothing where it can't be."""
        sources = effects_of(definition)[0]
        if not self._is_pure(definition) or not all(source in self._orders for source in sources):
            return ()
        needed = {id(each): each for source in sources for each in self._orders[source]}
        needed[id(definition)] = definition
        return tuple(needed.values()) if len(needed) <= _INSTRUCTIONS_MAX else ()

    def _is_pure(self, i: Instruction) -> bool:
        if any(type_.is_float for type_ in i.types) or "cc" in i.modifiers:
            return False
        sources = i.operands[1:]
        if i.opcode == "ld":
            return i.modifiers == ("param",) and len(sources) == 1 and self._is_parameter(sources[0])
        return i.opcode in _PURE and all(_is_constant(each) for each in sources)

    def _is_parameter(self, operand: Operand) -> bool:
        return (
            isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in self._parameters
        )


def _is_constant(operand: Operand) -> bool:
    """Say whether an operand has one value in a thread, apart from registers."""
    if isinstance(operand, Special):
        return not operand.name.startswith(_CHANGING)
    return isinstance(operand, Register | Integer | Float | Symbol)


def _single_definitions(function: Function) -> dict[Register, Instruction]:
    definitions: dict[Register, Instruction] = {}
    several: set[Register] = set()
    for instruction in function.instructions():
        for register in effects_of(instruction)[1]:
            if register in definitions or instruction.guard or written_operands(instruction) != (register,):
                several.add(register)
            definitions[register] = instruction
    return {register: each for register, each in definitions.items() if register not in several}
