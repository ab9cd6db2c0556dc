"""Lines of LLVM's language with the names that they define, and the shapes in which they run the body of a function.

A body is run as a loop over threads, as a machine with states, or called by another. The layouts are those of
``struct kernel_context`` and ``struct kernel_thread`` of the runtime.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from quiesce.simulator.kernels.translation.program import Program

INVARIANT = "!invariant.load !0"
PARALLEL_ACCESS = "!llvm.access.group !4"
"""How the line of an access ends on which those of the loop's other rounds do not depend."""


_COMPUTED: Final = frozenset(
    [
        *("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor", "icmp", "select", "getelementptr"),
        *("sext", "zext", "trunc", "ptrtoint", "inttoptr", "udiv", "sdiv"),
    ]
)
"""Instructions whose result depends on their operands only."""


def constant_text(name: str, text: str) -> str:
    """Return a line that puts a text into the object, with a NUL after it."""
    content = text.encode("utf-8", "surrogateescape")
    escaped = "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:02x}" for byte in content)
    return f'@{name} = private constant [{len(content) + 1} x i8] c"{escaped}\\00"'


class Late(str):
    """A line that is written when the whole kernel is: it has a number in it that is known only then."""

    __slots__ = ("write",)
    write: Callable[[], str]

    def __new__(cls, write: Callable[[], str]) -> Self:
        """Return a line without text, which ``write`` gives it."""
        late = super().__new__(cls)
        late.write = write
        return late


