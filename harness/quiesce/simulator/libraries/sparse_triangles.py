"""cuSPARSE: systems of equations with sparse triangular matrices (cuSPARSE, "cusparseSpSV()" and "cusparseSpSM()").

A triangle of the matrix counts, and elements of the other one do not; so does its diagonal where it isn't one. The
analysis keeps values in its buffer for the calls that change them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from quiesce.simulator.libraries.blas import scalar
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element
from quiesce.simulator.libraries.sparse_operands import (
    BSR,
    CONJUGATED,
    DenseMatrix,
    Entries,
    SparseMatrix,
    element_of,
    require,
)
from quiesce.simulator.libraries.sparse_products import OPERATIONS, buffer_bytes, tell_buffer
from quiesce.simulator.libraries.sparse_steps import Steps
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes, plain

UPPER: Final = 1  # cusparseFillMode_t
UNIT: Final = 1  # cusparseDiagType_t
DIAGONAL: Final = 1  # cusparseSpSVUpdate_t
_NUMBER: Final = np.dtype(np.int64)


def solve(entries: Entries, right: Array, *, upper: bool, unit: bool) -> Array:
    """Return X of A X = B, where A is a triangle. Row by row, so that a diagonal of zeros gives what it does."""
    rows, columns, values = entries.rows, entries.columns, entries.values
    beside = (columns > rows) if upper else (columns < rows)
    count = entries.shape[0]
    diagonal = np.ones(count, values.dtype)
    if not unit:
        diagonal[:] = 0
        on_it = rows == columns
        np.add.at(diagonal, rows[on_it], values[on_it])
    order = np.argsort(rows[beside], kind="stable")
    rows, columns, values = (each[beside][order] for each in (rows, columns, values))
    begins = np.searchsorted(rows, np.arange(count + 1))
    made = right.copy()
    for row in reversed(range(count)) if upper else range(count):
        part = slice(begins[row], begins[row + 1])
        if part.start < part.stop:
            made[row] -= values[part] @ made[columns[part]]
        made[row] /= diagonal[row]
    return made


@dataclass(frozen=True, slots=True)
class System:
    """A X = B, whose matrices are the call's operands."""

    a: SparseMatrix
    right: DenseMatrix
    result: DenseMatrix
    right_operation: int
    steps: Steps
    kind: Element

    @classmethod
    def of(cls, call: Call[bool], done: int = 0) -> System:
        """Read descriptors; ``about`` says whether the system has several right sides."""
        of = call.arguments
        a = SparseMatrix.read(call, "matA", of.matA)
        if a.of.format == BSR or a.of.batch > 1:
            raise NotDescribed("systems of matrices in blocks, and batches of them, are not described")
        operation = 0
        if call.about:
            operation = of.opB
            right = DenseMatrix.read(call, "matB", of.matB).transposed(operation)
            result = DenseMatrix.read(call, "matC", of.matC)
            steps = Steps.of(call, "spsmDescr", of.spsmDescr, done=done)
        else:
            right, result = DenseMatrix.vector(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)
            steps = Steps.of(call, "spsvDescr", of.spsvDescr, done=done)
        require(a.shape[0] == a.shape[1] == right.rows, right.shape == result.shape, 0 <= of.opA < OPERATIONS)
        return cls(a, right, result, operation, steps, element_of(of.computeType))

    @property
    def value_bytes(self) -> int:
        """Return the size of the values that the buffer keeps."""
        return self.a.of.count * self.a.element.size_bytes

    @property
    def buffer_bytes(self) -> int:
        """Return the size of the buffer: the places of the diagonal, and values."""
        return buffer_bytes(self.a.shape[0]) + self.value_bytes

    def keep(self, call: Call[bool], buffer: int) -> None:
        """Leave values in the buffer, and in front of them which of them are the diagonal."""
        call.use("externalBuffer", buffer, self.buffer_bytes)
        rows, columns, first = self.a.pattern(call)
        at = self.a.address + first * self.a.element.size_bytes
        values = call.read("matA", at, self.a.element.stored, len(rows))[0]
        places = np.full(self.a.shape[0], -1, _NUMBER)
        diagonal = np.flatnonzero(rows == columns)
        inside = diagonal[(rows[diagonal] >= 0) & (rows[diagonal] < len(places))]
        places[rows[inside]] = inside
        call.write("externalBuffer", buffer, places)
        call.write("externalBuffer", buffer + buffer_bytes(len(places)), values)

    def entries(self, call: Call[bool]) -> Entries:
        """Return the elements of the matrix, those of the buffer where they were given there."""
        entries = self.a.entries(call, self.kind.computed)
        stored, buffer = self.a.element.stored, self.steps.buffers[0] + buffer_bytes(self.a.shape[0])
        kept = call.read("externalBuffer", buffer, stored, len(entries.values))[0]
        if self.steps.is_updated:
            values = self.a.element.decode(kept).astype(self.kind.computed, copy=False)
            entries = Entries(entries.rows, entries.columns, values, entries.shape)
        inside = entries.is_inside
        return Entries(entries.rows[inside], entries.columns[inside], entries.values[inside], entries.shape)


