"""cuSPARSE: factors of sparse matrices that have elements only where the matrix has some.

An element of a factor that is missing or zero on the diagonal is told when it is asked for, by the object of the work
(cuSPARSE, "cusparse<t>csrilu02()" and "cusparse<t>csric02()").
"""

from __future__ import annotations

import itertools
from typing import Any, Final, TypeAlias

import numpy as np

from quiesce.simulator.libraries.blas import POINTER_MODE, Scalar, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import DOUBLE, Element
from quiesce.simulator.libraries.sparse_conversions import INT32
from quiesce.simulator.libraries.sparse_operands import Description, Numbers, expanded, require
from quiesce.simulator.libraries.sparse_products import buffer_bytes
from quiesce.simulator.libraries.table import Call, Work, computes, plain

NO_PIVOT: Final = -1
_FACTORS: Final = np.dtype("i4, i4, u8, u8")
"""``struct factors`` of ``native/libraries/sparse_work.c``: the pivot, whether small ones are boosted, and how."""
Rows: TypeAlias = list[tuple[list[int], list[int]]]
"""Of each row: the columns of its elements, and where they lie."""


def _base(call: Call[Any]) -> int:
    """Return the number of the first row and column."""
    of = call.arguments
    require(of.m >= 0, of.nnz >= 0, of.info != 0)
    return Description.of(call, "descrA", of.descrA).base


def _rows(call: Call[Any], base: int) -> tuple[Rows, int]:
    """Return the elements of the matrix by rows, and where the first lies."""
    of = call.arguments
    columns = Numbers("csrSortedColInd", of.csrSortedColInd, INT32, base)
    offsets = Numbers("csrSortedRowPtr", of.csrSortedRowPtr, INT32, base).read(call, of.m + 1)
    _, first, end = expanded(call, columns, offsets)
    found = columns.read(call, end - first, first)
    parts = [(int(begin - first), int(last - first)) for begin, last in itertools.pairwise(offsets)]
    return [(found[begin:last].tolist(), list(range(begin, last))) for begin, last in parts], first


def _boost(call: Call[Element]) -> tuple[Scalar, Scalar] | None:
    """Return how the limit of small pivots, and what stands for them, are had; None: they stay."""
    of, element = call.arguments, call.about
    require(of.info != 0)
    _, boosts, tolerance, value = call.host("info", of.info, _FACTORS)[0].tolist()
    if not boosts:
        return None
    if call.settings[POINTER_MODE] == 0:
        limit, stands_in = call.host("info", tolerance, np.float64)[0], call.host("info", value, element.stored)[0]
        return lambda: limit, lambda: stands_in
    return (
        lambda: call.read("info", tolerance, DOUBLE.stored, 1)[0, 0],
        lambda: call.read("info", value, element.stored, 1)[0, 0],
    )


def incomplete_lu(rows: Rows, values: Array, boost: tuple[Any, Any] | None) -> int:
    """Put the factors in the place of the matrix; return the first pivot that is missing or zero."""
    found = NO_PIVOT
    diagonal: dict[int, int] = {}
    for row, (columns, places) in enumerate(rows):
        mine = dict(zip(columns, places, strict=True))
        for column in sorted(each for each in mine if each < row):
            pivot = diagonal.get(column)
            if pivot is None:
                continue
            values[mine[column]] /= values[pivot]
            for other, place in zip(*rows[column], strict=True):
                if other > column and other in mine:
                    values[mine[other]] -= values[mine[column]] * values[place]
        if row in mine:
            diagonal[row] = mine[row]
            if boost is not None and abs(values[mine[row]]) <= boost[0]:
                values[mine[row]] = boost[1]
        if found == NO_PIVOT and (row not in mine or values[mine[row]] == 0):
            found = row
    return found


