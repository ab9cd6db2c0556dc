"""Registers before a loop over the threads of a block: the value of the first thread, and the steps to the others."""

from __future__ import annotations

from collections.abc import Mapping

from quiesce.kernels.ptx.function import Function
from quiesce.kernels.ptx.operands import Register, Special
from quiesce.kernels.translation.affine import Affine, Box, uniform_predicate
from quiesce.kernels.translation.code import Code
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.frames import Frames
from quiesce.kernels.translation.reckoning import Known, reckon
from quiesce.kernels.translation.shapes import BLOCK, LoopShape


class FirstThread(LoopShape):
    """The thread whose index is 0 on every axis, in front of the loop of another shape."""

    def __init__(self, shape: LoopShape) -> None:
        super().__init__(0)
        self._shape = shape

    def context(self, code: Code, offset: int, type_: str) -> str:
        """Return a value that is loaded before the loop."""
        return self._shape.context(code, offset, type_)

    def parameter(self, offset: int, bits: int) -> str:
        """Return a parameter that is loaded before the loop."""
        return self._shape.parameter(offset, bits)

    def index(self, code: Code, axis: int) -> str:
        """Return 0."""
        return "0"

    def linear(self, code: Code) -> str:
        """Return 0."""
        return "0"


class Again:
    """Finds what is known of registers where threads go on in the middle of a function."""

    def __init__(self, e: Emitter, frames: Frames, shape: LoopShape) -> None:
        self._e, self._frames, self._shape = e, frames, shape
        self.memory: list[str] = []
        """What reserves the memory that this needs."""

    def known(self, live: tuple[Register, ...], shared: Mapping[Register, str]) -> Known:
        """Return the numbers among the registers that are live there; ``shared``: those that all threads share."""
        e, frames = self._e, self._frames
        before, e.shape = e.shape, FirstThread(self._shape)
        known: Known = {}
        kept = frames.kept(live)
        box = whole_block(e)
        for i in frames.recomputed.instructions(each for each in live if each not in kept):
            value, target = reckon(e, i, known, box), i.operands[0]
            if value is not None and isinstance(target, Register):
                known[target] = value
        e.shape = before
        for register in kept:
            bits = register.type.bits
            if register in shared:
                start = e.cast(shared[register], max(bits, 8), bits)
                known[register] = uniform_predicate(e, start, box) if bits == 1 else Affine(bits, start)
            elif bits in (32, 64) and not register.type.is_float:
                known[register] = self._line(register)
        return known

    def _line(self, register: Register) -> Affine:
        """Return a register that is kept in an array over the threads, if it grows evenly there."""
        e, bits = self._e, register.type.bits
        place = f"%{e.new_label()}"
        self.memory.append(f"{place} = alloca [3 x i64]")
        array = e.byte_offset("%frames", self._frames.place_of(register))
        arguments = ("ptr %context", f"ptr {array}", f"i32 {bits // 8}", f"ptr {place}")
        answer = e.call("i32", "quiesce_kernel_line", *arguments, attributes="nounwind")
        steps = [e.define(f"load i64, ptr {e.byte_offset(place, 8 * axis)}") for axis in range(3)]
        conditions = [e.define(f"icmp ne i32 {answer}, 0")]
        start = e.define(f"load i{bits}, ptr {array}")
        if _reads_index(e.function, "yz"):
            return Affine(bits, start, (steps[0], steps[1], steps[2]), frozenset(conditions))
        conditions += [e.define(f"icmp eq i64 {step}, 0") for step in steps[1:]]
        return Affine(bits, start, (steps[0], 0, 0), frozenset(conditions))


def _reads_index(function: Function, axes: str) -> bool:
    """Say whether a function reads the index of its thread on one of some axes."""
    names = [each.name for i in function.instructions() for each in i.operands if isinstance(each, Special)]
    return any(name.startswith("%tid.") and name[-1] in axes for name in names)


def whole_block(e: Emitter) -> Box:
    """Return the box of all threads."""
    x, y, z = ((0, e.cast(e.shape.context(e, BLOCK + 4 * axis, "i32"), 32, 64)) for axis in range(3))
    return x, y, z
