"""The control flow of a function: blocks of instructions that run one after another, and where each goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from quiesce.errors import RefusedKernel
from quiesce.kernels.ptx.function import Function, Instruction, Label
from quiesce.kernels.ptx.operands import Symbol

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
