"""cuSPARSE: products of sparse vectors and matrices with dense ones equal SciPy's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from tests.simulator.sparse_programs import (
    COLUMNS,
    INVALID,
    NUMBERS,
    ROWS,
    Sparse,
    operated,
    random_matrix,
    random_values,
)

TYPES = (np.float32, np.float64, np.complex64, np.complex128)
SINGLE = 0


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-5, atol=1e-5))


def blocks_of(matrix: Any, kind: str) -> Any:
    return matrix.tobsr((2, 3)) if kind == "bsr" else matrix.asformat(kind)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("kind", "operation"), [*itertools.product(("csr", "csc", "coo"), (0, 1, 2)), ("bsr", 0), ("bsr", 1)]
)
def test_matrix_times_vector(on: Sparse, kind: str, operation: int, dtype: Any) -> None:
    matrix = blocks_of(random_matrix(6, 9, dtype=dtype), kind)
    wanted = operated(matrix.toarray(), operation)
    x, y = random_values(wanted.shape[1], dtype=dtype), random_values(len(wanted), dtype=dtype, seed=1)
    alpha, beta = on.scalars(2, 3, dtype=dtype)
    result, block = on.vector(y)
    words = operation, alpha, on.matrix(matrix).descriptor, on.vector(x)[0], beta, result, NUMBERS[x.dtype], 0
    on.passes("SpMV_preprocess", *words, on.room(on.number("SpMV_bufferSize", *words)))
    on.buffered("SpMV", *words)
    assert close(on.get(block, dtype, len(y)), 2 * wanted @ x + 3 * y)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_indices_of_any_kind(on: Sparse, kind: str, base: int, index: Any) -> None:
    matrix, x = random_matrix(6, 4, kind), random_values(4)
    result, block = on.vector(np.zeros(6, np.float32))
    stored = on.matrix(matrix, index=index, base=base)
    alpha, zero = on.scalars(1, 0)
    on.buffered("SpMV", 0, alpha, stored.descriptor, on.vector(x)[0], zero, result, SINGLE, 0)
    assert close(on.get(block, np.float32, 6), matrix @ x)


@pytest.mark.parametrize(
    ("a", "y", "computed"),
    [(np.int8, np.int32, np.int32), (np.int8, np.float32, np.float32), (np.float16, np.float16, np.float32),
     (np.float16, np.float32, np.float32)],
)  # fmt: skip
def test_types_that_are_mixed(on: Sparse, a: Any, y: Any, computed: Any) -> None:
    matrix = random_matrix(6, 4, dtype=np.int32).astype(np.float32)
    stored = on.matrix(type(matrix)((matrix.data.astype(a), matrix.indices, matrix.indptr), matrix.shape))
    x = random_values(4, dtype=np.int8)
    result, block = on.vector(np.zeros(6, y))
    alpha, zero = on.scalars(1, 0, dtype=computed)
    words = 0, alpha, stored.descriptor, on.vector(x.astype(a))[0], zero, result, NUMBERS[np.dtype(computed)], 0
    on.buffered("SpMV", *words)
    assert close(on.get(block, y, 6), (matrix @ x.astype(np.float32)))


@pytest.mark.parametrize(
    ("kind", "operation_a", "operation_b", "order"),
    [*itertools.product(("csr", "csc", "coo"), (0, 1), (0, 1), (COLUMNS, ROWS)), ("bsr", 0, 0, COLUMNS)],
)
def test_matrix_times_matrix(on: Sparse, kind: str, operation_a: int, operation_b: int, order: int) -> None:
    matrix = blocks_of(random_matrix(6, 9), kind)
    a = operated(matrix.toarray(), operation_a)
    b, c = random_values(a.shape[1], 5), random_values(len(a), 5, seed=1)
    alpha, beta = on.scalars(2, 3)
    result, block = on.dense(c, order=order)
    other = on.dense(operated(b, operation_b), order=order)[0]
    words = operation_a, operation_b, alpha, on.matrix(matrix).descriptor, other, beta, result, SINGLE, 0
    on.passes("SpMM_preprocess", *words, on.room(on.number("SpMM_bufferSize", *words)))
    on.buffered("SpMM", *words)
    assert close(on.get_dense(block, np.float32, c.shape, order), 2 * a @ b + 3 * c)


def test_conjugates(on: Sparse) -> None:
    matrix, b = random_matrix(6, 9, dtype=np.complex64), random_values(5, 6, dtype=np.complex64)
    alpha, zero = on.scalars(1, 0, dtype=np.complex64)
    result, block = on.dense(np.zeros((9, 5), np.complex64))
    on.buffered("SpMM", 2, 2, alpha, on.matrix(matrix).descriptor, on.dense(b)[0], zero, result, 4, 0)
    assert close(on.get(block, np.complex64, 9, 5), matrix.toarray().conj().T @ b.conj().T)


@pytest.mark.parametrize("shared", [False, True])
def test_batches(on: Sparse, shared: bool) -> None:
    matrices = [random_matrix(4, 4, seed=each) for each in range(2)]
    count = max(each.nnz for each in matrices)
    data, indices = np.zeros((2, count), np.float32), np.zeros((2, count), np.int32)
    for number, each in enumerate(matrices):
        data[number, : each.nnz], indices[number, : each.nnz] = each.data, each.indices
    offsets = on.put(np.concatenate([each.indptr for each in matrices]).astype(np.int32))
    a = on.descriptor("CreateCsr", 4, 4, count, offsets, on.put(indices.T), on.put(data.T), 2, 2, 0, SINGLE)
    if not shared:
        assert on.tell("CsrSetStridedBatch", a, 2, 5, count) == 0
    b = random_values(4, 3, 2)
    places = on.put(b), on.room(96)
    dense = [on.descriptor("CreateDnMat", 4, 3, 4, each, SINGLE, COLUMNS) for each in places]
    for each in dense:
        assert on.tell("DnMatSetStridedBatch", each, 2, 12) == 0
    alpha, zero = on.scalars(1, 0)
    on.buffered("SpMM", 0, 0, alpha, a, dense[0], zero, dense[1], SINGLE, 0)
    found = on.get(places[1], np.float32, 4, 3, 2)
    assert all(close(found[..., each], matrices[0 if shared else each] @ b[..., each]) for each in range(2))


def test_scalars_on_the_device(on: Sparse) -> None:
    matrix, x, y = random_matrix(6, 4), random_values(4), random_values(6)
    result, block = on.vector(y)
    on.setting("cusparseSetPointerMode", on.sparse, 1)
    alpha, beta = on.put(np.array(2, np.float32)), on.put(np.array(3, np.float32))
    on.buffered("SpMV", 0, alpha, on.matrix(matrix).descriptor, on.vector(x)[0], beta, result, SINGLE, 0)
    assert close(on.get(block, np.float32, 6), 2 * matrix @ x + 3 * y)


def test_elements_that_no_index_names_are_not_read(on: Sparse) -> None:
    matrix = random_matrix(6, 4)
    matrix = type(matrix)(np.array([[0, 1, 0, 0, 2, 0]] * 6, np.float32))
    x = on.room(24)
    on.client.ok("Memcpy", x + 4, np.float32(5).tobytes(), 4, 1)
    on.client.ok("Memcpy", x + 16, np.float32(7).tobytes(), 4, 1)
    result, block = on.vector(np.zeros(6, np.float32))
    alpha, zero = on.scalars(1, 0)
    vector = on.descriptor("CreateDnVec", 6, x, SINGLE)
    on.buffered("SpMV", 0, alpha, on.matrix(matrix).descriptor, vector, zero, result, SINGLE, 0)
    assert (on.get(block, np.float32, 6) == 19).all()


def sparse_vector(on: Sparse, size: int, places: Any, values: Any) -> tuple[int, int]:
    block = on.put(values)
    made = on.descriptor("CreateSpVec", size, len(values), on.put(places), block, 2, 0, NUMBERS[values.dtype])
    return made, block


@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_vectors(on: Sparse, dtype: Any) -> None:
    places, values, dense = np.array([1, 4, 2], np.int32), random_values(3, dtype=dtype), random_values(6, dtype=dtype)
    x, x_block = sparse_vector(on, 6, places, values)
    y, y_block = on.vector(dense)
    on.passes("Gather", y, x)
    assert (on.get(x_block, dtype, 3) == dense[places]).all()
    x, x_block = sparse_vector(on, 6, places, values)
    on.passes("Scatter", x, y)
    dense[places] = values
    assert (on.get(y_block, dtype, 6) == dense).all()
    for beta in (1, 3, 0):
        on.passes("Axpby", on.scalars(2, dtype=dtype)[0], x, on.scalars(beta, dtype=dtype)[0], y)
        dense = beta * dense
        np.add.at(dense, places, 2 * values)
        assert close(on.get(y_block, dtype, 6), dense)
    on.passes("Rot", *on.scalars(0.6, 0.8, dtype=dtype), x, y)
    old = dense[places]
    dense[places] = 0.6 * old - 0.8 * values
    assert close(on.get(x_block, dtype, 3), 0.6 * values + 0.8 * old)
    assert close(on.get(y_block, dtype, 6), dense)


@pytest.mark.parametrize("operation", [0, 2])
@pytest.mark.parametrize("mode", [0, 1])
def test_product_of_vectors(on: Sparse, mode: int, operation: int) -> None:
    places, values, dense = np.array([1, 4], np.int32), random_values(2, dtype=np.complex64), None
    dense = random_values(6, dtype=np.complex64)
    x, y = sparse_vector(on, 6, places, values)[0], on.vector(dense)[0]
    on.setting("cusparseSetPointerMode", on.sparse, mode)
    result = np.zeros(1, np.complex64)
    place = on.room(8) if mode else result.ctypes.data
    on.buffered("SpVV", operation, x, y, place, 4)
    found = on.get(place, np.complex64, 1) if mode else result
    assert close(found, (values.conj() if operation else values) @ dense[places])


@pytest.mark.parametrize(("kind", "operation"), [*itertools.product(("csr", "csc", "coo"), (0, 1))])
def test_products_where_a_matrix_has_elements(on: Sparse, kind: str, operation: int) -> None:
    a, b, c = random_values(6, 3), random_values(3, 4, seed=1), random_matrix(6, 4, kind)
    stored = on.matrix(c)
    alpha, beta = on.scalars(2, 3)
    first, second = on.dense(operated(a, operation))[0], on.dense(operated(b, operation), order=ROWS)[0]
    words = operation, operation, alpha, first, second, beta, stored.descriptor, SINGLE, 0
    on.passes("SDDMM_preprocess", *words, on.room(on.number("SDDMM_bufferSize", *words)))
    on.buffered("SDDMM", *words)
    pattern = c.tocoo()
    wanted = 2 * (a @ b)[pattern.row, pattern.col] + 3 * c.data
    assert close(on.get(stored.values, np.float32, c.nnz), wanted)


def test_an_index_out_of_the_matrix_leads_where_it_points(on: Sparse) -> None:
    """Into the same block here: what a GPU would read and write there."""
    matrix = random_matrix(3, 4, "coo")
    matrix.row[0], matrix.col[0] = 4, 5
    x = random_values(8)
    result, block = on.vector(np.zeros(8, np.float32), 3)
    alpha, zero = on.scalars(1, 0)
    on.buffered("SpMV", 0, alpha, on.matrix(matrix).descriptor, on.vector(x, 4)[0], zero, result, SINGLE, 0)
    wanted = np.zeros(8, np.float32)
    np.add.at(wanted, matrix.row, matrix.data * x[matrix.col])
    assert close(on.get(block, np.float32, 8), wanted)


def test_wrong_arguments_are_refused(libraries: Callable[..., Any]) -> None:
    on = libraries(Sparse)
    alpha, zero = on.scalars(1, 0)
    a, x, y = on.matrix(random_matrix(3, 4)).descriptor, on.vector(random_values(4))[0], on.vector(random_values(3))[0]
    assert on.answer("SpMV", 1, alpha, a, x, zero, y, SINGLE, 0, 0) == INVALID
    assert on.answer("SpMV", 5, alpha, a, x, zero, y, SINGLE, 0, 0) == INVALID
    assert on.answer("SpMV", 0, alpha, x, x, zero, y, SINGLE, 0, 0) == INVALID
    assert on.answer("SpMV_bufferSize", 0, alpha, a, x, zero, y, SINGLE, 0, 0) == INVALID
    assert on.tell("DestroyDnVec", y) == 0


def test_types_that_nothing_describes_fail_by_name(libraries: Callable[..., Any], capfd: Any) -> None:
    on = libraries(Sparse)
    alpha, zero = on.scalars(1, 0)
    a, x, y = on.matrix(random_matrix(3, 4)).descriptor, on.vector(random_values(4))[0], on.vector(random_values(3))[0]
    assert on.answer("SpMV", 0, alpha, a, x, zero, y, 28, 0, 0) == 10
    assert "cusparseSpMV" in capfd.readouterr().err
