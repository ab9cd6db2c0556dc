"""Which registers still matter at a point of a function: the others need not be kept while a thread waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Register
from quiesce.kernels.translation.flow import Flow
from quiesce.kernels.translation.roles import effects_of

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
