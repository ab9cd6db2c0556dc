"""cuSPARSE: formats of sparse matrices become others, and are sorted (cuSPARSE, "Sparse Format Conversion").

What indices that lie outside of a matrix do to a conversion isn't documented: such elements are left out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import POINTER_MODE, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element, Matrix
from quiesce.simulator.libraries.sparse_operands import (
    BSR,
    COUNT_AT,
    CSC,
    INDICES,
    DenseMatrix,
    Description,
    Numbers,
    SparseMatrix,
    element_of,
    expanded,
    require,
)
from quiesce.simulator.libraries.sparse_products import buffer_bytes, tell_buffer
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

INT32: Final = INDICES[2]
NUMERIC: Final = 1  # cusparseAction_t
BY_COLUMNS: Final = 1  # cusparseDirection_t


def offsets_of(places: Array, count: int) -> Array:
    """Return where each of so many rows begins, of elements in the order of their rows."""
    return np.searchsorted(places, np.arange(count + 1))


def give_total(call: Call[Any], operand: str, address: int, total: int) -> None:
    """Write a number of elements to where the handle's pointer mode says. It may be left out."""
    value = np.array([total], np.int32)
    if not address:
        return
    if call.settings[POINTER_MODE] == 0:
        call.give_to_host(operand, address, value)
    else:
        call.write(operand, address, value)


# -- dense matrices ----------------------------------------------------------------------------------------------------

_TO_DENSE: Final = "p:handle p:matA p:matB e:alg"


@computes({"cusparseSparseToDense_bufferSize": None}, f"{_TO_DENSE} p:bufferSize")
def sparse_to_dense_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a conversion to a dense matrix uses."""
    tell_buffer(call, "bufferSize", call.arguments.bufferSize, buffer_bytes())
    return None


@computes({"cusparseSparseToDense": None}, f"{_TO_DENSE} p:externalBuffer w:rows_of_matA w:columns_of_matA")
def sparse_to_dense(call: Call[None]) -> Work:
    """Write all elements of a sparse matrix to a dense one, and zeros between them."""
    of = call.arguments
    a, b = SparseMatrix.read(call, "matA", of.matA), DenseMatrix.read(call, "matB", of.matB)
    require(a.shape == b.shape)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes())
        entries = a.entries(call)
        made = np.zeros(b.shape, entries.values.dtype)
        inside = entries.is_inside
        made[entries.rows[inside], entries.columns[inside]] = entries.values[inside]
        b.write(call, made)
        strange = ~inside
        b.scatter(call, entries.rows[strange], entries.columns[strange], entries.values[strange])

    return run if b.rows and b.columns else None


def _to_sparse_bytes(a: DenseMatrix) -> int:
    return buffer_bytes(max(a.shape))


def _elements(call: Call[None], a: DenseMatrix, by_columns: bool) -> tuple[Array, Array, Array]:
    """Return rows, columns and values of what isn't zero, in the order of rows or columns."""
    values = a.values(call)
    if by_columns:
        columns, rows = np.nonzero(values.T)
    else:
        rows, columns = np.nonzero(values)
    return rows, columns, values[rows, columns]


@computes({"cusparseDenseToSparse_bufferSize": None}, f"{_TO_DENSE} p:bufferSize")
def dense_to_sparse_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a conversion from a dense matrix uses."""
    of = call.arguments
    tell_buffer(call, "bufferSize", of.bufferSize, _to_sparse_bytes(DenseMatrix.read(call, "matA", of.matA)))
    return None


@computes({"cusparseDenseToSparse_analysis": None}, f"{_TO_DENSE} p:externalBuffer")
def dense_to_sparse_analysis(call: Call[None]) -> Work:
    """Tell the sparse matrix's descriptor how many elements it will have."""
    of = call.arguments
    a, b = DenseMatrix.read(call, "matA", of.matA), SparseMatrix.read(call, "matB", of.matB)
    require(a.shape == b.shape)
    if b.of.format == BSR:
        raise NotDescribed("matrices of blocks are not described")
    call.waits = True

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, _to_sparse_bytes(a))
        count = np.count_nonzero(a.values(call))
        call.give_to_host("matB", of.matB + COUNT_AT, np.array([count], np.int64))

    return run


