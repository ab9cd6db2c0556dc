"""cuBLAS computes what the reference BLAS does: each operation against NumPy, in all its types."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.library_programs import Array, Libraries

TYPES: Final = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
REALS: Final = {"S": np.float32, "D": np.float64, "C": np.float32, "Z": np.float64}
MakeLibraries = Callable[..., Libraries]


def random(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Return elements between -1 and 1, in columns."""
    source = np.random.default_rng((seed, *shape))
    made = source.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * source.uniform(-1, 1, shape)
    return np.asfortranarray(made.astype(dtype))


def operated(matrix: Array, operation: int) -> Array:
    return matrix if operation == 0 else matrix.T if operation == 1 else matrix.conj().T


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=2e-5, atol=2e-5))


def padded(matrix: Array, ld: int) -> Array:
    """Return a matrix whose columns lie further apart, with NaN in the gaps."""
    made = np.full((ld, matrix.shape[1]), np.nan, matrix.dtype, "F")
    made[: matrix.shape[0]] = matrix
    return made


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Libraries]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries()
    yield made
    assert made.findings() == ()


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("ta", "tb"), [*itertools.product(range(3), repeat=2)])
def test_gemm(on: Libraries, letter: str, ta: int, tb: int) -> None:
    d, (m, n, k) = TYPES[letter], (5, 4, 3)
    a = random(d, *((m, k) if ta == 0 else (k, m)))
    b = random(d, *((k, n) if tb == 0 else (n, k)), seed=1)
    c = random(d, m, n, seed=2)
    at, bt, ct = on.put(padded(a, 7)), on.put(padded(b, 6)), on.put(padded(c, 8))
    scalars = on.host(0.5, dtype=d), on.host(-2, dtype=d)
    on.ok_blas(f"{letter}gemm_v2", ta, tb, m, n, k, scalars[0], at, 7, bt, 6, scalars[1], ct, 8)
    found = on.get(ct, d, 8, n)
    assert close(found[:m], 0.5 * operated(a, ta) @ operated(b, tb) - 2 * c)
    assert np.isnan(found[m:]).all()


@pytest.mark.parametrize("suffix", ["", "_64"])
def test_scalars_may_lie_on_the_device(on: Libraries, suffix: str) -> None:
    a = random(np.float32, 4, 4)
    at, ct = on.put(a), on.room(64)
    on.setting("cublasSetPointerMode_v2", on.blas, 1)
    alpha, beta = on.put(np.array([3], np.float32)), on.put(np.array([0], np.float32))
    on.ok_blas(f"Sgemm_v2{suffix}", 0, 0, 4, 4, 4, alpha, at, 4, at, 4, beta, ct, 4)
    assert close(on.get(ct, np.float32, 4, 4), 3 * a @ a)


def test_a_scalar_of_the_host_is_read_when_the_function_is_called(libraries: MakeLibraries) -> None:
    on = libraries(schedule="lazy")
    a = random(np.float32, 4, 4)
    at, ct, stream = on.put(a), on.room(64), on.stream()
    on.setting("cublasSetStream_v2", on.blas, stream)
    on.wait()
    alpha = np.array([2], np.float32)
    on.ok_blas("Sgemm_v2", 0, 0, 4, 4, 4, alpha.ctypes.data, at, 4, at, 4, on.host(0), ct, 4)
    alpha[:] = 5
    on.wait()
    assert close(on.get(ct, np.float32, 4, 4), 2 * a @ a)


@pytest.mark.parametrize("kind", ["strided", "array"])
@pytest.mark.parametrize("letter", TYPES)
def test_batches(on: Libraries, letter: str, kind: str) -> None:
    d, size = TYPES[letter], 3
    a, b = random(d, size, size, 4), random(d, size, size, 4, seed=1)
    z = a.itemsize * size * size
    at, bt, ct = on.put(a), on.put(b), on.room(4 * z)
    one, zero = on.host(1, dtype=d), on.host(0, dtype=d)
    if kind == "strided":
        each = size * size
        on.ok_blas(f"{letter}gemmStridedBatched", 0, 0, 3, 3, 3, one, at, 3, each, bt, 3, each, zero, ct, 3, each, 4)
    else:
        arrays = [on.put(np.arange(4, dtype=np.uint64) * np.uint64(z) + np.uint64(x)) for x in (at, bt, ct)]
        on.ok_blas(f"{letter}gemmBatched", 0, 0, 3, 3, 3, one, arrays[0], 3, arrays[1], 3, zero, arrays[2], 3, 4)
    found = on.get(ct, d, size, size, 4)
    assert all(close(found[:, :, i], a[:, :, i] @ b[:, :, i]) for i in range(4))


