"""Faults in calls of cuSOLVER: each is found, with the operand's name, and its correct twin is clean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.library_faults import Fault
from tests.simulator.solver_programs import Solver, hermitian, positive, random

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

SINGLE: Final = 0
LOWER: Final = 0


def short_workspace(on: Solver, wrong: bool) -> None:
    """Ask for the workspace of a smaller matrix."""
    a, info = on.put(positive("S", 8)), on.info()
    work = on.room(4 * on.size("Spotrf", LOWER, 4 if wrong else 8, a, 8))
    assert on.status("Spotrf", LOWER, 8, a, 8, work, on.size("Spotrf", LOWER, 8, a, 8), info) == 0


def workspace_in_elements(on: Solver, wrong: bool) -> None:
    """Take the size of a workspace for one in bytes."""
    a, pivots, info = on.put(random("S", 8, 8)), on.room(32), on.info()
    size = on.size("Sgetrf", 8, 8, a, 8)
    assert on.status("Sgetrf", 8, 8, a, 8, on.room(size * (1 if wrong else 4)), pivots, info) == 0


def leading_dimension(on: Solver, wrong: bool) -> None:
    a, b, info = on.put(positive("S", 8)), on.put(random("S", 8, 2)), on.info()
    assert on.status("Spotrs", LOWER, 8, 2, a, 9 if wrong else 8, b, 8, info) == 0


def short_tau(on: Solver, wrong: bool) -> None:
    a, info = on.put(random("S", 8, 5)), on.info()
    lwork = on.size("Sgeqrf", 8, 5, a, 8)
    assert on.status("Sgeqrf", 8, 5, a, 8, on.room(16 if wrong else 20), on.room(4 * lwork), lwork, info) == 0


def pivots_of_another_width(on: Solver, wrong: bool) -> None:
    """Give a function with sizes of 64 bits room for pivots of 32."""
    a, pivots = on.put(random("S", 8, 8)), on.room(32 if wrong else 64)
    sized = on.parameters(), 8, 8, SINGLE, a, 8, SINGLE
    on.generic("Xgetrf", sized, (*sized[:6], pivots, SINGLE))


def unwritten_matrix(on: Solver, wrong: bool) -> None:
    a, w = on.room(256) if wrong else on.put(hermitian("S", 8)), on.room(32)
    shape = 1, LOWER, 8, a, 8, w
    on.factored("Ssyevd", shape, shape, np.float32)


def other_triangle(on: Solver, wrong: bool) -> None:
    """Read a triangle of which only the other one was written."""
    a = on.room(256)
    for column in range(8):
        size = 4 * (8 - column)
        content = np.ones(8 - column, np.float32)
        content[0] = 20
        on.client.ok("Memcpy", a + 36 * column, content.ctypes.data, size, 1)
    shape = 1 if wrong else LOWER, 8, a, 8
    on.factored("Spotrf", shape, shape, np.float32)


def freed_factors(on: Solver, wrong: bool) -> None:
    a, b, info = on.put(positive("S", 8)), on.put(random("S", 8, 2)), on.info()
    if wrong:
        on.client.ok("Free", a)
    assert on.status("Spotrs", LOWER, 8, 2, a, 8, b, 8, info) == 0


def info_on_the_host(on: Solver, wrong: bool) -> None:
    a = on.put(positive("S", 8))
    lwork = on.size("Spotrf", LOWER, 8, a, 8)
    info = on.host(0, dtype=np.int32) if wrong else on.info()
    assert on.status("Spotrf", LOWER, 8, a, 8, on.room(4 * lwork), lwork, info) == 0


def race_of_streams(on: Solver, wrong: bool) -> None:
    """Write the matrix on a stream that nothing orders with the handle's."""
    a, info, first, second = on.put(positive("S", 8)), on.info(), on.stream(), on.stream()
    lwork = on.size("Spotrf", LOWER, 8, a, 8)
    work = on.room(4 * lwork)
    on.wait()
    on.setting("cusolverDnSetStream", on.solver, first)
    assert on.status("Spotrf", LOWER, 8, a, 8, work, lwork, info) == 0
    if not wrong:
        event = on.client.make("EventCreate")
        on.client.ok("EventRecord", event, first)
        on.client.ok("StreamWaitEvent", second, event, 0)
    on.client.ok("MemsetAsync", a, 0, ctypes.c_size_t(256), ctypes.c_void_p(second))


