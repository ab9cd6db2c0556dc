"""cuBLASLt: descriptors hold what they are told, and products are what these describe."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.library_programs import Array, Libraries

pytest.importorskip("scipy")

MakeLibraries = Callable[..., Any]
SINGLE, HALF, BFLOAT = 0, 2, 14  # cudaDataType
COMPUTE_32F, COMPUTE_32F_TF32 = 68, 77  # cublasComputeType_t
POINTER_MODE, TRANSPOSED_A, TRANSPOSED_B, EPILOGUE, BIAS, AUXILIARY, AUXILIARY_LD, BIAS_TYPE = 2, 3, 4, 7, 8, 11, 12, 26
ORDER, BATCH, STRIDE = 1, 5, 6
WRONG, NOT_SUPPORTED = 7, 15


class Lt(Libraries):
    """A device with descriptors of cuBLASLt."""

    def descriptor(self, kind: str, *arguments: int) -> int:
        made = ctypes.c_void_p()
        passed = [ctypes.c_int64(each) for each in arguments]
        assert getattr(self.driver, f"computed_cublasLt{kind}Create")(ctypes.byref(made), *passed) == 0
        return made.value or 0

    def set(self, kind: str, descriptor: int, attribute: int, value: int, size_bytes: int = 4) -> None:
        content = ctypes.c_int64(value)
        call = getattr(self.driver, f"computed_cublasLt{kind}SetAttribute")
        assert call(ctypes.c_void_p(descriptor), attribute, ctypes.byref(content), ctypes.c_size_t(size_bytes)) == 0

    def layout(self, rows: int, columns: int, ld: int, *, kind: int = SINGLE, **more: int) -> int:
        made = self.descriptor("MatrixLayout", kind, rows, columns, ld)
        sizes = {ORDER: 4, BATCH: 4, STRIDE: 8}
        for name, value in more.items():
            attribute = {"order": ORDER, "batch": BATCH, "stride": STRIDE}[name]
            self.set("MatrixLayout", made, attribute, value, sizes[attribute])
        return made

    def description(self, **more: int) -> int:
        made = self.descriptor("MatmulDesc", COMPUTE_32F, SINGLE)
        numbers = {"ta": (3, 4), "tb": (4, 4), "mode": (2, 4), "epilogue": (7, 4), "bias": (8, 8), "aux": (11, 8),
                   "aux_ld": (12, 8), "bias_type": (26, 4)}  # fmt: skip
        for name, value in more.items():
            self.set("MatmulDesc", made, numbers[name][0], value, numbers[name][1])
        return made

    def matmul(self, description: int, operands: list[tuple[int, int]], *more: int, scalars: Any = (1, 0)) -> int:
        """Multiply; the operands are A, B, C and D, each with its layout."""
        (a, al), (b, bl), (c, cl), (d, dl) = operands
        alpha, beta = (each if each > 100 else self.host(each) for each in scalars)
        algorithm, workspace, workspace_bytes = more or (0, 0, 0)
        return self.call(
            "cublasLtMatmul", self.blas, description, alpha, a, al, b, bl, beta, c, cl, d, dl, algorithm, workspace,
            workspace_bytes, 0,
        )  # fmt: skip


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Lt]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Lt)
    yield made
    assert made.findings() == ()


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.asfortranarray(np.random.default_rng((seed, *shape)).uniform(-1, 1, shape).astype(dtype))


@pytest.mark.parametrize(("ta", "tb", "rows"), [*itertools.product((0, 1), (0, 1), (False, True))])
def test_products_in_columns_and_rows(on: Lt, ta: int, tb: int, rows: bool) -> None:
    a, b, c = random(*((4, 3) if not ta else (3, 4))), random(*((3, 5) if not tb else (5, 3)), seed=1), random(4, 5)

    def put(matrix: Array) -> tuple[int, int]:
        content = np.asfortranarray(matrix.T) if rows else matrix
        ld = content.shape[0]
        return on.put(content), on.layout(len(matrix), matrix.shape[1], ld, order=int(rows))

    d = on.room(c.nbytes), on.layout(4, 5, 4)
    assert on.matmul(on.description(ta=ta, tb=tb), [put(a), put(b), put(c), d], scalars=(2, 3)) == 0
    wanted = 2 * (a.T if ta else a) @ (b.T if tb else b) + 3 * c
    assert np.allclose(on.get(d[0], np.float32, 4, 5), wanted, rtol=1e-5, atol=1e-5)


def test_a_batch_and_a_result_in_place(on: Lt) -> None:
    a, b, c = random(3, 3, 4), random(3, 3, 4, seed=1), random(3, 3, 4, seed=2)
    layout = on.layout(3, 3, 3, batch=4, stride=9)
    at, bt, ct = ((on.put(each), layout) for each in (a, b, c))
    assert on.matmul(on.description(), [at, bt, ct, ct], scalars=(1, 1)) == 0
    found = on.get(ct[0], np.float32, 3, 3, 4)
    assert all(np.allclose(found[..., i], a[..., i] @ b[..., i] + c[..., i], atol=1e-5) for i in range(4))


@pytest.mark.parametrize("kind", [SINGLE, BFLOAT])
@pytest.mark.parametrize("epilogue", [2, 4, 6, 32, 36, 6 | 128, 36 | 128])
def test_what_follows_a_product(on: Lt, epilogue: int, kind: int) -> None:
    a, b, bias = random(8, 4), random(4, 3, seed=1), random(8, seed=2)
    if kind == BFLOAT:
        bias = (bias.view(np.uint32) & 0xFFFF0000).view(np.float32)
    content = bias if kind == SINGLE else (bias.view(np.uint32) >> 16).astype(np.uint16)
    layouts = [on.layout(8, 4, 8), on.layout(4, 3, 4), on.layout(8, 3, 8)]
    d, aux = on.room(96), on.room(96)
    ld = 128 if epilogue & 2 else 8
    description = on.description(epilogue=epilogue, bias=on.put(content), bias_type=kind, aux=aux, aux_ld=ld)
    if epilogue & 2 and epilogue & 128:
        aux = on.put(np.zeros(48, np.uint8))
        on.set("MatmulDesc", description, AUXILIARY, aux, 8)
    operands = [(on.put(a), layouts[0]), (on.put(b), layouts[1]), (d, layouts[2]), (d, layouts[2])]
    assert on.matmul(description, operands) == 0
    before = a @ b + (bias[:, None] if epilogue & 4 else 0)
    gelu = 0.5 * before * (1 + np.tanh(0.7978845608 * (before + 0.044715 * before**3)))
    wanted = np.maximum(before, 0) if epilogue & 2 else gelu if epilogue & 32 else before
    assert np.allclose(on.get(d, np.float32, 8, 3), wanted, rtol=1e-5, atol=1e-5)
    if epilogue & 128 and epilogue & 32:
        assert np.allclose(on.get(aux, np.float32, 8, 3), before, rtol=1e-5, atol=1e-5)
    if epilogue & 128 and epilogue & 2:
        bits = np.unpackbits(on.get(aux, np.uint8, 16, 3)[:1], axis=0, bitorder="little")
        assert (bits == (before > 0)).all()


@pytest.mark.parametrize("mode", [1, 2, 3, 4])
def test_scalars_and_columns_of_them_on_the_device(on: Lt, mode: int) -> None:
    a, c = random(4, 4), random(4, 4, seed=1)
    alpha = np.array([2, 3, 4, 5], np.float32)[: 1 if mode == 1 else 4]
    beta = {1: np.array([3], np.float32), 2: alpha + 1, 3: np.zeros(4, np.float32), 4: np.float32(7)}[mode]
    at_beta = on.host(7) if mode == 4 else on.put(np.asarray(beta))
    at, ct = (on.put(a), on.layout(4, 4, 4)), (on.put(c), on.layout(4, 4, 4))
    scalars = on.put(alpha), at_beta
    assert on.matmul(on.description(mode=mode), [at, at, ct, ct], scalars=scalars) == 0
    wanted = alpha[:, None] * (a @ a) + np.asarray(beta).reshape(-1, 1) * c
    assert np.allclose(on.get(ct[0], np.float32, 4, 4), wanted, rtol=1e-4, atol=1e-5)


def heuristic(on: Lt, layouts: list[int], most: int) -> tuple[int, int, int]:
    """Return the status, the address of the result, and the bytes of the workspace that it wants."""
    preference = on.descriptor("MatmulPreference")
    on.set("MatmulPreference", preference, 1, most, 8)
    result, count = np.zeros(12, np.uint64), np.zeros(1, np.int32)
    on._kept.append(result)
    status = on.call(
        "cublasLtMatmulAlgoGetHeuristic", on.blas, on.description(), *layouts, preference, 1, result.ctypes.data,
        count.ctypes.data,
    )  # fmt: skip
    assert count == (status == 0)
    return status, int(result.ctypes.data), int(result[8])


def test_an_algorithm_has_a_workspace_that_it_needs(on: Lt) -> None:
    a = random(4, 4)
    layout = on.layout(4, 4, 4)
    status, algorithm, wanted = heuristic(on, [layout] * 4, 1 << 20)
    assert (status, wanted) == (0, 64)
    assert heuristic(on, [layout] * 4, 16)[2] == 16
    at, d = on.put(a), on.room(64)
    operands = [(at, layout), (at, layout), (d, layout), (d, layout)]
    assert on.matmul(on.description(), operands, algorithm, on.room(64), 32) == WRONG
    assert on.matmul(on.description(), operands, algorithm, on.room(64), 64) == 0
    assert np.allclose(on.get(d, np.float32, 4, 4), a @ a, atol=1e-5)


def test_types_that_nothing_describes_fail_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    made = libraries(Lt)
    layout = made.layout(16, 16, 16, kind=28)
    assert heuristic(made, [layout] * 4, 0)[0] == NOT_SUPPORTED
    at = made.room(256)
    assert made.matmul(made.description(), [(at, layout)] * 4) == NOT_SUPPORTED
    said = capfd.readouterr().err
    assert "cublasLtMatmulAlgoGetHeuristic is not simulated" in said
    assert "cublasLtMatmul is not simulated; matrices of the type 28" in said


def test_shapes_that_do_not_fit_are_refused(on: Lt) -> None:
    at = on.room(256)
    small, large = on.layout(4, 4, 4), on.layout(4, 5, 4)
    for layouts in ([small, small, small, large], [large, small, small, small], [small, small, large, small]):
        assert on.matmul(on.description(), [(at, each) for each in layouts]) == WRONG


def test_attributes_are_kept(on: Lt) -> None:
    description = on.description(epilogue=6)
    value, written = ctypes.c_uint64(99), ctypes.c_size_t()
    get = on.driver.computed_cublasLtMatmulDescGetAttribute
    at = ctypes.c_void_p(description)
    assert get(at, EPILOGUE, ctypes.byref(value), ctypes.c_size_t(4), ctypes.byref(written)) == 0
    assert (value.value & 0xFFFFFFFF, written.value) == (6, 4)
    assert get(at, BIAS, None, ctypes.c_size_t(0), ctypes.byref(written)) == 0
    assert written.value == 8
    assert get(at, BIAS, ctypes.byref(value), ctypes.c_size_t(4), None) == WRONG
    assert get(at, 999, ctypes.byref(value), ctypes.c_size_t(8), None) == WRONG
    setter = on.driver.computed_cublasLtMatmulDescSetAttribute
    assert setter(at, EPILOGUE, ctypes.byref(value), ctypes.c_size_t(8)) == WRONG
    own = ctypes.create_string_buffer(64)
    begin = on.driver.computed_cublasLtMatrixLayoutInit_internal
    assert begin(own, ctypes.c_size_t(32), SINGLE, *map(ctypes.c_uint64, (4, 4, 4))) == WRONG
    assert begin(own, ctypes.c_size_t(64), SINGLE, *map(ctypes.c_uint64, (4, 4, 4))) == 0
    a, d = on.put(random(4, 4)), on.room(64)
    layout = ctypes.addressof(own)
    assert on.matmul(on.description(), [(a, layout), (a, layout), (d, layout), (d, layout)]) == 0
    assert on.driver.computed_cublasLtMatmulDescDestroy(at) == 0


def test_matrices_are_transformed(on: Lt) -> None:
    a, b = random(4, 3), random(3, 4, seed=1)
    description = on.descriptor("MatrixTransformDesc", SINGLE)
    on.set("MatrixTransformDesc", description, 2, 1)
    c = on.room(48)
    call = ("cublasLtMatrixTransform", on.blas, description, on.host(2))
    with_b = on.put(a), on.layout(4, 3, 4), on.host(3), on.put(b), on.layout(3, 4, 3)
    assert on.call(*call, *with_b, c, on.layout(3, 4, 4, order=1), 0) == 0
    assert np.allclose(on.get(c, np.float32, 4, 3).T, 2 * a.T + 3 * b, atol=1e-5)
    without = on.put(a), on.layout(4, 3, 4), 0, 0, 0
    half = on.room(24)
    assert on.call(*call, *without, half, on.layout(3, 4, 3, kind=HALF), 0) == 0
    assert np.allclose(on.get(half, np.float16, 3, 4), 2 * a.T, atol=2e-3)