HALF, BFLOAT, INT8, INT32, SINGLE = 2, 14, 3, 10, 0


def test_half_precision_is_computed_in_single_and_rounded_once(on: Libraries) -> None:
    a = random(np.float16, 16, 16)
    at, ct = on.put(a), on.room(512)
    on.ok_blas("GemmEx", 0, 0, 16, 16, 16, on.host(1), at, HALF, 16, at, HALF, 16, on.host(0), ct, HALF, 16, 68, -1)
    wanted = (a.astype(np.float32) @ a.astype(np.float32)).astype(np.float16)
    assert (np.abs(on.get(ct, np.float16, 16, 16).view(np.int16) - wanted.view(np.int16)) <= 1).all()


def test_bfloat_is_rounded_to_the_nearest_even(on: Libraries) -> None:
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3], np.float32)
    one = on.put(np.array([0x3F80], np.uint16))
    at, ct = on.put((values.view(np.uint32) >> 16).astype(np.uint16)), on.room(8)
    scale = on.host(1 + 2**-8)
    on.ok_blas("GemmEx", 0, 0, 4, 1, 1, scale, at, BFLOAT, 4, one, BFLOAT, 1, on.host(0), ct, BFLOAT, 4, 68, -1)
    # 1 * (1 + 2^-8) lies between two numbers and goes to the even one; so does each of the others
    assert list(on.get(ct, np.uint16, 4)) == [0x3F80, 0x3F82, 0xBF80, 0x4041]


def test_integers_are_exact(on: Libraries) -> None:
    a = np.random.default_rng(0).integers(-128, 128, (8, 8)).astype(np.int8, order="F")
    at, ct = on.put(a), on.room(256)
    one, zero = on.host(1, dtype=np.int32), on.host(0, dtype=np.int32)
    on.ok_blas("GemmEx", 1, 0, 8, 8, 8, one, at, INT8, 8, at, INT8, 8, zero, ct, INT32, 8, 72, -1)
    assert (on.get(ct, np.int32, 8, 8) == a.T.astype(int) @ a.astype(int)).all()


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, -3), (-2, 1)])
def test_vectors(on: Libraries, letter: str, incx: int, incy: int) -> None:
    d, count = TYPES[letter], 5
    x, y = random(d, abs(incx) * count), random(d, abs(incy) * count, seed=1)

    def seen(values: Array, step: int) -> Array:
        taken = values[:: abs(step)]
        return taken if step > 0 else taken[::-1]

    xt, yt, alpha = on.put(x), on.put(y), on.host(2, dtype=d)
    first, second = seen(x, incx), seen(y, incy)
    dots = {"S": ["Sdot_v2"], "D": ["Ddot_v2"], "C": ["Cdotu_v2", "Cdotc_v2"], "Z": ["Zdotu_v2", "Zdotc_v2"]}[letter]
    for name in dots:
        result = np.zeros(1, d)
        on.ok_blas(name, count, xt, incx, yt, incy, result.ctypes.data)
        assert close(result, np.vdot(first, second) if "c_" in name else np.dot(first, second))
    on.ok_blas(f"{letter}axpy_v2", count, alpha, xt, incx, yt, incy)
    assert close(seen(on.get(yt, d, y.size), incy), second + 2 * first)
    on.ok_blas(f"{letter}swap_v2", count, xt, incx, yt, incy)
    assert close(seen(on.get(yt, d, y.size), incy), first)
    on.ok_blas(f"{letter}copy_v2", count, yt, incy, xt, incx)
    found = on.get(xt, d, x.size)
    assert close(seen(found, incx), first)
    assert (np.delete(found, np.arange(count) * abs(incx)) == np.delete(x, np.arange(count) * abs(incx))).all()