def short_vectors(on: Solver, wrong: bool) -> None:
    """Ask for all columns of U with room for some."""
    a, s, u, vt, info = on.put(random("S", 8, 4)), on.room(16), on.room(128 if wrong else 256), on.room(64), on.info()
    lwork = on.size("Sgesvd", 8, 4)
    work, job = on.room(4 * lwork), ord("A")
    assert on.status("Sgesvd", job, job, 8, 4, a, 8, s, u, 8, vt, 4, work, lwork, 0, info) == 0


def short_values(on: Solver, wrong: bool) -> None:
    """Give real parts and imaginary parts of eigenvalues room for one of them."""
    a, w = on.put(random("S", 8, 8)), on.room(32 if wrong else 64)
    on.generic("Xgeev", (on.parameters(), 0, 0, 8, SINGLE, a, 8, SINGLE, w, SINGLE, 0, 1, SINGLE, 0, 1, SINGLE))


def short_array(on: Solver, wrong: bool) -> None:
    places = np.array([on.put(positive("S", 4, seed)) for seed in range(3)], np.uint64)
    info = on.room(12)
    assert on.status("SpotrfBatched", LOWER, 4, on.put(places[: 2 if wrong else 3]), 4, info, 3) == 0


def batch_in_place(on: Solver, wrong: bool) -> None:
    """Give a batch of matrices room for eigenvalues of one."""
    a, w, infos = (
        on.put(np.concatenate([hermitian("S", 4, seed) for seed in range(3)], axis=1)),
        on.room(48),
        on.room(12),
    )
    shape, tail = (1, LOWER, 4, a, 4, on.room(16) if wrong else w), (on.parameters("SyevjInfo"), 3)
    lwork = on.size("SsyevjBatched", *shape, tail=tail)
    assert on.status("SsyevjBatched", *shape, on.room(4 * lwork), lwork, infos, *tail) == 0


def short_solution(on: Solver, wrong: bool) -> None:
    """Take the solution of a refined system for one in the lower precision."""
    a, b, x, info = on.put(positive("D", 4)), on.put(random("D", 4, 1)), on.room(16 if wrong else 32), on.info()
    told, iterations = np.zeros(1, np.uint64), on.host(0, dtype=np.int32)
    given = 4, 1, a, 4, 0, b, 4, x, 4
    assert on.status("DSgesv_bufferSize", *given, 0, int(told.ctypes.data)) == 0
    assert on.status("DSgesv", *given, on.room(int(told[0])), int(told[0]), iterations, info) == 0


BOUNDS: Final = Kind.OUT_OF_BOUNDS
FAULTS: Final = (
    Fault(short_workspace, BOUNDS, ("cusolverDnSpotrf writes", "after the end", "its operand workspace")),
    Fault(workspace_in_elements, BOUNDS, ("cusolverDnSgetrf writes", "after the end", "its operand workspace")),
    Fault(leading_dimension, BOUNDS, ("cusolverDnSpotrs reads 4 bytes", "after the end", "its operand A")),
    Fault(short_tau, BOUNDS, ("cusolverDnSgeqrf writes 4 bytes", "after the end", "its operand tau")),
    Fault(pivots_of_another_width, BOUNDS, ("cusolverDnXgetrf writes 8 bytes", "after the end", "its operand pivots")),
    Fault(unwritten_matrix, Kind.UNWRITTEN, ("cusolverDnSsyevd reads", "which nobody has written", "its operand A")),
    Fault(other_triangle, Kind.UNWRITTEN, ("cusolverDnSpotrf reads", "which nobody has written", "its operand A")),
    Fault(freed_factors, Kind.USE_AFTER_FREE, ("cusolverDnSpotrs reads", "freed before", "its operand A")),
    Fault(info_on_the_host, Kind.WRONG_MEMORY, ("cusolverDnSpotrf writes 4 bytes", "its operand info")),
    Fault(race_of_streams, Kind.RACE, ("cusolverDnSpotrf writes them at its operand A",)),
    Fault(short_vectors, BOUNDS, ("cusolverDnSgesvd writes", "after the end", "its operand U")),
    Fault(short_values, BOUNDS, ("cusolverDnXgeev writes 4 bytes", "after the end", "its operand W")),
    Fault(short_array, BOUNDS, ("cusolverDnSpotrfBatched reads 8 bytes", "its operand array of pointers A")),
    Fault(batch_in_place, BOUNDS, ("cusolverDnSsyevjBatched writes 4 bytes", "after the end", "its operand W")),
    Fault(short_solution, BOUNDS, ("cusolverDnDSgesv writes 8 bytes", "after the end", "its operand X")),
)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_a_fault_is_found_with_its_operand(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.is_found(libraries(Solver, schedule=schedule, redzone=4096))


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_its_twin_is_clean(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.has_a_clean_twin(libraries(Solver, schedule=schedule))
