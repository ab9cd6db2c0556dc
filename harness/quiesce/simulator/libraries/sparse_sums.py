"""cuSPARSE: sums of sparse matrices, as its older functions have them (cuSPARSE, "cusparse<t>csrgeam2()").

Elements of a sum are in the order of their rows and columns; one that comes out as zero is an element, too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import POINTER_MODE, scalar, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element
from quiesce.simulator.libraries.sparse_conversions import INT32, give_total, offsets_of
from quiesce.simulator.libraries.sparse_operands import Description, Numbers, expanded, require
from quiesce.simulator.libraries.sparse_products import buffer_bytes, tell_buffer
from quiesce.simulator.libraries.table import Arguments, Call, Work, computes


def _numbers(of: Arguments, side: str, base: int) -> tuple[Numbers, Numbers]:
    """Return the rows and columns of an operand of the older functions."""
    names = f"csrSortedRowPtr{side}", f"csrSortedColInd{side}"
    rows, columns = (Numbers(name, getattr(of, name), INT32, base) for name in names)
    return rows, columns


def _base(call: Call[Any], side: str) -> int:
    name = f"descr{side}"
    return Description.of(call, name, getattr(call.arguments, name)).base


def _pattern(call: Call[Any], side: str, base: int) -> tuple[Array, int]:
    """Return the places of an operand's elements, row by row, as one number each; and where the first lies."""
    of = call.arguments
    rows, columns = _numbers(of, side, base)
    its_rows, first, end = expanded(call, columns, rows.read(call, of.m + 1))
    return its_rows * of.n + columns.read(call, end - first, first), first


_GEAM: Final = (
    "p:handle e:m e:n p:alpha p:descrA e:nnzA p:csrSortedValA p:csrSortedRowPtrA p:csrSortedColIndA p:beta p:descrB "
    "e:nnzB p:csrSortedValB p:csrSortedRowPtrB p:csrSortedColIndB p:descrC p:csrSortedValC p:csrSortedRowPtrC "
    "p:csrSortedColIndC"
)


def _require_sizes(of: Arguments) -> None:
    require(of.m >= 0, of.n >= 0, of.nnzA >= 0, of.nnzB >= 0)


@computes(typed("cusparse{}csrgeam2_bufferSizeExt"), f"{_GEAM} p:pBufferSizeInBytes")
def geam_buffer_size(call: Call[Element]) -> Work:
    """Say how much of a buffer a sum uses."""
    of = call.arguments
    _require_sizes(of)
    tell_buffer(call, "pBufferSizeInBytes", of.pBufferSizeInBytes, buffer_bytes(of.m))
    return None


@computes(
    {"cusparseXcsrgeam2Nnz": None},
    "p:handle e:m e:n p:descrA e:nnzA p:csrSortedRowPtrA p:csrSortedColIndA p:descrB e:nnzB p:csrSortedRowPtrB "
    "p:csrSortedColIndB p:descrC p:csrSortedRowPtrC p:nnzTotalDevHostPtr p:workspace",
)
def geam_nnz(call: Call[None]) -> Work:
    """Find where the rows of a sum begin."""
    of = call.arguments
    _require_sizes(of)
    bases = {side: _base(call, side) for side in "ABC"}
    call.waits = call.settings[POINTER_MODE] == 0 and of.nnzTotalDevHostPtr != 0

    def run() -> None:
        call.use("workspace", of.workspace, buffer_bytes(of.m))
        places = np.union1d(*(_pattern(call, side, bases[side])[0] for side in "AB"))
        begins = offsets_of(places // max(1, of.n), of.m)
        Numbers("csrSortedRowPtrC", of.csrSortedRowPtrC, INT32, bases["C"]).write(call, begins)
        give_total(call, "nnzTotalDevHostPtr", of.nnzTotalDevHostPtr, len(places))

    return run


@computes(typed("cusparse{}csrgeam2"), f"{_GEAM} p:pBuffer")
def geam(call: Call[Element]) -> Work:
    """Compute C = alpha A + beta B, once it is known where the rows of C begin."""
    of, element = call.arguments, call.about
    _require_sizes(of)
    bases = {side: _base(call, side) for side in "ABC"}
    factors = {"A": scalar(call, "alpha", of.alpha, element), "B": scalar(call, "beta", of.beta, element)}

    def run() -> None:
        call.use("pBuffer", of.pBuffer, buffer_bytes(of.m))
        parts = []
        for side, factor in factors.items():
            places, first = _pattern(call, side, bases[side])
            name = f"csrSortedVal{side}"
            at = getattr(of, name) + first * element.size_bytes
            parts.append((places, factor() * call.read(name, at, element.stored, len(places))[0]))
        places = np.union1d(*(each for each, _ in parts))
        made = np.zeros(len(places), element.computed)
        for each, values in parts:
            np.add.at(made, np.searchsorted(places, each), values)
        rows, columns = _numbers(of, "C", bases["C"])
        rows.read(call, of.m + 1)
        columns.write(call, places % max(1, of.n))
        call.write("csrSortedValC", of.csrSortedValC, made)

    return run
