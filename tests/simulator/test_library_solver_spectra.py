"""cuSOLVER's eigenvalues and singular values equal those of NumPy, and their vectors have the properties of such."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.library_programs import Array
from tests.simulator.solver_programs import (
    DTYPES,
    NUMBERS,
    REAL_TYPES,
    REALS,
    Solver,
    close,
    hermitian,
    positive,
    random,
    with_gaps,
)

scipy_linalg: Any = pytest.importorskip("scipy.linalg")

MakeLibraries = Callable[..., Any]
LETTERS = ("S", "D", "C", "Z")
LD, WRONG = 9, 3
ALL, BY_INDEX, BY_VALUE = 1001, 1002, 1003
VECTORS, NONE = 1, 0


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Solver]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Solver)
    yield made
    assert made.findings() == ()


def named(letter: str, name: str) -> str:
    """Return a function's name for a type: ``sy`` is ``he`` for complex numbers."""
    return letter + (name.replace("sy", "he", 1) if letter in "CZ" else name)


def are_eigenvectors(vectors: Array, values: Array, matrix: Array, letter: str) -> bool:
    """Say whether columns are orthogonal and eigenvectors."""
    unit = close(vectors.conj().T @ vectors, np.eye(vectors.shape[1]), letter)
    return unit and close(matrix @ vectors, vectors * values, letter)


@pytest.mark.parametrize("uplo", [0, 1])
@pytest.mark.parametrize("method", ["syevd", "syevj", "Xsyevd", "Syevd"])
@pytest.mark.parametrize("letter", LETTERS)
def test_symmetric_matrices(on: Solver, letter: str, method: str, uplo: int) -> None:
    matrix, dtype = hermitian(letter, 5), DTYPES[letter]
    for job in (VECTORS, NONE):
        a, w = on.put(with_gaps(matrix, LD, kept="LU"[uplo])), on.room(5 * 8)
        info, shape = on.info(), (job, uplo, 5, a, LD, w)
        generic = on.parameters(), job, uplo, 5, NUMBERS[letter], a, LD, REAL_TYPES[letter], w, NUMBERS[letter]
        if method == "Xsyevd":
            assert on.generic(method, generic) == 0
        elif method == "Syevd":
            (size,) = on.sizes(method, *generic, both=False)
            assert on.status(method, *generic, on.room(size), size, info) == 0
        else:
            tail = (on.parameters("SyevjInfo"),) if method == "syevj" else ()
            lwork = on.size(named(letter, method), *shape, tail=tail)
            work = on.room(lwork * matrix.itemsize)
            assert on.status(named(letter, method), *shape, work, lwork, info, *tail) == 0
            assert on.number(info) == 0
        values, found = on.get(w, REALS[letter], 5), on.get(a, dtype, LD, 5)
        assert close(values, np.linalg.eigvalsh(matrix), letter)
        assert np.isnan(found[5:]).all()
        assert are_eigenvectors(found[:5], values, matrix, letter) if job else np.isnan(found).all()


@pytest.mark.parametrize("letter", LETTERS)
def test_batches_of_symmetric_matrices(on: Solver, letter: str) -> None:
    matrices, dtype = [hermitian(letter, 4, seed) for seed in range(3)], DTYPES[letter]
    content = np.concatenate([with_gaps(each, LD, kept="L") for each in matrices], axis=1)
    for method in ("syevjBatched", "XsyevBatched"):
        a, w, infos = on.put(np.asfortranarray(content)), on.room(12 * 8), on.room(12)
        if method == "syevjBatched":
            shape, tail = (VECTORS, 0, 4, a, LD, w), (on.parameters("SyevjInfo"), 3)
            lwork = on.size(named(letter, method), *shape, tail=tail)
            work = on.room(lwork * content.itemsize)
            assert on.status(named(letter, method), *shape, work, lwork, infos, *tail) == 0
        else:
            number = NUMBERS[letter]
            given = on.parameters(), VECTORS, 0, 4, number, a, LD, REAL_TYPES[letter], w, number
            device, host = on.sizes(method, *given, tail=(3,))
            assert on.status(method, *given, on.room(device), device, 0, host, infos, 3) == 0
        assert on.get(infos, np.int32, 3).tolist() == [0, 0, 0]
        values, found = on.get(w, REALS[letter], 4, 3), on.get(a, dtype, LD, 4, 3)
        for number, matrix in enumerate(matrices):
            assert are_eigenvectors(found[:4, :, number], values[:, number], matrix, letter)


