"""cuBLAS's orthogonal factors and least squares of batches equal those of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.simulator.library_programs import Libraries
from tests.simulator.solver_programs import DTYPES, close, random, with_gaps

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

MakeLibraries = Callable[..., Libraries]
LETTERS = ("S", "D", "C", "Z")
LD, WRONG, NOT_SUPPORTED = 9, 7, 15


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Libraries]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries()
    yield made
    assert made.findings() == ()


def pointers(on: Libraries, places: list[int]) -> int:
    return on.put(np.array(places, np.uint64))


@pytest.mark.parametrize("letter", LETTERS)
def test_qr_of_a_batch(on: Libraries, letter: str) -> None:
    matrices, dtype = [random(letter, 6, 4, seed=seed) for seed in range(3)], DTYPES[letter]
    a, tau = [on.put(with_gaps(each, LD)) for each in matrices], [on.room(4 * 16) for _ in matrices]
    info = on.host(9, dtype=np.int32)
    on.ok_blas(f"{letter}geqrfBatched", 6, 4, pointers(on, a), LD, pointers(on, tau), info, 3)
    assert on._kept[-1].tolist() == [0]
    for matrix, at in zip(matrices, a, strict=True):
        r = np.triu(on.get(at, dtype, LD, 4)[:4])
        assert close(r.conj().T @ r, matrix.conj().T @ matrix, letter)


@pytest.mark.parametrize("letter", LETTERS)
def test_least_squares_of_a_batch(on: Libraries, letter: str) -> None:
    matrices, right = [random(letter, 6, 4, seed=seed) for seed in range(3)], random(letter, 6, 2)
    a, c = [on.put(with_gaps(each, LD)) for each in matrices], [on.put(with_gaps(right, LD)) for _ in matrices]
    infos, info = on.room(12), on.host(9, dtype=np.int32)
    name = f"{letter}gelsBatched"
    on.ok_blas(name, 0, 6, 4, 2, pointers(on, a), LD, pointers(on, c), LD, info, infos, 3)
    assert on.get(infos, np.int32, 3).tolist() == [0, 0, 0]
    for matrix, at in zip(matrices, c, strict=True):
        found = on.get(at, DTYPES[letter], LD, 2)
        assert close(found[:4], np.linalg.lstsq(matrix, right, rcond=None)[0], letter)
        assert np.isnan(found[6:]).all()


def test_wide_least_squares_fail_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    on = libraries()
    given = 0, 3, 4, 1, 0, 3, 0, 3, on.host(0, dtype=np.int32), 0, 1
    assert on.call("cublasDgelsBatched", on.blas, *given) == NOT_SUPPORTED
    assert "cublasDgelsBatched is not simulated; least squares of transposed matrices" in capfd.readouterr().err
    assert on.call("cublasDgeqrfBatched", on.blas, 4, 3, 0, 3, 0, on.host(0, dtype=np.int32), 1) == WRONG


def test_a_short_tau_is_found(libraries: MakeLibraries) -> None:
    on = libraries(redzone=4096)
    a, tau = on.put(random("S", 6, 4)), on.room(12)
    on.ok_blas("SgeqrfBatched", 6, 4, pointers(on, [a]), 6, pointers(on, [tau]), on.host(0, dtype=np.int32), 1)
    (finding,) = on.findings()
    assert finding.kind is Kind.OUT_OF_BOUNDS
    assert "cublasSgeqrfBatched writes 4 bytes" in finding.observed
    assert "its operand tau" in finding.observed