@pytest.mark.parametrize("letter", TYPES)
def test_numbers_of_a_vector(on: Libraries, letter: str) -> None:
    d, x = TYPES[letter], random(TYPES[letter], 12)
    xt, prefix = on.put(x), {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
    sizes = np.abs(x.real) + np.abs(x.imag)
    on.setting("cublasSetPointerMode_v2", on.blas, 1)
    real, index = on.room(8), on.room(4)
    on.ok_blas(f"{prefix}nrm2_v2", 12, xt, 1, real)
    assert close(on.get(real, REALS[letter], 1), np.linalg.norm(x))
    on.ok_blas(f"{prefix}asum_v2", 6, xt, 2, real)
    assert close(on.get(real, REALS[letter], 1), sizes[::2].sum())
    on.ok_blas(f"I{letter.lower()}amax_v2", 12, xt, 1, index)
    assert on.get(index, np.int32, 1) == sizes.argmax() + 1
    on.ok_blas(f"I{letter.lower()}amin_v2", 0, xt, 1, index)
    assert on.get(index, np.int32, 1) == 0
    on.ok_blas(f"{letter}scal_v2", 12, on.put(np.asarray([3], d)), xt, 1)
    assert close(on.get(xt, d, 12), 3 * x)


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("operation", range(3))
def test_gemv_and_ger(on: Libraries, letter: str, operation: int) -> None:
    d, (m, n) = TYPES[letter], (4, 3)
    a, x, y = random(d, m, n), random(d, 4, seed=1), random(d, 4, seed=2)
    at, xt, yt = on.put(padded(a, 6)), on.put(x), on.put(y)
    scalars = on.host(2, dtype=d), on.host(0.5, dtype=d)
    count_x, count_y = (n, m) if operation == 0 else (m, n)
    on.ok_blas(f"{letter}gemv_v2", operation, m, n, scalars[0], at, 6, xt, 1, scalars[1], yt, 1)
    wanted = 2 * operated(a, operation) @ x[:count_x] + 0.5 * y[:count_y]
    assert close(on.get(yt, d, 4)[:count_y], wanted)
    if operation < 2 or letter in "CZ":
        name = "ger" if letter in "SD" else "gerc" if operation == 2 else "geru"
        zt = on.put(y)
        on.ok_blas(f"{letter}{name}_v2", m, n, scalars[0], xt, 1, zt, 1, at, 6)
        second = y[:n].conj() if name == "gerc" else y[:n]
        assert close(on.get(at, d, 6, n)[:m], a + 2 * np.outer(x, second))


LOWER, UPPER = 0, 1


def triangle(matrix: Array, uplo: int, *, unit: bool = False) -> tuple[Array, Array]:
    """Return a triangle, and what a caller passes: the rest is not a number."""
    half = np.tril(matrix) if uplo == LOWER else np.triu(matrix)
    lower = np.tri(*matrix.shape)
    outside = (lower if uplo == LOWER else lower.T) == 0
    passed = np.where(outside, np.nan, matrix)
    if unit:
        np.fill_diagonal(half, 1)
        np.fill_diagonal(passed, np.nan)
    return half, np.asfortranarray(passed.astype(matrix.dtype))


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), [*itertools.product((0, 1), (0, 1), (0, 1, 2), (0, 1))])
def test_triangles(on: Libraries, letter: str, side: int, uplo: int, trans: int, diag: int) -> None:
    d, (m, n) = TYPES[letter], (4, 3)
    order = m if side == 0 else n
    matrix = random(d, order, order) + 3 * np.eye(order, dtype=d)
    half, passed = triangle(matrix, uplo, unit=bool(diag))
    b = random(d, m, n, seed=1)
    at, bt, ct, alpha = on.put(padded(passed, 5)), on.put(b), on.room(b.nbytes), on.host(2, dtype=d)
    op = operated(half, trans)
    shape = (side, uplo, trans, diag, m, n, alpha, at, 5, bt, m)
    on.ok_blas(f"{letter}trmm_v2", *shape, ct, m)
    assert close(on.get(ct, d, m, n), 2 * (op @ b if side == 0 else b @ op))
    on.ok_blas(f"{letter}trsm_v2", *shape)
    found = on.get(bt, d, m, n)
    assert close(op @ found if side == 0 else found @ op, 2 * b)


