"""Kernels that take the threads of a warp to be in step, as hardware runs them although the ISA does not promise it.

Such a kernel lets one thread of a warp read what another one has just written, without a barrier between the two. It
is known by what it computes: the number of a lane, or accesses that are volatile. One with a barrier of a warp
anywhere, or with a loop that waits for a value, is not of this kind. Before each access to memory that
may depend on an earlier one, and at the end of each round of a loop, its threads wait for those of their warp that are
still before that place in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, Label
from quiesce.simulator.kernels.ptx.operands import Address, Integer, Register, Special, Symbol
from quiesce.simulator.kernels.translation.control_flow import Flow, flow_of
from quiesce.simulator.kernels.translation.data_flow import definitions_of
from quiesce.simulator.kernels.translation.pointers import base_of
from quiesce.simulator.kernels.translation.spin_loops import STEP, SUSPENDING, spinning_branches

_LANES: Final = {"and": frozenset({31, -32, 0xFFFFFFE0, 0xFFFFFFFFFFFFFFE0}), "shr": frozenset({27, 59})}
"""Literals by which nvcc computes a number modulo 32, or divided by 32 with a sign."""
_ELSEWHERE: Final = frozenset({"local", "param", "const", "nc"})

_Done = frozenset[tuple[str, str]]
"""What a thread did since it last waited: it read or wrote what begins at a parameter or a variable."""


def with_steps(function: Function) -> Function:
    """Return a kernel with its steps; the same one if it has none."""
    instructions = function.instructions()
    uses_lanes = any(map(_computes_lane, instructions))
    if not uses_lanes and not any(map(_is_volatile, instructions)):
        return function
    if any(map(_is_barrier_of_warp, instructions)) or spinning_branches(function):
        return function
    flow = flow_of(function)
    found = {id(each): each for each in _dependent(flow, _Origins(function))}
    if not any(each.opcode == "ld" and (uses_lanes or _is_volatile(each)) for each in found.values()):
        return function
    items: list[Instruction | Label] = []
    passed: set[str] = set()
    for item in function.items:
        if isinstance(item, Label):
            passed.add(item.name)
        elif _goes_back(item, passed) or (id(item) in found and (uses_lanes or _is_volatile(item))):
            items.append(replace(item, opcode=STEP, modifiers=(), types=(), operands=(), guard=None))
        items.append(item)
    return replace(function, items=tuple(items))


def _goes_back(i: Instruction, passed: set[str]) -> bool:
    """Say whether a branch begins another round of a loop: threads that did less in this one wait there."""
    return i.opcode == "bra" and isinstance(i.operands[0], Symbol) and i.operands[0].name in passed


def _computes_lane(i: Instruction) -> bool:
    if any(isinstance(each, Special) and each.name == "%laneid" for each in i.operands):
        return True
    last = i.operands[-1] if i.operands else None
    return isinstance(last, Integer) and last.value in _LANES.get(i.opcode, ())


def _is_barrier_of_warp(i: Instruction) -> bool:
    return i.opcode in ("bar", "barrier") and "warp" in i.modifiers


def _is_volatile(i: Instruction) -> bool:
    return "volatile" in i.modifiers


class _Origins:
    """The parameters and variables at which addresses begin."""

    def __init__(self, function: Function) -> None:
        self._definitions = definitions_of(function)
        self._known: dict[Register, frozenset[str]] = {}

    def of_access(self, i: Instruction) -> frozenset[str]:
        """Return where the address of an access begins."""
        for operand in i.operands:
            if isinstance(operand, Address):
                return self._of(operand.base)
        return frozenset()

    def _of(self, base: object) -> frozenset[str]:
        if isinstance(base, Symbol):
            return frozenset({base.name})
        if not isinstance(base, Register):
            return frozenset()
        if base not in self._known:
            self._known[base] = frozenset()  # an address that moves in a loop begins where it did before
            self._known[base] = frozenset(name for i in self._definitions.get(base, ()) for name in self._made(i))
        return self._known[base]

    def _made(self, i: Instruction) -> frozenset[str]:
        if i.opcode == "ld":
            address = i.operands[1]
            if "param" in i.modifiers and isinstance(address, Address) and isinstance(address.base, Symbol):
                return frozenset({f"{address.base.name}+{address.offset}"})
            return frozenset()
        if i.opcode in ("mov", "cvta"):
            return self._of(i.operands[1])
        if i.opcode == "add" and isinstance(i.operands[1], Register):
            if i.types[-1].bits == 64:
                return self._of(base_of(i, self._definitions))
            return frozenset().union(*map(self._of, i.operands[1:]))  # an address in shared memory
        return self._of(i.operands[3]) if i.opcode == "mad" else frozenset()


def _dependent(flow: Flow, origins: _Origins) -> Iterator[Instruction]:
    """Yield the accesses that may depend on one of another thread, with nothing between the two that waits."""
    before: list[_Done] = [frozenset()] * len(flow.blocks)
    waiting = list(range(len(flow.blocks)))
    while waiting:
        number = waiting.pop()
        done = before[number]
        for instruction in flow.blocks[number].instructions:
            done = _after(instruction, done, origins)
        for successor in flow.blocks[number].successors:
            if not done <= before[successor]:
                before[successor] |= done
                waiting.append(successor)
    for number, block in enumerate(flow.blocks):
        done = before[number]
        for instruction in block.instructions:
            new = _new(instruction, origins)
            reads = instruction.opcode == "ld"
            if any(("st", name) in done or (not reads and ("ld", name) in done) for _, name in new):
                yield instruction
            done = _after(instruction, done, origins)


def _new(i: Instruction, origins: _Origins) -> _Done:
    if i.opcode not in ("ld", "st", "atom", "red") or not _ELSEWHERE.isdisjoint(i.modifiers):
        return frozenset()
    kind = "ld" if i.opcode == "ld" else "st"
    return frozenset((kind, name) for name in origins.of_access(i))


def _after(i: Instruction, done: _Done, origins: _Origins) -> _Done:
    if i.opcode in SUSPENDING:
        return frozenset()
    return done | _new(i, origins)
