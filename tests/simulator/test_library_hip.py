"""hipBLAS, hipFFT and hipRAND compute what NVIDIA's libraries do, by numbers of their own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.fft_programs import C2C, C2R, FORWARD, INVERSE, NAMES, R2C
from tests.simulator.library_programs import Array, Libraries

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

from quiesce.simulator.libraries import hip
from quiesce.simulator.libraries.table import TABLE

NORMAL, TRANSPOSED, CONJUGATED = 111, 112, 113  # hipblasOperation_t
UPPER, LOWER, NO_UNIT, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
INVALID_VALUE, NOT_SUPPORTED, INVALID_ENUMERATOR, NOT_IMPLEMENTED = 3, 7, 10, 1000
TYPES: Final = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}


class Hip(Libraries):
    """A device of HIP with a handle of hipBLAS."""

    FLAVOUR = "hip:6"
    CREATE = "hipblasCreate"

    def ok_hip(self, function: str, *arguments: int) -> None:
        """Call a function of hipBLAS with the handle, and expect that it succeeds."""
        assert self.call(f"hipblas{function}", self.blas, *arguments) == 0

    def scalars(self, dtype: Any) -> tuple[int, int]:
        """Return the addresses of 1 and 0 in the host's memory."""
        return self.host(1, dtype=dtype), self.host(0, dtype=dtype)


@pytest.fixture
def on(libraries: Callable[..., Any]) -> Iterator[Hip]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Hip)
    yield made
    assert made.findings() == ()


def random(dtype: Any, *shape: int) -> Array:
    source = np.random.default_rng(shape)
    made = source.uniform(-1, 1, shape)
    return np.asfortranarray(made + 1j * source.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else made, dtype)


def operated(matrix: Array, operation: int) -> Array:
    return {NORMAL: matrix, TRANSPOSED: matrix.T, CONJUGATED: matrix.conj().T}[operation]


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-4, atol=1e-4))


def test_functions_take_what_those_of_cuda_take() -> None:
    made = [name for name in TABLE if name.startswith("hip")]
    assert len(made) > 140
    for name in made:
        same = f"cu{name.removeprefix('hip')}"
        assert TABLE[name].signature == TABLE[same if same in TABLE else f"{same}_v2"].signature


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("ta", [NORMAL, TRANSPOSED, CONJUGATED])
def test_gemm(on: Hip, letter: str, ta: int) -> None:
    d, (m, n, k) = TYPES[letter], (5, 4, 3)
    a, b, c = random(d, *((m, k) if ta == NORMAL else (k, m))), random(d, n, k), random(d, m, n)
    at, bt, ct = on.put(a), on.put(b), on.put(c)
    alpha, beta = on.host(0.5, dtype=d), on.host(-2, dtype=d)
    on.ok_hip(f"{letter}gemm", ta, TRANSPOSED, m, n, k, alpha, at, len(a), bt, n, beta, ct, m)
    assert close(on.get(ct, d, m, n), 0.5 * operated(a, ta) @ b.T - 2 * c)


@pytest.mark.parametrize(
    ("number", "computed", "dtype"),
    [(151, 151, np.float32), (0, 2, np.float32), (150, 151, np.float16), (2, 2, np.float16), (152, 152, np.float64),
     (1, 7, np.float64), (155, 155, np.complex128)],
)  # fmt: skip
def test_types_by_their_old_numbers_and_the_new_ones(on: Hip, number: int, computed: int, dtype: Any) -> None:
    a = random(dtype, 4, 4)
    at, ct = on.put(a), on.room(a.nbytes)
    alpha, beta = on.scalars(np.float32 if dtype is np.float16 else dtype)
    sides = (alpha, at, number, 4, at, number, 4, beta, ct, number, 4)
    on.ok_hip("GemmEx", NORMAL, NORMAL, 4, 4, 4, *sides, computed, 160)
    assert np.allclose(on.get(ct, dtype, 4, 4), a.astype(np.result_type(dtype, np.float32)) @ a, atol=4e-3)


