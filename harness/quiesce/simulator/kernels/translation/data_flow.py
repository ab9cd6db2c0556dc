"""The data flow of a function: definitions and uses, liveness, uniformity, and whether a result is certainly used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import (
    PREDICATE,
    Address,
    Group,
    Integer,
    Operand,
    Register,
    Special,
    Symbol,
    Texel,
    registers_in,
)
from quiesce.simulator.kernels.translation.control_flow import Flow

CARRY: Final = Register("%carry@", PREDICATE)
"""The condition code of ``add.cc`` and its relatives, as a register of the function."""

_WRITES_NOTHING: Final = frozenset(
    [
        *("st", "red", "bra", "brx", "ret", "exit", "trap", "membar", "fence", "prefetch", "prefetchu", "nanosleep"),
        *("discard", "applypriority", "brkpt", "pmevent", "griddepcontrol", "stmatrix", "setmaxnreg"),
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


def definitions_of(function: Function) -> dict[Register, list[Instruction]]:
    """Return the instructions that write each register, in the order of the text."""
    found: dict[Register, list[Instruction]] = {}
    for instruction in function.instructions():
        for operand in written_operands(instruction):
            for register in registers_in(operand):
                found.setdefault(register, []).append(instruction)
    return found


def _registers(operands: tuple[Operand, ...]) -> list[Register]:
    found = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand)
        elif not isinstance(operand, Integer):
            found += registers_in(operand)
    return found


_Effect = tuple[int, int]
"""The registers that an instruction reads, and those whose old values it ends, as sets of bits."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """What is live where. Sets of registers are numbers with a bit for each."""

    registers: tuple[Register, ...]
    live_in: tuple[int, ...]
    _effects: tuple[tuple[_Effect, ...], ...]
    _flow: Flow

    def at_entry(self) -> tuple[Register, ...]:
        """Return the registers that may be read before they are written."""
        return self._named(self.live_in[0])

    def at_start(self, block: int) -> tuple[Register, ...]:
        """Return the registers that are read later than the beginning of a block."""
        return self._named(self.live_in[block])

    def after(self, block: int, place: int) -> tuple[Register, ...]:
        """Return the registers that are read later than an instruction, by the number of its block and its place."""
        live = _union(self.live_in[each] for each in self._flow.blocks[block].successors)
        for read, ended in reversed(self._effects[block][place + 1 :]):
            live = live & ~ended | read
        return self._named(live)

    def _named(self, live: int) -> tuple[Register, ...]:
        return tuple(register for bit, register in enumerate(self.registers) if live >> bit & 1)


def liveness_of(flow: Flow) -> Liveness:
    """Compute what is live in each block of a function."""
    numbers: dict[Register, int] = {}
    effects = tuple(tuple(_effect(each, numbers) for each in block.instructions) for block in flow.blocks)
    generated, killed = [], []
    for block in effects:
        before = ended_before = 0
        for read, ended in block:
            before |= read & ~ended_before
            ended_before |= ended
        generated.append(before)
        killed.append(ended_before)
    live_in = list(generated)
    changed = True
    while changed:
        changed = False
        for number in range(len(flow.blocks) - 1, -1, -1):
            after = _union(live_in[each] for each in flow.blocks[number].successors)
            new = generated[number] | after & ~killed[number]
            if new != live_in[number]:
                live_in[number] = new
                changed = True
    return Liveness(tuple(numbers), tuple(live_in), effects, flow)


def _effect(instruction: Instruction, numbers: dict[Register, int]) -> _Effect:
    registers_read, registers_written = effects_of(instruction)
    read = ended = 0
    for register in registers_read:
        read |= 1 << numbers.setdefault(register, len(numbers))
    for register in registers_written:
        bit = 1 << numbers.setdefault(register, len(numbers))
        ended |= 0 if instruction.guard else bit
    return read, ended


def _union(sets: Iterable[int]) -> int:
    union = 0
    for each in sets:
        union |= each
    return union


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


_STEPS_MAX: Final = 1_000
_WRITES: Final = frozenset({"st", "red", "atom"})
_PRIVATE: Final = frozenset({"local", "param"})
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
