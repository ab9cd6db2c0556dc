"""cuSPARSE: products of sparse matrices, whose results are sparse.

A product takes several calls, which leave what they found in buffers of the client's: the next one reads it there
(cuSPARSE, "cusparseSpGEMM()" and "cusparseSpGEMMreuse()"). Elements of results are in the order of their rows and
columns; one that comes out as zero is an element, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.sparse

from quiesce.simulator.libraries.blas import POINTER_MODE, scalar
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.sparse_conversions import offsets_of
from quiesce.simulator.libraries.sparse_operands import COUNT_AT, CSR, Entries, SparseMatrix, element_of, require
from quiesce.simulator.libraries.sparse_products import buffer_bytes, tell_buffer
from quiesce.simulator.libraries.sparse_steps import Steps
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

NUMBER: Final = np.dtype(np.int64)
"""Of what buffers hold."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The matrices of a product."""

    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix

    @classmethod
    def of(cls, call: Call[Any]) -> Operands:
        """Read their descriptors."""
        of = call.arguments
        a, b, c = (SparseMatrix.read(call, each, getattr(of, each)) for each in ("matA", "matB", "matC"))
        if of.opA or of.opB or {each.of.format for each in (a, b, c)} != {CSR}:
            raise NotDescribed("products of transposed matrices or in other formats than rows are not described")
        require(a.shape[1] == b.shape[0], c.shape == (a.shape[0], b.shape[1]))
        return cls(a, b, c)

    @property
    def rows(self) -> int:
        """Return the rows of the result."""
        return self.c.shape[0]

    def _follow(self, call: Call[Any], columns: Array) -> None:
        """Read where the row of B begins that an element of A names, wherever it lies."""
        strange = columns[(columns < 0) | (columns >= self.b.shape[0])]
        if len(strange):
            of = self.b.rows
            call.gather(of.operand, of.address, of.stored, strange[:1])

    def pattern(self, call: Call[Any]) -> tuple[Array, Array, Array]:
        """Return rows and columns of the result, and of how many products each element is the sum."""
        rows, columns, _ = self.a.pattern(call)
        self._follow(call, columns)
        others = self.b.pattern(call)[:2]
        counted = _multiplied(
            Entries(rows, columns, np.ones(len(rows), NUMBER), self.a.shape),
            Entries(*others, np.ones(len(others[0]), NUMBER), self.b.shape),
        )
        return counted.row, counted.col, counted.data

    def values(self, call: Call[Any], rows: Array, columns: Array, computed: np.dtype[Any]) -> Array:
        """Return the product at these places, which are in order."""
        a = self.a.entries(call, computed)
        self._follow(call, a.columns)
        found = _multiplied(a, self.b.entries(call, computed))
        width = self.c.shape[1]
        places, its_places = rows * width + columns, found.row.astype(NUMBER) * width + found.col
        made: Array = np.zeros(len(places), computed)
        at = np.minimum(np.searchsorted(places, its_places), max(0, len(places) - 1))
        known = places[at] == its_places if len(places) else np.zeros(len(its_places), bool)
        made[at[known]] = found.data[known]
        return made


def _inside(entries: Entries) -> Any:
    """Return a matrix without the elements that lie outside of it."""
    inside = entries.is_inside
    return scipy.sparse.csr_array(
        (entries.values[inside], (entries.rows[inside], entries.columns[inside])), entries.shape
    )


def _multiplied(a: Entries, b: Entries) -> Any:
    """Return the product of two matrices, in order."""
    made = (_inside(a) @ _inside(b)).tocsr()
    made.sort_indices()
    return made.tocoo()


def _require_no_old_values(call: Call[Any], address: int) -> None:
    kind = element_of(call.arguments.computeType)
    if call.settings[POINTER_MODE] == 0 and kind.decode(call.host("beta", address, kind.stored))[0] != 0:
        raise NotDescribed("products that are added to a matrix are not described")


def _read_numbers(call: Call[Any], operand: str, address: int, count: int) -> Array:
    """Return what an earlier step left in a buffer; zeros where it can't be read, which is told."""
    made: Array = call.read(operand, address, NUMBER, count)[0]
    return np.zeros_like(made) if count and call.was_wrong else made


# -- in three steps ----------------------------------------------------------------------------------------------------

_GEMM: Final = "p:handle e:opA e:opB p:alpha p:matA p:matB p:beta p:matC e:computeType e:alg p:spgemmDescr"
_A_AND_B: Final = "w:rows_of_matA w:columns_of_matA w:rows_of_matB w:columns_of_matB"


