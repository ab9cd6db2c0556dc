"""Which operands an instruction writes and which it reads, as far as registers are concerned."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Address, Group, Operand, Register, registers_in
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
    if not operands or opcode in _WRITES_NOTHING or isinstance(operands[0], Address):
        return ()
    if opcode in _BARRIERS:
        return operands[:1] if "red" in instruction.modifiers else ()
    if opcode == "call":
        return operands[:1] if isinstance(operands[0], Group) else ()
    return operands[:1]


def registers_written(instruction: Instruction) -> set[Register]:
    """Return the registers that an instruction gives a value, if its guard lets it."""
    written = {register for operand in written_operands(instruction) for register in registers_in(operand)}
    if "cc" in instruction.modifiers:
        written.add(CARRY)
    return written


def registers_read(instruction: Instruction) -> set[Register]:
    """Return the registers whose values an instruction depends on."""
    count = len(written_operands(instruction))
    read = {register for operand in instruction.operands[count:] for register in registers_in(operand)}
    if instruction.guard:
        read.add(instruction.guard.register)
        read |= registers_written(instruction)  # they keep their values where it does not run
    if instruction.opcode in _READS_CARRY:
        read.add(CARRY)
    return read