@computes({"cusparseDenseToSparse_convert": None}, f"{_TO_DENSE} p:externalBuffer w:rows_of_matB w:columns_of_matB")
def dense_to_sparse_convert(call: Call[None]) -> Work:
    """Write the elements of a dense matrix that aren't zero."""
    of = call.arguments
    a, b = DenseMatrix.read(call, "matA", of.matA), SparseMatrix.read(call, "matB", of.matB)
    require(a.shape == b.shape)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, _to_sparse_bytes(a))
        rows, columns, values = _elements(call, a, b.of.format == CSC)
        b.write_pattern(call, rows, columns)
        b.write_values(call, values)

    return run


@computes(typed("cusparse{}nnz"), "p:handle e:dirA e:m e:n p:descrA p:A e:lda p:nnzPerRowCol p:nnzTotalDevHostPtr")
def nnz(call: Call[Element]) -> Work:
    """Count what isn't zero in each row or column of a dense matrix, and altogether."""
    of = call.arguments
    require(of.m >= 0, of.n >= 0, of.lda >= max(1, of.m))
    call.waits = call.settings[POINTER_MODE] == 0
    a = Matrix("A", of.A, of.m, of.n, of.lda, call.about)

    def run() -> None:
        counts = np.count_nonzero(a.read(call), axis=0 if of.dirA == BY_COLUMNS else 1)
        call.write("nnzPerRowCol", of.nnzPerRowCol, counts.astype(np.int32))
        give_total(call, "nnzTotalDevHostPtr", of.nnzTotalDevHostPtr, int(counts.sum()))

    return run


# -- elements that are small -------------------------------------------------------------------------------------------


def _tolerant(letter: str) -> str:
    """Return the signature's letter of a tolerance, which is passed by value; complex ones count by their real part."""
    return "f" if letter in "SC" else "d"


def _nnz_compress(call: Call[Element]) -> Work:
    of, element = call.arguments, call.about
    base = Description.of(call, "descr", of.descr).base
    require(of.m >= 0, of.tol >= 0)
    rows = Numbers("csrSortedRowPtrA", of.csrSortedRowPtrA, INT32, base)
    call.waits = call.settings[POINTER_MODE] == 0

    def run() -> None:
        offsets = rows.read(call, of.m + 1)
        of_rows, first, end = expanded(call, rows, offsets)
        at = of.csrSortedValA + first * element.size_bytes
        values = call.read("csrSortedValA", at, element.stored, end - first)[0]
        counts = np.bincount(of_rows[np.abs(values) > of.tol], minlength=of.m)
        call.write("nnzPerRow", of.nnzPerRow, counts.astype(np.int32))
        give_total(call, "nnzC", of.nnzC, int(counts.sum()))

    return run


def _csr2csr_compress(call: Call[Element]) -> Work:
    of, element = call.arguments, call.about
    base = Description.of(call, "descrA", of.descrA).base
    require(of.m >= 0, of.n >= 0, of.nnzA >= 0, of.tol >= 0)
    rows = Numbers("csrSortedRowPtrA", of.csrSortedRowPtrA, INT32, base)
    columns = Numbers("csrSortedColIndA", of.csrSortedColIndA, INT32, base)

    def run() -> None:
        _, first, end = expanded(call, columns, rows.read(call, of.m + 1))
        at = of.csrSortedValA + first * element.size_bytes
        values = call.read("csrSortedValA", at, element.stored, end - first)[0]
        its_columns = columns.read(call, end - first, first)
        counts = call.read("nnzPerRow", of.nnzPerRow, np.int32, of.m)[0]
        kept = np.abs(values) > of.tol
        offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        Numbers("csrSortedRowPtrC", of.csrSortedRowPtrC, INT32, base).write(call, offsets)
        Numbers("csrSortedColIndC", of.csrSortedColIndC, INT32, base).write(call, its_columns[kept])
        call.write("csrSortedValC", of.csrSortedValC, values[kept])

    return run