class Code:
    """The lines of one function while they are written."""

    is_parallel = False
    """Whether the lines are those of a loop over threads that LLVM may run side by side."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self._count = 0
        self._numbered: dict[str, str] | None = None

    def emit(self, line: str) -> None:
        """Write a line."""
        self.lines.append(line)

    @contextmanager
    def section(self) -> Iterator[list[str]]:
        """Collect the lines that are written meanwhile, for another place in the text."""
        before, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = before

    def define(self, expression: str) -> str:
        """Write a line that gives a value a name, and return the name."""
        known = self._numbered.get(expression) if self._numbered is not None else None
        if known is not None:
            return known
        name = self._new_value()
        self.lines.append(f"{name} = {expression}")
        if self._numbered is not None and expression.partition(" ")[0] in _COMPUTED:
            self._numbered[expression] = name
        return name

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Write lines that follow each other, in which what was computed once is not computed again."""
        self._numbered = {}
        yield
        self._numbered = None

    def define_late(self, expression: Callable[[], str]) -> str:
        """Write such a line with an expression that is known when the whole kernel is translated."""
        name = self._new_value()
        self.lines.append(Late(lambda: f"{name} = {expression()}"))
        return name

    def _new_value(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def load(self, type_: str, pointer: str, *rest: str, contended: bool = False) -> str:
        """Return what is in memory. ``contended``: other threads of the block change it meanwhile."""
        return self.define(f"load {type_}, {self._place(pointer, rest, contended)}")

    def store(self, type_: str, value: str, pointer: str, *rest: str, contended: bool = False) -> None:
        """Write to memory. ``contended``: other threads of the block change it meanwhile."""
        self.emit(f"store {type_} {value}, {self._place(pointer, rest, contended)}")

    def _place(self, pointer: str, rest: tuple[str, ...], contended: bool) -> str:
        if self.is_parallel and not contended:
            rest = (*rest, PARALLEL_ACCESS)
        return f"ptr {pointer}, {', '.join(rest)}" if rest else f"ptr {pointer}"

    def new_label(self) -> str:
        """Return a name for a block."""
        self._count += 1
        return f"L{self._count}"

    def place(self, label: str) -> None:
        """Begin the block of a label; what was before has to have ended."""
        self.lines.append(f"{label}:")

    def cast(self, value: str, from_bits: int, to_bits: int, signed: bool = False) -> str:
        """Return an integer with another number of bits."""
        if from_bits == to_bits:
            return value
        how = "trunc" if to_bits < from_bits else "sext" if signed else "zext"
        return self.define(f"{how} i{from_bits} {value} to i{to_bits}")

    def call(self, result: str, name: str, *arguments: str, attributes: str = "") -> str:
        """Call a function from outside, or one of LLVM's own. Each argument has its type before it."""
        types = ", ".join(argument.split(" ", 1)[0] for argument in arguments)
        self.program.declare(f"declare {result} @{name}({types}) {attributes}")
        # LLVM must not turn calls of the C library's functions into others, such as sinf and cosf into sincosf.
        site = "" if name.startswith("llvm.") else " nobuiltin"
        called = f"call {result} @{name}({', '.join(arguments)}){site}"
        if result == "void":
            self.emit(called)
            return ""
        return self.define(called)

    def pure(self, result: str, name: str, *arguments: str) -> str:
        """Call a function whose result depends on its arguments only."""
        return self.call(result, name, *arguments, attributes="nounwind willreturn memory(none)")

    def select(self, condition: str, type_: str, first: str, second: str) -> str:
        """Return one of two values."""
        return self.define(f"select i1 {condition}, {type_} {first}, {type_} {second}")

    def byte_offset(self, pointer: str, offset: str | int) -> str:
        """Return a pointer some bytes further on."""
        return pointer if offset == 0 else self.define(f"getelementptr i8, ptr {pointer}, i64 {offset}")


GRID, BLOCK, BLOCK_INDEX, DYNAMIC_BYTES, SHARED_BASE, PARAMETERS, SHARED_BYTES = 0, 12, 24, 36, 40, 48, 56
GRID_WORKSPACE, FRAMES = 80, 88
"""Offsets in the context."""
STATE, INDEX, LANE, WARP, OPERATION, MASK, VALUE, OPERAND_B, OPERAND_C, RESULT, PREDICATE_RESULT, FRAME = (
    *(0, 4, 16, 20, 24, 28, 32),
    *(40, 44, 48, 56, 64),
)
"""Offsets in a thread; its frame follows."""
BLOCK_THREADS_MAX: Final = 1024
EXITED, TRAPPED, ASSERTED = 1, -1, -2
"""What a function returns to its caller; 0 is the usual end."""


class Shape(ABC):
    """Where a function finds its thread and the context, and how it ends."""

    def context(self, code: Code, offset: int, type_: str) -> str:
        """Return a value of the context."""
        return _load(code, "%context", offset, type_)

    def index(self, code: Code, axis: int) -> str:
        """Return the thread's index on an axis: an argument, or the variable of a loop."""
        return f"%{'xyz'[axis]}"

    def linear(self, code: Code) -> str:
        """Return the number of the thread in its block."""
        return "%linear"

    @abstractmethod
    def finish(self, code: Code, status: int) -> None:
        """End the function: 0, or one of the constants above."""

    @abstractmethod
    def propagate(self, code: Code, status: str) -> None:
        """End the function as a function that it called did, with a status that is not 0."""


def _load(code: Code, base: str, offset: int, type_: str) -> str:
    return code.load(type_, code.byte_offset(base, offset), INVARIANT)


class LoopShape(Shape):
    """All threads of a block, one after another, around one body: nothing in it waits.

    Values that are the same for all threads are loaded before the loop, so that it can be vectorised.
    """

    def __init__(self) -> None:
        self.before: dict[tuple[int, str], str] = {}
        self.parameters: dict[tuple[int, int], str] = {}

    def context(self, code: Code, offset: int, type_: str) -> str:
        """Return a value that is loaded before the loop."""
        return self.before.setdefault((offset, type_), f"%c{offset}.{type_}")

    def parameter(self, offset: int, bits: int) -> str:
        """Return a parameter that is loaded before the loop."""
        return self.parameters.setdefault((offset, bits), f"%p{offset}.{bits}")

    def finish(self, code: Code, status: int) -> None:
        """Go on with the next thread, or leave the block."""
        code.emit(f"ret i32 {status}" if status < 0 else "br label %next.x")

    def propagate(self, code: Code, status: str) -> None:
        """Go on with the next thread after an exit, or leave the block."""
        failed = code.new_label()
        code.emit(f"br i1 {code.define(f'icmp slt i32 {status}, 0')}, label %{failed}, label %next.x")
        code.place(failed)
        code.emit(f"ret i32 {status}")


class LoopPart(LoopShape):
    """A part of another shape's function: what is loaded before the loop is loaded before that one's."""

    def __init__(self, whole: LoopShape) -> None:
        super().__init__()
        self._whole = whole

    def context(self, code: Code, offset: int, type_: str) -> str:
        """Return a value that is loaded before the loop."""
        return self._whole.context(code, offset, type_)

    def parameter(self, offset: int, bits: int) -> str:
        """Return a parameter that is loaded before the loop."""
        return self._whole.parameter(offset, bits)


class StateShape(Shape):
    """One thread, which can be left where it waits and entered there again."""

    def index(self, code: Code, axis: int) -> str:
        """Return a value of the thread."""
        return _load(code, "%thread", INDEX + 4 * axis, "i32")

    def linear(self, code: Code) -> str:
        """Return warp and lane as one number."""
        warp = code.define(f"shl i32 {_load(code, '%thread', WARP, 'i32')}, 5")
        return code.define(f"or i32 {warp}, {_load(code, '%thread', LANE, 'i32')}")

    def finish(self, code: Code, status: int) -> None:
        """Say that the thread has ended."""
        code.emit(f"ret i32 {min(status, 0)}")

    def propagate(self, code: Code, status: str) -> None:
        """Say that the thread has ended."""
        failed = code.define(f"icmp slt i32 {status}, 0")
        code.emit(f"ret i32 {code.select(failed, 'i32', status, '0')}")


class CalledShape(Shape):
    """A function that another one calls with the thread in its arguments.

    ``stack_bytes`` is what the runtime is told that a call of it needs of the stack; 0: it is told nothing.
    """

    def __init__(self, stack_bytes: int = 0) -> None:
        self._stack_bytes = stack_bytes

    def finish(self, code: Code, status: int) -> None:
        """Return to the caller."""
        self.propagate(code, str(status))

    def propagate(self, code: Code, status: str) -> None:
        """Return to the caller, also what came from the function that was called."""
        if self._stack_bytes:
            code.call("void", "quiesce_kernel_leave", f"i32 {self._stack_bytes}")
        code.emit(f"ret i32 {status}")