def incomplete_cholesky(rows: Rows, values: Array) -> int:
    """Put the lower factor in the place of the lower triangle; return the first pivot that is missing or no root."""
    found = NO_PIVOT
    maps = [dict(zip(columns, places, strict=True)) for columns, places in rows]
    for row, mine in enumerate(maps):
        for column in sorted(each for each in mine if each <= row):
            other = maps[column] if column < len(maps) else {}
            total = values[mine[column]]
            for inner in (each for each in mine if each < column and each in other):
                total = total - values[mine[inner]] * np.conj(values[other[inner]])
            if column < row:
                pivot = other.get(column)
                values[mine[column]] = total / values[pivot] if pivot is not None else total
                continue
            if found == NO_PIVOT and not np.real(total) > 0:
                found = row
            values[mine[column]] = np.sqrt(total)
        if found == NO_PIVOT and row not in mine:
            found = row
    return found


def tell_size(call: Call[bool], rows: str = "m") -> Work:
    """Say how large a buffer has to be; ``about`` says whether the size is a ``size_t``, and not an ``int``."""
    of = call.arguments
    count = getattr(of, rows)
    require(count >= 0, of.pBufferSize != 0)
    size = np.uint64 if call.about else np.int32
    call.tell_host("pBufferSize", of.pBufferSize, np.array([buffer_bytes(count)], size))
    return None


def _analysis(call: Call[Element]) -> Work:
    of, base = call.arguments, _base(call)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m))
        rows, _ = _rows(call, base)
        missing = (row for row, (columns, _) in enumerate(rows) if row not in columns)
        call.state[of.info] = next(missing, NO_PIVOT)

    return run


def _factor(call: Call[Element], boost: tuple[Scalar, Scalar] | None, lower: bool) -> Work:
    of, element, base = call.arguments, call.about, _base(call)

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m))
        rows, first = _rows(call, base)
        at = of.csrSortedVal + first * element.size_bytes
        values = call.read("csrSortedVal", at, element.stored, sum(len(each) for each, _ in rows))[0].copy()
        if lower:
            found = incomplete_cholesky(rows, values)
        else:
            found = incomplete_lu(rows, values, None if boost is None else (boost[0](), boost[1]()))
        call.state[of.info] = found
        call.write("csrSortedVal", at, values)

    return run


def _lu(call: Call[Element]) -> Work:
    return _factor(call, _boost(call), lower=False)


def _cholesky(call: Call[Element]) -> Work:
    return _factor(call, None, lower=True)


_MATRIX: Final = "p:handle e:m e:nnz p:descrA p:csrSortedVal p:csrSortedRowPtr p:csrSortedColInd p:info"

for _name, _work in (("csrilu02", _lu), ("csric02", _cholesky)):
    _of_all = typed(f"cusparse{{}}{_name}")
    computes(dict.fromkeys((f"{each}_bufferSize" for each in _of_all), False), f"{_MATRIX} p:pBufferSize")(tell_size)
    computes(dict.fromkeys((f"{each}_bufferSizeExt" for each in _of_all), True), f"{_MATRIX} p:pBufferSize")(tell_size)
    computes(typed(f"cusparse{{}}{_name}_analysis"), f"{_MATRIX} e:policy p:pBuffer")(_analysis)
    computes(_of_all, f"{_MATRIX} e:policy p:pBuffer")(_work)


@computes(
    plain(
        (
            "cusparseXcsrilu02_zeroPivot",
            "cusparseXcsric02_zeroPivot",
            "cusparseXbsrsv2_zeroPivot",
            "cusparseXbsrsm2_zeroPivot",
        )
    ),
    "p:handle p:info p:position",
)
def zero_pivot(call: Call[None]) -> Work:
    """Say which pivot was the first that is missing or zero. The function's status says whether there is one."""
    of = call.arguments
    call.waits = True

    def run() -> None:
        found = np.array([call.state.get(of.info, NO_PIVOT)], np.int32)
        call.give_to_host("info", of.info, found)
        if call.settings[POINTER_MODE] == 0:
            call.give_to_host("position", of.position, found)
        else:
            call.write("position", of.position, found)

    return run