for _letters in ("SC", "DZ"):
    _tolerance = f"{_tolerant(_letters)}:tol"
    computes(
        typed("cusparse{}nnz_compress", _letters),
        f"p:handle e:m p:descr p:csrSortedValA p:csrSortedRowPtrA p:nnzPerRow p:nnzC {_tolerance}",
    )(_nnz_compress)
    computes(
        typed("cusparse{}csr2csr_compress", _letters),
        "p:handle e:m e:n p:descrA p:csrSortedValA p:csrSortedColIndA p:csrSortedRowPtrA e:nnzA p:nnzPerRow "
        f"p:csrSortedValC p:csrSortedColIndC p:csrSortedRowPtrC {_tolerance}",
    )(_csr2csr_compress)


# -- compressed rows and columns ---------------------------------------------------------------------------------------


@computes({"cusparseXcoo2csr": None}, "p:handle p:cooRowInd e:nnz e:m p:csrSortedRowPtr e:idxBase")
def coo2csr(call: Call[None]) -> Work:
    """Find where each row begins."""
    of = call.arguments
    require(of.nnz >= 0, of.m >= 0)

    def run() -> None:
        places = Numbers("cooRowInd", of.cooRowInd, INT32, of.idxBase).read(call, of.nnz)
        Numbers("csrSortedRowPtr", of.csrSortedRowPtr, INT32, of.idxBase).write(call, offsets_of(places, of.m))

    return run


@computes({"cusparseXcsr2coo": None}, "p:handle p:csrSortedRowPtr e:nnz e:m p:cooRowInd e:idxBase")
def csr2coo(call: Call[None]) -> Work:
    """Write the row of each element."""
    of = call.arguments
    require(of.nnz >= 0, of.m >= 0)
    rows = Numbers("cooRowInd", of.cooRowInd, INT32, of.idxBase)

    def run() -> None:
        offsets = Numbers("csrSortedRowPtr", of.csrSortedRowPtr, INT32, of.idxBase).read(call, of.m + 1)
        places, first, _ = expanded(call, rows, offsets)
        rows.moved(first).write(call, places)

    return run if of.nnz and of.m else None


_TRANSPOSE: Final = (
    "p:handle e:m e:n e:nnz p:csrVal p:csrRowPtr p:csrColInd p:cscVal p:cscColPtr p:cscRowInd e:valType e:copyValues "
    "e:idxBase e:alg"
)


