"""Faults in calls of libraries: each is found, with the operand's name, and its correct twin is clean."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.library_faults import Fault
from tests.simulator.library_programs import Libraries

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

COPIES_TO_DEVICE: Final = 1


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def product(
    on: Libraries, a: int, b: int, c: int, *, size: int = 8, ldb: int = 8, beta: float = 0, **more: int
) -> None:
    """Multiply two matrices."""
    alpha = more.get("alpha", on.host(1))
    zero = more.get("zero", on.host(beta))
    on.ok_blas("Sgemm_v2", 0, 0, size, size, size, alpha, a, size, b, ldb, zero, c, size)


def leading_dimension(on: Libraries, wrong: bool) -> None:
    a = on.put(ones(8, 8))
    product(on, a, a, on.room(256), ldb=12 if wrong else 8)


def batch_stride(on: Libraries, wrong: bool) -> None:
    a, c, one, zero = on.put(ones(8, 8, 3)), on.room(768), on.host(1), on.host(0)
    stride = 65 if wrong else 64
    on.ok_blas("SgemmStridedBatched", 0, 0, 8, 8, 8, one, a, 8, stride, a, 8, 64, zero, c, 8, 64, 3)


def unwritten(on: Libraries, wrong: bool) -> None:
    a = on.put(ones(8, 8))
    product(on, a, a, on.room(256), beta=1 if wrong else 0)


def freed(on: Libraries, wrong: bool) -> None:
    a, b, c = on.put(ones(8, 8)), on.put(ones(8, 8)), on.room(256)
    if wrong:
        on.client.ok("Free", b)
    product(on, a, b, c)


def race(on: Libraries, wrong: bool) -> None:
    a, c, first, second = on.put(ones(8, 8)), on.room(256), on.stream(), on.stream()
    on.wait()
    on.setting("cublasSetStream_v2", on.blas, first)
    product(on, a, a, c)
    if not wrong:
        event = on.client.make("EventCreate")
        on.client.ok("EventRecord", event, first)
        on.client.ok("StreamWaitEvent", second, event, 0)
    on.client.ok("MemsetAsync", a, 0, ctypes.c_size_t(256), ctypes.c_void_p(second))


def misaligned(on: Libraries, wrong: bool) -> None:
    a = on.put(ones(9, 8))
    product(on, a + (2 if wrong else 4), a, on.room(256))


def stream_of_the_handle(on: Libraries, wrong: bool) -> None:
    a, c, stream = on.put(ones(8, 8)), on.room(256), on.stream()
    on.wait()
    on.client.ok("MemsetAsync", a, 0, ctypes.c_size_t(256), ctypes.c_void_p(stream))
    if not wrong:
        on.setting("cublasSetStream_v2", on.blas, stream)
    product(on, a, a, c)


def host_scalar_of_a_device(on: Libraries, wrong: bool) -> None:
    a, alpha = on.put(ones(8, 8)), on.put(np.array(1, np.float32))
    product(on, a, a, on.room(256), alpha=alpha if wrong else on.host(1))


def device_scalar_of_the_host(on: Libraries, wrong: bool) -> None:
    a, zero = on.put(ones(8, 8)), on.put(np.array(0, np.float32))
    on.setting("cublasSetPointerMode_v2", on.blas, 1)
    product(on, a, a, on.room(256), alpha=on.host(1) if wrong else on.put(np.array(1, np.float32)), zero=zero)


def result_of_the_host(on: Libraries, wrong: bool) -> None:
    x, place = on.put(ones(8)), on.room(4)
    if not wrong:
        on.setting("cublasSetPointerMode_v2", on.blas, 1)
    on.ok_blas("Sdot_v2", 8, x, 1, x, 1, place)


def short_output(on: Libraries, wrong: bool) -> None:
    a = on.put(ones(8, 8))
    product(on, a, a, on.room(252 if wrong else 256))


def short_workspace(on: Libraries, wrong: bool) -> None:
    layout, description = ctypes.c_void_p(), ctypes.c_void_p()
    sizes = [ctypes.c_uint64(8)] * 3
    assert on.driver.computed_cublasLtMatrixLayoutCreate(ctypes.byref(layout), 0, *sizes) == 0
    assert on.driver.computed_cublasLtMatmulDescCreate(ctypes.byref(description), 68, 0) == 0
    a, c, of = on.put(ones(8, 8)), on.room(256), layout.value or 0
    workspace = on.room(128 if wrong else 256)
    scalars = on.host(1), on.host(0)
    words = (description.value or 0, scalars[0], a, of, a, of, scalars[1], c, of, c, of, 0, workspace, 256, 0)
    assert on.call("cublasLtMatmul", on.blas, *words) == 0


def short_array(on: Libraries, wrong: bool) -> None:
    a, c, one, zero = on.put(ones(8, 8)), on.room(256), on.host(1), on.host(0)
    first, second = (on.put(np.array([each] * 3, np.uint64)[: 2 if wrong else 3]) for each in (a, a))
    results = on.put(np.array([c, on.room(256), on.room(256)], np.uint64))
    on.ok_blas("SgemmBatched", 0, 0, 8, 8, 8, one, first, 8, second, 8, zero, results, 8, 3)


FAULTS: Final = (
    Fault(leading_dimension, Kind.OUT_OF_BOUNDS, ("cublasSgemm_v2 reads 4 bytes", "after the end", "its operand B")),
    Fault(batch_stride, Kind.OUT_OF_BOUNDS, ("cublasSgemmStridedBatched reads", "after the end", "its operand A")),
    Fault(unwritten, Kind.UNWRITTEN, ("cublasSgemm_v2 reads", "which nobody has written", "its operand C")),
    Fault(freed, Kind.USE_AFTER_FREE, ("cublasSgemm_v2 reads", "freed before", "its operand B")),
    Fault(race, Kind.RACE, ("cublasSgemm_v2 reads them at its operand A", "256 bytes")),
    Fault(misaligned, Kind.MISALIGNED, ("cublasSgemm_v2 reads 4 bytes", "not a multiple of 4", "its operand A")),
    Fault(stream_of_the_handle, Kind.RACE, ("cublasSgemm_v2 reads them at its operand A",)),
    Fault(
        host_scalar_of_a_device, Kind.WRONG_MEMORY, ("cublasSgemm_v2 reads 4 bytes", "pointer mode", "operand alpha")
    ),
    Fault(device_scalar_of_the_host, Kind.WRONG_MEMORY, ("no memory of a device", "its operand alpha")),
    Fault(result_of_the_host, Kind.WRONG_MEMORY, ("cublasSdot_v2 writes 4 bytes", "pointer mode", "operand result")),
    Fault(short_output, Kind.OUT_OF_BOUNDS, ("cublasSgemm_v2 writes", "after the end", "its operand C")),
    Fault(short_workspace, Kind.OUT_OF_BOUNDS, ("cublasLtMatmul writes", "after the end", "its operand workspace")),
    Fault(short_array, Kind.OUT_OF_BOUNDS, ("cublasSgemmBatched reads 8 bytes", "its operand array of pointers A")),
)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_a_fault_is_found_with_its_operand(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.is_found(libraries(schedule=schedule, redzone=4096))


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_its_twin_is_clean(libraries: Callable[..., Any], fault: Fault, schedule: str) -> None:
    fault.has_a_clean_twin(libraries(schedule=schedule))
