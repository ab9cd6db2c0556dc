"""cuSOLVER's orthogonal factors: what their reflectors make of a matrix, and that they are orthogonal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.solver_programs import DTYPES, REALS, Solver, close, hermitian, random, with_gaps

pytest.importorskip("scipy")

MakeLibraries = Callable[..., Any]
LETTERS = ("S", "D", "C", "Z")
LD, WRONG = 9, 3


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Solver]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Solver)
    yield made
    assert made.findings() == ()


def named(letter: str, name: str) -> str:
    """Return a function's name for a type: ``or`` is ``un`` for complex numbers."""
    return letter + (name.replace("or", "un", 1).replace("sytrd", "hetrd") if letter in "CZ" else name)


def is_orthogonal(q: Any, letter: str) -> bool:
    return close(q.conj().T @ q, np.eye(q.shape[1]), letter)


@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 6)])
@pytest.mark.parametrize("letter", LETTERS)
def test_qr(on: Solver, letter: str, shape: tuple[int, int]) -> None:
    matrix, (rows, columns), dtype = random(letter, *shape), shape, DTYPES[letter]
    count = min(shape)
    a, tau = on.put(with_gaps(matrix, LD)), on.room(count * matrix.itemsize)
    assert on.factored(f"{letter}geqrf", (rows, columns, a, LD), (rows, columns, a, LD, tau), dtype) == 0
    r = np.triu(on.get(a, dtype, LD, columns)[:count])
    # Q is wider than its reflectors are many: what lies behind these is not read
    q = on.put(
        np.asfortranarray(with_gaps(on.get(a, dtype, LD, columns)[:rows, :count], LD)), LD * rows * matrix.itemsize
    )
    name, given = named(letter, "orgqr"), (rows, rows, count, q, LD, tau)
    assert on.factored(name, given, given, dtype) == 0
    made = on.get(q, dtype, LD, rows)[:rows]
    assert is_orthogonal(made, letter)
    assert close(made[:, :count] @ r, matrix, letter)
    for side, trans in ((0, 0), (0, 2 if letter in "CZ" else 1), (1, 0), (1, 2 if letter in "CZ" else 1)):
        other = random(letter, *((rows, 3) if side == 0 else (3, rows)), seed=5)
        c = on.put(with_gaps(other, LD))
        given = side, trans, *other.shape, count, a, LD, tau, c, LD
        assert on.factored(named(letter, "ormqr"), given, given, dtype) == 0
        turned = made.conj().T if trans else made
        found = on.get(c, dtype, LD, other.shape[1])[: len(other)]
        assert close(found, turned @ other if side == 0 else other @ turned, letter)


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (3, 1)])
@pytest.mark.parametrize("letter", LETTERS)
def test_bidiagonal_matrices(on: Solver, letter: str, shape: tuple[int, int]) -> None:
    matrix, (rows, columns), dtype, real = random(letter, *shape), shape, DTYPES[letter], REALS[letter]
    size = matrix.itemsize
    a, d, e, tau_q, tau_p = (on.put(with_gaps(matrix, LD)), *(on.room(columns * size) for _ in range(4)))
    full = rows, columns, a, LD, d, e, tau_q, tau_p
    assert on.factored(f"{letter}gebrd", (rows, columns), full, dtype) == 0
    content = on.get(a, dtype, LD, columns)
    wanted = np.diag(on.get(d, real, columns))
    if columns > 1:
        wanted = wanted + np.diag(on.get(e, real, columns - 1), 1)
    q, p = on.put(content), on.put(content)
    given = 0, rows, columns, columns, q, LD, tau_q
    assert on.factored(named(letter, "orgbr"), given, given, dtype) == 0
    given = 1, columns, columns, rows, p, LD, tau_p
    assert on.factored(named(letter, "orgbr"), given, given, dtype) == 0
    q_made, p_made = on.get(q, dtype, LD, columns)[:rows], on.get(p, dtype, LD, columns)[:columns]
    assert is_orthogonal(q_made, letter)
    assert is_orthogonal(p_made, letter)
    assert close(q_made @ wanted @ p_made, matrix, letter)


@pytest.mark.parametrize("uplo", [0, 1])
@pytest.mark.parametrize("letter", LETTERS)
def test_tridiagonal_matrices(on: Solver, letter: str, uplo: int) -> None:
    matrix, dtype, real = hermitian(letter, 5), DTYPES[letter], REALS[letter]
    a, d, e, tau = (on.put(with_gaps(matrix, LD, kept="LU"[uplo])), *(on.room(5 * 16) for _ in range(3)))
    given: tuple[int, ...] = uplo, 5, a, LD, d, e, tau
    assert on.factored(named(letter, "sytrd"), given, given, dtype) == 0
    beside = np.diag(on.get(e, real, 4), 1)
    wanted = np.diag(on.get(d, real, 5)) + beside + beside.T
    other = random(letter, 5, 3)
    c = on.put(other)
    for side, trans in ((0, 0), (0, 2 if letter in "CZ" else 1)):
        given = side, uplo, trans, 5, 3, a, LD, tau, c, 5
        assert on.factored(named(letter, "ormtr"), given, given, dtype) == 0
    assert close(on.get(c, dtype, 5, 3), other, letter)
    given = 0, uplo, 0, 5, 3, a, LD, tau, c, 5
    assert on.factored(named(letter, "ormtr"), given, given, dtype) == 0
    given = uplo, 5, a, LD, tau
    assert on.factored(named(letter, "orgtr"), given, given, dtype) == 0
    q = on.get(a, dtype, LD, 5)[:5]
    assert is_orthogonal(q, letter)
    assert close(q @ wanted @ q.conj().T, matrix, letter)
    assert close(on.get(c, dtype, 5, 3), q @ other, letter)


def test_the_right_side_takes_the_other_order(on: Solver) -> None:
    matrix, other = hermitian("D", 4), random("D", 3, 4)
    a, d, e, tau = (on.put(matrix), *(on.room(32) for _ in range(3)))
    given: tuple[int, ...] = 0, 4, a, 4, d, e, tau
    assert on.factored("Dsytrd", given, given, np.float64) == 0
    c = on.put(other)
    given = 1, 0, 0, 3, 4, a, 4, tau, c, 3
    assert on.factored("Dormtr", given, given, np.float64) == 0
    assert on.factored("Dorgtr", (0, 4, a, 4, tau), (0, 4, a, 4, tau), np.float64) == 0
    assert close(on.get(c, np.float64, 3, 4), other @ on.get(a, np.float64, 4, 4), "D")


@pytest.mark.parametrize("call", [
    ("Dorgqr", 3, 4, 2, 0, 4, 0, 0, 1024, 0),
    ("Dorgqr", 4, 3, 4, 0, 4, 0, 0, 1024, 0),
    ("Dormqr", 2, 0, 4, 4, 4, 0, 4, 0, 0, 4, 0, 1024, 0),
    ("Dormqr", 0, 2, 4, 4, 4, 0, 4, 0, 0, 4, 0, 1024, 0),
    ("Zunmqr", 0, 1, 4, 4, 4, 0, 4, 0, 0, 4, 0, 1024, 0),
    ("Dgebrd", 3, 4, 0, 4, 0, 0, 0, 0, 0, 1024, 0),
    ("Dgeqrf", 4, 4, 0, 4, 0, 0, 127, 0),
])  # fmt: skip
def test_wrong_arguments_are_refused(on: Solver, call: tuple[Any, ...]) -> None:
    assert on.status(*call) == WRONG