def _estimate(call: Call[Any], operands: Operands, steps: Steps) -> Work:
    """Count products, and leave those of each row in the first buffer."""
    of = call.arguments
    size_bytes = buffer_bytes(operands.rows)
    if not of.externalBuffer1:
        tell_buffer(call, "bufferSize1", of.bufferSize1, size_bytes)
        return None
    steps.tell(call, 1, buffer_1=of.externalBuffer1)
    call.waits = True

    def run() -> None:
        call.use("externalBuffer1", of.externalBuffer1, size_bytes)
        rows, _, counts = operands.pattern(call)
        call.write("externalBuffer1", of.externalBuffer1, np.bincount(rows, minlength=operands.rows).astype(NUMBER))
        steps.give_counts(call, int(counts.sum()), len(rows))

    return run


@computes({"cusparseSpGEMM_workEstimation": None}, f"{_GEMM} p:bufferSize1 p:externalBuffer1 {_A_AND_B}")
def work_estimation(call: Call[None]) -> Work:
    """Count the products that the result takes."""
    operands = Operands.of(call)
    return _estimate(call, operands, Steps.of(call, "spgemmDescr", call.arguments.spgemmDescr))


def _values_at(operands: Operands, steps: Steps) -> int:
    """Return where the second buffer has values, after offsets and columns."""
    return buffer_bytes(operands.rows + 1, steps.count)


def _result_bytes(operands: Operands, steps: Steps) -> int:
    return _values_at(operands, steps) + steps.count * operands.c.element.size_bytes


@computes(
    {"cusparseSpGEMM_estimateMemory": None},
    f"{_GEMM} f:chunk_fraction p:bufferSize3 p:externalBuffer3 p:bufferSize2",
)
def estimate_memory(call: Call[None]) -> Work:
    """Say how much memory a product takes that is computed in parts."""
    of = call.arguments
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", of.spgemmDescr, done=1)
    size_bytes = buffer_bytes(operands.rows)
    if not of.externalBuffer3:
        tell_buffer(call, "bufferSize3", of.bufferSize3, size_bytes)
        return None
    tell_buffer(call, "bufferSize2", of.bufferSize2, _result_bytes(operands, steps))
    return lambda: call.use("externalBuffer3", of.externalBuffer3, size_bytes)


@computes({"cusparseSpGEMM_compute": None}, f"{_GEMM} p:bufferSize2 p:externalBuffer2 {_A_AND_B} w:externalBuffer1")
def compute(call: Call[None]) -> Work:
    """Compute the product, and leave it in the second buffer."""
    of = call.arguments
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", of.spgemmDescr, done=1)
    if not of.externalBuffer2:
        tell_buffer(call, "bufferSize2", of.bufferSize2, _result_bytes(operands, steps))
        return None
    kind, element = element_of(of.computeType), operands.c.element
    _require_no_old_values(call, of.beta)
    alpha = scalar(call, "alpha", of.alpha, kind)
    steps.tell(call, 2, buffer_2=of.externalBuffer2)
    call.waits = True

    def run() -> None:
        _read_numbers(call, "externalBuffer1", steps.buffers[0], operands.rows)
        rows, columns, _ = operands.pattern(call)
        values = alpha() * operands.values(call, rows, columns, kind.computed)
        call.use("externalBuffer2", of.externalBuffer2, _result_bytes(operands, steps))
        numbers = np.concatenate((offsets_of(rows, operands.rows), columns)).astype(NUMBER)
        call.write("externalBuffer2", of.externalBuffer2, numbers)
        call.write("externalBuffer2", of.externalBuffer2 + _values_at(operands, steps), element.encode(values))
        call.give_to_host("matC", of.matC + COUNT_AT, np.array([len(rows)], np.int64))

    return run


@computes({"cusparseSpGEMM_copy": None}, f"{_GEMM} w:rows_of_matC w:columns_of_matC w:externalBuffer2")
def copy(call: Call[None]) -> Work:
    """Copy the product to its matrix."""
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", call.arguments.spgemmDescr, done=2)
    buffer, stored = steps.buffers[1], operands.c.element.stored

    def run() -> None:
        numbers = _read_numbers(call, "externalBuffer2", buffer, operands.rows + 1 + steps.count)
        values = call.read("externalBuffer2", buffer + _values_at(operands, steps), stored, steps.count)[0]
        operands.c.rows.write(call, numbers[: operands.rows + 1])
        operands.c.columns.write(call, numbers[operands.rows + 1 :])
        call.write("matC", operands.c.address, values)

    return run


