"""Whether a thread certainly uses what a shuffle gave it.

The ISA leaves the result undefined where the source lane takes no part. Correct kernels get such results often and do
not use them: lanes at the end of a reduction over a warp, the lower ones of a scan. So a result counts only if its own
thread comes from the shuffle to an instruction that uses it whatever happens: one that writes it to memory, uses it as
an address or branches by it, with nothing in between that may replace it. A branch or a selection by something else
ends the search.

Devices give 0 there, which does not change a sum. Sums over the lanes above or below (``shfl.up``, ``shfl.down``) have
that in their last lanes, and are no use. A lane that is named, or that is computed by ``xor``, is meant to take part.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Integer, Operand, Register, registers_in
from quiesce.kernels.translation.flow import Flow
from quiesce.kernels.translation.roles import effects_of

_STEPS_MAX: Final = 1_000
_WRITES: Final = frozenset({"st", "red", "atom"})
_PRIVATE: Final = frozenset({"local", "param", "param::func", "param::entry"})
_KEEPS: Final = frozenset(
    [
        *("mov", "cvt", "cvta", "neg", "not", "abs", "shl", "shr", "or", "xor", "prmt", "brev", "popc", "clz"),
        *("add", "sub", "mul", "mul24", "mad", "mad24", "fma", "div", "rem", "min", "max"),
        *("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos"),
    ]
)
"""Operations whose result depends on each of their operands, whatever the others are."""
_SUMS: Final = frozenset({"add", "or", "xor"})


def is_certainly_used(flow: Flow, position: tuple[int, int]) -> bool:
    """Say so of a shuffle, by the number of its block and its place in there."""
    number, place = position
    shuffle = flow.blocks[number].instructions[place]
    undefined = set(_targets(shuffle))
    sums = not {"up", "down"}.isdisjoint(shuffle.modifiers)
    visited = {number}
    rest = flow.blocks[number].instructions[place + 1 :]
    for _ in range(_STEPS_MAX):
        for instruction in rest:
            if _uses(instruction, undefined):
                return True
            _follow(instruction, undefined, sums)
            if not undefined:
                return False
        successors = flow.blocks[number].successors
        if len(successors) != 1 or successors[0] in visited:
            return False
        (number,) = successors
        visited.add(number)
        rest = flow.blocks[number].instructions
    return False


def _targets(shuffle: Instruction) -> list[Register]:
    """Return the register that gets the value, without the predicate that says whether there is one."""
    return list(registers_in(shuffle.operands[0]))[:1]


def _uses(i: Instruction, undefined: set[Register]) -> bool:
    if i.guard is not None and i.guard.register in undefined:
        return i.opcode in _WRITES or i.opcode == "bra"
    if i.guard is not None or not _PRIVATE.isdisjoint(i.modifiers):
        return False
    if i.opcode in _WRITES:
        return not undefined.isdisjoint(_read(i))
    return i.opcode in ("ld", "brx") and not undefined.isdisjoint(_read(i))


def _read(i: Instruction) -> list[Register]:
    return effects_of(i)[0]


def _follow(i: Instruction, undefined: set[Register], sums: bool) -> None:
    """Bring the registers up to date that are undefined after an instruction, whatever was done before."""
    read, written = effects_of(i)
    is_masked = i.opcode == "and" and isinstance(i.operands[-1], Integer) and i.operands[-1].value != 0
    keeps = i.guard is None and (i.opcode in _KEEPS or is_masked) and not undefined.isdisjoint(read)
    if i.opcode == "setp":
        keeps = i.guard is None and len(i.operands) == 3 and not undefined.isdisjoint(read)
    if keeps and sums and _is_sum(i, undefined):
        keeps = False
    if keeps:
        undefined.update(written)
    else:
        undefined.difference_update(written)


def _is_sum(i: Instruction, undefined: set[Register]) -> bool:
    """Say whether a 0 in place of what is undefined does not change the result."""
    if i.opcode in _SUMS:
        return not all(_depends(each, undefined) for each in i.operands[1:])
    if i.opcode == "sub":
        return not _depends(i.operands[1], undefined)
    if i.opcode in ("fma", "mad"):
        return not any(_depends(each, undefined) for each in i.operands[1:3])
    return i.opcode == "max" and bool(i.types) and i.types[0].kind != "float" and not i.types[0].is_signed


def _depends(operand: Operand, undefined: set[Register]) -> bool:
    return not undefined.isdisjoint(registers_in(operand))