@pytest.mark.parametrize("name", ["Ssyrk", "Csyrk", "Cherk", "Dsyr2k", "Zher2k", "Ssyrkx"])
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
@pytest.mark.parametrize("transposed", [False, True])
def test_rank_updates(on: Libraries, name: str, uplo: int, transposed: bool) -> None:
    d, (n, k), hermitian = TYPES[name[0]], (4, 3), "her" in name
    operation = (2 if hermitian else 1) if transposed else 0
    a, b, c = (random(d, *((k, n) if transposed else (n, k)), seed=seed) for seed in (0, 1, 2))
    c = random(d, n, n, seed=2)
    if hermitian:
        np.fill_diagonal(c, c.diagonal().real)
    _, passed = triangle(c, uplo)
    at, bt, ct = on.put(a), on.put(b), on.put(passed)
    real = REALS[name[0]]
    alpha = on.host(2, dtype=real if name == "Cherk" else d)
    beta = on.host(0.5, dtype=real if hermitian else d)
    others = () if name.endswith("rk") else (bt, b.shape[0])
    suffix = "" if name.endswith("x") else "_v2"
    on.ok_blas(f"{name}{suffix}", uplo, operation, n, k, alpha, at, a.shape[0], *others, beta, ct, n)
    x, y = operated(a, operation), operated(b, operation)

    def turned(matrix: Array) -> Array:
        return matrix.conj().T if hermitian else matrix.T

    sum_ = x @ turned(x) if name.endswith("rk") else x @ turned(y)
    sum_ = sum_ + y @ turned(x) if "2k" in name else sum_
    half, _ = triangle((2 * sum_ + 0.5 * c).astype(d), uplo)
    found = on.get(ct, d, n, n)
    _, rest = triangle(found, uplo)
    assert close(np.where(half != 0, found, 0), half)
    assert np.isnan(found[np.isnan(passed)]).all()
    assert not np.isnan(rest[~np.isnan(passed)]).any()


@pytest.mark.parametrize(("name", "hermitian"), [("Ssymm", False), ("Csymm", False), ("Chemm", True)])
@pytest.mark.parametrize(("side", "uplo"), [*itertools.product((0, 1), (LOWER, UPPER))])
def test_symm(on: Libraries, name: str, hermitian: bool, side: int, uplo: int) -> None:
    d, (m, n) = TYPES[name[0]], (4, 3)
    order = m if side == 0 else n
    half, passed = triangle(random(d, order, order), uplo)
    full = half + (half.conj().T if hermitian else half.T)
    np.fill_diagonal(full, half.diagonal().real if hermitian else half.diagonal())
    b, one = random(d, m, n, seed=1), on.host(1, dtype=d)
    at, bt, ct = on.put(passed), on.put(b), on.put(b)
    on.ok_blas(f"{name}_v2", side, uplo, m, n, one, at, order, bt, m, one, ct, m)
    assert close(on.get(ct, d, m, n), (full @ b if side == 0 else b @ full) + b)


@pytest.mark.parametrize("letter", TYPES)
def test_geam_and_dgmm(on: Libraries, letter: str) -> None:
    d, a, b = TYPES[letter], random(TYPES[letter], 3, 4), random(TYPES[letter], 4, 3, seed=1)
    at, bt, ct, x = on.put(a), on.put(b), on.room(b.nbytes), random(TYPES[letter], 4, seed=2)
    on.ok_blas(f"{letter}geam", 2, 0, 4, 3, on.host(2, dtype=d), at, 3, on.host(3, dtype=d), bt, 4, ct, 4)
    assert close(on.get(ct, d, 4, 3), 2 * a.conj().T + 3 * b)
    on.ok_blas(f"{letter}geam", 1, 0, 4, 3, on.host(2, dtype=d), at, 3, on.host(0, dtype=d), 0, 4, ct, 4)
    assert close(on.get(ct, d, 4, 3), 2 * a.T)
    on.ok_blas(f"{letter}dgmm", 0, 4, 3, bt, 4, on.put(x), 1, ct, 4)
    assert close(on.get(ct, d, 4, 3), np.diag(x) @ b)