# -- with a pattern that is used again ---------------------------------------------------------------------------------

_REUSE: Final = "p:handle e:opA e:opB p:matA p:matB p:matC e:alg p:spgemmDescr"


@computes({"cusparseSpGEMMreuse_workEstimation": None}, f"{_REUSE} p:bufferSize1 p:externalBuffer1 {_A_AND_B}")
def reuse_work_estimation(call: Call[None]) -> Work:
    """Count the products that the result takes."""
    operands = Operands.of(call)
    return _estimate(call, operands, Steps.of(call, "spgemmDescr", call.arguments.spgemmDescr))


@computes(
    {"cusparseSpGEMMreuse_nnz": None},
    f"{_REUSE} p:bufferSize2 p:externalBuffer2 p:bufferSize3 p:externalBuffer3 p:bufferSize4 p:externalBuffer4 "
    f"{_A_AND_B} w:externalBuffer1",
)
def reuse_nnz(call: Call[None]) -> Work:
    """Find where the result has elements, and leave it in the third buffer."""
    of = call.arguments
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", of.spgemmDescr, done=1)
    rows, count = operands.rows, steps.count
    sizes = {2: buffer_bytes(rows), 3: buffer_bytes(rows + 1, count), 4: buffer_bytes(count)}
    if not (of.externalBuffer2 and of.externalBuffer3 and of.externalBuffer4):
        for number, size_bytes in sizes.items():
            tell_buffer(call, f"bufferSize{number}", getattr(of, f"bufferSize{number}"), size_bytes)
        return None
    steps.tell(call, 2, buffer_3=of.externalBuffer3, buffer_4=of.externalBuffer4)
    call.waits = True

    def run() -> None:
        _read_numbers(call, "externalBuffer1", steps.buffers[0], operands.rows)
        rows, columns, _ = operands.pattern(call)
        for number, size_bytes in sizes.items():
            call.use(f"externalBuffer{number}", getattr(of, f"externalBuffer{number}"), size_bytes)
        numbers = np.concatenate((offsets_of(rows, operands.rows), columns)).astype(NUMBER)
        call.write("externalBuffer3", of.externalBuffer3, numbers)
        call.give_to_host("matC", of.matC + COUNT_AT, np.array([len(rows)], np.int64))

    return run


@computes(
    {"cusparseSpGEMMreuse_copy": None},
    f"{_REUSE} p:bufferSize5 p:externalBuffer5 w:rows_of_matC w:columns_of_matC w:externalBuffer3",
)
def reuse_copy(call: Call[None]) -> Work:
    """Copy to the result's matrix where it has elements."""
    of = call.arguments
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", of.spgemmDescr, done=2)
    size_bytes = buffer_bytes(steps.count)
    if not of.externalBuffer5:
        tell_buffer(call, "bufferSize5", of.bufferSize5, size_bytes)
        return None
    steps.tell(call, 3, buffer_5=of.externalBuffer5)

    def run() -> None:
        call.use("externalBuffer5", of.externalBuffer5, size_bytes)
        numbers = _read_numbers(call, "externalBuffer3", steps.buffers[2], operands.rows + 1 + steps.count)
        operands.c.rows.write(call, numbers[: operands.rows + 1])
        operands.c.columns.write(call, numbers[operands.rows + 1 :])

    return run


@computes(
    {"cusparseSpGEMMreuse_compute": None},
    f"{_GEMM} {_A_AND_B} w:rows_of_matC w:columns_of_matC w:externalBuffer4 w:externalBuffer5",
)
def reuse_compute(call: Call[None]) -> Work:
    """Compute C = alpha A B + beta C, whose elements lie where they are known to."""
    of = call.arguments
    operands, steps = Operands.of(call), Steps.of(call, "spgemmDescr", of.spgemmDescr, done=3)
    kind = element_of(of.computeType)
    alpha, beta = scalar(call, "alpha", of.alpha, kind), scalar(call, "beta", of.beta, kind)

    def run() -> None:
        for number in (4, 5):
            _read_numbers(call, f"externalBuffer{number}", steps.buffers[number - 1], 1 + steps.count)
        times, times_old = alpha(), beta()
        rows, columns, first = operands.c.pattern(call)
        made = times * operands.values(call, rows, columns, kind.computed)
        if times_old != 0:
            made = made + times_old * operands.c.values(call, len(rows), first).astype(kind.computed)
        operands.c.write_values(call, made, first)

    return run
