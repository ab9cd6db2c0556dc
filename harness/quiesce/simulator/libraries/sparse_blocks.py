"""cuSPARSE: products and systems with matrices of square blocks, as its older functions have them.

A block has its elements row by row or column by column (cuSPARSE, "Block Sparse Row (BSR)"). An analysis finds a block
that is missing on the diagonal, and a solution one whose diagonal has a zero.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import scalar, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_NUMBER, Element, Matrix
from quiesce.simulator.libraries.sparse_conversions import INT32
from quiesce.simulator.libraries.sparse_factors import NO_PIVOT, tell_size
from quiesce.simulator.libraries.sparse_operands import (
    BSR,
    CONJUGATED,
    ROWS,
    DenseMatrix,
    Description,
    Descriptor,
    Numbers,
    SparseMatrix,
    require,
)
from quiesce.simulator.libraries.sparse_products import OPERATIONS, add_product, buffer_bytes
from quiesce.simulator.libraries.sparse_triangles import UNIT, UPPER, solve
from quiesce.simulator.libraries.table import Call, Work, computes

_BY_ROWS: Final = 0  # cusparseDirection_t
_NUMBERS: Final = {element: number for number, element in BY_NUMBER.items()}


def _described(element: Element, **known: int) -> Descriptor:
    """Return what a descriptor would hold of an operand."""
    return Descriptor(**{each.name: 0 for each in fields(Descriptor)} | {"type": _NUMBERS[element], "batch": 1} | known)


def _matrix(call: Call[Element], rows: int, columns: int) -> tuple[SparseMatrix, Description]:
    """Return the matrix of a call, of so many blocks, and its description."""
    of, names = call.arguments, ["bsrSortedValA", "bsrSortedRowPtrA", "bsrSortedColIndA"]
    require(of.blockDim >= 1, rows >= 0, columns >= 0, of.nnzb >= 0)
    description = Description.of(call, "descrA", of.descrA)
    values, row_places, column_places = (getattr(of, each) for each in names)
    size = of.blockDim
    held = _described(
        call.about, format=BSR, rows=rows * size, columns=columns * size, count=of.nnzb, block_rows=size,
        block_columns=size, order=ROWS if of.dirA == _BY_ROWS else 0,
    )  # fmt: skip
    offsets, places = (
        Numbers(name, at, INT32, description.base)
        for name, at in zip(names[1:], (row_places, column_places), strict=True)
    )
    return SparseMatrix(names[0], held, offsets, places, values), description


def _dense(call: Call[Element], operand: str, address: int, shape: tuple[int, int], ld: int) -> DenseMatrix:
    return DenseMatrix(operand, _described(call.about), address, False, *shape, ld)


# -- products ----------------------------------------------------------------------------------------------------------


def _product(call: Call[Element], a: SparseMatrix, b: DenseMatrix, c: DenseMatrix) -> Work:
    of, computed = call.arguments, call.about.computed
    require(0 <= of.transA < OPERATIONS)
    alpha, beta = scalar(call, "alpha", of.alpha, call.about), scalar(call, "beta", of.beta, call.about)

    def run() -> None:
        times, times_old = alpha(), beta()
        old = times_old * c.values(call) if times_old != 0 else None
        if times == 0:
            c.write(call, np.zeros(c.shape, computed) if old is None else old)
            return
        entries = a.entries(call).operated(of.transA)
        add_product(call, entries, lambda rows: b.some_rows(call, rows), c, times, old)

    return run if c.rows and c.columns else None


_STORED: Final = "p:descrA p:bsrSortedValA p:bsrSortedRowPtrA p:bsrSortedColIndA e:blockDim"


@computes(typed("cusparse{}bsrmv"), f"p:handle e:dirA e:transA e:mb e:nb e:nnzb p:alpha {_STORED} p:x p:beta p:y")
def bsrmv(call: Call[Element]) -> Work:
    """Compute y = alpha op(A) x + beta y."""
    of = call.arguments
    a, _ = _matrix(call, of.mb, of.nb)
    rows, columns = a.shape if of.transA == 0 else a.shape[::-1]
    x, y = _dense(call, "x", of.x, (columns, 1), max(1, columns)), _dense(call, "y", of.y, (rows, 1), max(1, rows))
    return _product(call, a, x, y)


@computes(
    typed("cusparse{}bsrmm"),
    f"p:handle e:dirA e:transA e:transB e:mb e:n e:kb e:nnzb p:alpha {_STORED} p:B e:ldb p:beta p:C e:ldc",
)
def bsrmm(call: Call[Element]) -> Work:
    """Compute C = alpha op(A) op(B) + beta C."""
    of = call.arguments
    a, _ = _matrix(call, of.mb, of.kb)
    rows, columns = a.shape if of.transA == 0 else a.shape[::-1]
    require(of.n >= 0, 0 <= of.transB < CONJUGATED)
    stored = (columns, of.n) if of.transB == 0 else (of.n, columns)
    require(of.ldb >= max(1, stored[0]), of.ldc >= max(1, rows))
    b = _dense(call, "B", of.B, stored, of.ldb).transposed(of.transB)
    return _product(call, a, b, _dense(call, "C", of.C, (rows, of.n), of.ldc))


# -- systems -----------------------------------------------------------------------------------------------------------

_SV: Final = f"p:handle e:dirA e:transA e:mb e:nnzb {_STORED} p:info"
_SV_SOLVE: Final = f"p:handle e:dirA e:transA e:mb e:nnzb p:alpha {_STORED} p:info p:f p:x e:policy p:pBuffer"
_SM: Final = f"p:handle e:dirA e:transA e:transXY e:mb e:n e:nnzb {_STORED} p:info"
_SM_SOLVE: Final = (
    f"p:handle e:dirA e:transA e:transXY e:mb e:n e:nnzb p:alpha {_STORED} p:info p:B e:ldb p:X e:ldx "
    "e:policy p:pBuffer"
)

for _name, _signature in (("bsrsv2", _SV), ("bsrsm2", _SM)):
    for _ending, _is_wide in (("bufferSize", False), ("bufferSizeExt", True)):
        _names = typed(f"cusparse{{}}{_name}_{_ending}")
        computes(dict.fromkeys(_names, _is_wide), f"{_signature} p:pBufferSize")(lambda call: tell_size(call, "mb"))


def _analysis(call: Call[Element]) -> Work:
    of = call.arguments
    require(of.info != 0)
    a, _ = _matrix(call, of.mb, of.mb)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.mb))
        rows, columns, _ = a.pattern(call)
        there = np.isin(np.arange(of.mb), rows[rows == columns])
        call.state[of.info] = NO_PIVOT if there.all() else int(np.argmin(there))

    return run


for _name, _signature in (("bsrsv2", _SV), ("bsrsm2", _SM)):
    computes(typed(f"cusparse{{}}{_name}_analysis"), f"{_signature} e:policy p:pBuffer")(_analysis)


def _solve(call: Call[Element], b: Matrix, x: Matrix, *, turned: bool) -> Work:
    """Compute X of op(A) X = alpha B; both are transposed where they are turned."""
    of = call.arguments
    require(of.info != 0, 0 <= of.transA < OPERATIONS)
    a, description = _matrix(call, of.mb, of.mb)
    alpha = scalar(call, "alpha", of.alpha, call.about)
    upper, unit = description.fill_mode == UPPER, description.diagonal == UNIT

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.mb))
        entries = a.entries(call)
        diagonal = np.ones(a.shape[0], bool) if unit else _diagonal(entries, a.shape[0])
        call.state[of.info] = NO_PIVOT if diagonal.all() else int(np.argmin(diagonal)) // of.blockDim
        right = b.read(call)
        right = alpha() * (right.T if turned else right)
        made = solve(entries.operated(of.transA), right, upper=upper != (of.transA != 0), unit=unit)
        x.write(call, made.T if turned else made)

    return run if x.rows and x.columns else None


def _diagonal(entries: Any, count: int) -> Array:
    """Say which elements of the diagonal aren't zero."""
    on_it = (entries.rows == entries.columns) & (entries.values != 0)
    return np.isin(np.arange(count), entries.rows[on_it])


@computes(typed("cusparse{}bsrsv2_solve"), _SV_SOLVE)
def bsrsv2_solve(call: Call[Element]) -> Work:
    """Compute x of op(A) x = alpha f."""
    of = call.arguments
    require(of.mb >= 0, of.blockDim >= 1)
    size = of.mb * of.blockDim
    f, x = (Matrix(each, getattr(of, each), size, 1, max(1, size), call.about) for each in ("f", "x"))
    return _solve(call, f, x, turned=False)


@computes(typed("cusparse{}bsrsm2_solve"), _SM_SOLVE)
def bsrsm2_solve(call: Call[Element]) -> Work:
    """Compute X of op(A) op(X) = alpha op(B)."""
    of = call.arguments
    require(of.mb >= 0, of.blockDim >= 1, of.n >= 0, 0 <= of.transXY < CONJUGATED)
    size = of.mb * of.blockDim
    shape = (of.n, size) if of.transXY else (size, of.n)
    require(of.ldb >= max(1, shape[0]), of.ldx >= max(1, shape[0]))
    b, x = Matrix("B", of.B, *shape, of.ldb, call.about), Matrix("X", of.X, *shape, of.ldx, call.about)
    return _solve(call, b, x, turned=bool(of.transXY))
