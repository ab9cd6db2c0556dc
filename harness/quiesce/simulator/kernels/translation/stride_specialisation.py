"""Parameters that are strides: a kernel is compiled for arrays whose elements follow each other, and for all others.

Which value a stride has is known at the launch only. In the usual array it is the size of an element, and the kernel
then reads memory in order, which LLVM can vectorise. The runtime's call decides by comparing.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Address, Operand, Register, Symbol
from quiesce.simulator.kernels.translation.data_flow import effects_of

_MULTIPLIED: Final = frozenset({"mul", "mad"})
_PASSED_ON: Final = frozenset({"mov", "add", "sub", "shl", "shr", "cvt", "mul", "mad", "cvta"})
_ACCESSES: Final = frozenset({"ld", "st", "ldu"})
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_STRIDES_MAX: Final = 8

Strides = dict[tuple[int, int], int]
"""Values by the offset of a parameter and its bits."""


def guess_strides(function: Function) -> Strides:
    """Return the parameters that are probably strides, and the value that each has in the usual array."""
    offsets = {each.name: each.offset for each in function.parameters}
    readers: dict[Register, list[Instruction]] = {}
    for instruction in function.instructions():
        for register in effects_of(instruction)[0]:
            readers.setdefault(register, []).append(instruction)
    found: Strides = {}
    for instruction in function.instructions():
        place = _loaded(instruction, offsets)
        target = instruction.operands[0] if instruction.operands else None
        if place is None or not isinstance(target, Register):
            continue
        sizes = _sizes_of_accesses(target, readers)
        if len(sizes) == 1:
            found[place] = sizes.pop()
    return found if len(found) <= _STRIDES_MAX else {}


def _loaded(i: Instruction, offsets: dict[str, int]) -> tuple[int, int] | None:
    """Return the place of the whole number that an instruction loads from a kernel's parameters."""
    if i.opcode != "ld" or i.modifiers != ("param",) or i.guard or len(i.types) != 1 or i.types[0].is_float:
        return None
    address = i.operands[-1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol) or address.base.name not in offsets:
        return None
    return offsets[address.base.name] + address.offset, i.types[0].bits


def _sizes_of_accesses(stride: Register, readers: dict[Register, list[Instruction]]) -> set[int]:
    """Return the sizes of what lies at addresses that are computed by multiplying with a register."""
    products = [i for i in readers.get(stride, ()) if i.opcode in _MULTIPLIED]
    waiting = [i.operands[0] for i in products]
    seen: set[Operand] = set()
    sizes = set()
    while waiting:
        register = waiting.pop()
        if register in seen or not isinstance(register, Register):
            continue
        seen.add(register)
        for i in readers.get(register, ()):
            if i.opcode in _PASSED_ON:
                waiting.append(i.operands[0])
            elif i.opcode in _ACCESSES and i.types and any(_is_at(operand, register) for operand in i.operands):
                sizes.add(i.types[0].bytes * next((_VECTORS[word] for word in i.modifiers if word in _VECTORS), 1))
    return sizes


def _is_at(operand: Operand, register: Register) -> bool:
    return isinstance(operand, Address) and operand.base == register
