"""Operands of cuSPARSE: vectors and matrices, as descriptors have them (``native/libraries/sparse_descriptors.c``).

Descriptors are read when a function is called, what they describe when the stream comes to the call. A matrix is read
as far as its offsets say, wherever its indices point (cuSPARSE, "Storage Formats").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy.sparse

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_NUMBER, Element, Matrix
from quiesce.simulator.libraries.table import Call, NotDescribed, Refused

INVALID_VALUE: Final = 3
SPARSE_VECTOR, DENSE_VECTOR, SPARSE_MATRIX, DENSE_MATRIX = range(0x51, 0x55)
CSR, CSC, COO, BSR = 1, 2, 3, 6  # cusparseFormat_t
ROWS: Final = 2  # cusparseOrder_t
TRANSPOSED, CONJUGATED = 1, 2  # cusparseOperation_t
_DESCRIPTOR: Final = struct.Struct("<8i3q3Q3q2i2q")
_DESCRIPTION: Final = struct.Struct("<4i")
INDICES: Final[dict[int, np.dtype[Any]]] = {2: np.dtype(np.int32), 3: np.dtype(np.int64)}
"""``cusparseIndexType_t``."""
COUNT_AT: Final = 8 * 4 + 2 * 8
"""Where a descriptor has the number of its stored elements."""
_ENTRIES_MAX: Final = 1 << 28
"""Offsets that name more elements are wrong."""
_SPREAD, _SPREAD_LEAST = 16, 1 << 16
"""Numbers that are farther apart, by how many there are, are sorted."""


def require(*conditions: bool) -> None:
    """Refuse a call of which some argument is wrong."""
    if not all(conditions):
        raise Refused(INVALID_VALUE)


def element_of(number: int) -> Element:
    """Return the type of elements that a ``cudaDataType`` names."""
    element = BY_NUMBER.get(number)
    if element is None:
        raise NotDescribed(f"elements of the type {number} are not described")
    return element


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a descriptor holds."""

    kind: int
    format: int
    row_type: int
    column_type: int
    base: int
    type: int
    order: int
    batch: int
    rows: int
    columns: int
    count: int
    row_places: int
    column_places: int
    values: int
    row_stride: int
    column_stride: int
    value_stride: int
    fill_mode: int
    diagonal: int
    block_rows: int
    block_columns: int

    @classmethod
    def of(cls, call: Call[Any], operand: str, address: int, kind: int) -> Descriptor:
        """Read one in the host's memory."""
        require(address != 0)
        made = cls(*_DESCRIPTOR.unpack(call.host(operand, address, np.uint8, _DESCRIPTOR.size).tobytes()))
        require(made.kind == kind)
        return made

    @property
    def element(self) -> Element:
        """Return the type of its elements."""
        return element_of(self.type)


@dataclass(frozen=True, slots=True)
class Description:
    """What the older functions are told of a matrix (``cusparseMatDescr_t``)."""

    type: int
    fill_mode: int
    diagonal: int
    base: int

    @classmethod
    def of(cls, call: Call[Any], operand: str, address: int) -> Description:
        """Read one in the host's memory."""
        require(address != 0)
        return cls(*_DESCRIPTION.unpack(call.host(operand, address, np.uint8, _DESCRIPTION.size).tobytes()))


@dataclass(frozen=True, slots=True)
class Numbers:
    """Indices or offsets in a device's memory. An operand has its own name for them."""

    operand: str
    address: int
    stored: np.dtype[Any]
    base: int = 0

    def read(self, call: Call[Any], count: int, first: int = 0) -> Array:
        """Return some of them, counted from zero. They are zeros where some of them can't be read, which is told."""
        read = call.read(self.operand, self.address + first * self.stored.itemsize, self.stored, count)[0]
        made: Array = read.astype(np.int64) - self.base
        return np.zeros_like(made) if count and call.was_wrong else made

    def write(self, call: Call[Any], numbers: Array) -> None:
        """Write some, which count from zero."""
        call.write(self.operand, self.address, (numbers + self.base).astype(self.stored))

    def moved(self, elements: int) -> Numbers:
        """Return those that lie so many after them."""
        return replace(self, address=self.address + elements * self.stored.itemsize)


def expanded(call: Call[Any], numbers: Numbers, offsets: Array) -> tuple[Array, int, int]:
    """Return for each stored element its row, from a row's first element to the next row's, and the first and last.

    Offsets that decrease, or name more than can be, are followed to the farthest element that they name, and to no
    other one: then there are no elements.
    """
    counts = np.diff(offsets)
    first, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    if (counts < 0).any() or end - first > _ENTRIES_MAX:
        strange = int(offsets[np.argmax(np.abs(offsets - first))])
        call.gather(numbers.operand, numbers.address, numbers.stored, np.array([strange]))
        return np.zeros(0, np.int64), 0, 0
    return np.repeat(np.arange(len(counts)), counts), first, end