def test_batches(on: Hip) -> None:
    d = np.float32
    stack = random(d, 3, 3, 2)
    at, ct, (alpha, beta) = on.put(stack), on.room(stack.nbytes), on.scalars(d)
    on.ok_hip("SgemmStridedBatched", NORMAL, NORMAL, 3, 3, 3, alpha, at, 3, 9, at, 3, 9, beta, ct, 3, 9, 2)
    wanted = np.stack([stack[..., each] @ stack[..., each] for each in range(2)], -1)
    assert close(on.get(ct, d, 3, 3, 2), wanted)
    pointers = [on.put(np.array([each, each + 36], np.uint64)) for each in (at, ct)]
    on.ok_hip("SgemmBatched", NORMAL, NORMAL, 3, 3, 3, alpha, pointers[0], 3, pointers[0], 3, beta, pointers[1], 3, 2)
    assert close(on.get(ct, d, 3, 3, 2), wanted)


@pytest.mark.parametrize("letter", "SZ")
def test_triangles(on: Hip, letter: str) -> None:
    d = TYPES[letter]
    a, b = random(d, 4, 4) + 4 * np.eye(4, dtype=d), random(d, 4, 3)
    at, bt, one = on.put(a), on.put(b), on.host(1, dtype=d)
    on.ok_hip(f"{letter}trsm", LEFT, UPPER, CONJUGATED, NO_UNIT, 4, 3, one, at, 4, bt, 4)
    assert close(np.triu(a).conj().T @ on.get(bt, d, 4, 3), b)
    bt = on.put(b.T)
    on.ok_hip(f"{letter}trsm", RIGHT, LOWER, NORMAL, UNIT, 3, 4, one, at, 4, bt, 3)
    assert close(on.get(bt, d, 3, 4) @ (np.tril(a, -1) + np.eye(4)), b.T)


def test_symmetric_matrices_and_sums(on: Hip) -> None:
    d = np.float64
    a, b = random(d, 4, 3), random(d, 4, 4)
    at, bt, ct, (one, zero) = on.put(a), on.put(b), on.put(np.full((4, 4), 7.0)), on.scalars(d)
    on.ok_hip("Dsyrk", LOWER, NORMAL, 4, 3, one, at, 4, zero, ct, 4)
    assert close(on.get(ct, d, 4, 4), np.tril(a @ a.T) + np.triu(np.full((4, 4), 7), 1))
    target = on.room(96)
    on.ok_hip("Dsymm", LEFT, UPPER, 4, 3, one, bt, 4, at, 4, zero, target, 4)
    assert close(on.get(target, d, 4, 3), (np.triu(b) + np.triu(b, 1).T) @ a)
    on.ok_hip("Dgeam", TRANSPOSED, NORMAL, 4, 4, one, bt, 4, one, bt, 4, ct, 4)
    assert close(on.get(ct, d, 4, 4), b + b.T)
    x = on.put(b[:, 0])
    on.ok_hip("Ddgmm", LEFT, 4, 3, at, 4, x, 1, target, 4)
    assert close(on.get(target, d, 4, 3), b[:, :1] * a)


def test_vectors(on: Hip) -> None:
    d = np.complex64
    x, y, a = random(d, 5), random(d, 4), random(d, 5, 4)
    xt, yt, at, (one, zero) = on.put(x), on.put(y), on.put(a), on.scalars(d)
    place = np.zeros(1, d)
    on.ok_hip("Cdotc", 4, xt, 1, yt, 1, place.ctypes.data)
    assert close(place[0], np.vdot(x[:4], y))
    size, index = np.zeros(1, np.float32), np.zeros(1, np.int32)
    on.ok_hip("Scnrm2", 5, xt, 1, size.ctypes.data)
    on.ok_hip("Icamax", 5, xt, 1, index.ctypes.data)
    assert close(size[0], np.linalg.norm(x))
    assert index[0] == 1 + np.argmax(abs(x.real) + abs(x.imag))
    result = on.room(32)
    on.ok_hip("Cgemv", CONJUGATED, 5, 4, one, at, 5, xt, 1, zero, result, 1)
    assert close(on.get(result, d, 4), a.conj().T @ x)
    on.ok_hip("Caxpy", 4, one, yt, 1, result, 1)
    assert close(on.get(result, d, 4), a.conj().T @ x + y)
    on.ok_hip("Cgeru", 5, 4, one, xt, 1, yt, 1, at, 5)
    assert close(on.get(at, d, 5, 4), a + np.outer(x, y))


