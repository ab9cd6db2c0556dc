"""The control flow of a function: its basic blocks, and the regions that the threads run between two waits.

https://docs.nvidia.com/cuda/parallel-thread-execution/#control-flow-instructions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Function, Instruction, Label
from quiesce.simulator.kernels.ptx.operands import Symbol

ENDS: Final = frozenset({"bra", "brx", "ret", "exit", "trap"})
"""Opcodes after which another block begins."""


@dataclass(slots=True)
class Block:
    """Instructions that run one after another; the last one may branch."""

    instructions: list[Instruction] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flow:
    """The blocks of a function in the order of its text, and the block that each label stands for."""

    blocks: tuple[Block, ...]
    labels: dict[str, int]


def flow_of(function: Function, begins: Callable[[Instruction], bool] = lambda _: False) -> Flow:
    """Split a function into blocks. ``begins``: a block begins with the instruction, whatever is before it.

    Raises RefusedKernel where a branch goes nowhere.
    """
    blocks = [Block()]
    labels: dict[str, int] = {}
    for item in function.items:
        if isinstance(item, Label):
            if blocks[-1].instructions:
                blocks.append(Block())
            labels[item.name] = len(blocks) - 1
        else:
            if blocks[-1].instructions and begins(item):
                blocks.append(Block())
            blocks[-1].instructions.append(item)
            if item.opcode in ENDS:
                blocks.append(Block())
    for number, block in enumerate(blocks):
        last = block.instructions[-1] if block.instructions else None
        if last and last.opcode in ("bra", "brx"):
            block.successors += [labels[name] for name in branch_labels(function, last)]
        if (last is None or last.guard or last.opcode not in ENDS) and number + 1 < len(blocks):
            block.successors.append(number + 1)
    return Flow(tuple(blocks), labels)


def branch_labels(function: Function, branch: Instruction) -> tuple[str, ...]:
    """Return the labels that a branch may go to."""
    if branch.opcode == "bra":
        (target,) = branch.operands
        assert isinstance(target, Symbol)
        return (target.name,)
    listed = branch.operands[1] if len(branch.operands) == 2 else None
    if not isinstance(listed, Symbol) or not function.branch_targets.get(listed.name):
        raise RefusedKernel("a branch has no list of labels", branch.text, branch.line)
    return function.branch_targets[listed.name]


START: Final = -1
"""The node where threads begin, which may be in the middle of a block."""


@dataclass(frozen=True, slots=True)
class Region:
    """What the threads of a loop run: from a place in a block on, up to where each of them stops."""

    flow: Flow
    function: Function
    first: int = 0
    place: int = 0
    stops: frozenset[int] = frozenset()
    """Blocks at whose beginning threads stop."""
    backs: frozenset[tuple[int, int]] = frozenset()
    """Branches that are not taken: threads stop there."""
    end: Callable[[int, int], int | None] = field(default=lambda _block, _place: None)
    """After which instruction of a block all threads stop, from a place in it on."""

    def instructions(self, node: int) -> list[tuple[tuple[int, int], Instruction]]:
        """Return the instructions of a node with their positions."""
        number, place = (self.first, self.place) if node == START else (node, 0)
        if node in self.stops:
            return []
        listed = self.flow.blocks[number].instructions[place : self.end(number, place)]
        return [((number, at), each) for at, each in enumerate(listed, start=place)]

    def ways(self, node: int) -> list[tuple[int, bool | None]]:
        """Return the nodes that follow, with the guard's value on the way to each; None: any."""
        number, place = (self.first, self.place) if node == START else (node, 0)
        block = self.flow.blocks[number]
        if node in self.stops or self.end(number, place) is not None:
            return []
        last = block.instructions[-1] if len(block.instructions) > place else None
        if last is None or last.opcode not in ENDS or last.opcode == "brx":
            return [(each, None) for each in block.successors]
        is_taken = not last.guard.negated if last.guard else None
        found: list[tuple[int, bool | None]] = []
        if last.opcode == "bra" and (number, len(block.instructions) - 1) not in self.backs:
            found.append((self.flow.labels[branch_labels(self.function, last)[0]], is_taken))
        if last.guard and number + 1 < len(self.flow.blocks):
            found.append((number + 1, last.guard.negated))
        return found


class Paths:
    """The order of a region's nodes, and through which of them every way goes."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._ways: dict[int, list[tuple[int, bool | None]]] = {}
        order: list[int] = []
        self._visit(START, order)
        self.order = order[::-1]
        self._reached = {node: self._reach([node]) for node in self.order}
        self._sources: dict[int, list[tuple[int, bool | None]]] = {node: [] for node in self.order}
        for node, ways in self._ways.items():
            for target, held in ways:
                self._sources[target].append((node, held))

    def _visit(self, node: int, order: list[int]) -> None:
        stack = [node]
        while stack:
            top = stack[-1]
            ways = self._ways.setdefault(top, self._region.ways(top))
            following = [target for target, _ in ways if target not in self._ways]
            if following:
                stack.append(following[0])
                continue
            order.append(stack.pop())

    def _reach(self, nodes: Iterable[int], without: int | None = None) -> set[int]:
        """Return the nodes that one comes to after some, on ways that do not go through another one."""
        found: set[int] = set()
        waiting = list(nodes)
        while waiting:
            for target, _ in self._ways[waiting.pop()]:
                if target not in found and target != without:
                    found.add(target)
                    waiting.append(target)
        return found

    def before(self, node: int) -> tuple[int, bool | None] | None:
        """Return the only way to a node."""
        sources = self._sources[node]
        return sources[0] if len(sources) == 1 else None

    def above(self, node: int) -> int | None:
        """Return the last node outside of circles that every way to one goes through; None for a node in a circle."""
        if self._is_in_circle(node):
            return None
        found = None
        for other in self.order:
            if other == node:
                break
            if other == START or (not self._is_in_circle(other) and node not in self._reach([START], without=other)):
                found = other
        return found

    def _is_in_circle(self, node: int) -> bool:
        return node in self._reached[node]

    def between(self, above: int, node: int) -> set[int]:
        """Return the nodes on the ways from one to another."""
        return {each for each in self._reached[above] if node in self._reached[each]} - {above, node}

    def is_after(self, node: int, above: int) -> bool:
        """Say whether every way from a node leads to another one."""
        left = self._reach([above], without=node) | {above}
        return not any(self._is_end(each) for each in left)

    def _is_end(self, node: int) -> bool:
        """Say whether threads may stop at a node, or after it."""
        instructions = self._region.instructions(node)
        ways = self._ways[node]
        if not ways or not instructions:
            return not ways
        last = instructions[-1][1]
        return last.opcode in ENDS and (last.opcode not in ("bra", "brx") or len(ways) < 1 + bool(last.guard))
