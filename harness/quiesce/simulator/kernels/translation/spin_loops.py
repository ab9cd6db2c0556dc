"""Kernels whose threads wait for each other: by an operation that says so, or in a loop that looks at memory again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, Label
from quiesce.simulator.kernels.ptx.operands import Integer, Operand, Symbol
from quiesce.simulator.kernels.translation.data_flow import effects_of

STEP: Final = "(step)"
"""What ``in_step`` puts between instructions; no text has such an opcode."""
SUSPENDING: Final = frozenset({"bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "nanosleep", STEP})
_MATRICES: Final = frozenset({"ldmatrix", "stmatrix", "mma"})
"""Opcodes at which a thread waits for others."""
_RETURNING: Final = frozenset({"ret", "exit"})
_LEAVING: Final = frozenset({*_RETURNING, "bra", "brx"})
_ORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "mmio", "cv"})
_COMPARING: Final = frozenset({"cas", "exch"})


def waits_for_some(i: Instruction) -> bool:
    """Say whether a thread waits at an instruction, and for anything else than all threads of its block."""
    return i.opcode in SUSPENDING and not waits_for_all(i)


def waits_for_all(i: Instruction) -> bool:
    """Say whether an instruction is a barrier of all threads of the block, whose number is in the text."""
    if i.opcode not in ("bar", "barrier") or not {"sync", "cta", "aligned"}.issuperset(i.modifiers):
        return False
    return "sync" in i.modifiers and len(i.operands) == 1 and isinstance(i.operands[0], Integer)


def waits_by_itself(function: Function) -> bool:
    """Say whether threads wait in a function, apart from those that it calls."""
    if any(_takes_part(item) for item in function.instructions()):
        return True
    literals = _literals(function)
    found = _in_loops(function, lambda i: _looks_again(i) or _locks(i, literals))
    return any("exch" not in i.modifiers or _ends_soon(function, i, branch) for branch, i in found)


def _takes_part(i: Instruction) -> bool:
    return i.opcode in SUSPENDING or i.opcode in _MATRICES or (i.opcode == "wmma" and "mma" in i.modifiers)


def without_idle_pauses(function: Function) -> Function:
    """Return a function without pauses of no time, which libcu++ has in place of fences for local memory.

    Threads wait at a pause, and functions in which threads wait become part of their callers, which grow. In a loop, a
    pause stays: it lets the threads go on that the loop waits for.
    """
    pauses = [item for item in function.instructions() if item.opcode == "nanosleep"]
    if not pauses:
        return function
    in_loops = [each for _, each in _in_loops(function, lambda each: each.opcode == "nanosleep")]
    idle = [each for each in pauses if each not in in_loops and all(_is_zero(function, time) for time in each.operands)]
    return replace(function, items=tuple(item for item in function.items if item not in idle))


def _is_zero(function: Function, operand: Operand) -> bool:
    """Say whether an operand is 0, or a register that gets nothing else."""
    made = [i for i in function.instructions() if operand in effects_of(i)[1]]
    moves_zero = [i.opcode == "mov" and i.operands[1:] == (Integer(0),) for i in made]
    return operand == Integer(0) or (bool(made) and all(moves_zero))


def spinning_branches(function: Function) -> frozenset[int]:
    """Return the places of branches that go back to look at memory again, which another thread may write.

    A loop that only compares and swaps makes no kernel wait, unless it takes a lock, for it ends by itself when no
    other thread interferes. In a kernel that waits anyway, the thread that interferes may be one that has to go on
    first.
    """
    return frozenset(branch for branch, _ in _in_loops(function, _may_spin))


def _in_loops(function: Function, wanted: Callable[[Instruction], bool]) -> Iterator[tuple[int, Instruction]]:
    """Yield each wanted instruction of a loop that is in no loop inside of it, and the place of the branch back."""
    loops = sorted(_loops(function), reverse=True)
    for place, item in enumerate(function.items):
        if not isinstance(item, Instruction) or not wanted(item):
            continue
        first_end = len(function.items)  # of loops that begin later
        for _, group in groupby((each for each in loops if each[0] <= place < each[1]), key=lambda each: each[0]):
            ends = [end for _, end in group]
            yield from ((end, item) for end in ends if end <= first_end)
            first_end = min(first_end, *ends)


def _loops(function: Function) -> Iterator[tuple[int, int]]:
    """Yield the places of each label to which a branch goes back, and of that branch."""
    places: dict[str, int] = {}
    for place, item in enumerate(function.items):
        if isinstance(item, Label):
            places[item.name] = place
        elif item.opcode == "bra" and isinstance(item.operands[0], Symbol) and item.operands[0].name in places:
            start = places[item.operands[0].name]
            if not _ends(function.items[at] for at in range(start, place)):
                yield start, place


def _ends(items: Iterable[Instruction | Label]) -> bool:
    """Say whether a thread ends its function there in any case: compilers put a return before what branches to it."""
    for item in items:
        if isinstance(item, Instruction) and (item.opcode in _LEAVING or item.guard):
            return item.opcode in _RETURNING and not item.guard
    return False


def _may_spin(i: Instruction) -> bool:
    return _looks_again(i) or (i.opcode == "atom" and not _COMPARING.isdisjoint(i.modifiers))


_LOCKING_MAX: Final = 8
"""A loop that takes a lock by an exchange has no more instructions: a longer one may set something in each round."""


def _ends_soon(function: Function, i: Instruction, branch: int) -> bool:
    return any(each is i for each in function.items[max(0, branch - _LOCKING_MAX) : branch])


def _literals(function: Function) -> frozenset[Operand]:
    """Return the registers that only ever get a literal."""
    made: set[Operand] = set()
    others: set[Operand] = set()
    for i in function.instructions():
        is_literal = i.opcode == "mov" and all(isinstance(each, Integer) for each in i.operands[1:])
        (made if is_literal else others).update(effects_of(i)[1])
    return frozenset(made - others)


def _locks(i: Instruction, literals: frozenset[Operand]) -> bool:
    """Say whether an instruction of a loop takes a lock: the values before and after are literals."""
    if i.opcode != "atom" or len(i.operands) < 3 or _COMPARING.isdisjoint(i.modifiers):
        return False
    return all(isinstance(each, Integer) or each in literals for each in i.operands[2:])


def _looks_again(i: Instruction) -> bool:
    """Say whether an instruction reads what another thread may write meanwhile, and changes nothing itself."""
    if i.opcode == "ld":
        return not _ORDERED.isdisjoint(i.modifiers)
    if i.opcode != "atom" or len(i.operands) < 3:
        return i.opcode == "mbarrier" and not {"test_wait", "try_wait"}.isdisjoint(i.modifiers)
    if "cas" in i.modifiers:
        return i.operands[2] == i.operands[-1]
    return i.operands[2] == Integer(0) and not {"add", "or", "xor"}.isdisjoint(i.modifiers)