@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_triangles_are_packed_and_unpacked(on: Libraries, uplo: int) -> None:
    half, passed = triangle(random(np.float64, 4, 4), uplo)
    at, packed, bt = on.put(passed), on.room(80), on.put(np.zeros((4, 4)))
    on.ok_blas("Dtrttp", uplo, 4, at, 4, packed)
    on.ok_blas("Dtpttr", uplo, 4, packed, bt, 4)
    assert (on.get(bt, np.float64, 4, 4) == half).all()


@pytest.mark.parametrize("letter", TYPES)
def test_factors_of_batches(on: Libraries, letter: str) -> None:
    d = TYPES[letter]
    matrices = [random(d, 3, 3, seed=seed) for seed in range(2)]
    blocks, results = [on.put(each) for each in matrices], [on.room(matrices[0].nbytes) for _ in range(2)]
    at, ct = on.put(np.array(blocks, np.uint64)), on.put(np.array(results, np.uint64))
    pivots, info = on.room(24), on.room(8)
    on.ok_blas(f"{letter}matinvBatched", 3, at, 3, ct, 3, info, 2)
    assert close(on.get(results[1], d, 3, 3) @ matrices[1], np.eye(3))
    on.ok_blas(f"{letter}getrfBatched", 3, at, 3, pivots, info, 2)
    on.ok_blas(f"{letter}getriBatched", 3, at, 3, pivots, ct, 3, info, 2)
    assert close(on.get(results[0], d, 3, 3) @ matrices[0], np.eye(3))
    right = random(d, 3, 2, seed=5)
    rights = [on.put(right), on.put(right)]
    said = np.full(1, 7, np.int32)
    on.ok_blas(
        f"{letter}getrsBatched", 1, 3, 2, at, 3, pivots, on.put(np.array(rights, np.uint64)), 3, said.ctypes.data, 2
    )
    assert close(matrices[1].T @ on.get(rights[1], d, 3, 2), right)
    assert said == 0


def test_a_singular_matrix_of_a_batch_has_no_inverse(on: Libraries) -> None:
    blocks, results = [on.put(np.diag([1.0, 0])), on.put(np.diag([1.0, 2]))], [on.room(32), on.room(32)]
    at, ct = on.put(np.array(blocks, np.uint64)), on.put(np.array(results, np.uint64))
    pivots, info = on.room(16), on.room(8)
    on.ok_blas("DgetrfBatched", 2, at, 2, pivots, info, 2)
    on.ok_blas("DgetriBatched", 2, at, 2, pivots, ct, 2, info, 2)
    assert on.get(info, np.int32, 2).tolist() == [2, 0]
    assert np.isnan(on.get(results[0], np.float64, 2, 2)).all()
    assert close(on.get(results[1], np.float64, 2, 2), np.diag([1, 0.5]))


def test_batches_without_pivots_and_a_zero_on_the_diagonal(on: Libraries) -> None:
    first, second = np.array([[2, 1], [4, 5]], np.float64), np.array([[0, 1], [1, 0]], np.float64)
    blocks, info = [on.put(first), on.put(second)], on.room(8)
    on.ok_blas("DgetrfBatched", 2, on.put(np.array(blocks, np.uint64)), 2, 0, info, 2)
    assert (on.get(blocks[0], np.float64, 2, 2) == [[2, 1], [2, 3]]).all()
    assert list(on.get(info, np.int32, 2)) == [0, 1]


def test_nothing_is_read_where_nothing_matters(on: Libraries) -> None:
    one, zero, ct = on.host(1), on.host(0), on.room(64)
    on.ok_blas("Sgemm_v2", 0, 0, 4, 4, 4, zero, 0, 4, 0, 4, zero, ct, 4)
    assert (on.get(ct, np.float32, 4, 4) == 0).all()
    on.ok_blas("Sgemm_v2", 0, 0, 0, 4, 4, one, 0, 1, 0, 4, one, 0, 1)
    on.ok_blas("Saxpy_v2", 4, zero, 0, 1, 0, 1)
    on.ok_blas("SgemmStridedBatched", 0, 0, 4, 4, 4, one, 0, 4, 0, 0, 4, 0, zero, 0, 4, 16, 0)


