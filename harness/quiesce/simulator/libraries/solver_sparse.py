"""cuSOLVER: systems whose matrix is sparse (``cusolverSp``): compressed rows, solved by QR or Cholesky.

The order in which a GPU eliminates (``reorder``) changes how long that takes, and not the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg
import scipy.sparse

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_LETTER, Element
from quiesce.simulator.libraries.solver import lapack, require
from quiesce.simulator.libraries.sparse_operands import Description
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

REGULAR: Final = -1
"""What the host is told of a matrix that is not singular."""
ROWS_MAX: Final = 1 << 12
"""Matrices are computed with all their zeros."""


def _matrix(call: Call[Element], base: int) -> Array | None:
    """Return the matrix A; None: its indices are none of such a matrix."""
    of, count = call.arguments, call.arguments.nnz
    offsets = call.read("row offsets", of.row_offsets, np.int32, of.m + 1)[0].astype(np.int64) - base
    columns = call.read("columns", of.columns, np.int32, count)[0].astype(np.int64) - base
    values = call.read("values", of.values, call.about.stored, count)[0]
    fits = offsets[0] == 0 and offsets[-1] == count and (np.diff(offsets) >= 0).all()
    if not fits or ((columns < 0) | (columns >= of.m)).any():
        return None
    return np.asarray(scipy.sparse.csr_array((values, columns, offsets), (of.m, of.m)).toarray(order="F"))


def _solve_by_qr(matrix: Array, right: Array, tolerance: float) -> tuple[Array, int]:
    """Return X, and the first row of R whose diagonal is not above the tolerance, or -1."""
    q, r = np.linalg.qr(matrix)
    small = np.abs(r.diagonal()) <= tolerance
    if small.any():
        return np.zeros_like(right), int(np.argmax(small))
    return np.asarray(scipy.linalg.solve_triangular(r, q.conj().T @ right)), REGULAR


def _solve_by_cholesky(matrix: Array, right: Array, tolerance: float) -> tuple[Array, int]:
    """Return X, and the first leading minor that is not positive definite, or -1."""
    factor, info = lapack("potrf", matrix)(matrix, lower=True)
    small = np.abs(factor.diagonal()) <= tolerance
    if info or small.any():
        return np.zeros_like(right), info - 1 if info else int(np.argmax(small))
    made, _ = lapack("potrs", factor)(factor, right, lower=True)
    return np.asarray(made), REGULAR


def _solves(call: Call[Element], solve: Callable[[Array, Array, float], tuple[Array, int]]) -> Work:
    of = call.arguments
    require(of.m >= 0, of.nnz >= 0, of.singularity != 0)
    if of.m > ROWS_MAX:
        raise NotDescribed(f"sparse systems of more than {ROWS_MAX:,} equations are not described")
    base = Description.of(call, "description", of.description).base
    call.waits = True

    def run() -> None:
        matrix = _matrix(call, base)
        right = call.read("b", of.b, call.about.stored, of.m)[0]
        singular = 0
        if matrix is not None:
            made, singular = solve(matrix, right, of.tolerance)
            if singular == REGULAR:
                call.write("x", of.x, made)
        call.give_to_host("singularity", of.singularity, np.array([singular], np.int32))

    return run if of.m else None


_SYSTEM: Final = (
    "p:handle n:m n:nnz p:description p:values p:row_offsets p:columns p:b {}:tolerance e:reorder p:x p:singularity"
)


def _by_letters(name: str, letters: str) -> dict[str, Any]:
    return {f"cusolverSp{letter}{name}": BY_LETTER[letter] for letter in letters}


@computes(_by_letters("csrlsvqr", "DZ"), _SYSTEM.format("d"))
@computes(_by_letters("csrlsvqr", "SC"), _SYSTEM.format("f"))
def csrlsvqr(call: Call[Element]) -> Work:
    """Solve a sparse system by QR. The host is told where the matrix is singular."""
    return _solves(call, _solve_by_qr)


@computes(_by_letters("csrlsvchol", "DZ"), _SYSTEM.format("d"))
@computes(_by_letters("csrlsvchol", "SC"), _SYSTEM.format("f"))
def csrlsvchol(call: Call[Element]) -> Work:
    """Solve a sparse system whose matrix is positive definite."""
    return _solves(call, _solve_by_cholesky)
