"""How a value differs from lane to lane: not at all, by the same step, or in any way.

A *row* is a value that grows by a step from lane to lane, modulo its size. With step 0 it is uniform. Only its first
lane is computed. A number that grows evenly with 32 bits may wrap, and does not grow evenly any more when it is made
wider: the row then holds if a test does, which is done where the number is widened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quiesce.simulator.kernels.widening.flow import Flow
from quiesce.simulator.kernels.widening.text import SCALARS, Function, Instruction, Operand


@dataclass(frozen=True, slots=True)
class Row:
    """A value by the step from lane to lane, and the widened numbers whose tests have to hold for that."""

    step: int = 0
    tests: frozenset[str] = frozenset()

    @property
    def is_uniform(self) -> bool:
        """Say whether the value is certainly the same in all lanes."""
        return not self.step and not self.tests


_OF_ALL_LANES: Final = frozenset({"warp.meets", "warp.active", "warp.ballot", "warp.lacks"})
"""Functions whose result is that of all lanes that run; see ``warps``."""
Shape = Row | None
"""None: the lanes have any values."""
UNIFORM: Final = Row()
PLACE: Final = 1
"""Which argument of a function that judges is the place."""
_STEP_MAX: Final = 1 << 24
"""A larger step is none that neighbours have."""


@dataclass(slots=True)
class Shapes:
    """The shapes of a function's values, and the loops that some lanes leave before others."""

    flow: Flow
    values: dict[str, Shape]
    blocks: dict[str, str] = field(default_factory=dict)
    """The block of each value."""
    left_early: set[str] = field(default_factory=set)
    """Where the loops begin that some lanes leave before others."""
    judged: Mapping[str, int] = field(default_factory=dict)
    """Functions that judge a place and return it, and how many bytes each uses there; 0: not those of a row."""
    joins: set[str] = field(default_factory=set)
    """Blocks where lanes meet that went different ways."""

    def at(self, operand: Operand, block: str) -> Shape:
        """Return the shape that a value has where it is used."""
        if not operand.is_local:
            return UNIFORM
        return None if self.leaves(operand.value, block) else self.values[operand.value]

    def is_known(self, operand: Operand) -> bool:
        """Say whether the shape was found already."""
        return not operand.is_local or operand.value in self.values

    def leaves(self, value: str, block: str) -> bool:
        """Say whether a value is of an earlier round for some lanes, where it is used."""
        own = self.blocks.get(value)
        return own is not None and any(
            own in self.flow.loops[header] and block not in self.flow.loops[header] for header in self.left_early
        )


def find_shapes(
    function: Function, flow: Flow, arguments: dict[str, Shape], judged: Mapping[str, int] | None = None
) -> Shapes:
    """Return the shapes of all values: each begins as unknown, and loses only."""
    blocks = {each.result: each.block for each in function.instructions() if each.result}
    shapes = Shapes(flow, dict(arguments), blocks, judged=judged or {})
    changed = True
    while changed:
        before = len(shapes.left_early) + len(shapes.joins)
        changed = False
        for block in flow.order:
            for each in function.blocks[block]:
                changed |= _update(shapes, each)
            _follow_branch(shapes, function.blocks[block][-1])
        changed |= before != len(shapes.left_early) + len(shapes.joins)
    return shapes


def _update(shapes: Shapes, i: Instruction) -> bool:
    """Give the result of an instruction its shape; say whether that is another one."""
    if not i.result:
        return False
    known = [each for each in i.operands if shapes.is_known(each)]
    if (i.opcode != "phi" and len(known) < len(i.operands)) or (i.opcode == "phi" and not known):
        return False
    old = shapes.values.get(i.result, UNIFORM)
    is_new = i.result not in shapes.values
    found = [shapes.at(each, i.block) for each in known]
    if i.opcode == "phi":
        new = _joined(shapes, i, found)
    elif i.detail in shapes.judged:
        new = None if None in found else _judged(i, found[PLACE], shapes.judged[i.detail])
    else:
        new = _shape(i, found)
    if new is not None and abs(new.step) > _STEP_MAX:
        new = None
    if not is_new and new != old:
        new = None
    shapes.values[i.result] = new
    return is_new or new != old


def _judged(i: Instruction, place: Shape, bytes_: int) -> Shape:
    """Return the shape of a place that was judged: the same one if a test says so for all lanes."""
    return Row(place.step, frozenset({i.result})) if place is not None and place.step in (0, bytes_) else None


