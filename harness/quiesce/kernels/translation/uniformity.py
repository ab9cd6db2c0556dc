"""Registers that have the same value in all threads of a block, whenever all of them are at the same place.

A value differs between threads if it depends on the number of the thread or on memory, or if a branch that does
decides whether it is computed.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Address, Operand, Register, Special, Symbol
from quiesce.kernels.translation.flow import Flow
from quiesce.kernels.translation.roles import effects_of

_COMPUTED: Final = frozenset(
    [
        *("mov", "add", "sub", "mul", "mad", "div", "rem", "shl", "shr", "and", "or", "xor", "not", "neg"),
        *("min", "max", "cvt", "cvta", "setp", "selp"),
    ]
)
_SAME: Final = ("%ntid", "%ctaid", "%nctaid")
_BLOCKS_MAX: Final = 300
"""In a longer kernel no register is taken for uniform."""


def uniform_registers(flow: Flow, parameters: frozenset[str]) -> frozenset[Register]:
    """Return the registers that are the same for all threads of a block."""
    if len(flow.blocks) > _BLOCKS_MAX:
        return frozenset()
    after = _blocks_after_all_paths(flow)
    everything = {register for block in flow.blocks for i in block.instructions for register in effects_of(i)[1]}
    varying: set[Register] = set()
    divergent: set[int] = set()
    before = -1
    while before != len(varying) + len(divergent):
        before = len(varying) + len(divergent)
        for number, block in enumerate(flow.blocks):
            for i in block.instructions:
                read, written = effects_of(i)
                same = number not in divergent and _gives_the_same(i, parameters) and varying.isdisjoint(read)
                if not same:
                    varying.update(written)
            if len(set(block.successors)) > 1 and not varying.isdisjoint(effects_of(block.instructions[-1])[0]):
                divergent |= _between(flow, number, after[number])
    return frozenset(everything - varying)


def _gives_the_same(i: Instruction, parameters: frozenset[str]) -> bool:
    if i.opcode == "ld":
        bases = [operand.base for operand in i.operands[1:] if isinstance(operand, Address)]
        named = [base for base in bases if isinstance(base, Symbol) and base.name in parameters]
        return "param" in i.modifiers and len(named) == 1
    return i.opcode in _COMPUTED and all(_is_the_same(each) for each in i.operands[1:])


def _is_the_same(operand: Operand) -> bool:
    return not isinstance(operand, Special) or operand.name.startswith(_SAME)


def _between(flow: Flow, branch: int, after: int) -> set[int]:
    """Return the blocks that only some of the threads may run after a branch, up to where all are together again."""
    found: set[int] = set()
    waiting = list(flow.blocks[branch].successors)
    while waiting:
        number = waiting.pop()
        if number not in found and not after >> number & 1:
            found.add(number)
            waiting += flow.blocks[number].successors
    return found


def _blocks_after_all_paths(flow: Flow) -> list[int]:
    """Return for each block those that every path from it to an end goes through, as a set of bits without itself."""
    count = len(flow.blocks)
    every = (1 << count) - 1
    found = [every] * count
    changed = True
    while changed:
        changed = False
        for number in range(count - 1, -1, -1):
            successors = flow.blocks[number].successors
            new = every if successors else 0
            for each in successors:
                new &= found[each] | 1 << each
            if new != found[number]:
                found[number] = new
                changed = True
    return found
