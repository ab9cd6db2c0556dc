"""Matrices that the threads of a warp hold together: ``ldmatrix``, ``stmatrix``, ``mma`` and ``wmma``.

Each thread puts its registers into its frame, and the runtime (``native/kernels/matrix.c``) computes for the whole warp
when all of its threads have come. The fragments of ``wmma`` have a layout of their own, which the ISA leaves open: a
matrix in the order of its rows, so many elements to each thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.operands import TYPES, Address, Operand, Register, Type, Vector, bits_type
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter, WarpOperands
from quiesce.simulator.kernels.translation.instructions.forms import choose, not_executed, refuse, require
from quiesce.simulator.kernels.translation.instructions.memory import access, element_access, place_of, space_of

MATRICES: Final = Chapter("https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-instructions")

LOAD, STORE, MULTIPLY = 80, 81, 82
"""The numbers of operations, which the runtime knows."""
_AREA_BYTES: Final = 256
_B32: Final = TYPES["b32"]
_SHAPE: Final = re.compile(r"m(\d{1,2})n(\d{1,2})k(\d{1,3})\Z")
_NUMBERS: Final = {"f16": 0, "bf16": 1, "tf32": 2, "f32": 3, "f64": 4, "s8": 5, "u8": 6, "s32": 7, "e4m3": 8, "e5m2": 9}
"""The types of elements, as the runtime numbers them."""
_BITS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32}
_BITS_OF_BYTES: Final = {"e4m3": 8, "e5m2": 8}
_SHAPES: Final = {
    "f16": {(16, 8, 8), (16, 8, 16)},
    "bf16": {(16, 8, 8), (16, 8, 16)},
    "tf32": {(16, 8, 4), (16, 8, 8)},
    "f64": {(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)},
    **{type_: {(8, 8, 16), (16, 8, 16), (16, 8, 32)} for type_ in ("s8", "u8")},
    **{type_: {(16, 8, 16), (16, 8, 32)} for type_ in ("e4m3", "e5m2")},
}
_WMMA_SHAPES: Final = {
    **{type_: {(16, 16, 16), (8, 32, 16), (32, 8, 16)} for type_ in ("f16", "bf16", "s8", "u8")},
    "tf32": {(16, 16, 8)},
    "f64": {(8, 8, 4)},
}
_SUMS: Final = {
    **{"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",), "s8": ("s32",), "u8": ("s32",)},
    **dict.fromkeys(("e4m3", "e5m2"), ("f16", "f32")),
}


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of matrices: its size, and the types of the result, the two factors and the addend."""

    m: int
    n: int
    k: int
    types: tuple[str, str, str, str]


def _bits(type_: str) -> int:
    return _BITS.get(type_) or _BITS_OF_BYTES[type_]


def _words(i: Instruction) -> list[str]:
    """Return everything after the opcode in its order; the parser has taken types and other words apart."""
    written = i.name.removesuffix(";").split(".")
    return written[1:]


def _shape(i: Instruction) -> tuple[int, int, int]:
    found = [match for word in i.modifiers if (match := _SHAPE.match(word))]
    if len(found) != 1:
        raise not_executed(i)
    m, n, k = found[0].groups()
    return int(m), int(n), int(k)


# -- what goes to the runtime and comes back ---------------------------------------------------------------------------


def _registers(i: Instruction, operand: Operand) -> tuple[Operand, ...]:
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if not elements or len(elements) > 16:
        raise refuse(i, "a matrix has no such number of registers")
    return elements


def _type_of(i: Instruction, element: Operand) -> Type:
    if not isinstance(element, Register) or element.type.bits not in (32, 64):
        raise refuse(i, "an element of a matrix is no register")
    return bits_type(element.type.bits)


def _put(e: Emitter, i: Instruction, area: str, at: int, elements: tuple[Operand, ...], bits: int) -> int:
    """Write registers into the thread's frame, from a place on; return the place after them."""
    for element in elements:
        if isinstance(element, Register) and element.type.bits != bits:
            raise refuse(i, f"an element of a matrix has {element.type.bits} bits, not {bits}")
        type_ = bits_type(bits) if not isinstance(element, Register) else _type_of(i, element)
        e.store(f"i{bits}", e.read(element, type_), e.byte_offset(area, at), "align 4")
        at += bits // 8
    return at


