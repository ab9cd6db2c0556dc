"""Faults in calls of cuSPARSE: each is found, with the operand's name, and its correct twin is clean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.sparse
from tests.simulator.library_faults import Fault
from tests.simulator.sparse_programs import COLUMNS, Sparse, random_matrix, random_values

from quiesce.model.rules import Kind

SINGLE: Final = 0


def product(
    on: Sparse, *, kind: str = "csr", short: dict[str, int] | None = None, beta: float = 0, lacks: int = 0, **more: Any
) -> Any:
    """Multiply a matrix and a vector; return what the matrix is stored in."""
    matrix = more.get("matrix", random_matrix(8, 8, kind))
    stored = on.matrix(matrix, short=short)
    x = more.get("x") or on.vector(random_values(8))[0]
    result = on.room(32)
    y = more.get("y") or on.descriptor("CreateDnVec", 8, result, SINGLE)
    alpha, old = on.scalars(1, beta)
    words = 0, alpha, stored.descriptor, x, old, y, SINGLE, 0
    buffer = on.room(on.number("SpMV_bufferSize", *words) - lacks)
    if more.get("before"):
        more["before"](stored)
    on.passes("SpMV", *words, buffer)
    if "y" not in more:
        on.get(result, np.float32, 8)  # which was written, whatever was wrong
    return stored


def short_offsets(on: Sparse, wrong: bool) -> None:
    product(on, short={"first": 4} if wrong else None)


def short_indices(on: Sparse, wrong: bool) -> None:
    product(on, short={"second": 4} if wrong else None)


def short_values(on: Sparse, wrong: bool) -> None:
    product(on, kind="coo", short={"values": 4} if wrong else None)


def short_result(on: Sparse, wrong: bool) -> None:
    product(on, y=on.descriptor("CreateDnVec", 8, on.room(28 if wrong else 32), SINGLE))


def short_buffer(on: Sparse, wrong: bool) -> None:
    product(on, lacks=1 if wrong else 0)


def freed_values(on: Sparse, wrong: bool) -> None:
    product(on, before=lambda stored: on.client.ok("Free", stored.values) if wrong else None)


def unwritten_result(on: Sparse, wrong: bool) -> None:
    product(on, beta=1 if wrong else 0)


def index_out_of_the_matrix(on: Sparse, wrong: bool) -> None:
    matrix = random_matrix(8, 8)
    matrix.indices[3] = 9 if wrong else matrix.indices[3]
    product(on, matrix=matrix)


def negative_index(on: Sparse, wrong: bool) -> None:
    matrix = random_matrix(8, 8, "coo")
    matrix.col[3] = -1 if wrong else matrix.col[3]
    product(on, matrix=matrix)


def row_out_of_the_matrix(on: Sparse, wrong: bool) -> None:
    matrix = random_matrix(8, 8, "coo")
    matrix.row[-1] = 8 if wrong else 7
    product(on, matrix=matrix)


def offset_that_is_wild(on: Sparse, wrong: bool) -> None:
    matrix = random_matrix(8, 8)
    matrix.indptr[4] = 1 << 24 if wrong else matrix.indptr[4]
    product(on, matrix=matrix)


def unwritten_element(on: Sparse, wrong: bool) -> None:
    matrix, x = random_matrix(8, 8), on.room(32)
    matrix.indices[:] = np.where(matrix.indices == 5, 5 if wrong else 4, matrix.indices)
    on.client.ok("Memcpy", x, bytes(20), 20, 1)
    on.client.ok("Memcpy", x + 24, bytes(8), 8, 1)
    product(on, matrix=matrix, x=on.descriptor("CreateDnVec", 8, x, SINGLE))


def race(on: Sparse, wrong: bool) -> None:
    first, second = on.stream(), on.stream()
    on.setting("cusparseSetStream", on.sparse, first)
    y = on.descriptor("CreateDnVec", 8, on.room(32), SINGLE)
    stored = product(on, y=y, before=lambda _: on.wait())
    if not wrong:
        event = on.client.make("EventCreate")
        on.client.ok("EventRecord", event, first)
        on.client.ok("StreamWaitEvent", second, event, 0)
    on.client.ok("MemsetAsync", stored.values, 0, ctypes.c_size_t(64), ctypes.c_void_p(second))


def leading_dimension(on: Sparse, wrong: bool) -> None:
    b, c = random_values(8, 8), on.room(256)
    dense = on.dense(b, ld=12 if wrong else 8)[0]
    alpha, zero = on.scalars(1, 0)
    words = 0, 0, alpha, on.matrix(random_matrix(8, 8)).descriptor, dense, zero
    on.buffered("SpMM", *words, on.descriptor("CreateDnMat", 8, 8, 8, c, SINGLE, COLUMNS), SINGLE, 0)


def system(on: Sparse, *, frees: bool = False, lacks: int = 0) -> None:
    """Solve a system; ``frees``: the buffer of the analysis, before the solution reads it."""
    matrix = random_matrix(8, 8) + 4 * np.eye(8, dtype=np.float32)
    a = on.matrix(scipy.sparse.csr_array(matrix.astype(np.float32))).descriptor
    y = on.descriptor("CreateDnVec", 8, on.room(32), SINGLE)
    words = 0, on.scalars(1)[0], a, on.vector(random_values(8))[0], y, SINGLE, 0, on.descriptor("SpSV_createDescr")
    buffer = on.buffered("SpSV_analysis", *words, short=lacks)
    if frees:
        on.client.ok("Free", buffer)
    on.passes("SpSV_solve", *words)


def freed_buffer_of_a_system(on: Sparse, wrong: bool) -> None:
    system(on, frees=wrong)


def short_buffer_of_a_system(on: Sparse, wrong: bool) -> None:
    system(on, lacks=4 if wrong else 0)


def short_indices_of_a_result(on: Sparse, wrong: bool) -> None:
    matrix = random_matrix(8, 8)
    dense = on.dense(np.asfortranarray(matrix.toarray()))[0]
    offsets, indices = on.room(36), on.room(4 * matrix.nnz - (4 if wrong else 0))
    words = 8, 8, matrix.nnz, offsets, indices, on.room(4 * matrix.nnz), 2, 2, 0, SINGLE
    made = on.descriptor("CreateCsr", *words)
    on.passes("DenseToSparse_convert", dense, made, 0, on.room(on.number("DenseToSparse_bufferSize", dense, made, 0)))


def row_of_another_matrix(on: Sparse, wrong: bool) -> None:
    """A product of sparse matrices, of which the first names a row that the second has not."""
    a, b = random_matrix(4, 4), random_matrix(4, 4)
    a.indices[0] = 6 if wrong else a.indices[0]
    kind = 2, 2, 0, SINGLE
    result = on.descriptor("CreateCsr", 4, 4, 0, on.room(20), 0, 0, *kind)
    alpha, zero = on.scalars(1, 0)
    words = 0, 0, alpha, on.matrix(a).descriptor, on.matrix(b).descriptor, zero, result, SINGLE, 0
    size, work = np.zeros(1, np.uint64), on.descriptor("SpGEMM_createDescr")
    on.passes("SpGEMM_workEstimation", *words, work, size.ctypes.data, 0)
    on.answer("SpGEMM_workEstimation", *words, work, size.ctypes.data, on.room(int(size[0])))


AFTER: Final = "after the end"
FAULTS: Final = (
    Fault(short_offsets, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", AFTER, "its operand rows of matA")),
    Fault(short_indices, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", AFTER, "its operand columns of matA")),
    Fault(short_values, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", AFTER, "its operand matA")),
    Fault(short_result, Kind.OUT_OF_BOUNDS, ("cusparseSpMV writes 4 bytes", AFTER, "its operand vecY")),
    Fault(short_buffer, Kind.OUT_OF_BOUNDS, ("cusparseSpMV writes", AFTER, "its operand externalBuffer")),
    Fault(freed_values, Kind.USE_AFTER_FREE, ("cusparseSpMV reads", "freed before", "its operand matA")),
    Fault(unwritten_result, Kind.UNWRITTEN, ("cusparseSpMV reads", "which nobody has written", "its operand vecY")),
    Fault(index_out_of_the_matrix, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", AFTER, "its operand vecX")),
    Fault(negative_index, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", "before the start", "its operand vecX")),
    Fault(row_out_of_the_matrix, Kind.OUT_OF_BOUNDS, ("cusparseSpMV writes 4 bytes", AFTER, "its operand vecY")),
    Fault(offset_that_is_wild, Kind.OUT_OF_BOUNDS, ("cusparseSpMV reads 4 bytes", "its operand columns of matA")),
    Fault(unwritten_element, Kind.UNWRITTEN, ("cusparseSpMV reads 4 bytes", "its operand vecX")),
    Fault(race, Kind.RACE, ("cusparseSpMV reads them at its operand matA",)),
    Fault(leading_dimension, Kind.OUT_OF_BOUNDS, ("cusparseSpMM reads", AFTER, "its operand matB")),
    Fault(freed_buffer_of_a_system, Kind.USE_AFTER_FREE, ("cusparseSpSV_solve reads", "its operand externalBuffer")),
    Fault(short_buffer_of_a_system, Kind.OUT_OF_BOUNDS, ("cusparseSpSV_analysis", AFTER, "operand externalBuffer")),
    Fault(short_indices_of_a_result, Kind.OUT_OF_BOUNDS, ("cusparseDenseToSparse_convert", "columns of matB")),
    Fault(row_of_another_matrix, Kind.OUT_OF_BOUNDS, ("cusparseSpGEMM_workEstimation", AFTER, "rows of matB")),
)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_a_fault_is_found_with_its_operand(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.is_found(libraries(Sparse, schedule=schedule, redzone=4096))


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_its_twin_is_clean(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.has_a_clean_twin(libraries(Sparse, schedule=schedule))