@pytest.mark.parametrize(
    "wrong",
    [(3, 0, 4, 4, 4, 4, 4, 4), (0, 0, -1, 4, 4, 4, 4, 4), (0, 0, 4, 4, 4, 3, 4, 4), (0, 0, 4, 4, 4, 4, 3, 4),
     (0, 0, 4, 4, 4, 4, 4, 3), (1, 0, 4, 4, 5, 4, 5, 4)],
)  # fmt: skip
def test_wrong_arguments_are_refused(on: Libraries, wrong: tuple[int, ...]) -> None:
    ta, tb, m, n, k, lda, ldb, ldc = wrong
    one, at = on.host(1), on.room(256)
    assert on.call("cublasSgemm_v2", on.blas, ta, tb, m, n, k, one, at, lda, at, ldb, one, at, ldc) == 7


def test_a_handle_that_is_none_is_refused(on: Libraries) -> None:
    assert on.call("cublasSgemm_v2", 64, *[0] * 13) == 1


def test_a_call_that_no_row_describes_fails_by_its_name(libraries: MakeLibraries, capfd: Any) -> None:
    on = libraries()
    one, at = on.host(1), on.room(256)
    types = (at, 28, 4, at, 28, 4, one, at, 2, 4, 68, -1)  # CUDA_R_8F_E4M3
    assert on.call("cublasGemmEx", on.blas, 0, 0, 4, 4, 4, one, *types) == 15
    assert "cublasGemmEx is not simulated; products of the types 28, 28 and 2" in capfd.readouterr().err


def test_a_product_is_captured_and_runs_with_each_launch(on: Libraries) -> None:
    a, client = random(np.float32, 4, 4), on.client
    at, ct, stream = on.put(a), on.put(np.zeros((4, 4), np.float32)), on.stream()
    one = on.host(1)
    on.wait()
    on.setting("cublasSetStream_v2", on.blas, stream)
    client.ok("StreamBeginCapture", stream, 0)
    on.ok_blas("Sgemm_v2", 0, 0, 4, 4, 4, one, at, 4, at, 4, one, ct, 4)
    graph = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    assert (on.get(ct, np.float32, 4, 4) == 0).all()
    executable = client.make("GraphInstantiateWithFlags", graph, 0)
    for _ in range(3):
        client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    assert close(on.get(ct, np.float32, 4, 4), 3 * a @ a)


def test_a_launch_that_is_to_fail(libraries: MakeLibraries) -> None:
    on = libraries(fail="launch:1")
    a, one = on.put(random(np.float32, 4, 4)), on.host(1)
    assert on.call("cublasSgemm_v2", on.blas, 0, 0, 4, 4, 4, one, a, 4, a, 4, one, a, 4) == 14
    on.ok_blas("Sgemm_v2", 0, 0, 4, 4, 4, one, a, 4, a, 4, one, a, 4)


@pytest.mark.parametrize(("ld", "step_b"), [(3, 12), (3, 0), (5, 20)])
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (1, 2), (2, 1)])
def test_batches_with_gaps_and_one_matrix_for_all(on: Libraries, ta: int, tb: int, ld: int, step_b: int) -> None:
    d, count = np.complex64, 4
    a, b, c = (random(d, 3, 3, count, seed=seed) for seed in range(3))

    def apart(values: Array, step: int) -> Array:
        made = np.full((step or ld * 3, count if step else 1), np.nan, d, "F")
        made[: 3 * ld] = np.asarray([padded(values[..., i], ld).ravel("F") for i in range(made.shape[1])]).T
        return made

    steps = 4 * ld, step_b, 3 * ld
    at, bt, ct = (on.put(apart(each, step)) for each, step in zip((a, b, c), steps, strict=True))
    scalars = on.host(2, dtype=d), on.host(0.5, dtype=d)
    on.ok_blas(
        "CgemmStridedBatched", ta, tb, 3, 3, 3, scalars[0], at, ld, steps[0], bt, ld, step_b, scalars[1], ct, ld,
        steps[2], count,
    )  # fmt: skip
    found = on.get(ct, d, ld, 3, count)[:3]
    for i in range(count):
        other = b[..., i if step_b else 0]
        assert close(found[..., i], 2 * operated(a[..., i], ta) @ operated(other, tb) + 0.5 * c[..., i])