_SPSV: Final = "p:handle e:opA p:alpha p:matA p:vecX p:vecY e:computeType e:alg p:spsvDescr"
_SPSM: Final = "p:handle e:opA e:opB p:alpha p:matA p:matB p:matC e:computeType e:alg p:spsmDescr"
_ARRAYS: Final = "w:rows_of_matA w:columns_of_matA"


@computes({"cusparseSpSV_bufferSize": False}, f"{_SPSV} p:bufferSize")
def spsv_buffer_size(call: Call[bool]) -> Work:
    """Say how much of a buffer the solution uses."""
    return _buffer_size(call)


@computes({"cusparseSpSM_bufferSize": True}, f"{_SPSM} p:bufferSize")
def spsm_buffer_size(call: Call[bool]) -> Work:
    """Say how much of a buffer the solution for several right sides uses."""
    return _buffer_size(call)


def _buffer_size(call: Call[bool]) -> Work:
    tell_buffer(call, "bufferSize", call.arguments.bufferSize, System.of(call).buffer_bytes)
    return None


@computes({"cusparseSpSV_analysis": False}, f"{_SPSV} p:externalBuffer {_ARRAYS}")
def spsv_analysis(call: Call[bool]) -> Work:
    """Look at the matrix."""
    return _analysis(call)


@computes({"cusparseSpSM_analysis": True}, f"{_SPSM} p:externalBuffer {_ARRAYS}")
def spsm_analysis(call: Call[bool]) -> Work:
    """Look at the matrix of several right sides."""
    return _analysis(call)


def _analysis(call: Call[bool]) -> Work:
    system, buffer = System.of(call), call.arguments.externalBuffer
    system.steps.tell(call, 1, buffer_1=buffer, buffer_2=system.a.of.count, buffer_3=system.a.shape[0],
                      buffer_4=system.a.of.type)  # fmt: skip
    return lambda: system.keep(call, buffer)


@computes({"cusparseSpSV_solve": False}, f"{_SPSV} w:externalBuffer {_ARRAYS}")
def spsv_solve(call: Call[bool]) -> Work:
    """Compute Y of op(A) Y = alpha X."""
    return _solve(call)


@computes({"cusparseSpSM_solve": True}, f"{_SPSM} w:externalBuffer {_ARRAYS}")
def spsm_solve(call: Call[bool]) -> Work:
    """Compute C of op(A) C = alpha op(B)."""
    return _solve(call)


def _solve(call: Call[bool]) -> Work:
    of = call.arguments
    system = System.of(call, done=1)
    alpha = scalar(call, "alpha", of.alpha, system.kind)
    upper, unit = system.a.of.fill_mode == UPPER, system.a.of.diagonal == UNIT

    def run() -> None:
        entries = system.entries(call).operated(of.opA)
        right = system.right.values(call).astype(system.kind.computed)
        right = alpha() * (right.conj() if system.right_operation == CONJUGATED else right)
        system.result.write(call, solve(entries, right, upper=upper != (of.opA != 0), unit=unit))

    return run if system.result.rows and system.result.columns else None


def _update(call: Call[None], operand: str, address: int) -> Work:
    """Give other values to a matrix that was looked at: all of them, or its diagonal."""
    of = call.arguments
    steps = Steps.of(call, operand, address, done=1)
    buffer, count, rows, kind, _ = steps.buffers
    stored = element_of(kind).stored
    steps.tell_update(call)

    def run() -> None:
        values = buffer + buffer_bytes(rows)
        if of.updatePart != DIAGONAL:
            call.write("externalBuffer", values, call.read("newValues", of.newValues, stored, count)[0])
            return
        places = call.read("externalBuffer", buffer, _NUMBER, rows)[0]
        known = places >= 0
        given = call.read("newValues", of.newValues, stored, rows)[0]
        call.scatter("externalBuffer", values, given[known], places[known])

    return run


@computes(plain(("cusparseSpSV_updateMatrix",)), "p:handle p:spsvDescr p:newValues e:updatePart w:externalBuffer")
def spsv_update(call: Call[None]) -> Work:
    """Give other values to a matrix."""
    return _update(call, "spsvDescr", call.arguments.spsvDescr)


@computes(plain(("cusparseSpSM_updateMatrix",)), "p:handle p:spsmDescr p:newValues e:updatePart w:externalBuffer")
def spsm_update(call: Call[None]) -> Work:
    """Give other values to a matrix of several right sides."""
    return _update(call, "spsmDescr", call.arguments.spsmDescr)
