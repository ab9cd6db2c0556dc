"""cuSPARSE: products of two sparse matrices, step by step, equal SciPy's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.sparse
from tests.simulator.sparse_programs import INVALID, LETTERS, NUMBERS, Sparse, random_matrix, singles

TYPES = tuple(LETTERS)


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


class Product:
    """A product of two matrices, whose steps are called one by one."""

    def __init__(self, on: Sparse, a: Any, b: Any, index: Any = np.int32) -> None:
        self.on, self.rows, self.dtype, self.index = on, a.shape[0], a.dtype, np.dtype(index)
        self.offsets = on.room((self.rows + 1) * self.index.itemsize)
        kind = NUMBERS[a.dtype]
        numbers = [{4: 2, 8: 3}[self.index.itemsize]] * 2
        self.result = on.descriptor("CreateCsr", a.shape[0], b.shape[1], 0, self.offsets, 0, 0, *numbers, 0, kind)
        self.work = on.descriptor("SpGEMM_createDescr")
        self.alpha, self.zero = on.scalars(2, 0, dtype=a.dtype)
        self.operands = [on.matrix(each, index=index).descriptor for each in (a, b)]
        self.words = 0, 0, self.alpha, *self.operands, self.zero, self.result, kind, 0, self.work
        self.pattern_words = 0, 0, *self.operands, self.result, 0, self.work

    def step(self, name: str, *before: Any, count: int = 1, pattern: bool = False, short: int = 0) -> list[int]:
        """Ask for the sizes of buffers and call a step with them; return the buffers."""
        sizes = np.zeros(count, np.uint64)
        places = [int(sizes.ctypes.data) + 8 * each for each in range(count)]
        words = (*(self.pattern_words if pattern else self.words), *before)
        none = [word for place in places for word in (place, 0)]
        self.on.passes(name, *words, *none)
        buffers = [self.on.room(int(size) - short) for size in sizes]
        both = [word for pair in zip(places, buffers, strict=True) for word in pair]
        self.on.passes(name, *words, *both)
        return buffers

    def place(self) -> tuple[int, int, int]:
        """Make room for as many elements as were found; return how many, and where columns and values are."""
        sizes = np.zeros(3, np.int64)
        at = int(sizes.ctypes.data)
        assert self.on.tell("SpMatGetSize", self.result, at, at + 8, at + 16) == 0
        count = int(sizes[2])
        columns, values = (self.on.room(count * size) for size in (self.index.itemsize, self.dtype.itemsize))
        assert self.on.tell("CsrSetPointers", self.result, self.offsets, columns, values) == 0
        return count, columns, values

    def check(self, count: int, columns: int, values: int, wanted: Any) -> None:
        """Compare the result."""
        wanted.sort_indices()
        assert count == wanted.nnz
        assert list(self.on.get(self.offsets, self.index, self.rows + 1)) == list(wanted.indptr)
        assert list(self.on.get(columns, self.index, count)) == list(wanted.indices)
        assert np.allclose(self.on.get(values, self.dtype, count), wanted.data, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES)
def test_in_three_steps(on: Sparse, dtype: Any, index: Any) -> None:
    a, b = random_matrix(5, 7, dtype=dtype), random_matrix(7, 4, dtype=dtype)
    product = Product(on, a, b, index)
    product.step("SpGEMM_workEstimation")
    products = ctypes.c_int64()
    assert on.tell("SpGEMM_getNumProducts", product.work, ctypes.addressof(products)) == 0
    assert products.value == (abs(a) > 0).astype(int).dot((abs(b) > 0).astype(int)).sum()
    product.step("SpGEMM_compute")
    found = product.place()
    on.passes("SpGEMM_copy", *product.words)
    product.check(*found, 2 * (a @ b).tocsr())


def test_with_an_estimate_of_memory(on: Sparse) -> None:
    a, b = random_matrix(5, 7), random_matrix(7, 4)
    product = Product(on, a, b)
    product.step("SpGEMM_workEstimation")
    sizes = np.zeros(2, np.uint64)
    third, second = int(sizes.ctypes.data), int(sizes.ctypes.data) + 8
    chunk = ctypes.c_float(0.5)
    on.passes("SpGEMM_estimateMemory", *product.words, chunk, third, 0, 0)
    on.passes("SpGEMM_estimateMemory", *product.words, chunk, third, on.room(int(sizes[0])), second)
    on.passes("SpGEMM_compute", *product.words, second, on.room(int(sizes[1])))
    found = product.place()
    on.passes("SpGEMM_copy", *product.words)
    product.check(*found, 2 * (a @ b).tocsr())


def test_an_element_that_comes_out_as_zero_is_one(on: Sparse) -> None:
    a, b = scipy.sparse.csr_array(singles([[1, -1]])), scipy.sparse.csr_array(singles([[1], [1]]))
    product = Product(on, a, b)
    product.step("SpGEMM_workEstimation")
    product.step("SpGEMM_compute")
    count, columns, values = product.place()
    on.passes("SpGEMM_copy", *product.words)
    assert (count, on.get(columns, np.int32, 1)[0], on.get(values, np.float32, 1)[0]) == (1, 0, 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_with_a_pattern_that_is_used_again(on: Sparse, dtype: Any) -> None:
    a, b = random_matrix(5, 7, dtype=dtype), random_matrix(7, 4, dtype=dtype)
    product = Product(on, a, b)
    first = product.step("SpGEMMreuse_workEstimation", pattern=True)
    second = product.step("SpGEMMreuse_nnz", count=3, pattern=True)
    on.client.ok("Free", first[0])
    on.client.ok("Free", second[0])
    found = product.place()
    product.step("SpGEMMreuse_copy", pattern=True)
    on.client.ok("Free", second[1])
    on.passes("SpGEMMreuse_compute", *product.words)
    wanted = (a @ b).tocsr()
    product.check(*found, 2 * wanted)
    again = on.scalars(1, 3, dtype=dtype)
    on.passes("SpGEMMreuse_compute", 0, 0, again[0], *product.operands, again[1], product.result, *product.words[7:])
    product.check(*found, 7 * wanted)


def test_steps_that_were_left_out_are_refused(libraries: Callable[..., Any]) -> None:
    on = libraries(Sparse)
    product = Product(on, random_matrix(5, 7), random_matrix(7, 4))
    size = np.zeros(1, np.uint64)
    assert on.answer("SpGEMM_compute", *product.words, size.ctypes.data, 0) == INVALID
    assert on.answer("SpGEMM_copy", *product.words) == INVALID
    assert on.tell("SpGEMM_destroyDescr", product.work) == 0


def test_transposed_matrices_fail_by_name(libraries: Callable[..., Any], capfd: Any) -> None:
    on = libraries(Sparse)
    product = Product(on, random_matrix(5, 5), random_matrix(5, 5))
    size = np.zeros(1, np.uint64)
    assert on.answer("SpGEMM_workEstimation", 1, *product.words[1:], size.ctypes.data, 0) == 10
    assert "cusparseSpGEMM_workEstimation" in capfd.readouterr().err