def used(places: Array) -> tuple[Array, Array]:
    """Return what numbers there are, in order, and of each which of them it is: as ``numpy.unique``, but faster."""
    most = int(places.max()) if len(places) else -1
    if most > _SPREAD * len(places) + _SPREAD_LEAST or (len(places) and int(places.min()) < 0):
        return np.unique(places, return_inverse=True)
    is_there = np.zeros(most + 1, bool)
    is_there[places] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[places]


@dataclass(frozen=True)
class Entries:
    """The stored elements of a matrix by rows and columns, which may lie outside of it."""

    rows: Array
    columns: Array
    values: Array
    shape: tuple[int, int]

    def operated(self, operation: int) -> Entries:
        """Return those of op(A)."""
        if operation == 0:
            return self
        values = self.values.conj() if operation == CONJUGATED else self.values
        return Entries(self.columns, self.rows, values, self.shape[::-1])

    @cached_property
    def used_rows(self) -> tuple[Array, Array]:
        """Return the rows that have elements, and for each element which of them is its own."""
        return used(self.rows)

    @cached_property
    def used_columns(self) -> tuple[Array, Array]:
        """Return the columns that have elements, and for each element which of them is its own."""
        return used(self.columns)

    def times(self, others: Array) -> Array:
        """Return its used rows times a dense matrix, of which the rows are those of the used columns."""
        (rows, of_rows), (columns, of_columns) = self.used_rows, self.used_columns
        shape, values = (len(rows), len(columns)), self.values
        if len(of_rows) and (np.diff(of_rows) < 0).any():
            order = np.argsort(of_rows, kind="stable")
            of_rows, of_columns, values = of_rows[order], of_columns[order], values[order]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(of_rows, minlength=len(rows)))))
        return np.asarray(scipy.sparse.csr_array((values, of_columns, offsets), shape) @ others)

    @property
    def is_inside(self) -> Array:
        """Say of each element whether it lies in the matrix."""
        rows, columns = self.shape
        return (self.rows >= 0) & (self.rows < rows) & (self.columns >= 0) & (self.columns < columns)


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A sparse matrix, or one of a batch. It is an operand by its name, its rows and its columns are others."""

    operand: str
    of: Descriptor
    rows: Numbers
    columns: Numbers
    address: int
    """Of its values."""

    @classmethod
    def read(cls, call: Call[Any], operand: str, descriptor: int) -> SparseMatrix:
        """Read its descriptor."""
        of = Descriptor.of(call, operand, descriptor, SPARSE_MATRIX)
        if of.format not in (CSR, CSC, COO, BSR):
            raise NotDescribed(f"matrices of the format {of.format} are not described")
        rows = Numbers(f"rows of {operand}", of.row_places, INDICES[of.row_type], of.base)
        columns = Numbers(f"columns of {operand}", of.column_places, INDICES[of.column_type], of.base)
        return cls(operand, of, rows, columns, of.values)

    @property
    def shape(self) -> tuple[int, int]:
        """Return its rows and columns."""
        return self.of.rows, self.of.columns

    @property
    def element(self) -> Element:
        """Return the type of its elements."""
        return self.of.element

    def member(self, number: int) -> SparseMatrix:
        """Return one of the batch."""
        of = self.of
        at = self.address + number * of.value_stride * self.element.size_bytes
        rows, columns = self.rows.moved(number * of.row_stride), self.columns.moved(number * of.column_stride)
        return replace(self, rows=rows, columns=columns, address=at)

    def pattern(self, call: Call[Any]) -> tuple[Array, Array, int]:
        """Return rows and columns of its stored elements, or of its blocks, and the place of the first one."""
        of = self.of
        if of.format == COO:
            return self.rows.read(call, of.count), self.columns.read(call, of.count), 0
        compressed, others, length = self.rows, self.columns, of.rows // max(1, of.block_rows)
        if of.format == CSC:
            compressed, others, length = self.columns, self.rows, of.columns
        offsets = compressed.read(call, length + 1)
        major, first, end = expanded(call, others, offsets)
        minor = others.read(call, end - first, first)
        return (minor, major, first) if of.format == CSC else (major, minor, first)

    def values(self, call: Call[Any], count: int, first: int = 0) -> Array:
        """Return stored elements."""
        at = self.address + first * self.element.size_bytes
        return self.element.decode(call.read(self.operand, at, self.element.stored, count)[0])

    def entries(self, call: Call[Any], computed: np.dtype[Any] | None = None) -> Entries:
        """Return its elements in the type that is computed with."""
        rows, columns, first = self.pattern(call)
        if self.of.format == BSR:
            rows, columns, values = self._of_blocks(call, rows, columns, first)
        else:
            values = self.values(call, len(rows), first)
        return Entries(rows, columns, values.astype(computed or self.element.computed, copy=False), self.shape)

    def _of_blocks(self, call: Call[Any], rows: Array, columns: Array, first: int) -> tuple[Array, Array, Array]:
        """Return the elements of blocks, each of which is dense."""
        height, width = self.of.block_rows, self.of.block_columns
        values = self.values(call, len(rows) * height * width, first * height * width)
        inner = np.indices((height, width)) if self.of.order == ROWS else np.indices((width, height))[::-1]
        down, across = (each.ravel() for each in inner)
        return (
            (rows[:, None] * height + down).ravel(),
            (columns[:, None] * width + across).ravel(),
            values,
        )

    def write_values(self, call: Call[Any], values: Array, first: int = 0) -> None:
        """Write stored elements."""
        at = self.address + first * self.element.size_bytes
        call.write(self.operand, at, self.element.encode(values))

    def write_pattern(self, call: Call[Any], rows: Array, columns: Array) -> None:
        """Write where its elements are, which are in the order of its format."""
        of = self.of
        if of.format == COO:
            self.rows.write(call, rows)
            self.columns.write(call, columns)
            return
        compressed, others, major, minor, length = self.rows, self.columns, rows, columns, of.rows
        if of.format == CSC:
            compressed, others, major, minor, length = self.columns, self.rows, columns, rows, of.columns
        compressed.write(call, np.searchsorted(major, np.arange(length + 1)))
        others.write(call, minor)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A sparse vector."""

    operand: str
    of: Descriptor
    indices: Numbers

    @classmethod
    def read(cls, call: Call[Any], operand: str, descriptor: int) -> SparseVector:
        """Read its descriptor."""
        of = Descriptor.of(call, operand, descriptor, SPARSE_VECTOR)
        return cls(operand, of, Numbers(f"indices of {operand}", of.row_places, INDICES[of.row_type], of.base))

    @property
    def element(self) -> Element:
        """Return the type of its elements."""
        return self.of.element

    def places(self, call: Call[Any]) -> Array:
        """Return where its elements are."""
        return self.indices.read(call, self.of.count)

    def values(self, call: Call[Any]) -> Array:
        """Return its elements."""
        return self.element.decode(call.read(self.operand, self.of.values, self.element.stored, self.of.count)[0])

    def write(self, call: Call[Any], values: Array) -> None:
        """Write its elements."""
        call.write(self.operand, self.of.values, self.element.encode(values))


