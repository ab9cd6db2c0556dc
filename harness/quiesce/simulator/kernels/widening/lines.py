"""The widened text while it is written: a scalar and a vector for each value, and memory for those that blocks share.

LLVM turns the memory into values: https://llvm.org/docs/Passes.html#sroa-scalar-replacement-of-aggregates
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from quiesce.simulator.kernels.widening.shapes import Shape, Shapes
from quiesce.simulator.kernels.widening.text import Function, Instruction, Operand

_ZEROS: Final = frozenset({"0", "false", "null", "0.000000e+00"})


class Lines:
    """The lines of the function for a row of lanes."""

    def __init__(self, function: Function, shapes: Shapes, lanes: int, steps: Mapping[str, int]) -> None:
        """``steps``: how the arguments of the function grow from lane to lane, by name."""
        self.function, self.shapes, self.lanes, self._steps = function, shapes, lanes, steps
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        """Functions that are called, by name."""
        self.functions: dict[str, list[str]] = {}
        """The lines of functions that are called, by name."""
        self.indices: dict[str, str] = {}
        """The values of arguments in all lanes, where these do not always grow by their steps."""
        self.block = ""
        """The block of the function that is written now."""
        self.mask = ""
        """Which lanes run it."""
        self._count = 0
        self._slots: dict[tuple[str, str], tuple[str, str]] = {}
        self._scalars: dict[str, str] = {}
        self._vectors: dict[str, str] = {}
        self._arguments = {each.value: each.type for each in function.arguments}
        self._shared = _used_elsewhere(function)

    # -- lines

    def emit(self, line: str) -> None:
        """Write a line."""
        self.lines.append(line)

    def define(self, expression: str) -> str:
        """Write a line that gives a value a name, and return the name."""
        self._count += 1
        name = f"%w{self._count}"
        self.lines.append(f"{name} = {expression}")
        return name

    @contextmanager
    def section(self) -> Iterator[list[str]]:
        """Collect the lines that are written meanwhile, for another place in the text."""
        before, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = before
            self.forget()

    def new_label(self) -> str:
        """Return a name for a block."""
        self._count += 1
        return f"W{self._count}"

    def place(self, label: str) -> None:
        """Begin a block, to which not all ways lead through the lines before."""
        self.emit(f"{label}:")
        self.forget()

    def forget(self) -> None:
        """Read values again from their memory."""
        self._scalars, self._vectors = {}, {}

    @contextmanager
    def way(self, label: str) -> Iterator[None]:
        """Write a block that follows the lines before; what comes after it does not follow it."""
        before = dict(self._scalars), dict(self._vectors)
        self.emit(f"{label}:")
        yield
        self._scalars, self._vectors = before

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """Call a function, and declare it. Each argument is a type, with attributes after it, and a value."""
        types = ", ".join(_without_attributes(type_) for type_, _ in arguments)
        self.declarations[name] = f"declare {result} @{name}({types})"
        site = "" if name.startswith("llvm.") else " nobuiltin"  # sinf and cosf do not become sincosf
        called = f"call {result} @{name}({', '.join(map(' '.join, arguments))}){site}"
        if result == "void":
            self.emit(called)
            return ""
        return self.define(called)

    # -- types and constants

    def wide(self, type_: str) -> str:
        """Return the type of a vector with a value for each lane."""
        return f"<{self.lanes} x {type_}>"

    def numbers(self, type_: str, step: int) -> str:
        """Return a vector that counts the lanes."""
        return f"<{', '.join(f'{type_} {lane * step}' for lane in range(self.lanes))}>"

    def splat(self, type_: str, value: str) -> str:
        """Return a vector with the same value in each lane."""
        if not value.startswith("%"):
            return _constant(type_, value)
        wide = self.wide(type_)
        first = self.define(f"insertelement {wide} poison, {type_} {value}, i64 0")
        return self.define(f"shufflevector {wide} {first}, {wide} poison, <{self.lanes} x i32> zeroinitializer")

    # -- memory of values

    def slot(self, kind: str, name: str, type_: str) -> str:
        """Return the memory of a value, by what is kept there of it."""
        return self._slots.setdefault((kind, name), (f"%slot{len(self._slots)}", type_))[0]

    def slot_lines(self) -> list[str]:
        """Return the lines that make the memory."""
        return [f"{name} = alloca {type_}" for name, type_ in self._slots.values()]

    def slots_of(self, kind: str) -> dict[str, str]:
        """Return the memory of one kind, by the names of values."""
        return {name: slot for (of, name), (slot, _) in self._slots.items() if of == kind}

    # -- values

    def shape(self, operand: Operand) -> Shape:
        """Return the shape of an operand in the block that is written."""
        return self.shapes.at(operand, self.block)

    def scalar(self, operand: Operand) -> str:
        """Return the first lane of a row."""
        value = operand.value
        if not operand.is_local or value in self._arguments:
            return value
        if value not in self._scalars:
            self._scalars[value] = self.define(f"load {operand.type}, ptr {self.slot('first', value, operand.type)}")
        return self._scalars[value]

    def vector(self, operand: Operand) -> str:
        """Return the values of all lanes."""
        value, type_ = operand.value, operand.type
        if not operand.is_local:
            return _constant(type_, value)
        if value not in self._vectors:
            self._vectors[value] = self._vector(value, type_)
        return self._vectors[value]

    def _vector(self, value: str, type_: str) -> str:
        wide = self.wide(type_)
        if value in self.indices:
            return self.indices[value]
        if value in self._arguments:
            step = self._steps.get(value, 0)
            whole = self.splat(type_, value)
            return self.define(f"add {wide} {whole}, {self.numbers(type_, step)}") if step else whole
        shape = self.shapes.at(Operand(type_, value), self.block)
        if shape is not None and shape.is_uniform:
            return self.splat(type_, self.scalar(Operand(type_, value)))
        return self.define(f"load {wide}, ptr {self.slot('all', value, wide)}")

    def give(self, i: Instruction, scalar: str = "", vector: str = "") -> None:
        """Give an instruction its result: the first lane of a row, and all lanes of what is not uniform."""
        is_shared = i.result in self._shared
        if scalar:
            self._scalars[i.result] = scalar
            if is_shared:
                self.emit(f"store {i.type} {scalar}, ptr {self.slot('first', i.result, i.type)}")
        is_left = self.is_left(i.result)
        if not vector and is_left:
            vector = self.splat(i.type, scalar)
        if vector:
            self._vectors[i.result] = vector
            if is_shared:
                self.keep(i.result, i.type, vector, self.mask if is_left else "")

    def keep(self, name: str, type_: str, vector: str, mask: str) -> None:
        """Keep a vector; with a mask only its lanes, and the others stay what they were in an earlier round."""
        wide = self.wide(type_)
        slot = self.slot("all", name, wide)
        if mask:
            old = self.define(f"load {wide}, ptr {slot}")
            vector = self.define(f"select {self.wide('i1')} {mask}, {wide} {vector}, {wide} {old}")
        self.emit(f"store {wide} {vector}, ptr {slot}")

    def is_left(self, name: str) -> bool:
        """Say whether some lanes use a value of an earlier round than others."""
        return any(self.shapes.leaves(name, block) for block in self._shared.get(name, ()))

    # -- masks

    def both(self, mask: str, condition: str) -> str:
        """Return the lanes of a mask in which a condition holds. In other lanes it may have no value."""
        wide = self.wide("i1")
        return self.define(f"select {wide} {mask}, {wide} {condition}, {wide} zeroinitializer")

    def any(self, mask: str) -> str:
        """Say whether a mask has a lane."""
        bits = self.define(f"bitcast {self.wide('i1')} {mask} to i{self.lanes}")
        return self.define(f"icmp ne i{self.lanes} {bits}, 0")


def _constant(type_: str, value: str) -> str:
    if value in _ZEROS:
        return "zeroinitializer"
    return value if value in ("poison", "undef") else f"splat ({type_} {value})"


def _without_attributes(type_: str) -> str:
    end = type_.index(">") + 1 if type_.startswith("<") else len(type_.partition(" ")[0])
    return type_[:end]


def _used_elsewhere(function: Function) -> dict[str, set[str]]:
    """Return the blocks that use values of other blocks, and those of phis, by value."""
    own = {each.result: each for each in function.instructions() if each.result}
    found: dict[str, set[str]] = {}
    for i in function.instructions():
        for operand in i.operands:
            made = own.get(operand.value)
            if made is not None and (made.block != i.block or i.opcode == "phi" or made.opcode == "phi"):
                found.setdefault(operand.value, set()).add(i.block)
    return found