@computes({"cusparseCsr2cscEx2_bufferSize": None}, f"{_TRANSPOSE} p:bufferSize")
def csr2csc_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a conversion to compressed columns uses."""
    of = call.arguments
    tell_buffer(call, "bufferSize", of.bufferSize, buffer_bytes(of.nnz))
    return None


@computes({"cusparseCsr2cscEx2": None}, f"{_TRANSPOSE} p:buffer")
def csr2csc(call: Call[None]) -> Work:
    """Convert compressed rows to compressed columns."""
    of = call.arguments
    require(of.m >= 0, of.n >= 0, of.nnz >= 0)
    element = element_of(of.valType)
    columns = Numbers("csrColInd", of.csrColInd, INT32, of.idxBase)

    def run() -> None:
        call.use("buffer", of.buffer, buffer_bytes(of.nnz))
        offsets = Numbers("csrRowPtr", of.csrRowPtr, INT32, of.idxBase).read(call, of.m + 1)
        its_rows, first, end = expanded(call, columns, offsets)
        its_columns = columns.read(call, end - first, first)
        order = np.argsort(its_columns, kind="stable")
        sorted_columns = its_columns[order]
        begins = offsets_of(sorted_columns, of.n)
        Numbers("cscColPtr", of.cscColPtr, INT32, of.idxBase).write(call, begins - begins[0])
        Numbers("cscRowInd", of.cscRowInd, INT32, of.idxBase).write(call, its_rows[order])
        if of.copyValues == NUMERIC:
            at = of.csrVal + first * element.size_bytes
            call.write("cscVal", of.cscVal, call.read("csrVal", at, element.stored, end - first)[0][order])

    return run


# -- order -------------------------------------------------------------------------------------------------------------


@computes({"cusparseCreateIdentityPermutation": None}, "p:handle e:n p:p")
def identity_permutation(call: Call[None]) -> Work:
    """Write the numbers from zero."""
    of = call.arguments
    require(of.n >= 0)

    def run() -> None:
        call.write("p", of.p, np.arange(of.n, dtype=np.int32))

    return run if of.n else None


_SORTS: Final = {
    "cusparseXcoosort_bufferSizeExt": "p:handle e:m e:n e:nnz p:cooRowsA p:cooColsA p:pBufferSizeInBytes",
    "cusparseXcsrsort_bufferSizeExt": "p:handle e:m e:n e:nnz p:csrRowPtrA p:csrColIndA p:pBufferSizeInBytes",
    "cusparseXcscsort_bufferSizeExt": "p:handle e:m e:n e:nnz p:cscColPtrA p:cscRowIndA p:pBufferSizeInBytes",
}


def _sort_buffer_size(call: Call[None]) -> Work:
    of = call.arguments
    require(of.nnz >= 0)
    tell_buffer(call, "pBufferSizeInBytes", of.pBufferSizeInBytes, buffer_bytes(of.nnz))
    return None


for _name, _signature in _SORTS.items():
    computes({_name: None}, _signature)(_sort_buffer_size)


def _permute(call: Call[Any], order: Array) -> None:
    """Bring a permutation, which may be left out, into an order, too."""
    address = call.arguments.P
    if address:
        call.write("P", address, call.read("P", address, np.int32, len(order))[0][order])


@computes({"cusparseXcoosortByRow": False, "cusparseXcoosortByColumn": True},
          "p:handle e:m e:n e:nnz p:cooRowsA p:cooColsA p:P p:pBuffer")  # fmt: skip
def coosort(call: Call[bool]) -> Work:
    """Sort elements by rows, and by columns in each row; or the other way round."""
    of = call.arguments
    require(of.m >= 0, of.n >= 0, of.nnz >= 0)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.nnz))
        rows, columns = Numbers("cooRowsA", of.cooRowsA, INT32), Numbers("cooColsA", of.cooColsA, INT32)
        its_rows, its_columns = rows.read(call, of.nnz), columns.read(call, of.nnz)
        order = np.lexsort((its_rows, its_columns) if call.about else (its_columns, its_rows))
        rows.write(call, its_rows[order])
        columns.write(call, its_columns[order])
        _permute(call, order)

    return run if of.nnz else None


def _compressed_sort(call: Call[None], length: int, compressed: str, others: str) -> Work:
    """Sort the elements of each row by their columns; or the other way round."""
    of = call.arguments
    require(of.m >= 0, of.n >= 0, of.nnz >= 0)
    base = Description.of(call, "descrA", of.descrA).base
    offsets = Numbers(compressed, getattr(of, compressed), INT32, base)
    places = Numbers(others, getattr(of, others), INT32, base)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.nnz))
        major, first, end = expanded(call, places, offsets.read(call, length + 1))
        minor = places.read(call, end - first, first)
        order = np.lexsort((minor, major))
        places.moved(first).write(call, minor[order])
        _permute(call, order)

    return run if of.nnz else None


@computes({"cusparseXcsrsort": None}, "p:handle e:m e:n e:nnz p:descrA p:csrRowPtrA p:csrColIndA p:P p:pBuffer")
def csrsort(call: Call[None]) -> Work:
    """Sort the columns of each row."""
    return _compressed_sort(call, call.arguments.m, "csrRowPtrA", "csrColIndA")


@computes({"cusparseXcscsort": None}, "p:handle e:m e:n e:nnz p:descrA p:cscColPtrA p:cscRowIndA p:P p:pBuffer")
def cscsort(call: Call[None]) -> Work:
    """Sort the rows of each column."""
    return _compressed_sort(call, call.arguments.n, "cscColPtrA", "cscRowIndA")
