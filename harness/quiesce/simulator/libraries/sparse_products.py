"""cuSPARSE: products of sparse vectors and matrices with dense ones.

An element of a dense operand counts as read only where an index names it, and is judged wherever that leads (cuSPARSE,
"Generic APIs"). Where beta is zero, nothing old is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import POINTER_MODE, scalar
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import SINGLE, Element
from quiesce.simulator.libraries.sparse_operands import (
    BSR,
    CONJUGATED,
    TRANSPOSED,
    DenseMatrix,
    Entries,
    SparseMatrix,
    SparseVector,
    element_of,
    require,
    used,
)
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

OPERATIONS: Final = 3
_PART: Final = 1 << 22
"""So many elements of two dense matrices are multiplied at once."""


def tell_buffer(call: Call[Any], name: str, address: int, size_bytes: int) -> None:
    """Say how large a buffer has to be. It is never empty: nothing at all would be asked for its size again."""
    require(address != 0)
    call.tell_host(name, address, np.array([size_bytes], np.uint64))


def buffer_bytes(*counts: int) -> int:
    """Return the size of a buffer for so many numbers, after which elements of any type may follow."""
    return 16 * (1 + sum(counts) // 2)


# -- vectors -----------------------------------------------------------------------------------------------------------

_INDICES: Final = "w:indices_of_vecX"


def _scalar_of(vector: SparseVector) -> Element:
    """Return the type of scalars: that of elements, and single precision for shorter ones."""
    return vector.element if vector.element.stored == vector.element.computed else SINGLE


def _update(call: Call[Any], y: DenseMatrix, places: Array, values: Array) -> None:
    call.scatter(y.operand, y.address, y.element.encode(values), places)


def _at(call: Call[Any], y: DenseMatrix, places: Array) -> Array:
    return y.element.decode(call.gather(y.operand, y.address, y.element.stored, places))


@computes({"cusparseGather": None}, f"p:handle p:vecY p:vecX {_INDICES}")
def gather(call: Call[None]) -> Work:
    """Compute X[i] = Y[index of i]."""
    of = call.arguments
    x, y = SparseVector.read(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)

    def run() -> None:
        x.write(call, _at(call, y, x.places(call)))

    return run if x.of.count else None


@computes({"cusparseScatter": None}, f"p:handle p:vecX p:vecY {_INDICES}")
def scatter(call: Call[None]) -> Work:
    """Compute Y[index of i] = X[i]."""
    of = call.arguments
    x, y = SparseVector.read(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)

    def run() -> None:
        _update(call, y, x.places(call), x.values(call))

    return run if x.of.count else None


@computes({"cusparseAxpby": None}, f"p:handle p:alpha p:vecX p:beta p:vecY {_INDICES}")
def axpby(call: Call[None]) -> Work:
    """Compute Y = alpha X + beta Y."""
    of = call.arguments
    x, y = SparseVector.read(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)
    kind = _scalar_of(x)
    alpha, beta = scalar(call, "alpha", of.alpha, kind), scalar(call, "beta", of.beta, kind)

    def run() -> None:
        times, times_old = alpha(), beta()
        places, added = x.places(call), times * x.values(call).astype(kind.computed)
        if times_old == 1:
            _update(call, y, places, _at(call, y, places) + added)
            return
        made = np.zeros(y.rows, kind.computed)
        if times_old != 0:
            made += times_old * y.values(call)[:, 0]
        inside = (places >= 0) & (places < y.rows)
        np.add.at(made, places[inside], added[inside])
        y.write(call, made[:, None])
        _update(call, y, places[~inside], added[~inside])

    return run if y.rows else None


@computes({"cusparseRot": None}, f"p:handle p:c_coeff p:s_coeff p:vecX p:vecY {_INDICES}")
def rot(call: Call[None]) -> Work:
    """Rotate the elements of X and those of Y with the same indices."""
    of = call.arguments
    x, y = SparseVector.read(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)
    kind = _scalar_of(x)
    cosine, sine = scalar(call, "c coeff", of.c_coeff, kind), scalar(call, "s coeff", of.s_coeff, kind)

    def run() -> None:
        c, s = cosine(), sine()
        places, old_x = x.places(call), x.values(call).astype(kind.computed)
        old_y = _at(call, y, places).astype(kind.computed)
        x.write(call, c * old_x + s * old_y)
        _update(call, y, places, c * old_y - s * old_x)

    return run if x.of.count else None


_SPVV: Final = "p:handle e:opX p:vecX p:vecY p:result e:computeType"


@computes({"cusparseSpVV_bufferSize": None}, f"{_SPVV} p:bufferSize")
def spvv_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a product of vectors uses."""
    tell_buffer(call, "bufferSize", call.arguments.bufferSize, buffer_bytes())
    return None


