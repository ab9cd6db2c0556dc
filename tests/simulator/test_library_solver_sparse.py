"""cuSOLVER's sparse systems: solutions, the row that the host gets for a singular matrix, and faults in the calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.library_programs import Array
from tests.simulator.solver_programs import DTYPES, Solver, close, positive, random

from quiesce.model.rules import Kind

scipy_sparse: Any = pytest.importorskip("scipy.sparse")

MakeLibraries = Callable[..., Any]
METHODS: Final = ("csrlsvqr", "csrlsvchol")


class Sparse(Solver):
    """A device with a handle for sparse systems."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sparse = self.make("simulated_cusolverSpCreate")

    def solve(self, function: str, matrix: Array, right: Array, **more: Any) -> tuple[int, int]:
        """Solve a system; return where the solution lies, and what the host is told."""
        compressed, base = scipy_sparse.csr_matrix(matrix), more.get("base", 0)
        values, b = self.put(compressed.data), self.put(right)
        rows = self.put(compressed.indptr.astype(np.int32)[: more.get("rows", len(matrix)) + 1] + np.int32(base))
        columns = self.put(compressed.indices.astype(np.int32) + np.int32(base))
        x, told = self.room(len(matrix) * matrix.itemsize), np.full(1, -2, np.int32)
        limit = ctypes.c_float if function[0] in "SC" else ctypes.c_double
        description = self.host(0, 0, 0, base, dtype=np.int32)
        given = (
            len(matrix),
            compressed.nnz,
            description,
            values,
            rows,
            columns,
            b,
            limit(more.get("tolerance", 0)),
            0,
            x,
        )
        assert self.call(f"cusolverSp{function}", self.sparse, *given, int(told.ctypes.data)) == 0
        return x, int(told[0])


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Sparse]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Sparse)
    yield made
    assert made.findings() == ()


def sparse(letter: str, size: int = 6) -> Array:
    """Return a positive definite matrix with zeros in it."""
    made = positive(letter, size)
    far = np.abs(np.subtract.outer(range(size), range(size))) > 2
    made[far] = 0
    return made


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("letter", ["S", "D", "C", "Z"])
def test_sparse_systems(on: Sparse, letter: str, method: str, base: int) -> None:
    matrix, right = sparse(letter), random(letter, 6)
    x, singular = on.solve(letter + method, matrix, right, base=base)
    assert singular == -1
    assert close(on.get(x, DTYPES[letter], 6), np.linalg.solve(matrix, right), letter)


def test_a_matrix_that_is_not_symmetric(on: Sparse) -> None:
    matrix, right = np.triu(sparse("D")), random("D", 6)
    x, singular = on.solve("Dcsrlsvqr", matrix, right)
    assert singular == -1
    assert close(on.get(x, np.float64, 6), np.linalg.solve(matrix, right), "D")


@pytest.mark.parametrize(("method", "diagonal"), [("csrlsvqr", 0.0), ("csrlsvchol", -1.0), ("csrlsvqr", 1e-9)])
def test_the_host_is_told_where_a_matrix_is_singular(on: Sparse, method: str, diagonal: float) -> None:
    matrix = np.diag([1.0, 2, diagonal, 1])
    matrix[2, 3] = 1e-12
    assert on.solve(f"D{method}", matrix, np.ones(4), tolerance=1e-6)[1] == 2


def test_short_row_offsets_are_found(libraries: MakeLibraries) -> None:
    on = libraries(Sparse, redzone=4096)
    on.solve("Dcsrlsvqr", sparse("D"), random("D", 6), rows=5)
    (finding,) = on.findings()
    assert finding.kind is Kind.OUT_OF_BOUNDS
    assert "cusolverSpDcsrlsvqr reads 4 bytes" in finding.observed
    assert "its operand row offsets" in finding.observed


def test_columns_that_are_none_end_a_call(on: Sparse) -> None:
    matrix = np.zeros((6, 6))
    matrix[:, 5] = 1
    told = np.full(1, -2, np.int32)
    values, rows = on.put(np.ones(6)), on.put(np.arange(7, dtype=np.int32))
    columns, b, x = on.put(np.full(6, 6, np.int32)), on.put(np.ones(6)), on.room(48)
    given = 6, 6, on.host(0, 0, 0, 0, dtype=np.int32), values, rows, columns, b, ctypes.c_double(0), 0, x
    assert on.call("cusolverSpDcsrlsvqr", on.sparse, *given, int(told.ctypes.data)) == 0
    assert told[0] == 0


def test_large_systems_fail_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    on = libraries(Sparse)
    given = 1 << 13, 0, 8, 0, 0, 0, 0, ctypes.c_double(0), 0, 0, 8
    assert on.call("cusolverSpDcsrlsvqr", on.sparse, *given) == 9
    assert "sparse systems of more than 4,096 equations are not described" in capfd.readouterr().err
