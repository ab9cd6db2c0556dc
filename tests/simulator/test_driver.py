"""CUDA's driver interface, for clients that never call the runtime."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Seen, Thing

OK, INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 0, 1, 201, 400, 500


class Driver:
    """The driver's functions by their names without the prefix; integers are 64 bits wide."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def call(self, function: str, *arguments: Any) -> int:
        passed = (ctypes.c_uint64(each) if type(each) is int and each >= 0 else each for each in arguments)
        status: int = getattr(self.client.machine.library, "cu" + function)(*passed)
        return status

    def make(self, function: str, *arguments: Any) -> int:
        made = ctypes.c_uint64()
        assert self.call(function, ctypes.byref(made), *arguments) == OK, function
        return made.value


@pytest.fixture
def driver(start: Any) -> Driver:
    made = Driver(start(schedule="lazy", devices=2))
    assert made.call("Init", 0) == OK
    return made


def current(driver: Driver) -> int:
    return driver.make("CtxGetCurrent")


def test_memory_streams_and_events_need_a_context(driver: Driver) -> None:
    made = ctypes.byref(ctypes.c_uint64())
    for function, *arguments in (("MemAlloc_v2", 8), ("MemHostAlloc", 8, 0), ("StreamCreate", 0), ("EventCreate", 0)):
        assert driver.call(function, made, *arguments) == INVALID_CONTEXT, function
    assert current(driver) == 0
    driver.make("CtxCreate_v2", 0, 0)
    for function, *arguments in (("MemAlloc_v2", 8), ("MemHostAlloc", 8, 0), ("StreamCreate", 0), ("EventCreate", 0)):
        assert driver.make(function, *arguments)


def test_the_runtime_makes_a_context_current(driver: Driver) -> None:
    driver.client.make("Malloc", 8)
    assert current(driver) != 0
    driver.make("MemAlloc_v2", 8)


def test_contexts_are_a_stack(driver: Driver) -> None:
    first, second = driver.make("CtxCreate_v2", 0, 0), driver.make("DevicePrimaryCtxRetain", 1)
    assert current(driver) == first
    assert driver.call("CtxPushCurrent_v2", second) == OK
    assert current(driver) == second
    assert driver.make("CtxPopCurrent_v2") == second
    assert current(driver) == first
    assert driver.call("CtxSetCurrent", second) == OK
    assert driver.make("CtxPopCurrent_v2") == second
    assert current(driver) == 0
    assert driver.call("CtxPopCurrent_v2", None) == INVALID_CONTEXT
    assert driver.call("CtxPushCurrent_v2", 77) == INVALID_CONTEXT


def test_a_destroyed_context_takes_everything_along(driver: Driver) -> None:
    context = driver.make("CtxCreate_v2", 0, 0)
    driver.make("MemAlloc_v2", 8)
    driver.make("StreamCreate", 0)
    assert driver.call("CtxDestroy_v2", context) == OK
    ledger = driver.client.machine.ledger
    assert [ledger.counted(thing)[0] for thing in (Thing.DEVICE, Thing.STREAM)] == [0, 0]


def test_copies_and_fills_are_the_runtimes(driver: Driver) -> None:
    driver.make("CtxCreate_v2", 0, 0)
    address, other, stream = (
        driver.make("MemAlloc_v2", 64),
        driver.make("MemAlloc_v2", 64),
        driver.make("StreamCreate", 1),
    )
    host = ctypes.create_string_buffer(64)
    assert driver.call("MemsetD32Async", address, 0x01020304, 16, stream) == OK
    assert ctypes.string_at(address, 4) == bytes(4), "nobody has waited for it"
    assert driver.call("MemcpyDtoDAsync_v2", other, address, 64, stream) == OK
    assert driver.call("StreamSynchronize", stream) == OK
    assert driver.call("MemcpyDtoH_v2", host, other, 64) == OK
    assert host.raw == bytes.fromhex("04030201") * 16
    assert driver.call("MemcpyHtoD_v2", other, b"abcdefgh", 8) == OK
    assert driver.call("CtxSynchronize") == OK
    assert ctypes.string_at(other, 8) == b"abcdefgh"
    assert driver.call("MemcpyHtoD_v2", host, b"abcdefgh", 8) == INVALID_VALUE, "the target is no device memory"
    assert driver.call("MemsetD32_v2", address + 2, 0, 1) == INVALID_VALUE, "it is not aligned"
    assert driver.call("MemsetD2D16_v2", address, 32, 0x0506, 4, 2) == OK
    assert driver.call("CtxSynchronize") == OK
    assert ctypes.string_at(address + 32, 10) == b"\6\5" * 4 + b"\4\3"
    assert {record.function for record in driver.client.seen(Seen.COPIED)} >= {"cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"}


def test_events_and_streams_are_ordered(driver: Driver) -> None:
    driver.make("CtxCreate_v2", 0, 0)
    first, second = (driver.make("StreamCreateWithPriority", 1, ctypes.c_int(-9)) for _ in range(2))
    event, address = driver.make("EventCreate", 0), driver.make("MemAlloc_v2", 8)
    assert driver.call("MemsetD8Async", address, 1, 8, first) == OK
    assert driver.call("EventRecord", event, first) == OK
    assert driver.call("EventQuery", event) == 600 or driver.call("EventQuery", event) == OK
    assert driver.call("StreamWaitEvent", second, event, 0) == OK
    assert driver.call("MemsetD8Async", address, 2, 8, second) == OK
    assert driver.call("StreamSynchronize", second) == OK
    assert ctypes.string_at(address, 1) == b"\2"
    priority = ctypes.c_int()
    assert driver.call("StreamGetPriority", first, ctypes.byref(priority)) == OK
    assert priority.value == -1
    assert driver.call("EventDestroy_v2", event) == driver.call("StreamDestroy_v2", first) == OK
    assert driver.call("EventRecord", event, second) == INVALID_HANDLE