@computes({"cusparseSpVV": None}, f"{_SPVV} p:externalBuffer {_INDICES}")
def spvv(call: Call[None]) -> Work:
    """Compute the product of a sparse and a dense vector."""
    of = call.arguments
    x, y = SparseVector.read(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)
    kind = element_of(of.computeType)
    require(0 <= of.opX < OPERATIONS)
    call.waits = call.settings[POINTER_MODE] == 0

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes())
        left = x.values(call).astype(kind.computed)
        right = _at(call, y, x.places(call)).astype(kind.computed)
        found = kind.encode(np.array([np.dot(left.conj() if of.opX == CONJUGATED else left, right)], kind.computed))
        if call.waits:
            call.give_to_host("result", of.result, found)
        else:
            call.write("result", of.result, found)

    return run


# -- a sparse and a dense matrix ---------------------------------------------------------------------------------------

_ARRAYS: Final = "w:rows_of_matA w:columns_of_matA"
_SPMV: Final = "p:handle e:opA p:alpha p:matA p:vecX p:beta p:vecY e:computeType e:alg"
_SPMM: Final = "p:handle e:opA e:opB p:alpha p:matA p:matB p:beta p:matC e:computeType e:alg"


def add_product(
    call: Call[Any], entries: Entries, b: Callable[[Array], Array], c: DenseMatrix, alpha: Any, old: Array | None
) -> None:
    """Write alpha A B plus what is old. ``b`` returns rows of B."""
    made = np.zeros(c.shape, entries.values.dtype) if old is None else old
    rows, _ = entries.used_rows
    columns, _ = entries.used_columns
    if not len(rows):
        c.write(call, made)
        return
    found = (alpha * entries.times(b(columns).astype(made.dtype, copy=False))).astype(made.dtype, copy=False)
    inside = (rows >= 0) & (rows < c.rows)
    made[rows[inside]] += found[inside]
    c.write(call, made)
    if not inside.all():
        strange = np.repeat(rows[~inside], c.columns), np.tile(np.arange(c.columns), int((~inside).sum()))
        c.scatter(call, *strange, found[~inside].ravel())


def _product(call: Call[Any], a: SparseMatrix, b: DenseMatrix, c: DenseMatrix, operation_b: int) -> Work:
    """Compute C = alpha op(A) op(B) + beta C; B and C are as they enter the product."""
    of = call.arguments
    kind = element_of(of.computeType)
    require(0 <= of.opA < OPERATIONS, 0 <= operation_b < OPERATIONS)
    rows, columns = a.shape if of.opA == 0 else a.shape[::-1]
    require(b.rows == columns, c.shape == (rows, b.columns))
    for each in (a, b, c):
        _ = each.element  # one that is not described fails by name
    alpha, beta = scalar(call, "alpha", of.alpha, kind), scalar(call, "beta", of.beta, kind)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes(c.rows))
        times, times_old = alpha(), beta()
        for number in range(c.of.batch):
            call.reuse_memory()
            result, other = c.member(number), b.member(number)
            old = times_old * result.values(call).astype(kind.computed) if times_old != 0 else None
            if times == 0:
                result.write(call, np.zeros(c.shape, kind.computed) if old is None else old)
                continue
            entries = a.member(number).entries(call, kind.computed).operated(of.opA)

            def rows_of(rows: Array, other: DenseMatrix = other) -> Array:
                found = other.some_rows(call, rows)
                return found.conj() if operation_b == CONJUGATED else found

            add_product(call, entries, rows_of, result, times, old)

    return run if c.rows and c.columns else None


@computes({"cusparseSpMV_bufferSize": None}, f"{_SPMV} p:bufferSize")
def spmv_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a product with a vector uses."""
    of = call.arguments
    y = DenseMatrix.vector(call, "vecY", of.vecY)
    tell_buffer(call, "bufferSize", of.bufferSize, buffer_bytes(y.rows))
    return None


@computes({"cusparseSpMV": None}, f"{_SPMV} p:externalBuffer {_ARRAYS}")
def spmv(call: Call[None]) -> Work:
    """Compute Y = alpha op(A) X + beta Y."""
    of = call.arguments
    x, y = DenseMatrix.vector(call, "vecX", of.vecX), DenseMatrix.vector(call, "vecY", of.vecY)
    return _product(call, SparseMatrix.read(call, "matA", of.matA), x, y, 0)


@computes({"cusparseSpMM_bufferSize": None}, f"{_SPMM} p:bufferSize")
def spmm_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer a product with a dense matrix uses."""
    of = call.arguments
    c = DenseMatrix.read(call, "matC", of.matC)
    tell_buffer(call, "bufferSize", of.bufferSize, buffer_bytes(c.rows))
    return None


