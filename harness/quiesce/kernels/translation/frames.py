"""Where the registers of threads that wait are kept: an array over the threads of a block for each register.

The runtime knows the arrays at the beginning (``native/kernels/together.h``); those of the registers follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.kernels.ptx.operands import Register
from quiesce.kernels.translation.code import Code
from quiesce.kernels.translation.emitter import Emitter, WarpOperands
from quiesce.kernels.translation.pointers import pointer_keeper
from quiesce.kernels.translation.recomputing import Recomputed
from quiesce.kernels.translation.shapes import BLOCK_THREADS_MAX
from quiesce.kernels.translation.table import handler_of

_GAP: Final = 64
"""Between two arrays, so that the places of one thread are not all in one set of the processor's cache."""


def _array_bytes(element_bytes: int) -> int:
    return BLOCK_THREADS_MAX * element_bytes + _GAP


NEXT: Final = 0
"""Where the array begins that has each thread's next state."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A place at which threads wait, or may stop: its state's number is one more than its place in a list."""

    operation: int
    """What is waited for; 0: nothing."""
    barrier: int | None
    """The barrier of all threads of the block; None for any other operation."""
    kept: tuple[Register, ...]
    """What is live there, without the results of the operation."""
    site: int = -1
    """The instruction; -2 less it, where threads of a warp need not come to the same one; -1 where it is not told."""


class Frames:
    """The arrays of a kernel, and which registers are in none because they are computed again."""

    def __init__(self, recomputed: Recomputed, uniform: frozenset[Register]) -> None:
        self.recomputed = recomputed
        self.uniform = uniform
        self.places: dict[tuple[int, int], int] = {}
        """The state of each place, by the number of a block and the place in it."""
        self.entered: dict[int, int] = {}
        """The state at the beginning of a block, by its number."""
        self.states: list[Waiting] = []
        self.is_plain = True
        """No instruction waits twice."""
        self._end = _array_bytes(4)
        self._arrays: dict[Register, int] = {}
        self._shared: dict[Register, int] = {}

    @property
    def bytes(self) -> int:
        """Return how much memory the arrays of a block need."""
        return self._end

    def add_state(self, position: tuple[int, int], waiting: Waiting) -> int:
        """Note a place at which threads wait, and return its state."""
        self.states.append(waiting)
        self.is_plain &= position not in self.places
        self.places[position] = len(self.states)
        return len(self.states)

    def add_entered(self, block: int, waiting: Waiting) -> None:
        """Note a block at whose beginning threads may stop."""
        self.states.append(waiting)
        self.entered[block] = len(self.states)

    def kept(self, registers: Iterable[Register]) -> tuple[Register, ...]:
        """Return those registers that are not computed again."""
        return tuple(register for register in registers if register not in self.recomputed)

    def place_of(self, register: Register) -> int:
        """Return where the array of a register begins."""
        if register not in self._arrays:
            self._arrays[register] = self._end
            self._end += _array_bytes(max(8, register.type.bits) // 8)
        return self._arrays[register]

    def shared_place_of(self, register: Register) -> int:
        """Return where the one value of a register that is the same for all threads is."""
        if register not in self._shared:
            self._shared[register] = self._end
            self._end += 16
        return self._shared[register]

    def save(self, e: Emitter, register: Register, linear: str) -> None:
        """Write the register of a thread to its place."""
        bits = register.type.bits
        value = e.cast(e.read(register, register.type), bits, max(bits, 8))
        e.emit(f"store i{max(bits, 8)} {value}, ptr {element_of(e, self.place_of(register), register, linear)}")

    def restore(self, e: Emitter, register: Register, linear: str) -> None:
        """Read the register of a thread from its place."""
        bits = max(register.type.bits, 8)
        set_register(
            e, register, e.define(f"load i{bits}, ptr {element_of(e, self.place_of(register), register, linear)}")
        )

    def recompute(self, e: Emitter, registers: Iterable[Register]) -> None:
        """Compute those registers that are in no array."""
        for instruction in self.recomputed.instructions(each for each in registers if each in self.recomputed):
            e.instruction = instruction
            keep = pointer_keeper(e, instruction)
            handler_of(instruction)(e, instruction)
            keep()


def type_of(register: Register) -> str:
    """Return the type that a register has in memory."""
    return f"i{max(8, register.type.bits)}"


def element_of(code: Code, array: int, register: Register, linear: str) -> str:
    """Return a pointer to the element of a thread, whose number has 64 bits."""
    start = code.byte_offset("%frames", array)
    return code.define(f"getelementptr {type_of(register)}, ptr {start}, i64 {linear}")


def set_register(e: Emitter, register: Register, loaded: str) -> None:
    """Give a register a value that was in memory."""
    bits = register.type.bits
    e.write(register, e.cast(loaded, max(bits, 8), bits), register.type)
    if e.has_pointer(register):
        pointer = e.define(f"inttoptr i64 {loaded} to ptr")
        e.emit(f"store ptr {pointer}, ptr {e.pointer_slot(register)}")


def plain_barrier(operation: int, operands: WarpOperands) -> int | None:
    """Return the number of a barrier at which all threads of a block wait, and nothing else; None for any other."""
    if operation == 1 and operands.third == "0" and operands.second.isdigit():
        return int(operands.second)
    return None