@pytest.mark.parametrize("letter", LETTERS)
def test_some_of_the_eigenvalues(on: Solver, letter: str) -> None:
    matrix, dtype, real = hermitian(letter, 6), DTYPES[letter], REALS[letter]
    wanted = np.linalg.eigvalsh(matrix)
    limit = ctypes.c_float if letter in "SC" else ctypes.c_double
    between = float((wanted[1] + wanted[2]) / 2), float((wanted[4] + wanted[5]) / 2)
    for chosen, numbers, part in (
        (ALL, (0, 0), slice(0, 6)),
        (BY_INDEX, (2, 4), slice(1, 4)),
        (BY_VALUE, (0, 0), slice(2, 5)),
    ):
        a, w, found, info = on.put(matrix), on.room(48), np.zeros(1, np.int64), on.info()
        at = int(found.ctypes.data)
        sized = VECTORS, chosen, 0, 6, a, 6, limit(between[0]), limit(between[1]), *numbers, at, w
        lwork = on.size(named(letter, "syevdx"), *sized)
        work = on.room(lwork * matrix.itemsize)
        assert on.status(named(letter, "syevdx"), *sized, work, lwork, info) == 0
        count = len(wanted[part])
        assert (int(found[0]), on.number(info)) == (count, 0)
        assert close(on.get(w, real, count), wanted[part], letter)
        assert are_eigenvectors(on.get(a, dtype, 6, count), wanted[part], matrix, letter)
        a, w, number = on.put(matrix), on.room(48), NUMBERS[letter]
        limits = on.host(between[0], dtype=real), on.host(between[1], dtype=real)
        generic = (
            on.parameters(), VECTORS, chosen, 0, 6, number, a, 6, *limits, *numbers, at, REAL_TYPES[letter], w, number
        )  # fmt: skip
        assert on.generic("Xsyevdx", generic) == 0
        assert int(found[0]) == count
        assert close(on.get(w, real, count), wanted[part], letter)


@pytest.mark.parametrize("uplo", [0, 1])
@pytest.mark.parametrize("letter", LETTERS)
def test_pairs_of_symmetric_matrices(on: Solver, letter: str, uplo: int) -> None:
    first, second, dtype = hermitian(letter, 5), positive(letter, 5, 1), DTYPES[letter]
    wanted = scipy_linalg.eigh(first, second, eigvals_only=True)
    for method in ("sygvd", "sygvj", "sygvdx"):
        a, b = (on.put(with_gaps(each, LD, kept="LU"[uplo])) for each in (first, second))
        w, info, found = on.room(40), on.info(), np.zeros(1, np.int32)
        limit = ctypes.c_float if letter in "SC" else ctypes.c_double
        shape: tuple[Any, ...] = 1, VECTORS, uplo, 5, a, LD, b, LD, w
        if method == "sygvdx":
            limits = limit(0), limit(0), 1, 5, int(found.ctypes.data)
            shape = 1, VECTORS, BY_INDEX, uplo, 5, a, LD, b, LD, *limits, w
        tail = (on.parameters("SyevjInfo"),) if method == "sygvj" else ()
        lwork = on.size(named(letter, method), *shape, tail=tail)
        assert on.status(named(letter, method), *shape, on.room(lwork * first.itemsize), lwork, info, *tail) == 0
        assert on.number(info) == 0
        values, vectors = on.get(w, REALS[letter], 5), on.get(a, dtype, LD, 5)[:5]
        assert close(values, wanted, letter)
        assert close(first @ vectors, second @ vectors * values, letter)
        factor = on.get(b, dtype, LD, 5)[:5]
        factor = np.triu(factor).conj().T if uplo else np.tril(factor)
        assert close(factor @ factor.conj().T, second, letter)
        assert not found[0] or found[0] == 5


