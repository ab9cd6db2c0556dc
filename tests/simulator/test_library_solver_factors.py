"""cuSOLVER's factors of matrices equal those of SciPy, and the systems that are solved with them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.solver_programs import DTYPES, NUMBERS, Solver, close, hermitian, positive, random, with_gaps

scipy_linalg = pytest.importorskip("scipy.linalg")

MakeLibraries = Callable[..., Any]
LETTERS = ("S", "D", "C", "Z")
WRONG, NOT_SUPPORTED = 3, 9
LD = 9


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Solver]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Solver)
    yield made
    assert made.findings() == ()


def triangle(matrix: Any, uplo: int) -> Any:
    return np.triu(matrix) if uplo else np.tril(matrix)


@pytest.mark.parametrize("uplo", [0, 1])
@pytest.mark.parametrize("letter", LETTERS)
def test_cholesky(on: Solver, letter: str, uplo: int) -> None:
    matrix, right = positive(letter, 6), random(letter, 6, 3)
    a, b = on.put(with_gaps(matrix, LD, kept="LU"[uplo])), on.put(with_gaps(right, LD))
    shape = uplo, 6, a, LD
    assert on.factored(f"{letter}potrf", shape, shape, DTYPES[letter]) == 0
    found = on.get(a, DTYPES[letter], LD, 6)
    assert np.isnan(found[6:]).all()
    factor = triangle(found[:6], uplo)
    assert close(factor.conj().T @ factor if uplo else factor @ factor.conj().T, matrix, letter)
    info = on.info()
    assert on.status(f"{letter}potrs", uplo, 6, 3, a, LD, b, LD, info) == 0
    assert on.number(info) == 0
    assert close(on.get(b, DTYPES[letter], LD, 3)[:6], np.linalg.solve(matrix, right), letter)
    assert on.factored(f"{letter}potri", shape, shape, DTYPES[letter]) == 0
    inverse = triangle(on.get(a, DTYPES[letter], LD, 6)[:6], uplo)
    assert close(inverse, triangle(np.linalg.inv(matrix), uplo), letter)
    product = on.put(with_gaps(factor, LD, kept="LU"[uplo]))
    shape = uplo, 6, product, LD
    assert on.factored(f"{letter}lauum", shape, shape, DTYPES[letter]) == 0
    wanted = factor @ factor.conj().T if uplo else factor.conj().T @ factor
    assert close(triangle(on.get(product, DTYPES[letter], LD, 6)[:6], uplo), triangle(wanted, uplo), letter)


def test_a_matrix_that_is_not_positive_definite(on: Solver) -> None:
    matrix = np.diag([1.0, 2, -1, 1])
    a = on.put(matrix)
    assert on.factored("Dpotrf", (0, 4, a, 4), (0, 4, a, 4), np.float64) == 3


@pytest.mark.parametrize("letter", LETTERS)
def test_batches_of_cholesky_factors(on: Solver, letter: str) -> None:
    matrices, rights = [positive(letter, 4, seed) for seed in range(3)], [random(letter, 4, 1, seed=9)] * 3
    a = [on.put(with_gaps(each, LD, kept="L")) for each in matrices]
    b = [on.put(each) for each in rights]
    at_a, at_b, info = on.put(np.array(a, np.uint64)), on.put(np.array(b, np.uint64)), on.room(12)
    assert on.status(f"{letter}potrfBatched", 0, 4, at_a, LD, info, 3) == 0
    assert on.get(info, np.int32, 3).tolist() == [0, 0, 0]
    assert on.status(f"{letter}potrsBatched", 0, 4, 1, at_a, LD, at_b, 4, info, 3) == 0
    assert on.status(f"{letter}potrsBatched", 0, 4, 2, at_a, LD, at_b, 4, info, 3) == WRONG
    for matrix, right, address in zip(matrices, rights, b, strict=True):
        assert close(on.get(address, DTYPES[letter], 4, 1), np.linalg.solve(matrix, right), letter)


@pytest.mark.parametrize("shape", [(5, 5), (7, 5), (4, 6)])
@pytest.mark.parametrize("letter", LETTERS)
def test_lu(on: Solver, letter: str, shape: tuple[int, int]) -> None:
    matrix, (rows, columns) = random(letter, *shape), shape
    a, pivots, info = on.put(with_gaps(matrix, LD)), on.room(4 * min(shape)), on.info()
    lwork = on.size(f"{letter}getrf", rows, columns, a, LD)
    work = on.room(lwork * matrix.itemsize)
    assert on.status(f"{letter}getrf", rows, columns, a, LD, work, pivots, info) == 0
    wanted, exchanged = scipy_linalg.lapack.get_lapack_funcs(("getrf",), (matrix,))[0](matrix)[:2]
    assert on.number(info) == 0
    assert close(on.get(a, DTYPES[letter], LD, columns)[:rows], wanted, letter)
    assert on.get(pivots, np.int32, min(shape)).tolist() == (exchanged + 1).tolist()
    if rows != columns:
        return
    right = random(letter, rows, 2, seed=3)
    for trans in range(3):
        b = on.put(with_gaps(right, LD))
        assert on.status(f"{letter}getrs", trans, rows, 2, a, LD, pivots, b, LD, info) == 0
        turned = (matrix, matrix.T, matrix.T.conj())[trans]
        assert close(on.get(b, DTYPES[letter], LD, 2)[:rows], np.linalg.solve(turned, right), letter)


def test_lu_without_pivots_and_of_a_singular_matrix(on: Solver) -> None:
    matrix = positive("D", 4)
    a, b, info = on.put(matrix), on.put(matrix[:, :1]), on.info()
    work = on.room(8 * on.size("Dgetrf", 4, 4, a, 4))
    assert on.status("Dgetrf", 4, 4, a, 4, work, 0, info) == 0
    factors = on.get(a, np.float64, 4, 4)
    assert close((np.tril(factors, -1) + np.eye(4)) @ np.triu(factors), matrix, "D")
    assert on.status("Dgetrs", 0, 4, 1, a, 4, 0, b, 4, info) == 0
    assert close(on.get(b, np.float64, 4, 1), np.eye(4)[:, :1], "D")
    for pivots in (0, on.room(16)):
        singular = on.put(np.diag([1.0, 2, 0, 1]))
        assert on.status("Dgetrf", 4, 4, singular, 4, work, pivots, info) == 0
        assert on.number(info) == 3


def test_rows_are_exchanged(on: Solver) -> None:
    matrix = random("D", 5, 3)
    a, pivots = on.put(matrix), on.put(np.array([3, 2, 5], np.int32))
    assert on.status("Dlaswp", 3, a, 5, 1, 3, pivots, 1) == 0
    wanted = np.array(matrix)
    wanted[[0, 2]] = wanted[[2, 0]]
    wanted[[2, 4]] = wanted[[4, 2]]
    assert close(on.get(a, np.float64, 5, 3), wanted, "D")


@pytest.mark.parametrize("uplo", [0, 1])
@pytest.mark.parametrize("letter", LETTERS)
def test_symmetric_matrices(on: Solver, letter: str, uplo: int) -> None:
    matrix = random(letter, 6, 6)
    matrix = np.asfortranarray(matrix + matrix.T)
    a, pivots = on.put(with_gaps(matrix, LD, kept="LU"[uplo])), on.room(24)
    assert on.factored(f"{letter}sytrf", (6, a, LD), (uplo, 6, a, LD, pivots), DTYPES[letter]) == 0
    wide, right = on.put(on.get(pivots, np.int32, 6).astype(np.int64)), random(letter, 6, 2, seed=4)
    b, number = on.put(right), NUMBERS[letter]
    assert on.generic("Xsytrs", (uplo, 6, 2, number, a, LD, wide, number, b, 6)) == 0
    assert close(on.get(b, DTYPES[letter], 6, 2), np.linalg.solve(matrix, right), letter)
    shape = uplo, 6, a, LD, pivots
    assert on.factored(f"{letter}sytri", shape, shape, DTYPES[letter]) == 0
    inverse = triangle(on.get(a, DTYPES[letter], LD, 6)[:6], uplo)
    assert close(inverse, triangle(np.linalg.inv(matrix), uplo), letter)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("letter", LETTERS)
def test_functions_with_sizes_of_64_bits(on: Solver, letter: str, old: bool) -> None:
    number, dtype, parameters = NUMBERS[letter], DTYPES[letter], on.parameters()
    matrix, right = positive(letter, 5), random(letter, 5, 2)

    def spelled(name: str) -> str:
        return name.capitalize() if old else f"X{name}"

    def run(name: str, sized: tuple[int, ...], full: tuple[int, ...]) -> int:
        if not old:
            return on.generic(spelled(name), sized, full)
        (size,), info = on.sizes(spelled(name), *sized, both=False), on.info()
        assert on.status(spelled(name), *full, on.room(size), size, info) == 0
        return on.number(info)

    a, b, info = on.put(with_gaps(matrix, LD, kept="L")), on.put(right), on.info()
    shape = parameters, 0, 5, number, a, LD, number
    assert run("potrf", shape, shape) == 0
    assert on.status(spelled("potrs"), parameters, 0, 5, 2, number, a, LD, number, b, 5, info) == 0
    assert close(on.get(b, dtype, 5, 2), np.linalg.solve(matrix, right), letter)
    a, b, pivots = on.put(matrix), on.put(right), on.room(40)
    order = parameters, 5, 5, number, a, 5, number
    assert run("getrf", order, (parameters, 5, 5, number, a, 5, pivots, number)) == 0
    assert on.status(spelled("getrs"), parameters, 1, 5, 2, number, a, 5, pivots, number, b, 5, info) == 0
    assert close(on.get(b, dtype, 5, 2), np.linalg.solve(matrix.T, right), letter)
    a, tau = on.put(matrix), on.room(5 * matrix.itemsize)
    wide_order = *order[:4], a, 5, number, tau, number
    assert run("geqrf", wide_order, wide_order) == 0
    r = np.triu(on.get(a, dtype, 5, 5))
    assert close(r.conj().T @ r, matrix.conj().T @ matrix, letter)


@pytest.mark.parametrize("unit", [0, 1])
def test_a_triangle_is_inverted(on: Solver, unit: int) -> None:
    matrix = random("D", 4, 4) + 4 * np.eye(4)
    kept = with_gaps(matrix, LD, kept="U")
    if unit:
        np.fill_diagonal(kept, np.nan)
        np.fill_diagonal(matrix, 1)
    a = on.put(kept)
    assert on.generic("Xtrtri", (1, unit, 4, 1, a, LD)) == 0
    found = on.get(a, np.float64, LD, 4)[:4]
    assert close(np.triu(found, unit), np.triu(np.linalg.inv(np.triu(matrix)), unit), "D")
    assert np.isnan(found.diagonal()).all() == bool(unit)


def test_empty_matrices_are_done(on: Solver) -> None:
    a, info = on.room(8), on.info()
    for call in (("Dpotrf", 0, 0, a, 1, 0, 0, info), ("Dgetrs", 0, 0, 0, a, 1, 0, a, 1, info)):
        assert on.status(*call) == 0
        assert on.number(info) == 0


@pytest.mark.parametrize("call", [
    ("Dpotrf", 2, 4, 0, 4, 0, 1024, 0),
    ("Dpotrf", 0, 4, 0, 3, 0, 1024, 0),
    ("Dpotrf", 0, -1, 0, 4, 0, 1024, 0),
    ("Dpotrf", 0, 4, 0, 4, 0, 127, 0),
    ("Dgetrs", 3, 4, 1, 0, 4, 0, 0, 4, 0),
    ("Dgetrs", 0, 4, 1, 0, 4, 0, 0, 3, 0),
    ("Dpotrf_bufferSize", 0, -1, 0, 4, 0),
    ("Dpotrf_bufferSize", 0, 4, 0, 4, 0),
])  # fmt: skip
def test_wrong_arguments_are_refused(on: Solver, call: tuple[Any, ...]) -> None:
    assert on.status(*call) == WRONG


def test_types_that_nothing_describes_fail_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    made = libraries(Solver)
    assert made.status("Xpotrs", made.parameters(), 0, 4, 1, 2, 0, 4, 2, 0, 4, 0) == NOT_SUPPORTED
    assert made.status("Xpotrs", made.parameters(), 0, 4, 1, 0, 0, 4, 1, 0, 4, 0) == NOT_SUPPORTED
    said = capfd.readouterr().err
    assert "cusolverDnXpotrs is not simulated; A of the type 2 is not described" in said


def test_hermitian_matrices_have_real_diagonals(on: Solver) -> None:
    matrix = positive("Z", 3) + hermitian("Z", 3)
    given = np.array(matrix)
    np.fill_diagonal(given, matrix.diagonal().real + 5j)
    a = on.put(given)
    assert on.factored("Zpotrf", (0, 3, a, 3), (0, 3, a, 3), np.complex128) == 0
    factor = np.tril(on.get(a, np.complex128, 3, 3))
    assert close(factor @ factor.conj().T, matrix, "Z")


def test_parameters_are_made_set_and_destroyed(on: Solver) -> None:
    parameters = on.parameters()
    for function, algorithm, status in ((0, 1, 0), (1, 2, 0), (2, 0, WRONG), (0, 3, WRONG)):
        assert on.call("cusolverDnSetAdvOptions", parameters, function, algorithm) == status
    assert on.call("cusolverDnSetAdvOptions", 0, 0, 0) == WRONG
    assert on.call("cusolverDnDestroyParams", parameters) == 0
    assert on.call("cusolverDnDestroyParams", 0) == WRONG
    for name, kind in (("Syevj", "syevj"), ("Gesvdj", "gesvdj")):
        parameters = on.parameters(f"{name}Info")
        assert on.call(f"cusolverDnX{kind}SetTolerance", parameters, ctypes.c_double(1e-7)) == 0
        assert on.call(f"cusolverDnX{kind}SetMaxSweeps", parameters, 15) == 0
        assert on.call(f"cusolverDnX{kind}SetSortEig", parameters, 0) == 0
        assert on.call(f"cusolverDnX{kind}SetSortEig", 0, 0) == WRONG
        assert on.call(f"cusolverDnDestroy{name}Info", parameters) == 0
