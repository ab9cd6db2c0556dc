"""cuSPARSE: systems of equations whose matrices have three or five diagonals (cuSPARSE, "cusparse<t>gtsv2()").

A diagonal has as many elements as the matrix has rows. Those at its beginning or end that lie outside of the matrix
"must be zero"; whether they are read isn't said, and they count as read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy.linalg

from quiesce.simulator.libraries.blas import typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element, Matrix
from quiesce.simulator.libraries.sparse_operands import require
from quiesce.simulator.libraries.sparse_products import buffer_bytes, tell_buffer
from quiesce.simulator.libraries.table import Call, Work, computes

_ROWS_MIN: Final = 3


def with_pivots(diagonals: list[Array], right: Array) -> Array:
    """Return the solution for a matrix by its diagonals, from the lowest one; with exchanges of rows."""
    beside, count = len(diagonals) // 2, len(diagonals[0])
    band = np.zeros((3 * beside + 1, count), right.dtype)
    for number, diagonal in enumerate(diagonals):
        offset = number - beside  # of its columns from its rows
        rows = np.arange(max(0, -offset), count - max(0, offset))
        band[2 * beside - offset, rows + offset] = diagonal[rows]
    (solve,) = scipy.linalg.lapack.get_lapack_funcs(("gbsv",), (band, right))
    found: Array = solve(beside, beside, band, right)[2]
    return found


def without_pivots(diagonals: list[Array], right: Array) -> Array:
    """Return the solution for three diagonals. The first axis is that of the rows, others are those of a batch.

    A right side with several columns needs an axis for them in the diagonals, too.
    """
    lower, main, upper = diagonals
    count = len(main)
    factors, made = np.array(main), np.array(right)
    for row in range(1, count):
        times = lower[row] / factors[row - 1]
        factors[row] = main[row] - times * upper[row - 1]
        made[row] = made[row] - times * made[row - 1]
    made[-1] = made[-1] / factors[-1]
    for row in reversed(range(count - 1)):
        made[row] = (made[row] - upper[row] * made[row + 1]) / factors[row]
    return made


# -- one matrix --------------------------------------------------------------------------------------------------------

_GTSV: Final = "p:handle e:m e:n p:dl p:d p:du p:B e:ldb"


def _gtsv_buffer_size(call: Call[Any]) -> Work:
    of = call.arguments
    require(of.m >= _ROWS_MIN, of.n >= 0, of.ldb >= of.m)
    tell_buffer(call, "bufferSizeInBytes", of.bufferSizeInBytes, buffer_bytes(of.m))
    return None


def _gtsv(call: Call[Element], *, pivots: bool) -> Work:
    of, element = call.arguments, call.about
    require(of.m >= _ROWS_MIN, of.n >= 0, of.ldb >= of.m)
    b = Matrix("B", of.B, of.m, of.n, of.ldb, element)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m))
        diagonals = [call.read(each, getattr(of, each), element.stored, of.m)[0] for each in ("dl", "d", "du")]
        right = b.read(call)
        if pivots:
            b.write(call, with_pivots(diagonals, right))
        else:
            b.write(call, without_pivots([each[:, None] for each in diagonals], right))

    return run if of.n else None


for _name in ("gtsv2", "gtsv2_nopivot"):
    computes(typed(f"cusparse{{}}{_name}_bufferSizeExt"), f"{_GTSV} p:bufferSizeInBytes")(_gtsv_buffer_size)


@computes(typed("cusparse{}gtsv2"), f"{_GTSV} p:pBuffer")
def gtsv(call: Call[Element]) -> Work:
    """Solve systems with one matrix."""
    return _gtsv(call, pivots=True)


@computes(typed("cusparse{}gtsv2_nopivot"), f"{_GTSV} p:pBuffer")
def gtsv_nopivot(call: Call[Element]) -> Work:
    """Solve systems with one matrix, without exchanges of rows."""
    return _gtsv(call, pivots=False)


# -- batches -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Batch:
    """Operands of a batch: system after system, or row after row with an element of each system."""

    call: Call[Element]
    rows: int
    count: int
    stride: int
    """Elements from a system to the next one; 0: they take turns."""

    def read(self, operand: str) -> Array:
        """Return rows, each with an element of every system."""
        call, stored = self.call, self.call.about.stored
        address = getattr(call.arguments, operand)
        if not self.stride:
            flat = call.read(operand, address, stored, self.rows * self.count)
            return flat.reshape(self.rows, self.count)
        return call.read(operand, address, stored, self.rows, self.count, self.stride * stored.itemsize).T

    def write(self, operand: str, values: Array) -> None:
        """Write rows like them."""
        call, stored = self.call, self.call.about.stored
        address = getattr(call.arguments, operand)
        if not self.stride:
            call.write(operand, address, np.ascontiguousarray(values, stored).ravel())
        else:
            call.write(operand, address, np.ascontiguousarray(values.T, stored), self.stride * stored.itemsize)


_STRIDED: Final = "p:handle e:m p:dl p:d p:du p:x e:batchCount e:batchStride"
_INTERLEAVED: Final = "p:handle e:algo e:m p:dl p:d p:du p:x e:batchCount"
_FIVE: Final = "p:handle e:algo e:m p:ds p:dl p:d p:du p:dw p:x e:batchCount"


@computes(typed("cusparse{}gtsv2StridedBatch_bufferSizeExt"), f"{_STRIDED} p:bufferSizeInBytes")
def gtsv_batch_buffer_size(call: Call[Element]) -> Work:
    """Say how much of a buffer systems use that follow each other."""
    of = call.arguments
    require(of.m >= _ROWS_MIN, of.batchCount >= 0, of.batchStride >= of.m)
    tell_buffer(call, "bufferSizeInBytes", of.bufferSizeInBytes, buffer_bytes(of.m * of.batchCount))
    return None


@computes(typed("cusparse{}gtsv2StridedBatch"), f"{_STRIDED} p:pBuffer")
def gtsv_batch(call: Call[Element]) -> Work:
    """Solve systems that follow each other."""
    of = call.arguments
    require(of.m >= _ROWS_MIN, of.batchCount >= 0, of.batchStride >= of.m)
    batch = _Batch(call, of.m, of.batchCount, of.batchStride)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m * of.batchCount))
        batch.write("x", without_pivots([batch.read(each) for each in ("dl", "d", "du")], batch.read("x")))

    return run if of.batchCount else None


def _interleaved_buffer_size(call: Call[Element]) -> Work:
    of = call.arguments
    require(0 <= of.algo <= 2, of.m >= _ROWS_MIN, of.batchCount >= 0)
    tell_buffer(call, "pBufferSizeInBytes", of.pBufferSizeInBytes, buffer_bytes(of.m * of.batchCount))
    return None


for _name, _signature in (("gtsv", _INTERLEAVED), ("gpsv", _FIVE)):
    computes(typed(f"cusparse{{}}{_name}InterleavedBatch_bufferSizeExt"), f"{_signature} p:pBufferSizeInBytes")(
        _interleaved_buffer_size
    )


def _interleaved(call: Call[Element], diagonals: tuple[str, ...], *, pivots: bool) -> Work:
    of = call.arguments
    require(0 <= of.algo <= 2, of.m >= _ROWS_MIN, of.batchCount >= 0)
    batch = _Batch(call, of.m, of.batchCount, 0)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m * of.batchCount))
        parts, right = [batch.read(each) for each in diagonals], batch.read("x")
        if not pivots:
            batch.write("x", without_pivots(parts, right))
            return
        made = np.empty_like(right)
        for number in range(of.batchCount):
            made[:, number] = with_pivots([each[:, number] for each in parts], right[:, number])
        batch.write("x", made)

    return run if of.batchCount else None


@computes(typed("cusparse{}gtsvInterleavedBatch"), f"{_INTERLEAVED} p:pBuffer")
def gtsv_interleaved(call: Call[Element]) -> Work:
    """Solve systems that take turns. The first algorithm is the one without pivots."""
    return _interleaved(call, ("dl", "d", "du"), pivots=call.arguments.algo != 0)


@computes(typed("cusparse{}gpsvInterleavedBatch"), f"{_FIVE} p:pBuffer")
def gpsv_interleaved(call: Call[Element]) -> Work:
    """Solve systems of five diagonals that take turns."""
    return _interleaved(call, ("ds", "dl", "d", "du", "dw"), pivots=True)
