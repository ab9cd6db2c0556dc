"""The first values of variables: numbers of every type, and addresses of other variables and of functions.

A variable gets its first value from a kernel, which is written here in PTX and compiled like any other: functions then
have addresses that kernels can call.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.module import FunctionText, Module
from quiesce.simulator.kernels.ptx.operands import TYPES, Float, Integer, Type, negative, parse_literal
from quiesce.simulator.kernels.ptx.tokens import END, Lines, Tokens

INITIAL_KERNEL: Final = "quiesce$initial$"
"""How the name of such a kernel begins; that of the variable follows."""
_VALUES_MAX: Final = 1 << 16
_DEPTH_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class _Named:
    """An address: of what, how many bytes further on, and which byte of it where one is asked for."""

    name: str
    offset: int
    byte: int | None = None


_Value = int | _Named


def with_initial_kernel(module: Module, variable: str) -> tuple[Module, str]:
    """Return a module with a kernel that gives a variable its first value, and the kernel's name."""
    name = INITIAL_KERNEL + variable
    text = f"\n.visible .entry {name}()\n{{\n{_body(module, variable)}}}\n"
    longer = copy.copy(module)
    start = len(module.text)
    longer.text = module.text + text
    longer.lines = Lines(longer.text)
    opening, closing = longer.text.index("{", start), len(longer.text) - 2
    longer.functions = {**module.functions, name: FunctionText(name, True, (start, opening), (opening + 1, closing))}
    return longer, name


def _body(module: Module, variable: str) -> str:
    lines = [f".reg .b64 %to, %address;\nmov.u64 %to, {variable};\n"]
    for offset, bits, value in _values(module, variable):
        if isinstance(value, int):
            if value:
                lines.append(f"st.b{bits} [%to+{offset}], {value:#x};\n")
            continue
        function = module.functions.get(value.name)
        if function is not None and function.body is None:
            continue  # as a method that is purely virtual: who calls it uses address 0
        lines.append(f"mov.u64 %address, {value.name};\nadd.u64 %address, %address, {value.offset};\n")
        if value.byte is not None:
            lines.append(f"shr.b64 %address, %address, {8 * value.byte};\n")
        lines.append(f"st.b{bits} [%to+{offset}], %address;\n")
    return "".join(lines) + "ret;\n"


def _values(module: Module, variable: str) -> Iterator[tuple[int, int, _Value]]:
    """Yield each value with its place and its bits."""
    tokens = module.declaration_tokens(variable)
    type_, lanes = _skip_to_name(tokens, variable)
    dimensions = _dimensions(tokens)
    if lanes > 1:
        dimensions.append(lanes)
    if not tokens.skip("="):
        return
    bytes_ = type_.bytes
    found = _elements(tokens, type_, dimensions, 0, 0)
    for number, (element, value) in enumerate(found):
        if number >= _VALUES_MAX:
            raise RefusedKernel(f"variable '{variable}' begins with more than {_VALUES_MAX:,} values")
        yield element * bytes_, 8 * bytes_, value


def _skip_to_name(tokens: Tokens, variable: str) -> tuple[Type, int]:
    type_, lanes = None, 1
    while (word := tokens.next()) != variable:
        if word in (".v2", ".v4"):
            lanes = int(word[2])
        elif word[1:] in TYPES:
            type_ = TYPES[word[1:]]
        elif word == END:
            break
    if type_ is None or type_.kind == "predicate":
        raise tokens.refuse(f"variable '{variable}' has no type")
    return type_, lanes


def _dimensions(tokens: Tokens) -> list[int]:
    found = []
    while tokens.skip("["):
        literal = parse_literal(tokens.next())
        if not isinstance(literal, Integer):
            raise tokens.refuse("an array with a first value has no size")
        found.append(literal.value)
        tokens.expect("]")
    return found


def _elements(
    tokens: Tokens, type_: Type, dimensions: list[int], first: int, depth: int
) -> Iterator[tuple[int, _Value]]:
    """Yield the values between braces, each with the number of its element."""
    if not tokens.skip("{"):
        yield first, _value(tokens, type_)
        return
    size = 1
    for each in dimensions[1:]:
        size *= each
    at = first
    last = first + size * (dimensions[0] if dimensions else 1)
    while not tokens.skip("}"):
        if at >= last or depth > _DEPTH_MAX:
            raise tokens.refuse("a variable begins with too many values")
        is_nested = tokens.peek() == "{"
        yield from _elements(tokens, type_, dimensions[1:], at, depth + 1)
        at += size if is_nested else 1
        if not tokens.skip(",") and tokens.peek() != "}":
            raise tokens.refuse("a first value is not understood")


def _value(tokens: Tokens, type_: Type) -> _Value:
    value = _one_value(tokens, type_)
    if tokens.peek() not in (",", "}", ";"):
        raise tokens.refuse("a first value is not understood")
    return value


def _one_value(tokens: Tokens, type_: Type) -> _Value:
    negated = tokens.skip("-")
    literal = parse_literal(tokens.peek())
    if literal is not None:
        tokens.next()
        after = tokens.peek()
        if isinstance(literal, Integer) and after == "(":  # 0xFF00(name): one byte of an address
            return _masked(tokens, literal.value)
        return _bits(tokens, negative(literal) if negated else literal, type_)
    return _named(tokens)


def _bits(tokens: Tokens, literal: Integer | Float, type_: Type) -> int:
    if isinstance(literal, Integer):
        if not type_.is_float:
            return literal.value & ((1 << type_.bits) - 1)
        literal = Float(int.from_bytes(struct.pack("<d", float(literal.value)), "little"), 64)
    if type_.is_float and type_.bits in (32, 64) and type_.lanes == 1:
        return literal.bits_as(type_.bits)
    if type_.kind == "bits" and type_.bits == literal.width:
        return literal.bits
    raise tokens.refuse("a first value is no number of its type")


def _named(tokens: Tokens) -> _Named:
    is_generic = tokens.skip("generic")
    if is_generic:
        tokens.expect("(")
    name = tokens.next()
    if not name or not (name[0].isalpha() or name[0] in "_$%"):
        raise tokens.refuse("a first value is not understood")
    offset = _offset(tokens)
    if is_generic:
        tokens.expect(")")
        offset += _offset(tokens)
    return _Named(name, offset)


def _offset(tokens: Tokens) -> int:
    offset = 0
    while tokens.peek() in ("+", "-"):
        negated = tokens.next() == "-"
        literal = parse_literal(tokens.next())
        if not isinstance(literal, Integer):
            raise tokens.refuse("an offset is no number")
        offset += -literal.value if negated else literal.value
    return offset


def _masked(tokens: Tokens, mask: int) -> _Named:
    tokens.expect("(")
    named = _named(tokens)
    tokens.expect(")")
    byte = next((number for number in range(8) if mask == 0xFF << 8 * number), None)
    if byte is None:
        raise tokens.refuse("a mask is no byte")
    return _Named(named.name, named.offset, byte)
