"""Where all lanes of a warp come together in any case, so that nothing has to be asked there.

A warp *is whole* where all of its lanes that have not ended run. It is whole where a state begins, and after each
operation of all lanes. It is still whole at a later operation if every way leads from the one to the other, if no way
leads there without the first one, and if no lane is left behind, or left out, between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Integer, Operand, Register
from quiesce.simulator.kernels.translation.control_flow import START
from quiesce.simulator.kernels.translation.data_flow import definitions_of

_ALL: Final = frozenset({-1, 0xFFFFFFFF})
_BARRIERS: Final = frozenset({"bar", "barrier"})
_OPERATIONS: Final = _BARRIERS | {"shfl", "vote", "match", "redux", "activemask"}
_TRIED_MAX: Final = 4
"""So many operations before one are looked at, the last ones first."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What a warp runs from one state on, by the numbers of blocks; ``START`` is where it begins."""

    ways: Mapping[int, tuple[int, ...]]
    leaving: frozenset[int]
    """Where lanes may leave: they end, or wait for others, or may not all be there for an operation."""
    of_all: tuple[int, ...]
    """Those that begin with an operation of all lanes, in order."""
    asked: frozenset[int] = frozenset()
    """Those of them where something is asked in any case, and lanes may leave."""


def whole_nodes(nodes: Nodes) -> frozenset[int]:
    """Return the nodes, of those that begin with an operation of all lanes, where the warp is whole in any case."""
    known: set[int] = set()
    before = [START]
    for node in nodes.of_all:
        open_ = set(nodes.leaving) | (set(nodes.of_all) - known)
        if node not in nodes.asked and any(
            _follows(nodes, each, node, open_) for each in before[: -_TRIED_MAX - 1 : -1]
        ):
            known.add(node)
        before.append(node)
    return frozenset(known)


def _follows(nodes: Nodes, first: int, then: int, leaving: set[int]) -> bool:
    """Say whether a warp that is whole after a node is so at another one."""
    between = _reach(nodes, nodes.ways[first], then)
    if then not in _reach(nodes, nodes.ways[first]) or first in between:
        return False
    ends = (first, *between) if first in nodes.leaving else between
    if not leaving.isdisjoint(ends) or any(not nodes.ways[each] for each in between):
        return False
    around = first != START and then in _reach(nodes, nodes.ways[START], first)
    return not around and then not in _reach(nodes, nodes.ways[then], first)


def _reach(nodes: Nodes, begins: Iterable[int], without: int | None = None) -> set[int]:
    """Return nodes and what follows them, on ways that do not come to another one."""
    found: set[int] = set()
    waiting = [each for each in begins if each != without]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += (each for each in nodes.ways[node] if each != without)
    return found


def names_all_lanes(function: Function) -> Callable[[Instruction], bool]:
    """Return what says whether an operation is certainly one of all lanes of a warp."""
    definitions = definitions_of(function)

    def is_all(operand: Operand) -> bool:
        if isinstance(operand, Integer):
            return operand.value in _ALL
        made = definitions.get(operand, []) if isinstance(operand, Register) else []
        return bool(made) and all(i.opcode == "mov" and not i.guard and _is_integer(i.operands[1]) for i in made)

    def _is_integer(operand: Operand) -> bool:
        return isinstance(operand, Integer) and operand.value in _ALL

    def names(i: Instruction) -> bool:
        if i.guard or i.opcode not in _OPERATIONS or (i.opcode in _BARRIERS and "warp" not in i.modifiers):
            return False
        if i.opcode == "activemask" or "sync" not in i.modifiers:
            return True
        return is_all(i.operands[0] if i.opcode in _BARRIERS else i.operands[-1])

    return names
