"""cuSPARSE: matrices become others of another format, are sorted and added as SciPy does it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.sparse
from tests.simulator.sparse_programs import (
    COLUMNS,
    INDEX_NUMBERS,
    INVALID,
    LETTERS,
    NUMBERS,
    ROWS,
    Sparse,
    random_matrix,
)

TYPES = tuple(LETTERS)


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


def numbers(on: Sparse, address: int, count: int, dtype: Any = np.int32) -> list[Any]:
    return list(on.get(address, dtype, count))


@pytest.mark.parametrize("order", [COLUMNS, ROWS])
@pytest.mark.parametrize("dtype", [*TYPES, np.float16])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_to_a_dense_matrix(on: Sparse, kind: str, dtype: Any, order: int) -> None:
    matrix = random_matrix(5, 7, kind, dtype=np.float32 if dtype is np.float16 else dtype)
    pattern = matrix.tocoo()
    matrix.data = matrix.data.astype(dtype)
    block = on.room(5 * 7 * np.dtype(dtype).itemsize)
    ld = 5 if order == COLUMNS else 7
    dense = on.descriptor("CreateDnMat", 5, 7, ld, block, NUMBERS[np.dtype(dtype)], order)
    on.buffered("SparseToDense", on.matrix(matrix).descriptor, dense, 0)
    wanted = np.zeros((5, 7), dtype)
    wanted[pattern.row, pattern.col] = pattern.data
    assert (on.get_dense(block, dtype, (5, 7), order) == wanted).all()


def test_to_a_dense_matrix_from_blocks(on: Sparse) -> None:
    matrix = random_matrix(4, 6).tobsr((2, 3))
    block = on.room(96)
    dense = on.descriptor("CreateDnMat", 4, 6, 4, block, 0, COLUMNS)
    on.buffered("SparseToDense", on.matrix(matrix).descriptor, dense, 0)
    assert (on.get(block, np.float32, 4, 6) == matrix.toarray()).all()


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_from_a_dense_matrix(on: Sparse, kind: str, index: Any, base: int) -> None:
    matrix = random_matrix(5, 7, kind)
    dense = on.dense(np.asfortranarray(matrix.toarray()))[0]
    offsets = on.room(64)
    places = [offsets, 0] if kind != "coo" else [0, 0]
    types = [INDEX_NUMBERS[np.dtype(index)]] * (1 if kind == "coo" else 2)
    made = on.descriptor(f"Create{kind.capitalize()}", 5, 7, 0, *places, 0, *types, base, 0)
    buffer = on.room(on.number("DenseToSparse_bufferSize", dense, made, 0))
    on.passes("DenseToSparse_analysis", dense, made, 0, buffer)
    sizes = np.zeros(3, np.int64)
    at = sizes.ctypes.data
    assert on.tell("SpMatGetSize", made, at, at + 8, at + 16) == 0
    assert list(sizes) == [5, 7, matrix.nnz]
    width = np.dtype(index).itemsize
    blocks = [on.room(matrix.nnz * width) if kind == "coo" else offsets, on.room(matrix.nnz * width), on.room(256)]
    assert on.tell(f"{kind.capitalize()}SetPointers", made, *blocks) == 0
    on.passes("DenseToSparse_convert", dense, made, 0, buffer)
    first, second = (matrix.row, matrix.col) if kind == "coo" else (matrix.indptr, matrix.indices)
    assert numbers(on, blocks[0], len(first), index) == list(first + base)
    assert numbers(on, blocks[1], len(second), index) == list(second + base)
    assert numbers(on, blocks[2], matrix.nnz, np.float32) == list(matrix.data)


@pytest.mark.parametrize("base", [0, 1])
def test_rows_and_offsets(on: Sparse, base: int) -> None:
    matrix = random_matrix(5, 7)
    rows = matrix.tocoo().row + base
    offsets, again = on.room(24), on.room(4 * matrix.nnz)
    on.passes("Xcoo2csr", on.put(rows.astype(np.int32)), matrix.nnz, 5, offsets, base)
    assert numbers(on, offsets, 6) == list(matrix.indptr + base)
    on.passes("Xcsr2coo", offsets, matrix.nnz, 5, again, base)
    assert numbers(on, again, matrix.nnz) == list(rows)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("dtype", [*TYPES, np.int8])
def test_compressed_columns(on: Sparse, dtype: Any, values: bool) -> None:
    matrix = random_matrix(5, 7, dtype=np.int32 if dtype is np.int8 else dtype)
    matrix.data = matrix.data.astype(dtype)
    stored = on.matrix(matrix)
    size = matrix.nnz * np.dtype(dtype).itemsize
    made = on.room(size), on.room(32), on.room(4 * matrix.nnz)
    words = 5, 7, matrix.nnz, stored.values, stored.first, stored.second, *made, NUMBERS[np.dtype(dtype)]
    on.buffered("Csr2cscEx2", *words, int(values), 0, 1)
    wanted = matrix.tocsc()
    assert numbers(on, made[1], 8) == list(wanted.indptr)
    assert numbers(on, made[2], matrix.nnz) == list(wanted.indices)
    if values:
        assert numbers(on, made[0], matrix.nnz, dtype) == list(wanted.data)


@pytest.mark.parametrize("by", ["Row", "Column"])
def test_elements_are_sorted(on: Sparse, by: str) -> None:
    matrix = random_matrix(5, 7, "coo")
    mixed = np.random.default_rng(0).permutation(matrix.nnz)
    rows, columns = (on.put(each[mixed].astype(np.int32)) for each in (matrix.row, matrix.col))
    size_bytes = on.number("Xcoosort_bufferSizeExt", 5, 7, matrix.nnz, rows, columns)
    permutation = on.room(4 * matrix.nnz)
    on.passes("CreateIdentityPermutation", matrix.nnz, permutation)
    assert numbers(on, permutation, matrix.nnz) == list(range(matrix.nnz))
    on.passes(f"XcoosortBy{by}", 5, 7, matrix.nnz, rows, columns, permutation, on.room(size_bytes))
    pairs = sorted(zip(*((matrix.row, matrix.col) if by == "Row" else (matrix.col, matrix.row)), strict=True))
    found = [numbers(on, each, matrix.nnz) for each in ((rows, columns) if by == "Row" else (columns, rows))]
    assert list(zip(*found, strict=True)) == pairs
    order = numbers(on, permutation, matrix.nnz)
    assert list(matrix.row[mixed][order]) == numbers(on, rows, matrix.nnz)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("permuted", [False, True])
def test_rows_and_columns_are_sorted(on: Sparse, kind: str, permuted: bool) -> None:
    matrix = random_matrix(5, 7, kind)
    mixed = matrix.indices.copy()
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        mixed[begin:end] = mixed[begin:end][::-1]
    offsets, indices = on.put(matrix.indptr.astype(np.int32) + 1), on.put(mixed.astype(np.int32) + 1)
    size_bytes = on.number(f"X{kind}sort_bufferSizeExt", 5, 7, matrix.nnz, offsets, indices)
    permutation = on.put(np.arange(matrix.nnz, dtype=np.int32)) if permuted else 0
    words = on.description(base=1), offsets, indices, permutation, on.room(size_bytes)
    on.passes(f"X{kind}sort", 5, 7, matrix.nnz, *words)
    assert numbers(on, indices, matrix.nnz) == list(matrix.indices + 1)
    if permuted:
        assert list(mixed[numbers(on, permutation, matrix.nnz)]) == list(matrix.indices)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_not_zero_is_counted(on: Sparse, dtype: Any, direction: int, mode: int) -> None:
    matrix = random_matrix(5, 7, dtype=dtype)
    padded = np.zeros((6, 7), dtype)
    padded[:5] = matrix.toarray()
    counts, total = on.room(4 * (7 if direction else 5)), np.zeros(1, np.int32)
    on.setting("cusparseSetPointerMode", on.sparse, mode)
    place = on.room(4) if mode else total.ctypes.data
    words = direction, 5, 7, on.description(), on.put(padded), 6, counts, place
    on.passes(f"{LETTERS[dtype]}nnz", *words)
    found = on.get(place, np.int32, 1) if mode else total
    assert found[0] == matrix.nnz
    wanted = np.count_nonzero(matrix.toarray(), axis=0 if direction else 1)
    assert numbers(on, counts, len(wanted)) == list(wanted)


@pytest.mark.parametrize("dtype", TYPES)
def test_small_elements_are_left_out(on: Sparse, dtype: Any) -> None:
    matrix = random_matrix(5, 7, dtype=dtype)
    stored, letter, description = on.matrix(matrix), LETTERS[dtype], on.description()
    tolerance = (ctypes.c_float if letter in "SC" else ctypes.c_double)(0.5)
    counts, total = on.room(20), np.zeros(1, np.int32)
    words = description, stored.values, stored.first, counts, total.ctypes.data, tolerance
    on.passes(f"{letter}nnz_compress", 5, *words)
    wanted = scipy.sparse.csr_array(np.where(np.abs(matrix.toarray()) > 0.5, matrix.toarray(), 0))
    assert total[0] == wanted.nnz
    assert numbers(on, counts, 5) == list(np.diff(wanted.indptr))
    made = on.room(wanted.data.nbytes), on.room(4 * wanted.nnz), on.room(24)
    its = description, stored.values, stored.second, stored.first
    on.passes(f"{letter}csr2csr_compress", 5, 7, *its, matrix.nnz, counts, *made, tolerance)
    assert numbers(on, made[0], wanted.nnz, dtype) == list(wanted.data)
    assert numbers(on, made[1], wanted.nnz) == list(wanted.indices)
    assert numbers(on, made[2], 6) == list(wanted.indptr)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_sums(on: Sparse, dtype: Any, mode: int) -> None:
    a, b, letter = random_matrix(5, 7, dtype=dtype), random_matrix(5, 7, dtype=dtype, seed=1), LETTERS[dtype]
    first, second, description, based = on.matrix(a), on.matrix(b), on.description(), on.description(base=1)
    offsets, total = on.room(24), np.zeros(1, np.int32)
    left = description, a.nnz, first.values, first.first, first.second
    right = description, b.nnz, second.values, second.first, second.second
    alpha, beta = on.scalars(2, 3, dtype=dtype)
    size_bytes = on.number(f"{letter}csrgeam2_bufferSizeExt", 5, 7, alpha, *left, beta, *right, based, 0, offsets, 0)
    buffer = on.room(size_bytes)
    on.setting("cusparseSetPointerMode", on.sparse, mode)
    place = on.room(4) if mode else total.ctypes.data
    pattern = description, a.nnz, *left[3:], description, b.nnz, *right[3:]
    on.passes("Xcsrgeam2Nnz", 5, 7, *pattern, based, offsets, place, buffer)
    on.setting("cusparseSetPointerMode", on.sparse, 0)
    wanted = (abs(a) + abs(b)).tocsr()
    wanted.sort_indices()
    assert (on.get(place, np.int32, 1) if mode else total)[0] == wanted.nnz
    values, columns = on.room(wanted.nnz * np.dtype(dtype).itemsize), on.room(4 * wanted.nnz)
    on.passes(f"{letter}csrgeam2", 5, 7, alpha, *left, beta, *right, based, values, offsets, columns, buffer)
    assert numbers(on, offsets, 6) == list(wanted.indptr + 1)
    assert numbers(on, columns, wanted.nnz) == list(wanted.indices + 1)
    pattern_of = wanted.tocoo()
    full = 2 * a.toarray() + 3 * b.toarray()
    assert np.allclose(on.get(values, dtype, wanted.nnz), full[pattern_of.row, pattern_of.col], rtol=1e-5)


def test_descriptors_hold_what_they_are_told(on: Sparse) -> None:
    rows, columns, count = (ctypes.c_int64() for _ in range(3))
    places = [ctypes.c_void_p() for _ in range(3)]
    kinds = [ctypes.c_int() for _ in range(4)]
    made = on.descriptor("CreateCsc", 3, 4, 5, 0x100, 0x200, 0x300, 3, 2, 1, 5)
    every = [ctypes.byref(each) for each in (rows, columns, count, *places, *kinds)]
    for function in ("CscGet", "ConstCscGet"):
        assert getattr(on.driver, f"computed_cusparse{function}")(ctypes.c_void_p(made), *every) == 0
        assert [each.value for each in (rows, columns, count)] == [3, 4, 5]
        assert [each.value for each in places] == [0x100, 0x200, 0x300]
        assert [each.value for each in kinds] == [3, 2, 1, 5]
    assert on.tell("CsrSetPointers", made, 1, 2, 3) == INVALID
    assert on.tell("CscSetPointers", made, 1, 2, 3) == 0
    assert on.driver.computed_cusparseCscGet(ctypes.c_void_p(made), *every) == 0
    assert [each.value for each in places] == [1, 2, 3]
    upper, found = ctypes.c_int(1), ctypes.c_int()
    assert on.tell("SpMatSetAttribute", made, 0, ctypes.addressof(upper), 4) == 0
    assert on.tell("SpMatGetAttribute", made, 0, ctypes.addressof(found), 4) == 0
    assert found.value == 1
    assert on.tell("SpMatSetAttribute", made, 0, ctypes.addressof(upper), 8) == INVALID
    assert on.tell("SpMatSetValues", made, 0x400) == 0
    assert on.tell("SpMatGetValues", made, ctypes.addressof(places[0])) == 0
    assert places[0].value == 0x400
    assert on.tell("SpMatGetFormat", made, ctypes.addressof(found)) == 0
    assert found.value == 2
    assert on.tell("DestroySpMat", made) == 0


def test_wrong_descriptors_are_refused(on: Sparse) -> None:
    made = ctypes.c_void_p()
    place = ctypes.addressof(made)
    assert on.tell("CreateDnMat", place, 4, 4, 3, 0, 0, COLUMNS) == INVALID
    assert on.tell("CreateDnVec", place, -1, 0, 0) == INVALID
    assert on.tell("CreateCoo", place, 4, 4, 3, 0, 0, 0, 7, 0, 0) == INVALID
    assert on.tell("CreateDnVec", 0, 1, 0, 0) == INVALID
    description = on.descriptor("CreateMatDescr")
    assert on.tell("SetMatType", description, 4) == INVALID
    assert on.tell("SetMatFillMode", description, 1) == 0
    assert on.tell("GetMatFillMode", description) == 1
    assert on.tell("DestroyMatDescr", description) == 0


def test_statuses_have_names(on: Sparse) -> None:
    for status, name in ((3, b"CUSPARSE_STATUS_INVALID_VALUE"), (12, b"unknown error")):
        function = on.driver.simulated_cusparseGetErrorName
        function.restype = ctypes.c_char_p
        assert function(status) == name
