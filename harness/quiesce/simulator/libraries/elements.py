"""Types of elements by the numbers that CUDA gives them, and matrices of them in a device's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.table import Call, Result


@dataclass(frozen=True, slots=True)
class Element:
    """A type of elements: how it is stored, and what is computed with.

    bfloat16, which NumPy has not, is stored as the upper half of a float. Half precision is computed in single.
    """

    stored: np.dtype[Any]
    computed: np.dtype[Any]
    is_bfloat: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the size of one."""
        return self.stored.itemsize

    def decode(self, values: Array) -> Array:
        """Return what stored elements stand for."""
        if self.is_bfloat:
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values

    def encode(self, values: Array) -> Array:
        """Return elements as they are stored, each rounded once, to the nearest."""
        if self.is_bfloat:
            bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
            rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
        if self.stored.kind == "i" and values.dtype.kind == "f":
            limits = np.iinfo(self.stored)
            return np.clip(np.rint(values), limits.min, limits.max).astype(self.stored)
        return values.astype(self.stored, copy=False)


def _element(stored: type[np.generic], computed: type[np.generic] | None = None) -> Element:
    return Element(np.dtype(stored), np.dtype(computed or stored))


SINGLE: Final = _element(np.float32)
DOUBLE: Final = _element(np.float64)
COMPLEX: Final = _element(np.complex64)
DOUBLE_COMPLEX: Final = _element(np.complex128)
HALF: Final = _element(np.float16, np.float32)
BFLOAT: Final = Element(np.dtype(np.uint16), np.dtype(np.float32), is_bfloat=True)
INT8: Final = _element(np.int8, np.int32)
INT32: Final = _element(np.int32)

BY_LETTER: Final = {"S": SINGLE, "D": DOUBLE, "C": COMPLEX, "Z": DOUBLE_COMPLEX}
REAL_OF: Final = {"S": SINGLE, "D": DOUBLE, "C": SINGLE, "Z": DOUBLE}

