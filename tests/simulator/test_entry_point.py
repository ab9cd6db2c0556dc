"""Driver functions by name: what is simulated is found; any other of the driver fails by name when it is called."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.ledger import Seen

INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED = 1, 500, 801
Call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def look_up(client: Any, name: bytes | None, release: int = 12000) -> tuple[int, int, int]:
    """Return the status, the function's address and the query's result, for a client of that release."""
    function, result = ctypes.c_void_p(), ctypes.c_int(-1)
    status = client.call(
        "GetDriverEntryPointByVersion", name, ctypes.byref(function), release, ctypes.c_uint64(0), ctypes.byref(result)
    )
    return status, function.value or 0, result.value


def test_a_simulated_function_is_found_in_its_latest_form(start: Any) -> None:
    client = start()
    status, function, result = look_up(client, b"cuDeviceGetCount")
    count = ctypes.c_int()
    assert (status, result) == (0, 0)
    assert Call(function)(ctypes.addressof(count)) == 0
    assert count.value == 1
    latest = ctypes.cast(ctypes.CDLL(str(build_library())).cuMemAlloc_v2, ctypes.c_void_p).value
    assert look_up(client, b"cuMemAlloc")[1] == latest


def test_a_function_that_is_not_simulated_says_so_when_it_is_called(
    start: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    client = start()
    status, function, result = look_up(client, b"cuGreenCtxCreate", 12090)
    assert (status, result) == (0, 0)
    assert look_up(client, b"cuGreenCtxCreate", 12090)[1] == function, "the same name is the same function"
    assert look_up(client, b"cuTensorMapEncodeTiled")[1] != function
    assert capfd.readouterr().err == ""
    assert Call(function)(None) == NOT_SUPPORTED
    assert "cuGreenCtxCreate (libcuda.so.1) is not simulated" in capfd.readouterr().err
    seen = [record for record in client.machine.ledger.records() if record.seen is Seen.NOT_SIMULATED]
    assert [record.function for record in seen] == ["cuGreenCtxCreate"]


@pytest.mark.parametrize("name", [b"malloc", b"cudaMalloc", b"cu", b"cu" + b"A" * 100])
def test_what_is_no_function_of_the_driver_is_not_found(start: Any, name: bytes) -> None:
    client = start()
    assert look_up(client, name) == (0, 0, 1)
    function = ctypes.c_void_p()
    assert client.call("GetDriverEntryPoint", name, ctypes.byref(function), 0, None) == NOT_FOUND


def test_a_name_and_a_place_for_the_function_are_needed(start: Any) -> None:
    assert look_up(start(), None)[0] == INVALID_VALUE
