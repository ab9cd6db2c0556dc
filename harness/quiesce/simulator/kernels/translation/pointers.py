"""Registers that hold addresses, kept as pointers as well as numbers.

PTX computes addresses as integers. LLVM understands an access better through a pointer that moved by an offset: it can
then compare accesses and vectorise loops. A register that is an address, and whose every value comes from one of a few
instructions, therefore has a pointer of the same value next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Address, Register, Symbol
from quiesce.simulator.kernels.translation.data_flow import definitions_of, written_operands
from quiesce.simulator.kernels.translation.emitter import Emitter

_U64: Final = TYPES["u64"]
_ACCESSES: Final = frozenset({"ld", "ldu", "st", "atom", "red"})
_MEMORY: Final = frozenset({"ld", "cvta"})


def find_pointers(function: Function) -> frozenset[Register]:
    """Return the registers that are worth a pointer."""
    definitions = definitions_of(function)
    wanted: list[Register] = []
    for instruction in function.instructions():
        if instruction.opcode in _ACCESSES and "shared" not in instruction.modifiers:
            wanted += [
                operand.base
                for operand in instruction.operands
                if isinstance(operand, Address) and isinstance(operand.base, Register) and operand.base.type.bits == 64
            ]
    found: set[Register] = set()
    while wanted:
        register = wanted.pop()
        made_by = definitions.get(register, [])
        if register in found or not made_by or not all(_makes_pointer(each) for each in made_by):
            continue
        found.add(register)
        wanted += [base for each in made_by if (base := base_of(each, definitions)) is not None]
    return frozenset(found)


def _is_sum(i: Instruction) -> bool:
    return i.opcode == "add" and len(i.types) == 1 and i.types[0].bits == 64 and not i.types[0].is_float


def _makes_pointer(i: Instruction) -> bool:
    if not isinstance(i.operands[0], Register) or len(i.operands) < 2:
        return False
    if _is_sum(i):
        return len(i.operands) == 3 and isinstance(i.operands[1], Register) and "cc" not in i.modifiers
    if i.opcode == "mov":
        return isinstance(i.operands[1], Register | Symbol)
    return i.opcode in _MEMORY and i.types[-1:] != () and i.types[-1].bits == 64


def base_of(i: Instruction, definitions: dict[Register, list[Instruction]]) -> Register | None:
    """Return the register whose pointer an instruction moves or copies."""
    if _is_sum(i):
        return _addend(i, definitions)[0]
    source = i.operands[1]
    is_copy = i.opcode == "mov" or (i.opcode == "cvta" and "shared" not in i.modifiers)
    return source if is_copy and isinstance(source, Register) else None


def _addend(i: Instruction, definitions: dict[Register, list[Instruction]] | None) -> tuple[Register, int]:
    """Return the address in a sum, and which source is its offset."""
    first, second = i.operands[1:]
    assert isinstance(first, Register)
    if isinstance(second, Register) and definitions is not None:
        from_memory = [
            any(each.opcode in _MEMORY or _is_sum(each) for each in definitions.get(source, ()))
            for source in (first, second)
        ]
        if from_memory == [False, True]:
            return second, 1
    return first, 2


def pointer_keeper(e: Emitter, i: Instruction) -> Callable[[], None]:
    """Return what keeps the pointer of an instruction's result, to be called when the result was written.

    Its sources are read at once, since the result may take the place of one of them.
    """
    target = i.operands[0] if i.operands else None
    if not isinstance(target, Register) or not e.has_pointer(target) or not written_operands(i):
        return _nothing
    slot = e.pointer_slot(target)
    pointer = _moved_pointer(e, i)

    def keep() -> None:
        now = pointer or e.define(f"inttoptr i64 {e.read(target, _U64)} to ptr")
        e.store("ptr", now, slot)

    return keep


def _nothing() -> None:
    """Keep no pointer."""


def _moved_pointer(e: Emitter, i: Instruction) -> str | None:
    if _is_sum(i):
        first, second = i.operands[1:]
        base, offset = first, second
        if (
            isinstance(second, Register)
            and e.has_pointer(second)
            and not (isinstance(first, Register) and e.has_pointer(first))
        ):
            base, offset = second, first
        if not isinstance(base, Register) or not e.has_pointer(base):
            return None
        return e.byte_offset(e.load("ptr", e.pointer_slot(base)), e.read(offset, _U64))
    source = i.operands[1]
    if isinstance(source, Symbol) and i.opcode == "mov":
        pointer = e.pointer_to(source)
        return None if pointer is None else e.byte_offset(pointer, source.offset)
    is_copy = i.opcode == "mov" or (i.opcode == "cvta" and "shared" not in i.modifiers)
    if is_copy and isinstance(source, Register) and e.has_pointer(source):
        return e.load("ptr", e.pointer_slot(source))
    return None
