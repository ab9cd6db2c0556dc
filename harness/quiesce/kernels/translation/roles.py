"""Which operands an instruction writes and which it reads, as far as registers are concerned."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Address, Group, Integer, Operand, Register, Texel, registers_in
from quiesce.kernels.ptx.types import PREDICATE

CARRY: Final = Register("%carry@", PREDICATE)
"""The condition code of ``add.cc`` and its relatives, as a register of the function."""

_WRITES_NOTHING: Final = frozenset(
    [
        "st",
        "red",
        "bra",
        "brx",
        "ret",
        "exit",
        "trap",
        "membar",
        "fence",
        "prefetch",
        "prefetchu",
        "nanosleep",
        "discard",
        "applypriority",
        "brkpt",
        "pmevent",
        "griddepcontrol",
        "stmatrix",
        "setmaxnreg",
    ]
)
_BARRIERS: Final = frozenset({"bar", "barrier"})
_READS_CARRY: Final = frozenset({"addc", "subc", "madc"})


def written_operands(instruction: Instruction) -> tuple[Operand, ...]:
    """Return the destinations of an instruction."""
    operands = instruction.operands
    opcode = instruction.opcode
    if not operands or opcode in _WRITES_NOTHING or isinstance(operands[0], Address | Texel):
        return ()
    if opcode in _BARRIERS:
        return operands[:1] if "red" in instruction.modifiers else ()
    if opcode == "call":
        return operands[:1] if isinstance(operands[0], Group) else ()
    return operands[:1]


def effects_of(instruction: Instruction) -> tuple[list[Register], list[Register]]:
    """Return the registers whose values an instruction depends on, and those that it gives a value."""
    operands = instruction.operands
    count = len(written_operands(instruction))
    written = _registers(operands[:count])
    read = _registers(operands[count:])
    if "cc" in instruction.modifiers:
        written.append(CARRY)
    if instruction.opcode in _READS_CARRY:
        read.append(CARRY)
    if instruction.guard:  # what is written keeps its value where the instruction does not run
        read += [instruction.guard.register, *written]
    return read, written


def _registers(operands: tuple[Operand, ...]) -> list[Register]:
    found = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand)
        elif not isinstance(operand, Integer):
            found += registers_in(operand)
    return found