def test_a_pair_whose_second_is_not_positive_definite(on: Solver) -> None:
    a, b, w = on.put(hermitian("D", 3)), on.put(np.diag([1.0, -1, 1])), on.room(24)
    given = 1, VECTORS, 0, 3, a, 3, b, 3, w
    assert on.factored("Dsygvd", given, given, np.float64) == 5


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("letter", LETTERS)
def test_general_matrices(on: Solver, letter: str, split: bool) -> None:
    matrix, dtype, number = random(letter, 5, 5), DTYPES[letter], NUMBERS[letter]
    is_complex = letter in "CZ"
    a, w, left, right = on.put(with_gaps(matrix, LD)), on.room(80), on.room(400), on.room(400)
    of_values = number if is_complex or split else number + 4
    given = (
        on.parameters(), 1, 1, 5, number, a, LD, of_values, w, number, left, 5, number, right, 5, number
    )  # fmt: skip
    assert on.generic("Xgeev", given) == 0
    if split and not is_complex:
        parts = on.get(w, dtype, 5, 2)
        values = parts[:, 0] + 1j * parts[:, 1]
    else:
        values = on.get(w, np.result_type(dtype, np.complex64), 5)
    wanted = np.linalg.eigvals(matrix)
    assert close(np.sort_complex(values), np.sort_complex(wanted), letter)
    for at, of in ((right, matrix), (left, matrix.conj().T)):
        vectors = on.get(at, dtype, 5, 5).astype(np.complex128)
        if not is_complex:
            for column in np.flatnonzero(values.imag > 0):
                pair = vectors[:, column] + 1j * vectors[:, column + 1]
                vectors[:, column], vectors[:, column + 1] = pair, pair.conj()
        of_these = values if at == right else values.conj()
        assert close(of @ vectors, vectors * of_these, letter)


# -- singular values ---------------------------------------------------------------------------------------------------


def are_singular(u: Array, values: Array, vh: Array, matrix: Array, letter: str) -> bool:
    """Say whether they are a decomposition, and vectors orthogonal."""
    count = len(values)
    columns = close(u.conj().T @ u, np.eye(u.shape[1]), letter)
    rows = close(vh @ vh.conj().T, np.eye(len(vh)), letter)
    return columns and rows and close(u[:, :count] * values @ vh[:count], matrix, letter)


@pytest.mark.parametrize("method", ["gesvd", "Xgesvd", "Gesvd"])
@pytest.mark.parametrize("jobs", ["AA", "SS", "NN", "OS", "SO"])
@pytest.mark.parametrize("letter", LETTERS)
def test_singular_values(on: Solver, letter: str, jobs: str, method: str) -> None:
    matrix, dtype, number = random(letter, 6, 4), DTYPES[letter], NUMBERS[letter]
    a, s, u, vt = on.put(with_gaps(matrix, LD)), on.room(32), on.room(36 * 16), on.room(16 * 16)
    job = ord(jobs[0]), ord(jobs[1])
    generic = (
        on.parameters(), *job, 6, 4, number, a, LD, REAL_TYPES[letter], s, number, u, 6, number, vt, 4, number
    )  # fmt: skip
    info = on.info()
    if method == "Xgesvd":
        assert on.generic(method, generic) == 0
    elif method == "Gesvd":
        (size,) = on.sizes(method, *generic, both=False)
        assert on.status(method, *generic, on.room(size), size, info) == 0
    else:
        lwork = on.size(f"{letter}gesvd", 6, 4)
        work = on.room(lwork * matrix.itemsize)
        assert on.status(f"{letter}gesvd", *job, 6, 4, a, LD, s, u, 6, vt, 4, work, lwork, 0, info) == 0
        assert on.number(info) == 0
    values = on.get(s, REALS[letter], 4)
    assert close(values, np.linalg.svd(matrix, compute_uv=False), letter)
    if jobs != "NN":
        in_place = on.get(a, dtype, LD, 4)
        found_u = in_place[:6] if jobs[0] == "O" else on.get(u, dtype, 6, 6 if jobs[0] == "A" else 4)
        found_vh = in_place[:4] if jobs[1] == "O" else on.get(vt, dtype, 4, 4)
        assert are_singular(found_u, values, found_vh, matrix, letter)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