def _joined(shapes: Shapes, i: Instruction, found: list[Shape]) -> Shape:
    first = found[0]
    if first is None or any(each != first for each in found[1:]) or not _last(shapes, i.block, first.tests):
        return None
    back = [each for each in i.labels if shapes.flow.goes_back(each, i.block)]
    ways = max(len(back), len(i.labels) - len(back))
    return None if i.block in shapes.joins and ways > 1 else first


def _last(shapes: Shapes, block: str, tests: frozenset[str]) -> bool:
    """Say whether tests are done before the loops that a block is in: what they found holds in all rounds.

    The tests of arguments are done before all blocks.
    """
    around = shapes.flow.around(block)
    return not any(shapes.blocks.get(test) in shapes.flow.loops[header] for test in tests for header in around)


def _follow_branch(shapes: Shapes, i: Instruction) -> None:
    """Note what becomes of lanes that a branch separates."""
    if len(set(i.labels)) < 2 or not all(map(shapes.is_known, i.operands)):
        return
    if shapes.at(i.operands[0], i.block) == UNIFORM:
        return
    flow = shapes.flow
    following = flow.after(list(flow.successors[i.block]))
    shapes.joins |= {each for each in following if len(flow.predecessors[each]) > 1}
    for header in flow.around(i.block):
        inside = flow.loops[header]
        shapes.joins.add(header)
        within = (following | {i.block}) & inside
        if any(each not in inside for block in within for each in flow.successors[block]):
            shapes.left_early.add(header)


def _shape(i: Instruction, found: list[Shape]) -> Shape:
    if i.detail in _OF_ALL_LANES or (i.detail.startswith("warp.reduce.") and found[-1] == UNIFORM):
        return UNIFORM
    if i.opcode in ("call", "atomicrmw") and not i.detail.startswith("llvm."):
        return None
    if i.opcode in ("atomicrmw", "cmpxchg"):
        return None
    if all(each == UNIFORM for each in found):
        return UNIFORM
    follow = _ROWS.get(i.opcode)
    rows = [each for each in found if each is not None]
    return follow(i, rows) if follow and len(rows) == len(found) else None


def _sum(_: Instruction, rows: list[Row]) -> Shape:
    return Row(rows[0].step + rows[1].step, rows[0].tests | rows[1].tests)


def _difference(_: Instruction, rows: list[Row]) -> Shape:
    return Row(rows[0].step - rows[1].step, rows[0].tests | rows[1].tests)


def _number(operand: Operand) -> int | None:
    return int(operand.value) if operand.value.lstrip("-").isdigit() else None


def _product(i: Instruction, rows: list[Row]) -> Shape:
    factor = _number(i.operands[1])
    return None if factor is None else Row(rows[0].step * factor, rows[0].tests)


def _shifted(i: Instruction, rows: list[Row]) -> Shape:
    bits = _number(i.operands[1])
    return None if bits is None or not 0 <= bits < 24 else Row(rows[0].step << bits, rows[0].tests)


def _same(_: Instruction, rows: list[Row]) -> Shape:
    return rows[0]


def _address(i: Instruction, rows: list[Row]) -> Shape:
    return rows[0] if {i.type, i.operands[0].type} == {"ptr", "i64"} else None


def _wider(i: Instruction, rows: list[Row]) -> Shape:
    is_tested = i.opcode == "sext" or rows[0].step > 0
    return Row(rows[0].step, rows[0].tests | {i.result}) if is_tested and i.operands[0].type != "i1" else None


def _narrower(i: Instruction, rows: list[Row]) -> Shape:
    return rows[0] if i.type != "i1" else None


def _moved(i: Instruction, rows: list[Row]) -> Shape:
    if i.operands[1].type != "i64":
        return None
    return Row(rows[0].step + rows[1].step * SCALARS[i.detail], rows[0].tests | rows[1].tests)


_ROWS: Final[dict[str, Callable[[Instruction, list[Row]], Shape]]] = {
    **{"add": _sum, "sub": _difference, "mul": _product, "shl": _shifted, "freeze": _same, "getelementptr": _moved},
    **{"sext": _wider, "zext": _wider, "trunc": _narrower, "inttoptr": _address, "ptrtoint": _address},
}
"""Which shape the result has, if no source has any values."""
