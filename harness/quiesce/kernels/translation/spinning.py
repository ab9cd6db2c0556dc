"""Kernels whose threads wait for each other: by an operation that says so, or in a loop that looks at memory again."""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.function import Function, Instruction, Label
from quiesce.kernels.ptx.operands import Symbol

SUSPENDING: Final = frozenset({"bar", "barrier", "shfl", "vote", "match", "redux", "nanosleep"})
"""Opcodes at which a thread waits for others."""
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "mmio"})


def waits_by_itself(function: Function) -> bool:
    """Say whether threads wait in a function, apart from those that it calls."""
    return any(item.opcode in SUSPENDING for item in function.instructions()) or bool(spinning_branches(function))


def spinning_branches(function: Function) -> frozenset[int]:
    """Return the places of branches that go back to look at memory again, which another thread may write.

    A loop that compares and swaps ends by itself when no other thread interferes; a loop that loads in a way that sees
    the writes of others may not.
    """
    places: dict[str, int] = {}
    found = set()
    for place, item in enumerate(function.items):
        if isinstance(item, Label):
            places[item.name] = place
        elif item.opcode == "bra" and isinstance(item.operands[0], Symbol) and item.operands[0].name in places:
            body = function.items[places[item.operands[0].name] : place]
            if any(isinstance(each, Instruction) and _looks_again(each) for each in body):
                found.add(place)
    return frozenset(found)


def _looks_again(i: Instruction) -> bool:
    return i.opcode == "ld" and not _ORDERED.isdisjoint(i.modifiers)