BY_NUMBER: Final = {
    0: SINGLE, 1: DOUBLE, 2: HALF, 3: INT8, 4: COMPLEX, 5: DOUBLE_COMPLEX, 10: INT32, 14: BFLOAT,
}  # fmt: skip
"""``cudaDataType`` of library_types.h."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Columns of elements, ``ld`` elements apart, at an address."""

    operand: str
    address: int
    rows: int
    columns: int
    ld: int
    element: Element

    @property
    def pitch(self) -> int:
        """Return the bytes from one column to the next."""
        return self.ld * self.element.size_bytes

    @property
    def is_dense(self) -> bool:
        """Say whether no byte lies between two columns."""
        return self.rows == self.ld or self.columns == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of its columns."""
        return self.columns, self.rows

    def at(self, address: int) -> Matrix:
        """Return a matrix like it somewhere else."""
        return replace(self, address=address)

    def moved(self, elements: int) -> Matrix:
        """Return the matrix that lies so many elements after it."""
        return replace(self, address=self.address + elements * self.element.size_bytes)

    def read_columns(self, call: Call[Any]) -> Array:
        """Return its columns, each of them as a row."""
        stored, (rows, columns) = self.element.stored, (self.rows, self.columns)
        if self.is_dense:
            flat = call.read(self.operand, self.address, stored, rows * columns)
            return self.element.decode(flat.reshape(columns, rows))
        return self.element.decode(call.read(self.operand, self.address, stored, rows, columns, self.pitch))

    def read(self, call: Call[Any]) -> Array:
        """Return the matrix."""
        return self.read_columns(call).T

    def write_columns(self, call: Call[Any], columns: Array | Result) -> None:
        """Write its columns, which are the rows of an array."""
        room = _stored(call, self.element, columns)
        if self.is_dense:
            room = replace(room, values=room.values.reshape(1, -1))
        call.write(self.operand, self.address, room, self.pitch)

    def write(self, call: Call[Any], values: Array) -> None:
        """Write the whole matrix."""
        self.write_columns(call, values.T)

    def _triangle(self, upper: bool, unit: bool) -> list[tuple[int, int]]:
        """Return the first row and the one after the last, of each column of a triangle."""
        without = int(unit)
        if upper:
            return [(0, min(column + 1 - without, self.rows)) for column in range(self.columns)]
        return [(min(column + without, self.rows), self.rows) for column in range(self.columns)]

    def read_triangle(self, call: Call[Any], *, upper: bool, unit: bool = False) -> Array:
        """Return a triangle: the rest is zero, and not read. ``unit``: its diagonal is one, and not read either."""
        made = np.eye(self.rows, self.columns, dtype=self.element.stored)
        made *= int(unit)
        size_bytes = self.element.size_bytes
        for column, (first, end) in enumerate(self._triangle(upper, unit)):
            if first < end:
                at = self.address + column * self.pitch + first * size_bytes
                made[first:end, column] = call.read(self.operand, at, self.element.stored, end - first)[0]
        return made

    def write_triangle(self, call: Call[Any], values: Array, *, upper: bool, unit: bool = False) -> None:
        """Write a triangle, and nothing beside it. ``unit``: nor its diagonal."""
        stored = self.element.encode(values)
        for column, (first, end) in enumerate(self._triangle(upper, unit)):
            if first < end:
                at = self.address + column * self.pitch + first * self.element.size_bytes
                call.write(self.operand, at, np.ascontiguousarray(stored[first:end, column]))


def _stored(call: Call[Any], element: Element, values: Array | Result) -> Result:
    """Return values as they are stored, where they can be written from."""
    array = values.values if isinstance(values, Result) else values
    stored = element.encode(array)
    if stored is array and isinstance(values, Result):
        return values
    room = call.room(element.stored, *array.shape)
    room.values[...] = stored
    return room


@dataclass(frozen=True, slots=True)
class Stack:
    """Matrices without gaps, ``step`` elements apart; all are the same one where that is 0."""

    BYTES_MAX: ClassVar = 1 << 26
    """So much is read at once."""
    first: Matrix
    step: int
    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of its columns."""
        return self.count, *self.first.shape

    @property
    def is_simple(self) -> bool:
        """Say whether its matrices are dense, lie beside each other, and are not too large together."""
        matrix = self.first
        size = matrix.rows * matrix.columns
        fits = self.count * size * matrix.element.size_bytes <= self.BYTES_MAX
        return matrix.is_dense and fits and (not self.step or self.step >= size)

    @property
    def _pitch(self) -> int:
        return self.step * self.first.element.size_bytes

    def read_columns(self, call: Call[Any]) -> Array:
        """Return the columns of each matrix."""
        matrix = self.first
        count = self.count if self.step else 1
        size = matrix.rows * matrix.columns
        read = call.read(matrix.operand, matrix.address, matrix.element.stored, size, count, self._pitch)
        return matrix.element.decode(read.reshape(count, *matrix.shape))

    def write_columns(self, call: Call[Any], columns: Array | Result) -> None:
        """Write the columns of each matrix."""
        room = _stored(call, self.first.element, columns)
        room = replace(room, values=room.values.reshape(self.count, -1))
        call.write(self.first.operand, self.first.address, room, self._pitch)


@dataclass(frozen=True, slots=True)
class Vector:
    """Elements ``step`` apart; with a negative step the last one lies at the address (the reference BLAS)."""

    operand: str
    address: int
    count: int
    step: int
    element: Element

    def read(self, call: Call[Any]) -> Array:
        """Return the elements in their order."""
        stored, apart = self.element.stored, abs(self.step)
        if apart == 1:
            values = call.read(self.operand, self.address, stored, self.count)[0]
        else:
            pitch = apart * self.element.size_bytes
            values = call.read(self.operand, self.address, stored, 1, self.count, pitch)[:, 0]
        return self.element.decode(values if self.step > 0 else values[::-1])

    def write(self, call: Call[Any], values: Array) -> None:
        """Write the elements."""
        stored, apart = self.element.encode(values), abs(self.step)
        stored = stored if self.step > 0 else stored[::-1]
        if apart == 1:
            call.write(self.operand, self.address, stored)
        else:
            call.write(self.operand, self.address, stored[:, None], apart * self.element.size_bytes)