def test_scalars_may_lie_on_the_device(on: Hip) -> None:
    x = random(np.float32, 6)
    at, times, size = on.put(x), on.put(np.array([3], np.float32)), on.room(4)
    on.setting("hipblasSetPointerMode", on.blas, 1)
    on.ok_hip("Sscal", 6, times, at, 1)
    on.ok_hip("Sasum", 6, at, 1, size)
    assert close(on.get(size, np.float32, 1), 3 * abs(x).sum())


def test_factors_of_batches(on: Hip) -> None:
    d = np.float64
    a = random(d, 3, 3) + 3 * np.eye(3)
    at, inverse, pivots, info = on.put(a), on.room(72), on.room(12), on.room(4)
    arrays = [on.put(np.array([each], np.uint64)) for each in (at, inverse)]
    on.ok_hip("DgetrfBatched", 3, arrays[0], 3, pivots, info, 1)
    on.ok_hip("DgetriBatched", 3, arrays[0], 3, pivots, arrays[1], 3, info, 1)
    assert close(on.get(inverse, d, 3, 3), np.linalg.inv(a))
    b = random(d, 3, 2)
    bt, said = on.put(b), np.full(1, 7, np.int32)
    array = on.put(np.array([bt], np.uint64))
    on.ok_hip("DgetrsBatched", TRANSPOSED, 3, 2, arrays[0], 3, pivots, array, 3, said.ctypes.data, 1)
    assert close(a.T @ on.get(bt, d, 3, 2), b)
    assert said[0] == 0


def test_least_squares_of_batches(on: Hip) -> None:
    d = np.float64
    a, b = random(d, 5, 3), random(d, 5, 2)
    at, bt, tau, infos = on.put(a), on.put(b), on.room(24), on.room(4)
    arrays = [on.put(np.array([each], np.uint64)) for each in (at, bt, tau)]
    said = np.full(1, 7, np.int32)
    on.ok_hip("DgelsBatched", NORMAL, 5, 3, 2, arrays[0], 5, arrays[1], 5, said.ctypes.data, infos, 1)
    assert close(on.get(bt, d, 5, 2)[:3], np.linalg.lstsq(a, b, rcond=None)[0])
    at = on.put(a)
    arrays[0] = on.put(np.array([at], np.uint64))
    on.ok_hip("DgeqrfBatched", 5, 3, arrays[0], 5, arrays[2], said.ctypes.data, 1)
    assert close(abs(np.triu(on.get(at, d, 5, 3))[:3]), abs(np.linalg.qr(a)[1]))


def test_statuses_are_those_of_hipblas(on: Hip, capfd: pytest.CaptureFixture[str]) -> None:
    at, (one, zero) = on.room(64), on.scalars(np.float32)
    product = one, at, 4, at, 4, zero, at, 4
    assert on.call("hipblasSgemm", on.blas, NORMAL, 0, 4, 4, 4, *product) == INVALID_ENUMERATOR
    assert on.call("hipblasSgemm", on.blas, NORMAL, NORMAL, 8, 4, 4, *product) == INVALID_VALUE
    assert on.call("hipblasSgemm", 17, NORMAL, NORMAL, 4, 4, 4, *product) == 1
    sides = one, at, 168, 4, at, 168, 4, zero, at, 168, 4
    assert on.call("hipblasGemmEx", on.blas, NORMAL, NORMAL, 4, 4, 4, *sides, 168, 160) == NOT_SUPPORTED
    assert "hipblasGemmEx" in capfd.readouterr().err


# -- hipFFT and hipRAND ------------------------------------------------------------------------------------------------


def transform(on: Hip, kind: int, source: int, target: int, *direction: int, batch: int = 2) -> None:
    plan = ctypes.c_void_p()
    assert on.driver.simulated_hipfftPlan1d(ctypes.byref(plan), 8, kind, batch) == 0
    assert on.call(f"hipfftExec{NAMES[kind]}", plan.value or 0, source, target, *direction) == 0
    on.wait()
    assert on.driver.simulated_hipfftDestroy(plan) == 0


