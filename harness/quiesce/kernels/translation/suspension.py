"""Threads that wait: each one is left at a barrier or a warp operation and entered there again.

What is live at that point goes to the thread's places in memory, and comes back from them. The runtime runs the threads
of a block in turn, and gives each the result of its operation when all that take part have come.
"""

from __future__ import annotations

from typing import Final

from quiesce.kernels.ptx.declarations import Variable
from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Operand, Register, registers_in
from quiesce.kernels.ptx.types import PREDICATE
from quiesce.kernels.translation.certain_uses import is_certainly_used
from quiesce.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.kernels.translation.flow import Flow
from quiesce.kernels.translation.frames import Frames, Waiting, plain_barrier
from quiesce.kernels.translation.liveness import Liveness
from quiesce.kernels.translation.shapes import (
    FRAME,
    MASK,
    OPERAND_B,
    OPERAND_C,
    PREDICATE_RESULT,
    RESULT,
    STATE,
    VALUE,
)

LINEAR = "%own.linear"
_UNUSED = WarpOperands()


class ThreadSuspension:
    """The points at which one thread may be left and entered again, and its local memory."""

    def __init__(self, frames: Frames, flow: Flow, liveness: Liveness) -> None:
        self._frames = frames
        self._flow = flow
        self._liveness = liveness
        self._end = FRAME
        self._area = 0
        self._resume_labels: list[str] = []

    @property
    def frame_bytes(self) -> int:
        """Return how long the local memory of a thread is that follows the fields which the runtime knows."""
        return -(-(self._end - FRAME) // 16) * 16

    def reserve(self, variable: Variable) -> int:
        """Return the place of a thread's local memory."""
        start = -(-self._end // variable.alignment) * variable.alignment
        self._end = start + variable.bytes
        return start

    def cases(self) -> str:
        """Return where each state goes on."""
        return " ".join(f"i32 {state}, label %{label}" for state, label in enumerate(self._resume_labels, start=1))

    def area(self, bytes_: int) -> int:
        """Return the place of memory that an operation needs for longer than its fields: it is the same for all."""
        if not self._area:
            self._area = -(-self._end // 16) * 16
            self._end = self._area + bytes_
        return self._area

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """End the function with the number of an operation, and go on with its results later."""
        written = {register for result in results for register in registers_in(result)}
        live = tuple(each for each in self._liveness.after(*e.position) if each not in written)
        is_used = e.program.checks and operation in _SHUFFLES and is_certainly_used(self._flow, e.position)
        third = e.define(f"or i32 {operands.third}, {_IS_USED}") if is_used else operands.third
        waiting = Waiting(operation, plain_barrier(operation, operands), live, _site(e))
        state = self._frames.add_state(e.position, waiting)
        _set(e, STATE, "i32", str(state))
        for offset, type_, value, unused in (
            (MASK, "i32", operands.mask, _UNUSED.mask),
            (VALUE, "i64", operands.value, _UNUSED.value),
            (OPERAND_B, "i32", operands.second, ""),
            (OPERAND_C, "i32", third, ""),
        ):
            if operation >= _WARP_OPERATION or value != unused:
                _set(e, offset, type_, value)
        for register in self._frames.kept(live):
            self._frames.save(e, register, LINEAR)
        e.emit(f"ret i32 {operation}")
        self._resume(e, live)

    def go_back(self, e: Emitter, target: int) -> None:
        """Let a thread go back to the beginning of a loop; it does not wait there."""

    def enter_block(self, e: Emitter, number: int) -> None:
        """Let a thread be entered at the beginning of a block."""
        live = self._liveness.at_start(number)
        self._frames.add_entered(number, Waiting(0, None, live))
        self._resume(e, live)
        e.emit(f"br label %{e.block_label(number)}")

    def _resume(self, e: Emitter, live: tuple[Register, ...]) -> None:
        label = e.new_label()
        self._resume_labels.append(label)
        e.place(label)
        instruction = e.instruction
        self._frames.recompute(e, live)
        e.instruction = instruction
        for register in self._frames.kept(live):
            self._frames.restore(e, register, LINEAR)

    def result(self, e: Emitter) -> str:
        """Return the result of the operation that a thread waited for, with 64 bits."""
        return e.define(f"load i64, ptr {e.byte_offset('%thread', RESULT)}")

    def predicate(self, e: Emitter) -> str:
        """Return the predicate that came with the result."""
        value = e.define(f"load i32, ptr {e.byte_offset('%thread', PREDICATE_RESULT)}")
        return e.cast(value, 32, PREDICATE.bits)


def _site(e: Emitter) -> int:
    """Return the instruction, as the runtime reads it for a state (``native/kernels/object.h``)."""
    if not e.program.checks:
        return -1
    site = e.program.add_site(e.instruction)
    return site if is_aligned(e.instruction) else -2 - site


def is_aligned(i: Instruction) -> bool:
    """Say whether all threads of a warp have to come to the same barrier (PTX ISA, "barrier.sync")."""
    return "warp" not in i.modifiers and (i.opcode == "bar" or (i.opcode == "barrier" and "aligned" in i.modifiers))


_WARP_OPERATION = 10
_SHUFFLES: Final = range(10, 14)
_IS_USED: Final = -(1 << 31)
"""Set in the third operand of a shuffle whose result the thread certainly uses; the ISA uses lower bits."""


def _set(e: Emitter, offset: int, type_: str, value: str) -> None:
    e.emit(f"store {type_} {value}, ptr {e.byte_offset('%thread', offset)}")
