"""The forms of an instruction that are executed. A word that a chapter does not know is refused, never ignored."""

from __future__ import annotations

from collections.abc import Collection

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import Type


def refuse(instruction: Instruction, reason: str) -> RefusedKernel:
    """Return an error about an instruction."""
    return RefusedKernel(reason, instruction.text, instruction.line)


def not_executed(instruction: Instruction) -> RefusedKernel:
    """Return the error for an instruction that is valid, but that nothing here executes."""
    return refuse(instruction, f"'{instruction.name}' is not executed")


def require(
    instruction: Instruction, modifiers: Collection[str] = (), operands: int | Collection[int] = 3, types: int = 1
) -> None:
    """Raise RefusedKernel unless an instruction has these numbers of operands and types, and no other modifiers."""
    for modifier in instruction.modifiers:
        if modifier not in modifiers:
            raise refuse(instruction, f"'.{modifier}' of '{instruction.opcode}' is not executed")
    counts = (operands,) if isinstance(operands, int) else operands
    if len(instruction.operands) not in counts:
        raise refuse(instruction, f"'{instruction.opcode}' has {len(instruction.operands)} operands")
    if len(instruction.types) != types:
        raise refuse(instruction, f"'{instruction.opcode}' names {len(instruction.types)} types")


def require_type(instruction: Instruction, names: Collection[str], which: int = -1) -> Type:
    """Return a type of an instruction. Raises RefusedKernel unless it is one of these."""
    found = instruction.types[which] if instruction.types else None
    if found is None or found.name not in names:
        raise refuse(instruction, f"'{instruction.name}' has a type that is not executed")
    return found


def choose(instruction: Instruction, options: Collection[str], default: str | None = None) -> str:
    """Return the one modifier that is among the options. Raises RefusedKernel for several, or none without default."""
    found = [modifier for modifier in instruction.modifiers if modifier in options]
    if len(found) > 1 or (not found and default is None):
        raise refuse(instruction, f"'{instruction.name}' has no form that is executed")
    return found[0] if found else default or ""


INTEGERS = frozenset({"u16", "u32", "u64", "s16", "s32", "s64"})
SIGNED = frozenset({"s16", "s32", "s64"})
UNTYPED = frozenset({"b16", "b32", "b64"})
