"""Accesses that are judged before a loop over the threads of a block, each as the range that all threads use.

Where an address grows evenly with the index of a thread, and a comparison of such numbers says which threads come to
the access, the runtime is told of a whole range once. If all is right, the loop runs without judging these accesses;
if not, the same loop runs with every access judged by itself, so that a finding names the thread.
``native/kernels/ranges.h`` has the layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Address, Register, Symbol, Vector
from quiesce.simulator.kernels.translation.accesses import Access
from quiesce.simulator.kernels.translation.affine import (
    Affine,
    Box,
    Predicate,
    Step,
    Steps,
    add,
    choose,
    exact,
    intersect,
    multiply,
)
from quiesce.simulator.kernels.translation.affine_evaluation import FirstThread, Known, reckon, whole_block
from quiesce.simulator.kernels.translation.checks import is_judged_as_range
from quiesce.simulator.kernels.translation.control_flow import ENDS, START, Paths, Region
from quiesce.simulator.kernels.translation.data_flow import effects_of
from quiesce.simulator.kernels.translation.emitter import Emitter
from quiesce.simulator.kernels.translation.instructions.memory import space_of
from quiesce.simulator.kernels.translation.llvm_code import SHARED_BASE, Code, LoopShape

RANGE_BYTES: Final = 64
_COMMON, _COMMON_OFFSET, _WORD_OFFSET = "<6 x i64>", 8, 56
"""What may be the same for many ranges, and where they have it, and their numbers."""
OTHERS_READ: Final = 1 << 16
"""Added to the number of ranges: the loop has accesses too that are judged one by one."""
_RANGES_MAX: Final = 128
_BLOCKS_MAX: Final = 200
_MEMORY: Final = frozenset({"call", "tex", "tld4", "suld", "sust", "sured"})


@dataclass(slots=True)
class _Node:
    """A node that was walked through: which threads come to it, and what is known there."""

    box: Box
    is_exact: bool
    conditions: frozenset[str]
    known: Known


@dataclass(frozen=True, slots=True)
class _Range:
    position: tuple[int, int]
    address: Affine
    access: Access
    site: int
    box: Box


class Ranges:
    """Finds the accesses of a region that are judged as ranges, and writes what asks the runtime about them."""

    def __init__(
        self, e: Emitter, region: Region, shape: LoopShape, known: Mapping[Register, Affine | Predicate]
    ) -> None:
        self._e, self._region = e, region
        self._nodes: dict[int, _Node] = {}
        self._found: list[_Range] = []
        self._left_out: set[tuple[int, int]] = set()
        self._others = False
        self._paths = Paths(region)
        self._common: dict[tuple[Steps, Box], tuple[Step, str]] = {}
        if len(region.flow.blocks) > _BLOCKS_MAX:
            return
        with e.numbered(), e.within(replace(e.around, shape=FirstThread(shape))):
            self._walk(whole_block(e), dict(known))

    @property
    def covered(self) -> frozenset[tuple[int, int]]:
        """Return the places of the accesses that need no check in the loop."""
        return frozenset(each.position for each in self._found)

    def _walk(self, box: Box, known: Known) -> None:
        for node in self._paths.order:
            if node == START:
                found = _Node(box, True, frozenset(), known)
            else:
                entered = self._enter(node)
                if entered is None:
                    for position, i in self._region.instructions(node):
                        self._leave_out(position, i)
                    continue
                found = entered
            self._nodes[node] = found
            for position, i in self._region.instructions(node):
                self._e.position, self._e.instruction = position, i
                self._see(position, i, found)
        self._found = [each for each in self._found if each.position not in self._left_out]
        if len(self._found) > _RANGES_MAX:
            self._found = []

    def _enter(self, node: int) -> _Node | None:
        """Return what is known where a node begins; None where that depends on the way there."""
        before = self._paths.before(node)
        if before is not None and before[0] in self._nodes:
            return self._follow(*before)
        above = self._paths.above(node)
        found = self._nodes.get(above) if above is not None else None
        if above is None or found is None:
            return None
        changed = {
            register
            for other in self._paths.between(above, node)
            for _, i in self._region.instructions(other)
            for register in effects_of(i)[1]
        }
        known = {register: value for register, value in found.known.items() if register not in changed}
        is_exact = found.is_exact and self._paths.is_after(node, above)
        return _Node(found.box, is_exact, found.conditions, known)

    def _follow(self, source: int, held: bool | None) -> _Node:
        """Return what is known at the end of a way that is the only one to its node."""
        found = self._nodes[source]
        listed = self._region.instructions(source)
        known = dict(found.known)
        if held is None:
            ways = self._region.ways(source)
            return _Node(found.box, found.is_exact and len(ways) == 1, found.conditions, known)
        guard = listed[-1][1].guard
        value = known.get(guard.register) if guard else None
        if not isinstance(value, Predicate):
            return _Node(found.box, False, found.conditions, known)
        part = value.inside if held else value.outside
        if part is None:
            return _Node(found.box, False, found.conditions | value.conditions, known)
        box = intersect(self._e, found.box, part)
        return _Node(box, found.is_exact, found.conditions | value.conditions, known)

    def _see(self, position: tuple[int, int], i: Instruction, node: _Node) -> None:
        is_access = i.opcode in ("ld", "st", "ldu") and "param" not in i.modifiers and bool(i.types)
        found = self._range(position, i, node) if is_access and node.is_exact else None
        if found is None:
            self._leave_out(position, i)
        else:
            self._found.append(found)
        if i.opcode in ENDS:
            return
        value = reckon(self._e, i, node.known, node.box)
        for register in effects_of(i)[1]:
            node.known.pop(register, None)
            if value is not None:
                node.known[register] = value

    def _leave_out(self, position: tuple[int, int], i: Instruction) -> None:
        """Note an instruction whose accesses, if it has any, are judged by themselves."""
        self._left_out.add(position)
        uses_memory = any(isinstance(each, Address) for each in i.operands) or i.opcode in _MEMORY
        self._others |= uses_memory and {"param", "shared", "shared::cta"}.isdisjoint(i.modifiers)

    def _range(self, position: tuple[int, int], i: Instruction, node: _Node) -> _Range | None:
        """Return the range of an access; None where its addresses are not known."""
        e, space = self._e, space_of(i)
        count = next((len(each.elements) for each in i.operands if isinstance(each, Vector)), 1)
        place = next((each for each in i.operands if isinstance(each, Address)), None)
        access = Access(space, i.types[0].bytes * count, "store" if i.opcode == "st" else "load")
        if i.guard or place is None or not is_judged_as_range(e, i, access):
            return None
        if isinstance(place.base, Symbol):
            start = e.read(place.base, TYPES["u64"])
            address = Affine(64, start)
        else:
            number = node.known.get(place.base) if isinstance(place.base, Register) else None
            if not isinstance(number, Affine):
                return None
            address = number if number.bits == 64 else exact(e, number, False, node.box)
        start = e.define(f"add i64 {address.start}, {place.offset}")
        if space == "shared":
            base = e.define(f"ptrtoint ptr {e.shape.context(e, SHARED_BASE, 'ptr')} to i64")
            start = e.define(f"add i64 {start}, {base}")
        conditions = address.conditions | node.conditions
        site = e.program.add_site(i, e.program.array_of(e.function, i) if access.space == "shared" else None)
        return _Range(position, Affine(64, start, address.steps, conditions), access, site, node.box)

    # -- the question

    def write(self, right: str, wrong: str) -> list[str]:
        """Write the question whether all ranges are right, and go on; return what reserves its memory."""
        e = self._e
        name = f"%{e.new_label()}"
        with e.numbered():
            for number, each in enumerate(self._found):
                self._describe(e.byte_offset(name, RANGE_BYTES * number), each)
        held = "true"
        for condition in sorted({each for range_ in self._found for each in range_.address.conditions}):
            held = e.define(f"and i1 {held}, {condition}")
        ask = e.new_label()
        e.emit(f"br i1 {held}, label %{ask}, label %{wrong}")
        e.place(ask)
        word = len(self._found) | (OTHERS_READ if self._others else 0)
        answer = e.call(
            "i32", "quiesce_kernel_ranges", "ptr %context", f"ptr {name}", f"i32 {word}", attributes="nounwind"
        )
        e.emit(f"br i1 {e.define(f'icmp ne i32 {answer}, 0')}, label %{right}, label %{wrong}")
        return [f"{name} = alloca [{RANGE_BYTES * len(self._found)} x i8], align 8"]

    def _describe(self, place: str, range_: _Range) -> None:
        """Write what one instruction uses; the words that all instructions share are written once, and then copied."""
        e, address = self._e, range_.address
        common = self._common.get((address.steps, range_.box))
        if common is None:
            common = self._common[address.steps, range_.box] = self._write_common(place, range_)
        else:
            e.store(_COMMON, common[1], e.byte_offset(place, _COMMON_OFFSET), "align 8")
        e.store("i64", str(add(e, address.start, common[0])), place)
        word = range_.access.number() | range_.site << 32
        e.store("i64", str(word), e.byte_offset(place, _WORD_OFFSET))

    def _write_common(self, place: str, range_: _Range) -> tuple[Step, str]:
        """Write how addresses grow, and which threads there are; return how far the first one is, and what is written.

        LLVM takes long for many stores.
        """
        e, steps, box = self._e, range_.address.steps, range_.box
        shift: Step = 0
        for step, (first, _) in zip(steps, box, strict=True):
            shift = add(e, shift, multiply(e, step, first))
        counts = [choose(e, "sgt", add(e, end, first, -1), 0) for first, end in box]
        numbers = [*(("i64", str(step)) for step in steps)]
        numbers += [("i32", _narrow(e, each)) for each in (*(first for first, _ in box), *counts)]
        offset = _COMMON_OFFSET
        for type_, value in numbers:
            e.store(type_, value, e.byte_offset(place, offset))
            offset += 8 if type_ == "i64" else 4
        return shift, e.load(_COMMON, e.byte_offset(place, _COMMON_OFFSET), "align 8")


def _narrow(code: Code, index: Step) -> str:
    return str(index) if isinstance(index, int) else code.cast(index, 64, 32)
