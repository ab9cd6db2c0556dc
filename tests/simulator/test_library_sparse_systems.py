"""cuSPARSE: systems with triangles and bands, and incomplete factors, equal what they are by their definitions."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.sparse
from tests.simulator.sparse_programs import (
    COLUMNS,
    INVALID,
    LETTERS,
    NUMBERS,
    ROWS,
    Sparse,
    operated,
    random_matrix,
    random_values,
    singles,
)

TYPES = tuple(LETTERS)
ZERO_PIVOT = 9


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


def square(size: int, kind: str = "csr", dtype: Any = np.float32) -> Any:
    """Return a matrix with a diagonal that is large."""
    made = random_matrix(size, size, "csr", dtype) + scipy.sparse.eye_array(size, dtype=dtype) * 4
    made = made.astype(dtype).tocsr()
    made.sort_indices()
    return made.asformat(kind)


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-4, atol=1e-5))


def triangle(on: Sparse, matrix: Any, *, upper: bool, unit: bool) -> tuple[int, Any]:
    """Return the descriptor of a matrix of which a triangle counts, and that triangle."""
    made = on.matrix(matrix).descriptor
    for attribute, value in enumerate((upper, unit)):
        number = ctypes.c_int(value)
        assert on.tell("SpMatSetAttribute", made, attribute, ctypes.addressof(number), 4) == 0
    part = np.triu(matrix.toarray()) if upper else np.tril(matrix.toarray())
    if unit:
        np.fill_diagonal(part, 1)
    return made, part


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("upper", "unit", "operation"), [*itertools.product((False, True), (False, True), (0, 1, 2))])
def test_triangle_and_vector(on: Sparse, upper: bool, unit: bool, operation: int, dtype: Any) -> None:
    a, part = triangle(on, square(6, dtype=dtype), upper=upper, unit=unit)
    x = random_values(6, dtype=dtype)
    result, block = on.vector(np.zeros(6, dtype))
    (alpha,) = on.scalars(2, dtype=dtype)
    work = on.descriptor("SpSV_createDescr")
    words = operation, alpha, a, on.vector(x)[0], result, NUMBERS[x.dtype], 0, work
    on.buffered("SpSV_analysis", *words)
    on.passes("SpSV_solve", *words)
    assert close(on.get(block, dtype, 6), np.linalg.solve(operated(part, operation), 2 * x))
    assert on.tell("SpSV_destroyDescr", work) == 0


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize(("operation", "order"), [*itertools.product((0, 1), (COLUMNS, ROWS))])
def test_triangle_and_matrix(on: Sparse, kind: str, operation: int, order: int) -> None:
    a, part = triangle(on, square(6, kind), upper=False, unit=False)
    b = random_values(6, 3)
    result, block = on.dense(np.zeros((6, 3), np.float32), order=order)
    (alpha,) = on.scalars(2)
    right = on.dense(operated(b, operation), order=order)[0]
    words = operation, operation, alpha, a, right, result, 0, 0, on.descriptor("SpSM_createDescr")
    on.buffered("SpSM_analysis", *words)
    on.passes("SpSM_solve", *words)
    wanted = np.linalg.solve(operated(part, operation), 2 * b)
    assert close(on.get_dense(block, np.float32, (6, 3), order), wanted)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_values_are_given_again(on: Sparse, diagonal: bool, several: bool) -> None:
    matrix = square(6)
    a, part = triangle(on, matrix, upper=False, unit=False)
    x, (one,) = random_values(6, 1), on.scalars(1)
    words: tuple[int, ...]
    if several:
        result, block = on.dense(np.zeros((6, 1), np.float32))
        words = 0, 0, one, a, on.dense(x)[0], result, 0, 0, on.descriptor("SpSM_createDescr")
    else:
        result, block = on.vector(np.zeros(6, np.float32))
        words = 0, one, a, on.vector(x[:, 0])[0], result, 0, 0, on.descriptor("SpSV_createDescr")
    name = "SpSM" if several else "SpSV"
    on.buffered(f"{name}_analysis", *words)
    given = np.arange(5, 11, dtype=np.float32) if diagonal else 2 * matrix.data
    on.passes(f"{name}_updateMatrix", words[-1], on.put(given), int(diagonal))
    on.passes(f"{name}_solve", *words)
    if diagonal:
        np.fill_diagonal(part, given)
    else:
        part = 2 * part
    assert close(on.get(block, np.float32, 6, 1), np.linalg.solve(part, x))


def test_a_solution_without_analysis_is_refused(on: Sparse) -> None:
    a, x = on.matrix(square(6)).descriptor, on.vector(random_values(6))[0]
    work = on.descriptor("SpSV_createDescr")
    assert on.answer("SpSV_solve", 0, on.scalars(1)[0], a, x, x, 0, 0, work) == INVALID
    assert on.answer("SpSV_solve", 0, on.scalars(1)[0], a, x, x, 0, 0, 0) == INVALID


def test_a_zero_on_the_diagonal_divides(on: Sparse) -> None:
    matrix = scipy.sparse.csr_array(singles([[0, 0], [1, 1]]))
    a = on.matrix(matrix).descriptor
    result, block = on.vector(np.zeros(2, np.float32))
    words = 0, on.scalars(1)[0], a, on.vector(singles([1, 1]))[0], result, 0, 0, on.descriptor("SpSV_createDescr")
    on.buffered("SpSV_analysis", *words)
    on.passes("SpSV_solve", *words)
    assert on.get(block, np.float32, 2)[0] == np.inf


class Factors:
    """An incomplete factorization in place."""

    def __init__(self, on: Sparse, name: str, matrix: Any) -> None:
        self.on, self.name, self.matrix, self.stored = on, f"{LETTERS[matrix.dtype.type]}{name}", matrix, None
        self.info = on.descriptor(f"Create{name.capitalize()}Info")
        stored = on.matrix(matrix)
        self.values, self.zero = stored.values, f"X{name}_zeroPivot"
        self.words = matrix.shape[0], matrix.nnz, on.description(), *stored_words(stored), self.info

    def analyse(self) -> int:
        """Begin; return the buffer."""
        buffer = self.on.room(self.on.number(f"{self.name}_bufferSize", *self.words, dtype=np.int32))
        assert self.on.number(f"{self.name}_bufferSizeExt", *self.words) > 0
        self.on.passes(f"{self.name}_analysis", *self.words, 0, buffer)
        return buffer

    def factor(self, buffer: int) -> Any:
        """Return the matrix with its factors in place."""
        self.on.passes(self.name, *self.words, 0, buffer)
        made = self.matrix.copy()
        made.data = self.on.get(self.values, self.matrix.dtype, self.matrix.nnz)
        return made.toarray()

    def pivot(self) -> tuple[int, int]:
        """Return the status that tells a pivot, and which it is."""
        position = np.zeros(1, np.int32)
        return self.on.answer(self.zero, self.info, position.ctypes.data), int(position[0])


def stored_words(stored: Any) -> tuple[int, int, int]:
    return stored.values, stored.first, stored.second


@pytest.mark.parametrize("dtype", TYPES)
def test_incomplete_lu(on: Sparse, dtype: Any) -> None:
    matrix = square(8, dtype=dtype)
    work = Factors(on, "csrilu02", matrix)
    buffer = work.analyse()
    assert work.pivot() == (0, -1)
    made = work.factor(buffer)
    assert work.pivot() == (0, -1)
    product = (np.tril(made, -1) + np.eye(8)) @ np.triu(made)
    pattern = matrix.toarray() != 0
    assert close(product[pattern], matrix.toarray()[pattern])


@pytest.mark.parametrize("dtype", TYPES)
def test_incomplete_cholesky(on: Sparse, dtype: Any) -> None:
    matrix = square(8, dtype=dtype)
    matrix = (matrix + matrix.conj().T).tocsr()
    matrix.sort_indices()
    work = Factors(on, "csric02", matrix)
    made = work.factor(work.analyse())
    assert work.pivot() == (0, -1)
    lower = np.tril(made)
    pattern = np.tril(matrix.toarray()) != 0
    assert close((lower @ lower.conj().T)[pattern], matrix.toarray()[pattern])
    upper = np.triu(matrix.toarray(), 1)
    assert (np.triu(made, 1) == upper).all()


@pytest.mark.parametrize("mode", [0, 1])
def test_a_pivot_that_is_missing_or_zero_is_told(on: Sparse, mode: int) -> None:
    whole = np.eye(4, dtype=np.float32)
    whole[3, 2] = 1
    whole[2, 2] = 0
    missing = Factors(on, "csrilu02", scipy.sparse.csr_array(whole))
    missing.analyse()
    assert missing.pivot() == (ZERO_PIVOT, 2)
    stored = scipy.sparse.csr_array(np.eye(3, dtype=np.float32))
    stored.data[1] = 0
    zero = Factors(on, "csrilu02", stored)
    buffer = zero.analyse()
    assert zero.pivot() == (0, -1)
    zero.factor(buffer)
    assert zero.pivot() == (ZERO_PIVOT, 1)
    on.setting("cusparseSetPointerMode", on.sparse, mode)
    place = on.room(4) if mode else np.zeros(1, np.int32).ctypes.data
    if mode:
        assert on.answer("Xcsrilu02_zeroPivot", zero.info, place) == ZERO_PIVOT
        assert on.get(place, np.int32, 1)[0] == 1


def test_small_pivots_are_boosted(on: Sparse) -> None:
    matrix = scipy.sparse.csr_array(np.eye(3, dtype=np.float64))
    matrix.data[1] = 1e-9
    work = Factors(on, "csrilu02", matrix)
    tolerance, value = on.scalars(1e-6, 0.5, dtype=np.float64)
    assert on.answer("Dcsrilu02_numericBoost", work.info, 1, tolerance, value) == 0
    assert (np.diag(work.factor(work.analyse())) == [1, 0.5, 1]).all()


def bands(count: int, beside: int, dtype: Any, batch: int = 1) -> tuple[list[Any], Any]:
    """Return the diagonals of matrices from the lowest one, and these matrices."""
    diagonals = [random_values(count, batch, dtype=dtype, seed=each) for each in range(2 * beside + 1)]
    diagonals[beside] = diagonals[beside] + 5
    matrices = np.zeros((batch, count, count), dtype)
    for number, diagonal in enumerate(diagonals):
        for row in range(count):
            if 0 <= row + number - beside < count:
                matrices[:, row, row + number - beside] = diagonal[row]
            else:
                diagonal[row] = 0
    return diagonals, matrices


@pytest.mark.parametrize("name", ["gtsv2", "gtsv2_nopivot"])
@pytest.mark.parametrize("dtype", TYPES)
def test_three_diagonals(on: Sparse, name: str, dtype: Any) -> None:
    diagonals, (matrix,) = bands(6, 1, dtype)
    b = np.zeros((7, 3), dtype, "F")
    b[:6] = random_values(6, 3, dtype=dtype)
    block = on.put(b)
    words = 6, 3, *(on.put(each) for each in diagonals), block, 7
    size_bytes = on.number(f"{LETTERS[dtype]}{name}_bufferSizeExt", *words)
    on.passes(f"{LETTERS[dtype]}{name}", *words, on.room(size_bytes))
    assert close(on.get(block, dtype, 7, 3)[:6], np.linalg.solve(matrix, b[:6]))


def test_three_diagonals_with_a_zero_first(on: Sparse) -> None:
    diagonals = [singles([0, 1, 1]), singles([0, 1, 2]), singles([1, 1, 0])]
    block = on.put(singles([1, 2, 3]))
    words = 3, 1, *(on.put(each) for each in diagonals), block, 3
    on.passes("Sgtsv2", *words, on.room(on.number("Sgtsv2_bufferSizeExt", *words)))
    matrix = singles([[0, 1, 0], [1, 1, 1], [0, 1, 2]])
    assert close(on.get(block, np.float32, 3), np.linalg.solve(matrix, [1, 2, 3]))


@pytest.mark.parametrize("dtype", TYPES)
def test_systems_that_follow_each_other(on: Sparse, dtype: Any) -> None:
    diagonals, matrices = bands(5, 1, dtype, 2)
    x = random_values(5, 2, dtype=dtype)
    blocks = [on.put(np.vstack([each, np.zeros((2, 2), dtype)])) for each in (*diagonals, x)]
    words = 5, *blocks, 2, 7
    name = f"{LETTERS[dtype]}gtsv2StridedBatch"
    on.passes(name, *words, on.room(on.number(f"{name}_bufferSizeExt", *words)))
    found = on.get(blocks[-1], dtype, 7, 2)[:5]
    assert all(close(found[:, each], np.linalg.solve(matrices[each], x[:, each])) for each in range(2))


@pytest.mark.parametrize(("name", "beside", "algorithm"), [("gtsv", 1, 0), ("gtsv", 1, 1), ("gpsv", 2, 0)])
@pytest.mark.parametrize("dtype", TYPES)
def test_systems_that_take_turns(on: Sparse, dtype: Any, name: str, beside: int, algorithm: int) -> None:
    diagonals, matrices = bands(5, beside, dtype, 3)
    x = random_values(5, 3, dtype=dtype)
    blocks = [on.put(each.T) for each in (*diagonals, x)]
    words = algorithm, 5, *blocks, 3
    function = f"{LETTERS[dtype]}{name}InterleavedBatch"
    on.passes(function, *words, on.room(on.number(f"{function}_bufferSizeExt", *words)))
    found = on.get(blocks[-1], dtype, 3, 5).T
    assert all(close(found[:, each], np.linalg.solve(matrices[each], x[:, each])) for each in range(3))
