"""Copies and prefetches in batches, host functions and libraries, which newer releases brought to the runtime."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, MakeImage, Start

from quiesce.simulator.runtime.ledger import Seen, Thing

INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED = 1, 500, 801
SIZE: Final = 64
PER_THREAD: Final = 2
HOST_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Attributes(ctypes.Structure):
    """cudaMemcpyAttributes."""

    _fields_ = (("order", ctypes.c_int), ("places", ctypes.c_int * 4), ("flags", ctypes.c_uint))


def numbers(*values: int) -> Any:
    return (ctypes.c_uint64 * len(values))(*values)


class Batch:
    """Copies of blocks into others, with two sets of attributes."""

    def __init__(self, client: Client, flavour: str) -> None:
        self.client, self.is_long = client, flavour == "cuda:12"
        self.sources = [client.make("Malloc", SIZE) for _ in range(3)]
        self.targets = [client.make("Malloc", SIZE) for _ in range(3)]
        for value, source in enumerate(self.sources):
            client.ok("Memset", source, 1 + value, SIZE)
        self.wrong = ctypes.c_size_t(77)

    def copy(
        self, stream: int, *, orders: tuple[int, ...] = (1, 3), firsts: tuple[int, ...] = (0, 2), suffix: str = ""
    ) -> int:
        attributes = (Attributes * len(orders))(*(Attributes(order) for order in orders))
        what = (numbers(*self.targets), numbers(*self.sources), numbers(*[SIZE] * 3), 3)
        handle = ctypes.c_void_p(stream)
        more: tuple[Any, ...] = (ctypes.byref(self.wrong), handle) if self.is_long else (handle,)
        return self.client.call(
            f"MemcpyBatchAsync{suffix}", *what, attributes, numbers(*firsts), ctypes.c_size_t(len(orders)), *more
        )


@pytest.mark.parametrize("flavour", ["cuda:12", "cuda:13"])
def test_a_batch_copies_in_the_order_of_its_stream(start: Start, flavour: str) -> None:
    client = start(flavour, schedule="lazy")
    batch, stream = Batch(client, flavour), client.make("StreamCreate")
    assert batch.copy(stream) == 0
    client.ok("StreamSynchronize", stream)
    assert [ctypes.string_at(target, 1)[0] for target in batch.targets] == [1, 2, 3]
    assert batch.wrong.value == 77
    assert len({record.stream for record in client.seen(Seen.COPIED)}) == 1


@pytest.mark.parametrize("flavour", ["cuda:12", "cuda:13"])
def test_a_batch_that_is_not_complete_is_refused(start: Start, flavour: str) -> None:
    client = start(flavour)
    batch, stream = Batch(client, flavour), client.make("StreamCreate")
    assert batch.copy(0) == INVALID_VALUE, "the legacy default stream"
    assert batch.copy(0, suffix="_ptsz") == 0
    assert batch.copy(PER_THREAD) == 0
    for firsts in ((1, 2), (0, 0), (0, 3)):
        assert batch.copy(stream, firsts=firsts) == INVALID_VALUE
    assert batch.copy(stream, orders=(1, 0)) == INVALID_VALUE
    assert (batch.wrong.value == 2**64 - 1) is (flavour == "cuda:12")
    client.ok("Free", batch.targets[1])
    assert batch.copy(stream) == INVALID_VALUE
    assert client.seen(Seen.USED_AFTER_FREE)


def test_a_copy_with_attributes_is_a_copy(start: Start) -> None:
    client = start("cuda:13")
    batch, stream = Batch(client, "cuda:13"), client.make("StreamCreate")
    copy = ("MemcpyWithAttributesAsync", batch.targets[0], batch.sources[2], SIZE)
    client.ok(*copy, ctypes.byref(Attributes(2)), stream)
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(batch.targets[0], SIZE) == bytes([3]) * SIZE
    assert client.call(*copy, None, stream) == INVALID_VALUE


def test_prefetches_are_of_managed_memory(start: Start) -> None:
    client = start("cuda:13")
    stream, device = ctypes.c_void_p(client.make("StreamCreate")), client.make("Malloc", SIZE)
    managed = [client.make("MallocManaged", SIZE, 1) for _ in range(2)]
    on_device, on_host = 1, 2
    batch: Any = (
        numbers(*managed),
        numbers(SIZE, SIZE),
        2,
        numbers(on_device, on_host),
        numbers(0, 1),
        ctypes.c_size_t(2),
    )
    client.ok("MemPrefetchBatchAsync", *batch, ctypes.c_uint64(0), stream)
    assert client.call("MemPrefetchBatchAsync", *batch, ctypes.c_uint64(1), stream) == INVALID_VALUE
    mixed = (numbers(managed[0], device), *batch[1:], ctypes.c_uint64(0))
    assert client.call("MemPrefetchBatchAsync", *mixed, stream) == INVALID_VALUE


def test_what_was_discarded_is_gone(start: Start) -> None:
    client, flags = start("cuda:13", schedule="lazy"), ctypes.c_uint64(0)
    stream, device = ctypes.c_void_p(client.make("StreamCreate")), client.make("Malloc", SIZE)
    managed = client.make("MallocManaged", SIZE, 1)
    ctypes.memset(managed, 7, SIZE)
    client.ok("MemDiscardBatchAsync", numbers(managed), numbers(SIZE), 1, flags, stream)
    assert ctypes.string_at(managed, SIZE) == bytes([7]) * SIZE
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(managed, SIZE) == bytes([0xDD]) * SIZE
    ctypes.memset(managed, 7, SIZE)
    places: Any = (numbers(1), numbers(0), ctypes.c_size_t(1))
    client.ok("MemDiscardAndPrefetchBatchAsync", numbers(managed), numbers(SIZE), 1, *places, flags, stream)
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(managed, SIZE) == bytes([0xDD]) * SIZE
    assert client.call("MemDiscardBatchAsync", numbers(device), numbers(SIZE), 1, flags, stream) == INVALID_VALUE


def test_the_execution_context_of_a_device_makes_streams(start: Start) -> None:
    client, ordinal = start("cuda:13", devices=2), ctypes.c_int()
    context = client.make("DeviceGetExecutionCtx", 1)
    client.ok("ExecutionCtxGetDevice", ctypes.byref(ordinal), context)
    assert ordinal.value == 1
    stream = client.make("ExecutionCtxStreamCreate", context, 1, -5)
    client.ok("StreamGetDevice", stream, ctypes.byref(ordinal))
    assert ordinal.value == 1
    client.ok("ExecutionCtxSynchronize", context)
    identifier = ctypes.c_uint64()
    client.ok("ExecutionCtxGetId", context, ctypes.byref(identifier))
    assert identifier.value
    unknown = context + 5
    assert client.call("ExecutionCtxStreamCreate", ctypes.byref(ctypes.c_void_p()), unknown, 0, 0) == INVALID_VALUE
    assert client.call("ExecutionCtxDestroy", context) == INVALID_VALUE, "nobody made it"


def test_a_host_function_says_how_it_is_waited_for(start: Start) -> None:
    client, called = start("cuda:13"), list[int]()
    function = HOST_FUNCTION(called.append)
    stream = client.make("StreamCreate")
    for mode in (0, 1):
        client.ok("LaunchHostFunc_v2", stream, function, 5 + mode, mode)
    client.ok("StreamSynchronize", stream)
    assert called == [5, 6]
    assert client.call("LaunchHostFunc_v2", stream, function, 0, 2) == INVALID_VALUE


def test_a_library_of_the_runtime_has_kernels_and_variables(start: Start, image: MakeImage) -> None:
    client, content, size = start("cuda:13"), image("cubin"), ctypes.c_size_t()
    library = client.make("LibraryLoadData", content, None, None, 0, None, None, 0)
    kernel = client.make("LibraryGetKernel", library, b"scale")
    address = ctypes.c_void_p()
    client.ok("LibraryGetGlobal", ctypes.byref(address), ctypes.byref(size), library, b"counter")
    assert ctypes.string_at(address.value or 0, size.value) == struct.pack("<I", 7)
    assert client.call("LibraryGetGlobal", ctypes.byref(address), None, library, b"absent") == NOT_FOUND
    before = client.machine.ledger.launches
    one = numbers(1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, 0, 0, 0)  # without attributes
    client.ok("LaunchKernelExC", one, kernel, None)
    assert client.machine.ledger.launches == before + 1
    assert client.make("GetKernel", kernel) == kernel
    client.ok("LibraryUnload", library)
    assert client.machine.ledger.counted(Thing.DEVICE, Thing.MODULE) == (0, 0)


def test_the_oldest_names_are_of_the_device(start: Start) -> None:
    client, size = start("cuda:11"), ctypes.c_size_t()
    client.make("Malloc", SIZE)
    client.ok("ThreadSynchronize")
    client.ok("ThreadSetLimit", 1, 1 << 20)
    client.ok("ThreadGetLimit", ctypes.byref(size), 1)
    assert size.value == 1 << 20
    client.ok("ThreadExit")
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)