@dataclass(frozen=True, slots=True)
class DenseMatrix:
    """A dense matrix, or one of a batch; a vector is one of one column."""

    operand: str
    of: Descriptor
    address: int
    is_rows: bool
    rows: int
    columns: int
    ld: int

    @classmethod
    def read(cls, call: Call[Any], operand: str, descriptor: int) -> DenseMatrix:
        """Read its descriptor."""
        of = Descriptor.of(call, operand, descriptor, DENSE_MATRIX)
        return cls(operand, of, of.values, of.order == ROWS, of.rows, of.columns, of.count)

    @classmethod
    def vector(cls, call: Call[Any], operand: str, descriptor: int) -> DenseMatrix:
        """Read the descriptor of a vector."""
        of = Descriptor.of(call, operand, descriptor, DENSE_VECTOR)
        return cls(operand, of, of.values, False, of.rows, 1, max(1, of.rows))

    @property
    def element(self) -> Element:
        """Return the type of its elements."""
        return self.of.element

    @property
    def shape(self) -> tuple[int, int]:
        """Return its rows and columns."""
        return self.rows, self.columns

    def member(self, number: int) -> DenseMatrix:
        """Return one of the batch."""
        return replace(self, address=self.address + number * self.of.value_stride * self.element.size_bytes)

    def transposed(self, operation: int) -> DenseMatrix:
        """Return op(B), but for the conjugates of its elements."""
        if operation == 0:
            return self
        return replace(self, is_rows=not self.is_rows, rows=self.columns, columns=self.rows)

    @property
    def matrix(self) -> Matrix:
        """Return it by columns, or its transpose."""
        shape = (self.columns, self.rows) if self.is_rows else (self.rows, self.columns)
        return Matrix(self.operand, self.address, *shape, self.ld, self.element)

    def values(self, call: Call[Any]) -> Array:
        """Return the matrix."""
        made = self.matrix.read(call)
        return made.T if self.is_rows else made

    def write(self, call: Call[Any], values: Array) -> None:
        """Write the matrix."""
        self.matrix.write(call, values.T if self.is_rows else values)

    def places(self, rows: Array, columns: Array) -> Array:
        """Return how many elements after the first these lie."""
        return rows * self.ld + columns if self.is_rows else columns * self.ld + rows

    def some_rows(self, call: Call[Any], rows: Array) -> Array:
        """Return rows of the matrix, in increasing order, wherever they may lie. No other one is read."""
        if len(rows) == self.rows and len(rows) and rows[0] == 0 and rows[-1] == self.rows - 1:
            return self.values(call)
        across = np.arange(self.columns)
        if self.is_rows:
            places = self.places(rows[:, None], across)
            return self.element.decode(self._gather(call, places))
        return self.element.decode(self._gather(call, self.places(rows, across[:, None]))).T

    def _gather(self, call: Call[Any], places: Array) -> Array:
        found = call.gather(self.operand, self.address, self.element.stored, places.ravel())
        return found.reshape(places.shape)

    def scatter(self, call: Call[Any], rows: Array, columns: Array, values: Array) -> None:
        """Write elements wherever they lie."""
        call.scatter(self.operand, self.address, self.element.encode(values), self.places(rows, columns))
