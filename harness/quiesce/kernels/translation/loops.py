"""Loops in which threads stop at each round, so that all threads of a block do a round before any does the next.

Threads that are next to each other mostly use memory that is next to each other: round by round it is read in order,
and LLVM can vectorise. A thread that does all its rounds at once goes through memory in large steps.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Function, Instruction
from quiesce.kernels.translation.flow import Flow, branch_labels
from quiesce.kernels.translation.spinning import SUSPENDING

_STOPPING: Final = frozenset({*SUSPENDING, "call", "atom", "red", "brx", "trap", "mma", "wmma"})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_INSTRUCTIONS_MAX: Final = 200


def shared_loops(function: Function, flow: Flow) -> dict[tuple[int, int], int]:
    """Return the branches that go back in such loops, by block and place, with the block that each goes back to."""
    found = {}
    ends = [number for number, block in enumerate(flow.blocks) if _target(function, flow, number) is not None]
    for end in ends:
        start = _target(function, flow, end)
        assert start is not None
        if any(start <= other < end for other in ends):
            continue  # there is a loop in it
        body = [i for block in flow.blocks[start : end + 1] for i in block.instructions]
        if len(body) <= _INSTRUCTIONS_MAX and not any(_stops(i) for i in body) and any(_reads(i) for i in body):
            found[end, len(flow.blocks[end].instructions) - 1] = start
    return found


def _target(function: Function, flow: Flow, number: int) -> int | None:
    """Return the block that a block goes back to."""
    instructions = flow.blocks[number].instructions
    if not instructions or instructions[-1].opcode != "bra":
        return None
    target = flow.labels[branch_labels(function, instructions[-1])[0]]
    return target if target <= number else None


def _stops(i: Instruction) -> bool:
    return i.opcode in _STOPPING or not _ORDERED.isdisjoint(i.modifiers)


def _reads(i: Instruction) -> bool:
    return i.opcode == "ld" and {"param", "shared", "local", "const"}.isdisjoint(i.modifiers)