def test_transforms(on: Hip) -> None:
    values = random(np.complex64, 8, 2)
    source, target = on.put(values), on.room(128)
    transform(on, C2C, source, target, FORWARD)
    assert close(on.get(target, np.complex64, 8, 2), np.fft.fft(values, axis=0))
    transform(on, C2C, target, target, INVERSE)
    assert close(on.get(target, np.complex64, 8, 2), 8 * values)
    reals = random(np.float32, 8, 2)
    source = on.put(reals)
    transform(on, R2C, source, target)
    assert close(on.get(target, np.complex64, 5, 2), np.fft.rfft(reals, axis=0))
    transform(on, C2R, target, source)
    assert close(on.get(source, np.float32, 8, 2), 8 * reals)


def generator(on: Hip, kind: int) -> int:
    made = ctypes.c_void_p()
    assert on.driver.simulated_hiprandCreateGenerator(ctypes.byref(made), kind) == 0
    return made.value or 0


@pytest.mark.parametrize("kind", hip._GENERATORS)
def test_random_numbers(on: Hip, kind: int) -> None:
    count, made = 4096, generator(on, kind)
    at, size = on.room(8 * count), ctypes.c_size_t(count)
    assert on.call("hiprandGenerateUniform", made, at, size.value) == 0
    values = on.get(at, np.float32, count)
    assert abs(values.mean() - 0.5) < 0.02
    assert abs(values.std() - 12**-0.5) < 0.02
    assert on.call("hiprandGenerateNormalDouble", made, at, size.value, ctypes.c_double(3), ctypes.c_double(2)) == 0
    values = on.get(at, np.float64, count)
    assert abs(values[1:].mean() - 3) < 0.15
    assert abs(values[1:].std() - 2) < 0.15


def test_a_generator_that_nothing_describes_fails_by_name(on: Hip, capfd: pytest.CaptureFixture[str]) -> None:
    assert on.call("hiprandGenerate", generator(on, 411), on.room(64), 16) == NOT_IMPLEMENTED
    assert "generators of the type 411 are not described" in capfd.readouterr().err


# -- faults ------------------------------------------------------------------------------------------------------------


def product(on: Hip, wrong: bool) -> None:
    at, ct, (one, zero) = on.put(np.ones((8, 8), np.float32)), on.room(256), on.scalars(np.float32)
    on.ok_hip("Sgemm", NORMAL, NORMAL, 8, 8, 8, one, at, 8, at, 12 if wrong else 8, zero, ct, 8)


def short_output(on: Hip, wrong: bool) -> None:
    transform(on, C2C, on.put(random(np.complex64, 8, 2)), on.room(64 if wrong else 128), FORWARD)


def freed(on: Hip, wrong: bool) -> None:
    at = on.room(64)
    if wrong:
        on.client.ok("Free", at)
    assert on.call("hiprandGenerateUniform", generator(on, 400), at, 16) == 0


def race(on: Hip, wrong: bool) -> None:
    x, stream = on.put(np.ones(8, np.float32)), on.stream()
    on.wait()
    on.client.ok("MemsetAsync", x, 0, ctypes.c_size_t(32), ctypes.c_void_p(stream))
    if not wrong:
        on.setting("hipblasSetStream", on.blas, stream)
    on.ok_hip("Sscal", 8, on.host(2), x, 1)


FAULTS: Final = [
    (product, Kind.OUT_OF_BOUNDS, "hipblasSgemm reads 4 bytes", "at its operand B"),
    (short_output, Kind.OUT_OF_BOUNDS, "hipfftExecC2C writes 8 bytes", "at its operand output"),
    (freed, Kind.USE_AFTER_FREE, "hiprandGenerateUniform writes 4 bytes", "at its operand output"),
    (race, Kind.RACE, "hipblasSscal", "at its operand x"),
]


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize(("program", "kind", "first", "second"), FAULTS, ids=[each[0].__name__ for each in FAULTS])
def test_a_fault_and_its_correct_twin(
    libraries: Callable[..., Any],
    program: Callable[[Hip, bool], None],
    kind: Kind,
    first: str,
    second: str,
    wrong: bool,
) -> None:
    on = libraries(Hip)
    program(on, wrong)
    assert [each.kind for each in on.findings()] == [kind] * wrong
    assert all(first in each.observed and second in each.observed for each in on.findings())
