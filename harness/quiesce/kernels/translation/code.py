"""Lines of LLVM's language, and the names that they define."""

from __future__ import annotations

from quiesce.kernels.translation.program import Program

INVARIANT = "!invariant.load !0"


def constant_text(name: str, text: str) -> str:
    """Return a line that puts a text into the object, with a NUL after it."""
    content = text.encode("utf-8", "surrogateescape")
    escaped = "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:02x}" for byte in content)
    return f'@{name} = private constant [{len(content) + 1} x i8] c"{escaped}\\00"'


class Code:
    """The lines of one function while they are written."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self._count = 0

    def emit(self, line: str) -> None:
        """Write a line."""
        self.lines.append(line)

    def define(self, expression: str) -> str:
        """Write a line that gives a value a name, and return the name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"{name} = {expression}")
        return name

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
