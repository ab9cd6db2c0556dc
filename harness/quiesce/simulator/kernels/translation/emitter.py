"""The registers of one function while it is translated: reading and writing operands of every kind.

A register is memory on the stack, which LLVM turns into values. Its bits are an integer wherever it is; an instruction
reads them as the type that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import (
    PREDICATE,
    TYPES,
    Float,
    Integer,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Type,
    Vector,
    bits_type,
)
from quiesce.simulator.kernels.translation.instructions.forms import refuse
from quiesce.simulator.kernels.translation.instructions.special_registers import special_value
from quiesce.simulator.kernels.translation.llvm_code import INVARIANT, Code, LoopShape, Shape
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.spin_loops import spinning_branches

U64 = TYPES["u64"]


class Suspension:
    """Leaving a thread where it waits, and going on from there. This one has waited: it goes on, and gets nothing."""

    def wait(self, e: Emitter, operation: int, operands: WarpOperands, results: tuple[Operand, ...]) -> None:
        """End the function with the number of an operation, and go on with its results later."""

    def go_back(self, e: Emitter, target: int) -> None:
        """Go back to the beginning of a loop, by the number of its block, or stop there."""

    def result(self, e: Emitter) -> str:
        """Return the result of the operation that a thread waited for, with 64 bits."""
        return "0"

    def predicate(self, e: Emitter) -> str:
        """Return the predicate that came with the result."""
        return "false"

    def area(self, bytes_: int) -> int:
        """Return the place in a thread of memory for an operation that needs more than a few numbers."""
        return 0


@dataclass(frozen=True, slots=True)
class WarpOperands:
    """What the runtime needs to know of an operation that threads take part in together."""

    mask: str = "-1"
    value: str = "0"
    second: str = "0"
    third: str = "0"


@dataclass(frozen=True, slots=True)
class Around:
    """What the lines depend on that are written next, apart from the instruction."""

    shape: Shape
    suspension: Suspension | None = None
    """How the thread waits, in a kernel in which some do."""
    block_prefix: str = ""
    """What the labels of blocks begin with."""
    judged_before: frozenset[tuple[int, int]] = frozenset()
    """Accesses that were judged before the loop over threads, by the position of their instructions."""
    is_parallel: bool = False
    """Whether the lines are those of a loop over threads that LLVM may run side by side."""
    calls_checks: bool = False
    """Whether each check is a call of a function."""


class Emitter(Code):
    """The lines of one function, and what its operands are in LLVM."""

    def __init__(
        self,
        program: Program,
        function: Function,
        around: Around,
        kept_pointers: frozenset[Register] = frozenset(),
        flushed: frozenset[Register] = frozenset(),
        floats: frozenset[Register] = frozenset(),
    ) -> None:
        super().__init__(program)
        self.function = function
        self._surround(around)
        self.instruction: Instruction
        """The one that is translated now."""
        self.position = (0, 0)
        """Its block, and its place in there."""
        self._kept_pointers = kept_pointers
        self.flushed = flushed
        """Registers that never hold a subnormal float."""
        self.floats = floats
        """Registers that only arithmetic of single precision writes."""
        self.spinning = {id(function.items[place]) for place in spinning_branches(function)}
        """Branches at which the other threads have their turn."""
        self._registers: dict[Register, str] = {}
        self.known: dict[Register, str] = {}
        """Values of registers that the lines since the last label wrote or read."""
        self._scratch: list[int] = []
        self._pointers: dict[str, str] = {}
        self.memory: dict[str, str] = {}
        """Local and parameter memory of the body, by name."""
        self.arguments: dict[str, str] = {
            **{each.name: f"%argument{number}" for number, each in enumerate(function.parameters)},
            **{each.name: f"%returned{number}" for number, each in enumerate(function.returned)},
        }
        self._entry_parameters = {each.name: each for each in function.parameters} if function.is_entry else {}

    # -- what is around the lines

    def _surround(self, around: Around) -> None:
        self.around = around
        self.shape, self.suspension, self.is_parallel = around.shape, around.suspension, around.is_parallel

    @contextmanager
    def within(self, around: Around) -> Iterator[None]:
        """Write lines that have other things around them."""
        before = self.around
        self._surround(around)
        try:
            yield
        finally:
            self._surround(before)

    # -- errors

    def refuse(self, reason: str) -> RefusedKernel:
        """Return an error about the instruction that is translated."""
        return refuse(self.instruction, reason)

    def place(self, label: str) -> None:
        """Begin a block, in which registers may have other values than in the one before."""
        super().place(label)
        self.known.clear()

    def block_label(self, number: int) -> str:
        """Return the label of a block of the function."""
        return f"{self.around.block_prefix}B{number}"

    # -- registers

    def has_pointer(self, register: Register) -> bool:
        """Say whether the address in a register is kept as a pointer too."""
        return register in self._kept_pointers

    def slot(self, register: Register) -> str:
        """Return the memory of a register."""
        found = self._registers.get(register)
        if found is None:
            found = self._registers[register] = f"%r{len(self._registers)}"
        return found

    def pointer_slot(self, register: Register) -> str:
        """Return the memory of the pointer that a register holds as a number."""
        return self._pointers.setdefault(register.name, f"%a{len(self._pointers)}")

    def stack_lines(self) -> list[str]:
        """Return the lines that make the memory of all registers."""
        lines = [f"{slot} = alloca i{register.type.bits}" for register, slot in self._registers.items()]
        lines += [f"%s{number} = alloca i{bits}" for number, bits in enumerate(self._scratch)]
        return lines + [f"{slot} = alloca ptr" for slot in self._pointers.values()]

    def scratch(self, bits: int) -> str:
        """Return memory for one value, which has another use each time."""
        self._scratch.append(bits)
        return f"%s{len(self._scratch) - 1}"

    # -- reading

    def read(self, operand: Operand, type_: Type, wider: bool = False) -> str:
        """Return an operand's bits as an integer. ``wider``: a register may have more bits than the type."""
        match operand:
            case Register():
                return self._read_register(operand, type_, wider)
            case Integer(value=value):
                return self._read_integer(value, type_)
            case Float() if type_.bits in (32, 64) and type_.lanes == 1:
                return str(operand.bits_as(type_.bits))
            case Special(name="%reserved_smem_offset_1"):
                self.program.uses_reserved = True
                start = self.define_late(lambda: f"add i32 {self.program.reserved_offset}, 0")
                return self.cast(start, 32, type_.bits)
            case Special(name=name):
                return self.cast(*special_value(self, self.shape, name, self.refuse), type_.bits)
            case Symbol() if type_.bits == 64:
                return self.address_of(operand)
            case Symbol() if type_.bits == 32:
                return self.cast(self.address_of(operand), 64, 32)
            case Negated(register=register) if type_ == PREDICATE:
                return self.define(f"xor i1 {self.read(register, PREDICATE)}, true")
            case Vector(elements=elements) if elements and type_.bits % len(elements) == 0:
                return self._read_vector(elements, type_)
            case _:
                raise self.refuse("an operand has no value of this type")

    def _read_register(self, register: Register, type_: Type, wider: bool) -> str:
        bits = register.type.bits
        if bits != type_.bits and not (wider and bits > type_.bits > 1):
            raise self.refuse(f"register '{register.name.partition('@')[0]}' has {bits} bits, not {type_.bits}")
        value = self.known.get(register)
        if value is None:
            value = self.known[register] = self.load(f"i{bits}", self.slot(register))
        return self.cast(value, bits, type_.bits)

    def _read_integer(self, value: int, type_: Type) -> str:
        if type_.is_float and type_.lanes == 1 and type_.bits > 16:
            raise self.refuse("a number without a fraction stands for one with a fraction")
        return str(value & ((1 << type_.bits) - 1)) if type_.bits > 1 else str(int(bool(value)))

    def _read_vector(self, elements: tuple[Operand, ...], type_: Type) -> str:
        bits = type_.bits // len(elements)
        if f"b{bits}" not in TYPES:
            raise self.refuse("a vector has elements of no type")
        whole = "0"
        for number, element in enumerate(elements):
            value = self.cast(self.read(element, bits_type(bits)), bits, type_.bits)
            shifted = self.define(f"shl i{type_.bits} {value}, {number * bits}")
            whole = self.define(f"or i{type_.bits} {whole}, {shifted}")
        return whole

    def read_float(self, operand: Operand, type_: Type) -> str:
        """Return an operand as a number with a fraction."""
        return self.as_float(self.read(operand, type_), type_)

    def read_all(self, operands: tuple[Operand, ...], type_: Type) -> list[str]:
        """Return several operands of one type as integers."""
        return [self.read(operand, type_) for operand in operands]

    def as_float(self, bits: str, type_: Type) -> str:
        """Return bits as the number that they stand for."""
        return self.define(f"bitcast {type_.integer} {bits} to {type_.floating}")

    # -- writing

    def write(self, operand: Operand, value: str, type_: Type, wider: bool = False) -> None:
        """Give an operand a value. ``wider``: a register may have more bits than the type, and gets its sign too."""
        match operand:
            case Sink():
                return
            case Register():
                bits = operand.type.bits
                if bits != type_.bits and not (wider and bits > type_.bits > 1):
                    raise self.refuse(f"register '{operand.name.partition('@')[0]}' has {bits} bits, not {type_.bits}")
                whole = self.known[operand] = self.cast(value, type_.bits, bits, type_.is_signed)
                self.store(f"i{bits}", whole, self.slot(operand))
            case Vector(elements=elements) if elements and f"b{type_.bits // len(elements)}" in TYPES:
                bits = type_.bits // len(elements)
                for number, element in enumerate(elements):
                    part = self.define(f"lshr i{type_.bits} {value}, {number * bits}") if number else value
                    self.write(element, self.cast(part, type_.bits, bits), bits_type(bits))
            case _:
                raise self.refuse("a destination is no register")

    def write_float(self, operand: Operand, value: str, type_: Type) -> None:
        """Give an operand a number with a fraction."""
        self.write(operand, self.define(f"bitcast {type_.floating} {value} to {type_.integer}"), type_)

    # -- addresses

    def pointer_to(self, symbol: Symbol) -> str | None:
        """Return a pointer to memory of a name, without its offset; None where only its number is known."""
        name = symbol.name
        if name in self.memory:
            return self.memory[name]
        if name in self._entry_parameters:
            parameters = self.shape.context(self, 48, "ptr")
            return self.byte_offset(parameters, self._entry_parameters[name].offset)
        if name in self.arguments:
            return self.arguments[name]
        variable = self.function.variables.get(name) or self.program.module.variables.get(name)
        if variable is None or variable.space == "shared":
            return None
        slot = self.program.variable_slot(variable)
        return self.load("ptr", slot, INVARIANT)

    def address_of(self, symbol: Symbol) -> str:
        """Return the address of a name in its own state space."""
        pointer = self.pointer_to(symbol)
        if pointer is not None:
            address = self.define(f"ptrtoint ptr {pointer} to i64")
            return self.define(f"add i64 {address}, {symbol.offset}") if symbol.offset else address
        own = self.function.variables.get(symbol.name)
        variable = own or self.program.module.variables.get(symbol.name)
        if variable is not None:
            offset = self.program.shared_offset(variable, self.function.name if own else "")
            if offset is not None:
                return str(offset + symbol.offset)
            return self.define_late(lambda: f"add i64 {self.program.dynamic_offset}, {symbol.offset}")
        if symbol.name in self.program.module.functions:
            return self._function_address(symbol)
        raise self.refuse(f"there is no '{symbol.name.partition('@')[0]}'")

    def _function_address(self, symbol: Symbol) -> str:
        text = self.program.module.functions[symbol.name]
        if text.is_entry:
            raise self.refuse(f"kernels that launch kernels ('{symbol.name}', dynamic parallelism) are not simulated")
        if text.body is None or symbol.offset:
            raise self.refuse(f"the address of '{symbol.name}' is not that of a function that can be called")
        return self.define(f"ptrtoint ptr @f{self.program.number_of(symbol.name)} to i64")

    def entry_parameter(self, symbol: Symbol, offset: int, bits: int) -> str | None:
        """Return a kernel's parameter that is loaded before the loop over threads; None where that can't be."""
        parameter = self._entry_parameters.get(symbol.name)
        inside = parameter is not None and 0 <= offset <= parameter.bytes - bits // 8
        if parameter is None or not inside or not isinstance(self.shape, LoopShape):
            return None
        return self.shape.parameter(parameter.offset + offset, bits)


Handler = Callable[[Emitter, Instruction], None]
_Handler = TypeVar("_Handler", bound=Handler)


class Chapter:
    """Instructions that the PTX ISA describes in one place, and the functions that translate them.

    Most instructions have a link of their own, which ends with their name: ``…-instructions-lop3``.
    """

    def __init__(self, link: str) -> None:
        self.link = link
        self.handlers: dict[str, Handler] = {}

    def translates(self, *opcodes: str) -> Callable[[_Handler], _Handler]:
        """Note that the function that follows translates these instructions."""

        def note(handler: _Handler) -> _Handler:
            self.handlers.update(dict.fromkeys(opcodes, handler))
            return handler

        return note
