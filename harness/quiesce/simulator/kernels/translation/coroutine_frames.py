"""Threads that wait, as coroutines: what is live at a barrier or warp operation is kept in frames, or computed again.

Each thread is left at such a point and entered there again. The frames are arrays over the threads of a block, one for
each register; a register that follows from parameters and from where the thread is, is computed again instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, Variable
from quiesce.simulator.kernels.ptx.operands import (
    PREDICATE,
    Address,
    Float,
    Integer,
    Operand,
    Register,
    Special,
    Symbol,
    registers_in,
)
from quiesce.simulator.kernels.translation.control_flow import Flow
from quiesce.simulator.kernels.translation.data_flow import Liveness, effects_of, is_certainly_used, written_operands
from quiesce.simulator.kernels.translation.emitter import Emitter, Suspension, WarpOperands
from quiesce.simulator.kernels.translation.instructions.table import translate_instruction
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK_THREADS_MAX,
    FRAME,
    MASK,
    OPERAND_B,
    OPERAND_C,
    PREDICATE_RESULT,
    RESULT,
    STATE,
    VALUE,
    Code,
)

_PURE: Final = frozenset(
    [
        *("mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg"),
        *("min", "max", "cvt", "cvta", "setp", "selp"),
    ]
)
_CHANGING: Final = ("%clock", "%globaltimer", "%pm", "%envreg")
_INSTRUCTIONS_MAX: Final = 16
"""A register that takes more instructions is kept."""


class Recomputed:
    """Which registers of a kernel are computed again, and from which instructions."""

    def __init__(self, function: Function) -> None:
        self._parameters = {each.name for each in function.parameters} if function.is_entry else set()
        self._orders: dict[Register, tuple[Instruction, ...]] = {}
        for register, definition in _single_definitions(function).items():  # in the order of the text
            order = self._order(definition)
            if order:
                self._orders[register] = order

    def __contains__(self, register: Register) -> bool:
        return register in self._orders

    def instructions(self, registers: Iterable[Register]) -> tuple[Instruction, ...]:
        """Return what computes these registers, each instruction once and after those that it needs."""
        found: dict[int, Instruction] = {}
        for register in registers:
            found.update((id(each), each) for each in self._orders[register])
        return tuple(found.values())

    def _order(self, definition: Instruction) -> tuple[Instruction, ...]:
        """Return what has to be computed for an instruction and itself; nothing where it can't be."""
        sources = effects_of(definition)[0]
        if not self._is_pure(definition) or not all(source in self._orders for source in sources):
            return ()
        needed = {id(each): each for source in sources for each in self._orders[source]}
        needed[id(definition)] = definition
        return tuple(needed.values()) if len(needed) <= _INSTRUCTIONS_MAX else ()

    def _is_pure(self, i: Instruction) -> bool:
        if any(type_.is_float for type_ in i.types) or "cc" in i.modifiers:
            return False
        sources = i.operands[1:]
        if i.opcode == "ld":
            return i.modifiers == ("param",) and len(sources) == 1 and self._is_parameter(sources[0])
        return i.opcode in _PURE and all(_is_constant(each) for each in sources)

    def _is_parameter(self, operand: Operand) -> bool:
        return (
            isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in self._parameters
        )


def _is_constant(operand: Operand) -> bool:
    """Say whether an operand has one value in a thread, apart from registers."""
    if isinstance(operand, Special):
        return not operand.name.startswith(_CHANGING)
    return isinstance(operand, Register | Integer | Float | Symbol)


def _single_definitions(function: Function) -> dict[Register, Instruction]:
    definitions: dict[Register, Instruction] = {}
    several: set[Register] = set()
    for instruction in function.instructions():
        for register in effects_of(instruction)[1]:
            if register in definitions or instruction.guard or written_operands(instruction) != (register,):
                several.add(register)
            definitions[register] = instruction
    return {register: each for register, each in definitions.items() if register not in several}


_GAP: Final = 64
"""Between two arrays, so that the places of one thread are not all in one set of the processor's cache."""


def _array_bytes(element_bytes: int) -> int:
    return BLOCK_THREADS_MAX * element_bytes + _GAP


NEXT: Final = 0
"""Where the array begins that has each thread's next state."""
DONE: Final = -1
"""The next state of a thread that has ended."""


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
        e.store(f"i{max(bits, 8)}", value, element_of(e, self.place_of(register), register, linear))

    def restore(self, e: Emitter, register: Register, linear: str) -> None:
        """Read the register of a thread from its place."""
        bits = max(register.type.bits, 8)
        set_register(e, register, e.load(f"i{bits}", element_of(e, self.place_of(register), register, linear)))

    def recompute(self, e: Emitter, registers: Iterable[Register]) -> None:
        """Compute those registers that are in no array."""
        for instruction in self.recomputed.instructions(each for each in registers if each in self.recomputed):
            e.instruction = instruction
            translate_instruction(e, instruction)


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
        e.store("ptr", pointer, e.pointer_slot(register))


def plain_barrier(operation: int, operands: WarpOperands) -> int | None:
    """Return the number of a barrier at which all threads of a block wait, and nothing else; None for any other."""
    if operation == 1 and operands.third == "0" and operands.second.isdigit():
        return int(operands.second)
    return None


LINEAR = "%own.linear"
_UNUSED = WarpOperands()


class ThreadSuspension(Suspension):
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
        is_used = e.program.variant.checks and operation in _SHUFFLES and is_certainly_used(self._flow, e.position)
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
        return e.load("i64", e.byte_offset("%thread", RESULT))

    def predicate(self, e: Emitter) -> str:
        """Return the predicate that came with the result."""
        value = e.load("i32", e.byte_offset("%thread", PREDICATE_RESULT))
        return e.cast(value, 32, PREDICATE.bits)


def _site(e: Emitter) -> int:
    """Return the instruction, as the runtime reads it for a state (``native/kernels/object.h``)."""
    if not e.program.variant.checks:
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
    e.store(type_, value, e.byte_offset("%thread", offset))