@computes({"cusparseSpMM": None}, f"{_SPMM} p:externalBuffer {_ARRAYS}")
def spmm(call: Call[None]) -> Work:
    """Compute C = alpha op(A) op(B) + beta C, and the same for each of a batch."""
    of = call.arguments
    b, c = DenseMatrix.read(call, "matB", of.matB), DenseMatrix.read(call, "matC", of.matC)
    return _product(call, SparseMatrix.read(call, "matA", of.matA), b.transposed(of.opB), c, of.opB)


@computes({"cusparseSpMV_preprocess": None}, f"{_SPMV} p:externalBuffer {_ARRAYS}")
def spmv_preprocess(call: Call[None]) -> Work:
    """Look at the matrix of a product with a vector."""
    of = call.arguments
    return _preprocess(call, DenseMatrix.vector(call, "vecY", of.vecY).rows)


@computes({"cusparseSpMM_preprocess": None}, f"{_SPMM} p:externalBuffer {_ARRAYS}")
def spmm_preprocess(call: Call[None]) -> Work:
    """Look at the matrix of a product with a dense matrix."""
    of = call.arguments
    return _preprocess(call, DenseMatrix.read(call, "matC", of.matC).rows)


def _preprocess(call: Call[None], rows: int) -> Work:
    of = call.arguments
    a = SparseMatrix.read(call, "matA", of.matA)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes(rows))
        a.pattern(call)

    return run


# -- products at the places of a sparse matrix -------------------------------------------------------------------------

_SDDMM: Final = "p:handle e:opA e:opB p:alpha p:matA p:matB p:beta p:matC e:computeType e:alg"
_RESULT_ARRAYS: Final = "w:rows_of_matC w:columns_of_matC"


@computes({"cusparseSDDMM_bufferSize": None}, f"{_SDDMM} p:bufferSize")
def sddmm_buffer_size(call: Call[None]) -> Work:
    """Say how much of a buffer products at the places of a matrix use."""
    tell_buffer(call, "bufferSize", call.arguments.bufferSize, buffer_bytes())
    return None


@computes({"cusparseSDDMM_preprocess": None}, f"{_SDDMM} p:externalBuffer {_RESULT_ARRAYS}")
def sddmm_preprocess(call: Call[None]) -> Work:
    """Look at the places of the result."""
    of = call.arguments
    c = SparseMatrix.read(call, "matC", of.matC)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes())
        c.pattern(call)

    return run


@computes({"cusparseSDDMM": None}, f"{_SDDMM} p:externalBuffer {_RESULT_ARRAYS}")
def sddmm(call: Call[None]) -> Work:
    """Compute C = alpha op(A) op(B) + beta C where C has elements, and the same for each of a batch."""
    of = call.arguments
    a, b = DenseMatrix.read(call, "matA", of.matA), DenseMatrix.read(call, "matB", of.matB)
    c = SparseMatrix.read(call, "matC", of.matC)
    if c.of.format == BSR:
        raise NotDescribed("results in blocks are not described")
    kind = element_of(of.computeType)
    left, right = a.transposed(of.opA), b.transposed(0 if of.opB else TRANSPOSED)
    require(left.rows == c.shape[0], right.rows == c.shape[1], left.columns == right.columns)
    alpha, beta = scalar(call, "alpha", of.alpha, kind), scalar(call, "beta", of.beta, kind)

    def run() -> None:
        call.use("externalBuffer", of.externalBuffer, buffer_bytes())
        times, times_old = alpha(), beta()
        for number in range(c.of.batch):
            call.reuse_memory()
            result = c.member(number)
            rows, columns, first = result.pattern(call)
            made = np.zeros(len(rows), kind.computed)
            if times != 0:
                made += times * at_places(left.member(number), right.member(number), rows, columns)
            if times_old != 0:
                made += times_old * result.values(call, len(rows), first).astype(kind.computed)
            result.write_values(call, made, first)

    def at_places(left: DenseMatrix, right: DenseMatrix, rows: Array, columns: Array) -> Array:
        (its_rows, of_rows), (others, of_columns) = used(rows), used(columns)
        first = left.some_rows(call, its_rows).astype(kind.computed)
        second = right.some_rows(call, others).astype(kind.computed)
        first = first.conj() if of.opA == CONJUGATED else first
        second = second.conj() if of.opB == CONJUGATED else second
        made = np.empty(len(rows), kind.computed)
        step = max(1, _PART // max(1, left.columns))
        for at in range(0, len(rows), step):
            part = slice(at, at + step)
            made[part] = np.einsum("ij,ij->i", first[of_rows[part]], second[of_columns[part]])
        return made

    return run