@pytest.mark.parametrize("econ", [0, 1])
@pytest.mark.parametrize("letter", LETTERS)
def test_singular_values_of_any_shape(on: Solver, letter: str, econ: int, shape: tuple[int, int]) -> None:
    matrix, dtype, (rows, columns), number = random(letter, *shape), DTYPES[letter], shape, NUMBERS[letter]
    for method in ("gesvdj", "Xgesvdp"):
        a, s, u, v = on.put(with_gaps(matrix, LD)), on.room(32), on.room(36 * 16), on.room(36 * 16)
        info, error = on.info(), np.full(1, -1.0)
        if method == "gesvdj":
            given, tail = (VECTORS, econ, *shape, a, LD, s, u, rows, v, columns), (on.parameters("GesvdjInfo"),)
            lwork = on.size(f"{letter}gesvdj", *given, tail=tail)
            work = on.room(lwork * matrix.itemsize)
            assert on.status(f"{letter}gesvdj", *given, work, lwork, info, *tail) == 0
        else:
            generic = (
                on.parameters(), VECTORS, econ, *shape, number, a, LD, REAL_TYPES[letter], s, number, u, rows, number,
                v, columns, number,
            )  # fmt: skip
            device, host = on.sizes(method, *generic)
            work = on.room(device)
            assert on.status(method, *generic, work, device, 0, host, info, int(error.ctypes.data)) == 0
            assert 0 < error[0] < 1e-3
        assert on.number(info) == 0
        values = on.get(s, REALS[letter], 4)
        sides = on.get(u, dtype, rows, 4 if econ else rows), on.get(v, dtype, columns, 4 if econ else columns)
        assert are_singular(sides[0], values, sides[1].conj().T, matrix, letter)
        assert np.isnan(on.get(a, dtype, LD, columns)).all()


@pytest.mark.parametrize("letter", LETTERS)
def test_batches_of_singular_values(on: Solver, letter: str) -> None:
    matrices, dtype, real = [random(letter, 5, 4, seed=seed) for seed in range(3)], DTYPES[letter], REALS[letter]
    content = np.asfortranarray(np.concatenate([with_gaps(each, LD) for each in matrices], axis=1))
    size = content.itemsize
    a, s, u, v, infos = on.put(content), on.room(96), on.room(75 * size), on.room(48 * size), on.room(12)
    given, tail = (VECTORS, 5, 4, a, LD, s, u, 5, v, 4), (on.parameters("GesvdjInfo"), 3)
    lwork = on.size(f"{letter}gesvdjBatched", *given, tail=tail)
    assert on.status(f"{letter}gesvdjBatched", *given, on.room(lwork * size), lwork, infos, *tail) == 0
    values, us, vs = on.get(s, real, 4, 3), on.get(u, dtype, 5, 5, 3), on.get(v, dtype, 4, 4, 3)
    for number, matrix in enumerate(matrices):
        assert are_singular(us[..., number], values[:, number], vs[..., number].conj().T, matrix, letter)
    a, s, u, v, norms = on.put(content), on.room(96), on.room(30 * size), on.room(24 * size), np.full(3, -1.0)
    strided = VECTORS, 2, 5, 4, a, LD, LD * 4, s, 2, u, 5, 10, v, 4, 8
    name = f"{letter}gesvdaStridedBatched"
    lwork = on.size(name, *strided, tail=(3,))
    work = on.room(lwork * size)
    assert on.status(name, *strided, work, lwork, infos, int(norms.ctypes.data), 3) == 0
    values, us, vs = on.get(s, real, 2, 3), on.get(u, dtype, 5, 2, 3), on.get(v, dtype, 4, 2, 3)
    for number, matrix in enumerate(matrices):
        of_all = np.linalg.svd(matrix, compute_uv=False)
        assert close(values[:, number], of_all[:2], letter)
        kept = us[..., number] * values[:, number] @ vs[..., number].conj().T
        left_out = np.linalg.norm(of_all[2:])
        assert np.allclose([np.linalg.norm(matrix - kept), norms[number]], left_out, rtol=1e-4)
    assert np.array_equal(on.get(a, dtype, LD, 12), content, equal_nan=True)


