"""Threads that wait: each one is left at a barrier or a warp operation and entered there again.

What is live at that point goes to the thread's frame in memory, and comes back from it. The runtime runs the threads of
a block in turn, and gives each the result of its operation when all that take part have come.
"""

from __future__ import annotations

from quiesce.kernels.ptx.declarations import Variable
from quiesce.kernels.ptx.operands import Operand, Register, registers_in
from quiesce.kernels.ptx.types import PREDICATE
from quiesce.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.kernels.translation.liveness import Liveness
from quiesce.kernels.translation.shapes import (
    FRAME,
    MASK,
    OPERAND_B,
    OPERAND_C,
    OPERATION,
    PREDICATE_RESULT,
    RESULT,
    STATE,
    VALUE,
)

_SLOT_BYTES = 8


class Frames:
    """The frame of a thread, and the points at which one may be entered."""

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness
        self._slots: dict[Register, int] = {}
        self._end = FRAME
        self.resume_labels: list[str] = []

    @property
    def frame_bytes(self) -> int:
        """Return how long the frame is, without the fields that the runtime knows."""
        return -(-(self._end - FRAME) // 16) * 16

    def reserve(self, variable: Variable) -> int:
        """Return the place of a thread's local memory."""
        start = -(-self._end // variable.alignment) * variable.alignment
        self._end = start + variable.bytes
        return start

    def _slot(self, register: Register) -> int:
        if register not in self._slots:
            self._end = -(-self._end // _SLOT_BYTES) * _SLOT_BYTES
            self._slots[register] = self._end
            self._end += max(_SLOT_BYTES, register.type.bits // 8)
        return self._slots[register]

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """End the function with the number of an operation, and go on with its results later."""
        written = {register for result in results for register in registers_in(result)}
        kept = [register for register in self._liveness.after(*e.position) if register not in written]
        resume = e.new_label()
        self.resume_labels.append(resume)
        _set(e, STATE, "i32", str(len(self.resume_labels)))
        _set(e, OPERATION, "i32", str(operation))
        _set(e, MASK, "i32", operands.mask)
        _set(e, VALUE, "i64", operands.value)
        _set(e, OPERAND_B, "i32", operands.second)
        _set(e, OPERAND_C, "i32", operands.third)
        for register in kept:
            self._save(e, register)
        e.emit(f"ret i32 {operation}")
        e.place(resume)
        for register in kept:
            self._restore(e, register)

    def _save(self, e: Emitter, register: Register) -> None:
        bits = register.type.bits
        value = e.cast(e.read(register, register.type), bits, max(bits, 8))
        e.emit(f"store i{max(bits, 8)} {value}, ptr {e.byte_offset('%thread', self._slot(register))}")

    def _restore(self, e: Emitter, register: Register) -> None:
        bits = register.type.bits
        loaded = e.define(f"load i{max(bits, 8)}, ptr {e.byte_offset('%thread', self._slot(register))}")
        e.write(register, e.cast(loaded, max(bits, 8), bits), register.type)
        if e.has_pointer(register):
            pointer = e.define(f"inttoptr i64 {loaded} to ptr")
            e.emit(f"store ptr {pointer}, ptr {e.pointer_slot(register)}")


def _set(e: Emitter, offset: int, type_: str, value: str) -> None:
    e.emit(f"store {type_} {value}, ptr {e.byte_offset('%thread', offset)}")


def result_of(e: Emitter) -> str:
    """Return the result of the operation that a thread waited for, with 64 bits."""
    return e.define(f"load i64, ptr {e.byte_offset('%thread', RESULT)}")


def predicate_of(e: Emitter) -> str:
    """Return the predicate that came with the result."""
    value = e.define(f"load i32, ptr {e.byte_offset('%thread', PREDICATE_RESULT)}")
    return e.cast(value, 32, PREDICATE.bits)