def _take(e: Emitter, i: Instruction, area: str, elements: tuple[Operand, ...], bits: int) -> None:
    for number, element in enumerate(elements):
        if _type_of(i, element).bits != bits:
            raise refuse(i, f"an element of a matrix has not {bits} bits")
        place = e.byte_offset(area, number * bits // 8)
        e.write(element, e.load(f"i{bits}", place, "align 4"), bits_type(bits))


def _wait(e: Emitter, operation: int, area: str, second: int, third: int, results: tuple[Operand, ...]) -> None:
    assert e.suspension is not None
    value = e.define(f"ptrtoint ptr {area} to i64")
    e.suspension.wait(e, operation, WarpOperands(value=value, second=str(second), third=str(third)), results)


def _area(e: Emitter) -> str:
    if e.suspension is None:
        raise e.refuse("threads wait for each other in a function that is not part of its caller")
    return e.byte_offset("%thread", e.suspension.area(_AREA_BYTES))


# -- rows out of shared memory -----------------------------------------------------------------------------------------

_COUNTS: Final = {"x1": 1, "x2": 2, "x4": 4}


@MATRICES.translates("ldmatrix", "stmatrix")
def load_or_store(e: Emitter, i: Instruction) -> None:
    """Translate ``ldmatrix`` and ``stmatrix``: each thread names a row of 16 bytes."""
    require(i, ("sync", "aligned", "m8n8", *_COUNTS, "trans", "shared", "shared::cta"), operands=2)
    if "m8n8" not in i.modifiers or i.types != (TYPES["b16"],):
        raise not_executed(i)
    count = _COUNTS[choose(i, _COUNTS)]
    loads = i.opcode == "ldmatrix"
    matrix, address = i.operands if loads else i.operands[::-1]
    elements = _registers(i, matrix)
    if not isinstance(address, Address) or len(elements) != count:
        raise not_executed(i)
    area = _area(e)
    pointer = _row(e, i, address, count, "load" if loads else "store")
    e.store("i64", e.define(f"ptrtoint ptr {pointer} to i64"), area, "align 8")
    if not loads:
        _put(e, i, area, 16, elements, 32)
    _wait(e, LOAD if loads else STORE, area, count, int("trans" in i.modifiers), elements if loads else ())
    if loads:
        _take(e, i, e.byte_offset(_area(e), 16), elements, 32)


def _row(e: Emitter, i: Instruction, address: Address, count: int, kind: Literal["load", "store"]) -> str:
    """Return where the row of a thread is; of fewer than four matrices only some threads name one."""
    space = space_of(i)
    if count == _COUNTS["x4"] or not e.program.variant.checks:
        return access(e, i, address, space, 16, kind)
    before, named, done = e.new_label(), e.new_label(), e.new_label()
    any_ = place_of(e, i, address, space)
    lane = e.define(f"and i32 {e.shape.linear(e)}, 31")
    names = e.define(f"icmp ult i32 {lane}, {8 * count}")
    e.emit(f"br label %{before}")
    e.place(before)
    e.emit(f"br i1 {names}, label %{named}, label %{done}")
    e.place(named)
    own = access(e, i, address, space, 16, kind)
    last = e.new_label()
    e.emit(f"br label %{last}")
    e.place(last)
    e.emit(f"br label %{done}")
    e.place(done)
    return e.define(f"phi ptr [{any_}, %{before}], [{own}, %{last}]")


# -- products ----------------------------------------------------------------------------------------------------------


@MATRICES.translates("mma")
def multiply(e: Emitter, i: Instruction) -> None:
    """Translate ``mma``."""
    known = ("sync", "aligned", "row", "col", "satfinite", "tf32", "e4m3", "e5m2")
    for word in i.modifiers:
        if word not in known and not _SHAPE.match(word):
            raise not_executed(i)
    words = _words(i)
    types = tuple(word for word in words if word in _NUMBERS)
    if (
        len(types) != 4
        or "aligned" not in words
        or [word for word in words if word in ("row", "col")] != ["row", "col"]
    ):
        raise not_executed(i)
    product = _Product(*_shape(i), (types[0], types[1], types[2], types[3]))
    if (product.m, product.n, product.k) not in _SHAPES.get(product.types[1], ()):
        raise not_executed(i)
    _multiply(e, i, product, is_open=False)


def _counts(product: _Product, is_open: bool) -> tuple[int, int, int, int]:
    """Return how many registers each thread has of the result, the factors and the addend."""
    m, n, k = product.m, product.n, product.k
    found = []
    for elements, type_ in zip((m * n, m * k, k * n, m * n), product.types, strict=True):
        registers = elements * _bits(type_) // 32 // max(32, _bits(type_))
        found.append(max(1, registers))
    if is_open and product.types[1] == "f16":
        found[1] = found[2] = 8
    return found[0], found[1], found[2], found[3]


def _multiply(e: Emitter, i: Instruction, product: _Product, is_open: bool) -> None:
    result, first, second, addend = product.types
    bytes_ = {"s8", "u8"}
    same = first == second or {first, second} <= bytes_ or {first, second} <= set(_BITS_OF_BYTES)
    if not same or result not in _SUMS.get(first, ()) or addend not in _SUMS[first]:
        raise not_executed(i)
    if len(i.operands) != 4 or ("satfinite" in i.modifiers and first not in bytes_):
        raise not_executed(i)
    groups = [_registers(i, operand) for operand in i.operands]
    if tuple(map(len, groups)) != _counts(product, is_open):
        raise refuse(i, f"'{i.opcode}' has matrices of other numbers of registers")
    area = _area(e)
    at = 0
    for type_, elements in zip(product.types[1:], groups[1:], strict=True):
        at = _put(e, i, area, at, elements, max(32, _bits(type_)))
    size = product.m | product.n << 6 | product.k << 12 | int("satfinite" in i.modifiers) << 20 | int(is_open) << 21
    numbers = sum(_NUMBERS[type_] << 4 * place for place, type_ in enumerate(product.types))
    _wait(e, MULTIPLY, area, size, numbers, groups[0])
    _take(e, i, _area(e), groups[0], max(32, _bits(result)))


# -- fragments of wmma -------------------------------------------------------------------------------------------------


@MATRICES.translates("wmma")
def wmma(e: Emitter, i: Instruction) -> None:
    """Translate ``wmma``."""
    if "mma" in i.modifiers:
        _wmma_multiply(e, i)
    elif "load" in i.modifiers or "store" in i.modifiers:
        _wmma_move(e, i)
    else:
        raise not_executed(i)


_WMMA_WORDS: Final = ("sync", "aligned", "row", "col", "tf32")


def _wmma_multiply(e: Emitter, i: Instruction) -> None:
    for word in i.modifiers:
        if word not in (*_WMMA_WORDS, "mma", "satfinite", "rn") and not _SHAPE.match(word):
            raise not_executed(i)
    types = [word for word in _words(i) if word in _NUMBERS]
    if len(types) == 2:  # of the result and the addend: the factors are halves
        types = [types[0], "f16", "f16", types[1]]
    if len(types) != 4:
        raise not_executed(i)
    product = _Product(*_shape(i), (types[0], types[1], types[2], types[3]))
    if (product.m, product.n, product.k) not in _WMMA_SHAPES.get(types[1], ()):
        raise not_executed(i)
    _multiply(e, i, product, is_open=True)


def _wmma_move(e: Emitter, i: Instruction) -> None:
    """Translate ``wmma.load`` and ``wmma.store``: each thread moves its own elements."""
    loads = "load" in i.modifiers
    known = (*_WMMA_WORDS, "load", "store", "a", "b", "c", "d", "global", "shared", "shared::cta")
    for word in i.modifiers:
        if word not in known and not _SHAPE.match(word):
            raise not_executed(i)
    which = choose(i, ("a", "b", "c", "d"))
    types = [word for word in _words(i) if word in _NUMBERS]
    if len(types) != 1 or (which == "d") == loads or len(i.operands) not in (2, 3):
        raise not_executed(i)
    fragment, address, *stride = i.operands if loads else (i.operands[1], i.operands[0], *i.operands[2:])
    m, n, k = _shape(i)
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[which]
    if not isinstance(address, Address):
        raise refuse(i, "there is no address")
    along = columns if choose(i, ("row", "col")) == "row" else rows
    by = e.cast(e.read(stride[0], TYPES["u32"]), 32, 64) if stride else str(along)
    pointer = place_of(e, i, address, space_of(i))
    elements = _registers(i, fragment)
    _move_elements(e, i, elements, types[0], (rows, columns, by, pointer), loads)


def _move_elements(
    e: Emitter,
    i: Instruction,
    elements: tuple[Operand, ...],
    type_: str,
    matrix: tuple[int, int, str, str],
    loads: bool,
) -> None:
    rows, columns, by, pointer = matrix
    bits = _bits(type_)
    register_bits = max(32, bits)
    in_register = register_bits // bits
    if len(elements) * in_register * 32 < rows * columns:
        raise refuse(i, "a matrix has too few registers")
    lane = e.cast(e.define(f"and i32 {e.shape.linear(e)}, 31"), 32, 64)
    first = e.define(f"mul i64 {lane}, {len(elements) * in_register}")
    for number, element in enumerate(elements):
        whole = "0" if loads else e.read(element, bits_type(register_bits))
        for part in range(in_register):
            place = e.define(f"add i64 {first}, {number * in_register + part}")
            place = e.define(f"and i64 {place}, {rows * columns - 1}")  # sizes are powers of two
            row = e.define(f"lshr i64 {place}, {columns.bit_length() - 1}")
            column = e.define(f"and i64 {place}, {columns - 1}")
            major, minor = (row, column) if "row" in i.modifiers else (column, row)
            index = e.define(f"add i64 {e.define(f'mul i64 {major}, {by}')}, {minor}")
            at = e.byte_offset(pointer, e.define(f"mul i64 {index}, {bits // 8}"))
            at = element_access(e, i, at, space_of(i), bits // 8, "load" if loads else "store")
            if loads:
                value = e.cast(e.load(f"i{bits}", at, f"align {min(bits // 8, 4)}"), bits, register_bits)
                moved = e.define(f"shl i{register_bits} {value}, {bits * part}") if part else value
                whole = e.define(f"or i{register_bits} {whole}, {moved}") if part else moved
            else:
                moved = e.define(f"lshr i{register_bits} {whole}, {bits * part}") if part else whole
                e.store(f"i{bits}", e.cast(moved, register_bits, bits), at, f"align {min(bits // 8, 4)}")
        if loads:
            if _type_of(i, element).bits != register_bits:
                raise refuse(i, f"an element of a matrix has not {register_bits} bits")
            e.write(element, whole, bits_type(register_bits))
