"""The control flow of the widened function: which lanes run which block.

Blocks run in order, each with a mask, and are left out where the mask has no lane. A loop goes on while it has a lane.
A branch whose condition is the same in all lanes stays a branch.
"""

from __future__ import annotations

from quiesce.simulator.kernels.widening.flow import Flow
from quiesce.simulator.kernels.widening.lines import Lines
from quiesce.simulator.kernels.widening.operations import widen_instruction
from quiesce.simulator.kernels.widening.text import Instruction, NotUnderstood, Operand

_ENTERS, _AGAIN = "mask", "again"
"""Kinds of memory: which lanes come to a block, and which begin another round of a loop."""


class Masks:
    """Writes the blocks of a function with their masks."""

    def __init__(self, lines: Lines, flow: Flow) -> None:
        self._lines, self._flow = lines, flow

    def write(self, entry_mask: str) -> list[str]:
        """Write all blocks; return the lines that give masks their first values, and go before."""
        self._blocks(set(self._flow.order), "")
        lines = self._lines
        wide = lines.wide("i1")
        return [
            f"store {wide} {entry_mask if block == self._flow.entry else 'zeroinitializer'}, ptr {slot}"
            for block, slot in lines.slots_of(_ENTERS).items()
        ]

    def _mask(self, kind: str, block: str) -> str:
        return self._lines.slot(kind, block, self._lines.wide("i1"))

    def _blocks(self, inside: set[str], header: str) -> None:
        """Write blocks in order, those of a loop or of the function."""
        done: set[str] = set()
        for block in self._flow.order:
            if block not in inside or block in done:
                continue
            if block in self._flow.loops and block != header:
                self._loop(block)
                done |= self._flow.loops[block]
            else:
                self._block(block, header)

    def _loop(self, header: str) -> None:
        lines, wide = self._lines, self._lines.wide("i1")
        inside = set(self._flow.loops[header])
        begin, following = lines.new_label(), lines.new_label()
        entering = lines.define(f"load {wide}, ptr {self._mask(_ENTERS, header)}")
        lines.emit(f"br i1 {lines.any(entering)}, label %{begin}, label %{following}")
        lines.place(begin)
        for block in sorted(inside - {header}):
            lines.emit(f"store {wide} zeroinitializer, ptr {self._mask(_ENTERS, block)}")
        lines.emit(f"store {wide} zeroinitializer, ptr {self._mask(_AGAIN, header)}")
        self._blocks(inside, header)
        again = lines.define(f"load {wide}, ptr {self._mask(_AGAIN, header)}")
        lines.emit(f"store {wide} {again}, ptr {self._mask(_ENTERS, header)}")
        lines.emit(f"br i1 {lines.any(again)}, label %{begin}, label %{following}")
        lines.place(following)

    def _block(self, block: str, header: str) -> None:
        lines = self._lines
        lines.block = block
        lines.forget()
        lines.mask = lines.define(f"load {lines.wide('i1')}, ptr {self._mask(_ENTERS, block)}")
        is_certain = block in (header, self._flow.entry)  # whoever comes here has a lane
        after = lines.new_label()
        if not is_certain:
            some = lines.new_label()
            lines.emit(f"br i1 {lines.any(lines.mask)}, label %{some}, label %{after}")
            lines.emit(f"{some}:")
        *body, last = lines.function.blocks[block]
        for each in body:
            if each.opcode != "phi":
                widen_instruction(lines, each)
        self._end(last)
        if not is_certain:
            lines.emit(f"br label %{after}")
            lines.place(after)

    def _end(self, i: Instruction) -> None:
        if i.opcode == "ret":
            self._return(i.operands[0])
        elif i.opcode == "br" and len(set(i.labels)) == 1:
            self._go(i.block, i.labels[0], self._lines.mask)
        elif i.opcode == "br":
            self._branch(i)
        elif i.opcode == "switch":
            self._switch(i)
        elif i.opcode != "unreachable":
            raise NotUnderstood(i.opcode)

    def _branch(self, i: Instruction) -> None:
        lines, (condition,) = self._lines, i.operands
        if lines.shape(condition) is None:
            wide = lines.wide("i1")
            holds = lines.vector(condition)
            opposite = lines.define(f"xor {wide} {holds}, splat (i1 true)")
            ways = [lines.both(lines.mask, each) for each in (holds, opposite)]
            for target, mask in zip(i.labels, ways, strict=True):
                self._go(i.block, target, mask)
            return
        labels, after = (lines.new_label(), lines.new_label()), lines.new_label()
        lines.emit(f"br i1 {lines.scalar(condition)}, label %{labels[0]}, label %{labels[1]}")
        for target, label in zip(i.labels, labels, strict=True):
            with lines.way(label):
                self._go(i.block, target, lines.mask)
                lines.emit(f"br label %{after}")
        lines.emit(f"{after}:")

    def _switch(self, i: Instruction) -> None:
        """Let lanes go where their numbers say, one target after another."""
        lines, (number,) = self._lines, i.operands
        wide, lanes = lines.wide(number.type), lines.wide("i1")
        values, left = lines.vector(number), lines.mask
        targets: dict[str, list[str]] = {}
        for case, label in zip(i.detail.split(), i.labels[1:], strict=True):
            targets.setdefault(label, []).append(case)
        ways = []
        for target, cases in targets.items():
            found = "zeroinitializer"
            for case in cases:
                same = lines.define(f"icmp eq {wide} {values}, splat ({number.type} {case})")
                found = lines.define(f"or {lanes} {found}, {same}")
            ways.append((target, lines.both(left, found)))
            left = lines.both(left, lines.define(f"xor {lanes} {found}, splat (i1 true)"))
        for target, mask in (*ways, (i.labels[0], left)):
            self._go(i.block, target, mask)

    def _go(self, block: str, target: str, mask: str) -> None:
        """Let the lanes of a mask go from a block to another one."""
        lines, wide = self._lines, self._lines.wide("i1")
        self._give_phis(block, target, mask)
        slot = self._mask(_AGAIN if self._flow.goes_back(block, target) else _ENTERS, target)
        before = lines.define(f"load {wide}, ptr {slot}")
        lines.emit(f"store {wide} {lines.define(f'or {wide} {before}, {mask}')}, ptr {slot}")

    def _give_phis(self, block: str, target: str, mask: str) -> None:
        """Give the phis of a block their values on the way to it; all are read before one is written."""
        lines = self._lines
        scalars, vectors = [], []
        for i in lines.function.blocks[target]:
            if i.opcode != "phi":
                break
            value = i.operands[i.labels.index(block)]
            shape = lines.shapes.values[i.result]
            if shape is not None:
                scalars.append((i, lines.scalar(value)))
            if shape is None or not shape.is_uniform or lines.is_left(i.result):
                vectors.append((i, lines.vector(value)))
        for i, scalar in scalars:
            lines.emit(f"store {i.type} {scalar}, ptr {lines.slot('first', i.result, i.type)}")
        for i, vector in vectors:
            lines.keep(i.result, i.type, vector, mask)

    def _return(self, status: Operand) -> None:
        """End the lanes; one that fails ends the block."""
        lines = self._lines
        if not status.is_local:
            if int(status.value) < 0:
                self._return_now(status.value)
            return
        negative = lines.define(f"icmp slt {lines.wide('i32')} {lines.vector(status)}, zeroinitializer")
        failed, fails, after = lines.both(lines.mask, negative), lines.new_label(), lines.new_label()
        lines.emit(f"br i1 {lines.any(failed)}, label %{fails}, label %{after}, !prof !7")
        lines.emit(f"{fails}:")
        bits = lines.define(f"bitcast {lines.wide('i1')} {failed} to i{lines.lanes}")
        first = lines.call(f"i{lines.lanes}", f"llvm.cttz.i{lines.lanes}", (f"i{lines.lanes}", bits), ("i1", "true"))
        place = lines.define(f"zext i{lines.lanes} {first} to i64")
        found = lines.define(f"extractelement {lines.wide('i32')} {lines.vector(status)}, i64 {place}")
        lines.emit(f"ret i32 {found}")
        lines.emit(f"{after}:")

    def _return_now(self, status: str) -> None:
        lines = self._lines
        lines.emit(f"ret i32 {status}")
        lines.emit(f"{lines.new_label()}:")  # nobody comes here