@pytest.mark.parametrize("letter", LETTERS)
def test_the_largest_singular_values(on: Solver, letter: str) -> None:
    matrix, dtype, number = random(letter, 6, 5), DTYPES[letter], NUMBERS[letter]
    a, s, u, v = on.put(matrix), on.room(16), on.room(12 * 16), on.room(10 * 16)
    given = (
        on.parameters(), ord("S"), ord("S"), 6, 5, 2, 1, 2, number, a, 6, REAL_TYPES[letter], s, number, u, 6, number,
        v, 5, number,
    )  # fmt: skip
    assert on.generic("Xgesvdr", given) == 0
    values, vectors = on.get(s, REALS[letter], 2), on.get(v, dtype, 5, 2)
    assert close(values, np.linalg.svd(matrix, compute_uv=False)[:2], letter)
    assert close(matrix @ vectors, on.get(u, dtype, 6, 2) * values, letter)


@pytest.mark.parametrize("call", [
    ("Dsyevd", 2, 0, 4, 0, 4, 0, 0, 1024, 0),
    ("Dsyevd", 1, 0, 4, 0, 4, 0, 0, 8, 0),
    ("Dsygvd", 4, 1, 0, 4, 0, 4, 0, 4, 0, 0, 1024, 0),
    ("Dsyevdx", 1, 1002, 0, 4, 0, 4, ctypes.c_double(0), ctypes.c_double(0), 3, 2, 8, 0, 0, 1024, 0),
    ("Dgesvd", ord("A"), ord("A"), 3, 4, 0, 4, 0, 0, 4, 0, 4, 0, 1024, 0, 0),
    ("Dgesvd", ord("X"), ord("A"), 4, 4, 0, 4, 0, 0, 4, 0, 4, 0, 1024, 0, 0),
    ("DgesvdjBatched", 1, 33, 4, 0, 33, 0, 0, 33, 0, 4, 0, 65536, 0, 0, 1),
    ("DgesvdaStridedBatched", 1, 5, 4, 4, 0, 4, 16, 0, 4, 0, 4, 16, 0, 4, 16, 0, 65536, 0, 0, 1),
])  # fmt: skip
def test_wrong_arguments_are_refused(on: Solver, call: tuple[Any, ...]) -> None:
    assert on.status(*call) == WRONG


@pytest.mark.parametrize("letter", LETTERS)
def test_the_host_is_told_of_jacobis_method(on: Solver, letter: str) -> None:
    matrix, told, count = hermitian(letter, 4), np.full(1, -1.0), np.full(1, -1, np.int32)
    asks = {"Residual": int(told.ctypes.data), "Sweeps": int(count.ctypes.data)}
    for kind, name in (("syevj", "SyevjInfo"), ("gesvdj", "GesvdjInfo")):
        parameters, w, info, u = on.parameters(name), on.room(48), on.room(12), on.room(4 * 64)
        symmetric, a = kind == "syevj", on.put(matrix)
        one: tuple[int, ...] = (NONE, 0, 4, a, 4, w) if symmetric else (NONE, 0, 4, 4, a, 4, w, u, 4, u, 4)
        lwork = on.size(named(letter, kind), *one, tail=(parameters,))
        work = on.room(lwork * matrix.itemsize)
        assert on.status(named(letter, kind), *one, work, lwork, info, parameters) == 0
        for what, at in asks.items():
            assert on.status(f"X{kind}Get{what}", parameters, at) == 0
        assert 0 < told[0] < 1e-4
        assert count[0] == 1
        a = on.put(matrix)
        batch: tuple[int, ...] = (NONE, 0, 4, a, 4, w) if symmetric else (NONE, 4, 4, a, 4, w, u, 4, u, 4)
        lwork = on.size(named(letter, f"{kind}Batched"), *batch, tail=(parameters, 1))
        work = on.room(lwork * matrix.itemsize)
        assert on.status(named(letter, f"{kind}Batched"), *batch, work, lwork, info, parameters, 1) == 0
        assert on.status(f"X{kind}GetResidual", parameters, asks["Residual"]) == 9