def test_a_value_that_one_stream_writes_lets_another_go(driver: Driver) -> None:
    driver.make("CtxCreate_v2", 0, 0)
    writer, waiter = driver.make("StreamCreate", 1), driver.make("StreamCreate", 1)
    flag, address = driver.make("MemAlloc_v2", 8), driver.make("MemAlloc_v2", 8)
    assert driver.call("MemsetD8_v2", flag, 0, 8) == driver.call("CtxSynchronize") == OK
    assert driver.call("StreamWaitValue64_v2", waiter, flag, 1 << 40, 1) == OK
    assert driver.call("MemsetD8Async", address, 3, 8, waiter) == OK
    assert driver.call("StreamWriteValue64_v2", writer, flag, 1 << 40, 0) == OK
    assert driver.call("StreamSynchronize", waiter) == OK
    assert ctypes.string_at(address, 1) == b"\3"
    assert driver.call("StreamWriteValue32_v2", writer, flag + 2, 1, 0) == INVALID_VALUE


def test_what_lies_at_an_address_is_told(driver: Driver) -> None:
    driver.make("CtxCreate_v2", 0, 0)
    device, pinned = driver.make("MemAlloc_v2", 100), driver.make("MemHostAlloc", 100, 0)
    kind, start, size = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_uint64()
    kinds = []
    for address in (device, pinned):
        assert driver.call("PointerGetAttribute", ctypes.byref(kind), 2, address + 9) == OK
        kinds.append(kind.value)
    assert kinds == [2, 1]
    assert driver.call("MemGetAddressRange_v2", ctypes.byref(start), ctypes.byref(size), device + 9) == OK
    assert (start.value, size.value) == (device, 100)
    assert driver.call("PointerGetAttribute", ctypes.byref(kind), 2, 12345) == INVALID_VALUE
    assert driver.call("MemGetAddressRange_v2", ctypes.byref(start), None, 12345) == NOT_FOUND


def test_an_error_of_the_driver_is_not_the_runtimes_last_one(driver: Driver) -> None:
    driver.client.make("Malloc", 8)
    assert driver.call("MemFree_v2", 12345) == INVALID_VALUE
    assert driver.client.call("GetLastError") == OK


def test_errors_have_the_drivers_names(driver: Driver) -> None:
    name = ctypes.c_char_p()
    assert driver.call("GetErrorName", 2, ctypes.byref(name)) == OK
    assert name.value == b"CUDA_ERROR_OUT_OF_MEMORY"
    assert driver.call("GetErrorName", 12345, ctypes.byref(name)) == INVALID_VALUE
    assert name.value is None


def test_functions_are_found_by_name(driver: Driver) -> None:
    found, result = ctypes.c_void_p(), ctypes.c_int(9)
    arguments = (ctypes.byref(found), 12000, 0, ctypes.byref(result))
    assert driver.call("GetProcAddress_v2", b"cuMemAlloc", *arguments) == OK
    latest = ctypes.cast(driver.client.machine.library.cuMemAlloc_v2, ctypes.c_void_p).value
    assert (found.value, result.value) == (latest, 0)
    assert driver.call("GetProcAddress_v2", b"malloc", *arguments) == OK
    assert (found.value, result.value) == (None, 1)
    assert driver.call("GetProcAddress", b"malloc", *arguments[:3]) == NOT_FOUND


def test_a_callback_for_the_log_of_errors_is_taken_until_it_is_given_back(driver: Driver) -> None:
    callback, handle = ctypes.CFUNCTYPE(None)(lambda: None), ctypes.c_void_p()
    assert driver.call("LogsRegisterCallback", callback, None, ctypes.byref(handle)) == OK
    assert driver.call("LogsUnregisterCallback", handle) == OK
    assert driver.call("LogsUnregisterCallback", handle) == INVALID_VALUE
    assert driver.call("LogsRegisterCallback", None, None, ctypes.byref(handle)) == INVALID_VALUE
    assert driver.call("LogsRegisterCallback", callback, None, None) == OK, "the handle is optional"


@pytest.mark.parametrize(("form", "more"), [("", (None,)), ("_v2", ())])
def test_a_batch_is_copied_in_the_order_of_its_stream(driver: Driver, form: str, more: tuple[None, ...]) -> None:
    driver.make("CtxCreate_v2", 0, 0)
    stream = driver.make("StreamCreate", 0)
    blocks = [driver.make("MemAlloc_v2", 8) for _ in range(4)]
    for value, block in enumerate(blocks):
        assert driver.call("MemsetD8_v2", block, value, 8) == OK
    two = ctypes.c_uint64 * 2
    attributes, firsts = (ctypes.c_int * 6)(1), (ctypes.c_uint64 * 1)(0)  # one set: in the order of the stream
    copies = (two(*blocks[2:]), two(*blocks[:2]), two(8, 8), 2, attributes, firsts, 1)
    assert driver.call(f"MemcpyBatchAsync{form}", *copies, *more, 0) == INVALID_VALUE, "the legacy default stream"
    assert driver.call(f"MemcpyBatchAsync{form}_ptsz", *copies, *more, 0) == OK
    assert driver.call(f"MemcpyBatchAsync{form}", *copies, *more, stream) == OK
    assert driver.call("CtxSynchronize") == OK
    assert [ctypes.string_at(block, 8)[0] for block in blocks] == [0, 1, 0, 1]
    assert driver.call("MemFree_v2", blocks[0]) == OK
    assert driver.call(f"MemcpyBatchAsync{form}", *copies, *more, stream) == INVALID_VALUE
    assert driver.client.seen(Seen.USED_AFTER_FREE)
