"""cuSPARSE: products and systems with matrices of blocks equal those of the whole matrix."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from tests.simulator.library_programs import Array
from tests.simulator.sparse_programs import LETTERS, Sparse, operated, random_matrix, random_values

from quiesce.model.rules import Kind

TYPES = tuple(LETTERS)
ZERO_PIVOT = 9


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-4, atol=1e-5))


def stored(on: Sparse, matrix: Any, direction: int, description: int = 0) -> tuple[int, ...]:
    """Store a matrix of blocks of SciPy; return the words that describe it."""
    blocks = matrix.data if direction == 0 else matrix.data.transpose(0, 2, 1)
    values = on.put(np.ascontiguousarray(blocks).ravel())
    places = on.put(matrix.indptr.astype(np.int32)), on.put(matrix.indices.astype(np.int32))
    return description or on.description(), values, *places, matrix.blocksize[0]


@pytest.mark.parametrize(("direction", "operation"), [*itertools.product((0, 1), (0, 1))])
@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_times_vector(on: Sparse, dtype: Any, direction: int, operation: int) -> None:
    matrix = random_matrix(6, 8, dtype=dtype).tobsr((2, 2))
    wanted = operated(matrix.toarray(), operation)
    x, y = random_values(wanted.shape[1], dtype=dtype), random_values(len(wanted), dtype=dtype, seed=1)
    alpha, beta = on.scalars(2, 3, dtype=dtype)
    block = on.put(y)
    words = direction, operation, 3, 4, len(matrix.indices), alpha, *stored(on, matrix, direction)
    on.passes(f"{LETTERS[dtype]}bsrmv", *words, on.put(x), beta, block)
    assert close(on.get(block, dtype, len(y)), 2 * wanted @ x + 3 * y)


@pytest.mark.parametrize("operation", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_times_matrix(on: Sparse, dtype: Any, operation: int) -> None:
    matrix, b = random_matrix(6, 8, dtype=dtype).tobsr((2, 2)), random_values(8, 3, dtype=dtype)
    alpha, zero = on.scalars(2, 0, dtype=dtype)
    block = on.room(18 * np.dtype(dtype).itemsize)
    words = 0, 0, operation, 3, 3, 4, len(matrix.indices), alpha, *stored(on, matrix, 0)
    right = operated(b, operation)
    on.passes(f"{LETTERS[dtype]}bsrmm", *words, on.put(right), len(right), zero, block, 6)
    assert close(on.get(block, dtype, 6, 3), 2 * matrix.toarray() @ b)


def triangle(dtype: Any, upper: bool) -> tuple[Any, Array]:
    """Return a matrix of blocks, and the triangle of it that counts."""
    whole = random_matrix(6, 6, dtype=dtype).toarray() + 4 * np.eye(6)
    return random_matrix(6, 6).__class__(whole.astype(dtype)).tobsr((2, 2)), np.triu(whole) if upper else np.tril(whole)


@pytest.mark.parametrize(("upper", "operation"), [*itertools.product((False, True), (0, 1))])
@pytest.mark.parametrize("dtype", TYPES)
def test_triangle_of_blocks(on: Sparse, dtype: Any, upper: bool, operation: int) -> None:
    matrix, part = triangle(dtype, upper)
    letter, f, description = LETTERS[dtype], random_values(6, dtype=dtype), on.description()
    assert on.tell("SetMatFillMode", description, int(upper)) == 0
    info, words, block = on.descriptor("CreateBsrsv2Info"), stored(on, matrix, 1, description), on.room(96)
    before = 1, operation, 3, len(matrix.indices)
    size_bytes = on.number(f"{letter}bsrsv2_bufferSize", *before, *words, info, dtype=np.int32)
    buffer = on.room(size_bytes)
    on.passes(f"{letter}bsrsv2_analysis", *before, *words, info, 0, buffer)
    last = info, on.put(f), block, 0, buffer
    on.passes(f"{letter}bsrsv2_solve", *before, on.scalars(2, dtype=dtype)[0], *words, *last)
    assert close(on.get(block, dtype, 6), np.linalg.solve(operated(part, operation), 2 * f))
    position = np.zeros(1, np.int32)
    assert on.answer("Xbsrsv2_zeroPivot", info, position.ctypes.data) == 0


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_triangle_of_blocks_with_several_right_sides(on: Sparse, dtype: Any, turned: int) -> None:
    matrix, part = triangle(dtype, False)
    letter, b = LETTERS[dtype], random_values(6, 3, dtype=dtype)
    info, words, block = on.descriptor("CreateBsrsm2Info"), stored(on, matrix, 0), on.room(288)
    before, right = (0, 0, turned, 3, 3, len(matrix.indices)), operated(b, turned)
    buffer = on.room(on.number(f"{letter}bsrsm2_bufferSizeExt", *before, *words, info))
    on.passes(f"{letter}bsrsm2_analysis", *before, *words, info, 0, buffer)
    last = info, on.put(right), len(right), block, len(right), 0, buffer
    on.passes(f"{letter}bsrsm2_solve", *before, on.scalars(2, dtype=dtype)[0], *words, *last)
    assert close(operated(on.get(block, dtype, *right.shape), turned), np.linalg.solve(part, 2 * b))


def test_a_block_that_is_missing_is_told(on: Sparse) -> None:
    whole = np.kron(np.diag([1, 0, 1]), np.ones((2, 2))).astype(np.float32)
    whole[2, 0] = 1
    matrix = random_matrix(6, 6).__class__(whole).tobsr((2, 2))
    info, words = on.descriptor("CreateBsrsv2Info"), stored(on, matrix, 0)
    before = 0, 0, 3, len(matrix.indices)
    buffer = on.room(on.number("Sbsrsv2_bufferSizeExt", *before, *words, info))
    on.passes("Sbsrsv2_analysis", *before, *words, info, 0, buffer)
    position = np.zeros(1, np.int32)
    assert on.answer("Xbsrsv2_zeroPivot", info, position.ctypes.data) == ZERO_PIVOT
    assert position[0] == 1


def test_values_that_are_too_few_are_found(libraries: Callable[..., Any]) -> None:
    on = libraries(Sparse, redzone=4096)
    matrix = random_matrix(6, 8).tobsr((2, 2))
    description, _, *places = stored(on, matrix, 0)
    values = on.put(np.ones(matrix.data.size - 1, np.float32))
    alpha, zero = on.scalars(1, 0)
    words = 0, 0, 3, 4, len(matrix.indices), alpha, description, values, *places
    on.passes("Sbsrmv", *words, on.put(random_values(8)), zero, on.room(24))
    on.wait()
    (finding,) = on.findings()
    assert finding.kind is Kind.OUT_OF_BOUNDS
    assert "cusparseSbsrmv reads 4 bytes" in finding.observed
    assert "its operand bsrSortedValA" in finding.observed
