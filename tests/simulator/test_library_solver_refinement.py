"""cuSOLVER's refined systems and least squares are exact in the type of their operands, whatever it factors in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.solver_programs import DTYPES, Solver, close, positive, random, with_gaps

pytest.importorskip("scipy")

MakeLibraries = Callable[..., Any]
LD, WRONG = 9, 3
TYPES = ("ZZ", "ZC", "ZK", "ZE", "ZY", "CC", "CK", "CE", "CY", "DD", "DS", "DH", "DB", "DX", "SS", "SH", "SB", "SX")


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Solver]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Solver)
    yield made
    assert made.findings() == ()


def solve(on: Solver, function: str, given: tuple[int, ...]) -> tuple[int, int]:
    """Call a function with a workspace; return its iterations and what it says in ``info``."""
    told = np.full(1, -1, np.int64)
    assert on.status(f"{function}_bufferSize", *given, 0, int(told.ctypes.data)) == 0
    size_bytes, iterations, info = int(told[0]), np.full(1, -1, np.int32), on.info()
    work = on.room(size_bytes)
    assert on.status(function, *given, work, size_bytes, int(iterations.ctypes.data), info) == 0
    assert on.status(function, *given, work, size_bytes - 1, 0, info) == WRONG
    return int(iterations[0]), on.number(info)


@pytest.mark.parametrize("types", TYPES)
def test_systems(on: Solver, types: str) -> None:
    letter, dtype = types[0], DTYPES[types[0]]
    matrix, right = positive(letter, 5), random(letter, 5, 2)
    a, b, x = on.put(with_gaps(matrix, LD)), on.put(with_gaps(right, LD)), on.room(LD * 2 * right.itemsize)
    pivots = on.room(20)
    assert solve(on, f"{types}gesv", (5, 2, a, LD, pivots, b, LD, x, LD)) == (1, 0)
    assert close(on.get(x, dtype, LD, 2)[:5], np.linalg.solve(matrix, right), letter)
    assert np.array_equal(on.get(a, dtype, LD, 5)[:5], matrix)
    assert sorted(on.get(pivots, np.int32, 5)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("types", TYPES)
def test_least_squares(on: Solver, types: str) -> None:
    letter, dtype = types[0], DTYPES[types[0]]
    matrix, right = random(letter, 7, 4), random(letter, 7, 2)
    a, b, x = on.put(with_gaps(matrix, LD)), on.put(with_gaps(right, LD)), on.room(4 * 2 * right.itemsize)
    assert solve(on, f"{types}gels", (7, 4, 2, a, LD, b, LD, x, 4)) == (1, 0)
    assert close(on.get(x, dtype, 4, 2), np.linalg.lstsq(matrix, right, rcond=None)[0], letter)


def test_a_singular_matrix(on: Solver) -> None:
    a, b, x = on.put(np.diag([1.0, 0, 1])), on.put(np.ones((3, 1))), on.put(np.zeros((3, 1)))
    assert solve(on, "DSgesv", (3, 1, a, 3, 0, b, 3, x, 3)) == (0, 2)
    assert (on.get(x, np.float64, 3) == 0).all()


def test_wide_least_squares_are_refused(on: Solver) -> None:
    assert on.status("DDgels", 3, 4, 1, 0, 3, 0, 3, 0, 4, 0, 1 << 20, 0, 0) == WRONG
