"""Pools of page-locked memory: what they hand out is pinned memory in the ledger, and takes its capacity."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from typing import Any, Final

import pytest

from quiesce.simulator.runtime.ledger import Flag, Seen, Thing

INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, NOT_SUPPORTED = 1, 2, 101, 801
DEVICE, HOST, NODE, CURRENT_NODE = 1, 2, 3, 4
PINNED, MANAGED = 1, 2
RESERVED, USED = 5, 7
MIB = 1 << 20


def properties(
    kind: int = HOST, number: int = 0, *, allocation: int = PINNED, handles: int = 0, max_bytes: int = 0
) -> Any:
    """Return cudaMemPoolProps: four numbers, a pointer, the size, 56 bytes that are reserved."""
    made = (ctypes.c_int * 22)(allocation, handles, kind, number)
    ctypes.c_uint64.from_buffer(made, 24).value = max_bytes
    return ctypes.byref(made)


def location(kind: int, number: int = 0) -> Any:
    return ctypes.byref((ctypes.c_int * 2)(kind, number))


def value_of(client: Any, pool: int, attribute: int) -> int:
    value = ctypes.c_uint64()
    client.ok("MemPoolGetAttribute", pool, attribute, ctypes.byref(value))
    return value.value


def counted(client: Any) -> tuple[int, int]:
    ledger = client.machine.ledger
    return ledger.counted(Thing.DEVICE)[0], ledger.counted(Thing.PINNED)[0]


def allocated(client: Any, pool: int, stream: int, size_bytes: int) -> int:
    return client.make("MallocFromPoolAsync", size_bytes, pool, stream)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [HOST, NODE])
def test_memory_of_such_a_pool_is_pinned_memory(start: Any, kind: int) -> None:
    client = start("cuda:13", devices=2)
    pool, stream = client.make("MemPoolCreate", properties(kind)), client.make("StreamCreate")
    address = allocated(client, pool, stream, 100)
    assert counted(client) == (0, 1)
    (record,) = client.seen(Seen.ALLOCATED)
    assert (record.thing, record.size_bytes, bool(record.flags & Flag.ORDERED)) == (Thing.PINNED, 100, True)
    attributes = ctypes.create_string_buffer(64)
    client.ok("PointerGetAttributes", attributes, ctypes.c_void_p(address))
    assert ctypes.c_int.from_buffer(attributes).value == 1, "cudaMemoryTypeHost"
    assert value_of(client, pool, USED) == 512
    client.ok("FreeAsync", address, stream)
    client.ok("StreamSynchronize", stream)
    assert (value_of(client, pool, USED), value_of(client, pool, RESERVED)) == (0, 0)
    client.ok("MemPoolDestroy", pool)
    assert counted(client) == (0, 0)


def test_it_takes_what_can_be_page_locked_and_nothing_of_a_device(start: Any) -> None:
    client = start("cuda:12", pinned=4 * MIB, capacity=64 * MIB)
    pool, stream = client.make("MemPoolCreate", properties()), client.make("StreamCreate")
    first = allocated(client, pool, stream, 3 * MIB)
    place = ctypes.byref(ctypes.c_void_p())
    assert client.call("MallocFromPoolAsync", place, 2 * MIB, pool, stream) == OUT_OF_MEMORY
    assert [record.thing for record in client.seen(Seen.REFUSED)] == [Thing.PINNED]
    assert client.call("HostAlloc", place, 2 * MIB, 0) == OUT_OF_MEMORY, "it is one capacity"
    client.ok("Free", client.make("Malloc", 60 * MIB))
    client.ok("FreeAsync", first, stream)
    client.ok("FreeAsync", allocated(client, pool, stream, 4 * MIB), stream)
    assert value_of(client, pool, RESERVED) == 4 * MIB
    client.ok("StreamSynchronize", stream)
    client.ok("FreeHost", client.make("HostAlloc", 4 * MIB, 0))


@pytest.mark.parametrize("kind", [HOST, DEVICE])
def test_a_pool_has_a_maximum(start: Any, kind: int) -> None:
    client = start("cuda:13")
    pool = client.make("MemPoolCreate", properties(kind, max_bytes=2 * MIB))
    stream, place = client.make("StreamCreate"), ctypes.byref(ctypes.c_void_p())
    allocated(client, pool, stream, MIB)
    assert client.call("MallocFromPoolAsync", place, MIB + 1, pool, stream) == OUT_OF_MEMORY
    allocated(client, pool, stream, MIB)
    assert value_of(client, pool, RESERVED) == 2 * MIB


LEFT: Final = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
pool, block = ctypes.c_void_p(), ctypes.c_void_p()
host = (ctypes.c_int * 22)(1, 0, 2, 0)
assert runtime.cudaMemPoolCreate(ctypes.byref(pool), ctypes.byref(host)) == 0
assert runtime.cudaMallocFromPoolAsync(ctypes.byref(block), ctypes.c_size_t(4096), pool, None) == 0
{last}
assert runtime.cudaMemPoolDestroy(pool) == 0
"""


@pytest.mark.parametrize(("last", "leaks"), [("", True), ("assert runtime.cudaFreeAsync(block, None) == 0", False)])
@pytest.mark.usefixtures("library")
def test_what_is_left_of_it_is_a_leak(last: str, leaks: bool) -> None:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", "--at-exit", "all", "--"]
    text = LEFT.format(last=last)
    done = subprocess.run([*command, sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == leaks, done.stdout + done.stderr
    assert bool(re.search(r"4,?096 bytes.*pinned", done.stdout)) is leaks, done.stdout


def test_cuda_free_takes_it_and_cuda_free_host_does_not(start: Any) -> None:
    """cudaFree: "a previous call to … cudaMallocFromPoolAsync"; cudaFreeHost names cudaMallocHost and cudaHostAlloc."""
    client = start("cuda:13")
    pool, stream = client.make("MemPoolCreate", properties()), client.make("StreamCreate")
    address, pinned = allocated(client, pool, stream, 64), client.make("HostAlloc", 64, 0)
    assert client.call("FreeHost", address) == INVALID_VALUE
    assert client.call("FreeAsync", pinned, stream) == INVALID_VALUE
    assert len(client.seen(Seen.FREED_FOREIGN)) == 2
    client.ok("Free", address)
    assert client.call("Free", address) == INVALID_VALUE
    assert len(client.seen(Seen.FREED_TWICE)) == 1
    client.ok("FreeHost", pinned)
    assert counted(client) == (0, 0)


def test_a_free_waits_for_its_stream(start: Any) -> None:
    client = start("cuda:13", schedule="lazy")
    pool, stream = client.make("MemPoolCreate", properties()), client.make("StreamCreate")
    address = allocated(client, pool, stream, 64)
    client.ok("MemsetAsync", address, 7, 64, stream)
    client.ok("FreeAsync", address, stream)
    assert allocated(client, pool, stream, 64) != address
    client.ok("StreamSynchronize", stream)
    assert allocated(client, pool, stream, 64) == address


def test_the_hosts_default_pool_is_current_until_another_is(start: Any) -> None:
    client = start("cuda:13", devices=2)
    default = client.make("MemGetDefaultMemPool", location(HOST), PINNED)
    assert client.make("MemGetMemPool", location(HOST), PINNED) == default
    assert default not in [client.make("DeviceGetDefaultMemPool", device) for device in range(2)]
    made = client.make("MemPoolCreate", properties())
    client.ok("MemSetMemPool", location(HOST), PINNED, made)
    assert client.make("MemGetMemPool", location(HOST), PINNED) == made
    assert client.call("MemSetMemPool", location(DEVICE), PINNED, made) == INVALID_VALUE
    assert client.call("DeviceSetMemPool", 0, made) == INVALID_VALUE
    assert client.call("MemPoolDestroy", default) == INVALID_VALUE
    client.ok("MemPoolDestroy", made)
    assert client.make("MemGetMemPool", location(HOST), PINNED) == default


def test_devices_have_access_when_it_was_given(start: Any) -> None:
    """ "Their default accessibility will be from the host CPU" (cuMemPoolCreate)."""
    client, access = start("cuda:13", devices=2), ctypes.c_int(-1)
    pool = client.make("MemPoolCreate", properties())
    found = []
    for kind, number in ((HOST, 0), (DEVICE, 0), (DEVICE, 1)):
        client.ok("MemPoolGetAccess", ctypes.byref(access), pool, location(kind, number))
        found.append(access.value)
    assert found == [3, 0, 0]
    client.ok("MemPoolSetAccess", pool, ctypes.byref((ctypes.c_int * 3)(DEVICE, 1, 3)), ctypes.c_size_t(1))
    client.ok("MemPoolGetAccess", ctypes.byref(access), pool, location(DEVICE, 1))
    assert access.value == 3
    assert client.call("MemPoolSetAccess", pool, ctypes.byref((ctypes.c_int * 3)(HOST, 0, 0)), ctypes.c_size_t(1)) == 1
    assert client.call("MemPoolGetAccess", ctypes.byref(access), pool, location(DEVICE, 2)) == INVALID_DEVICE


@pytest.mark.parametrize(
    ("flavour", "asked"),
    [
        ("cuda:13", {"kind": CURRENT_NODE}),
        ("cuda:13", {"kind": NODE, "number": -1}),
        ("cuda:13", {"kind": HOST, "handles": 1}),
        ("cuda:12", {"kind": HOST, "allocation": MANAGED}),
        ("cuda:11", {"kind": HOST}),
        ("hip:7", {"kind": HOST}),
    ],
)
def test_what_the_documents_forbid_is_refused(start: Any, flavour: str, asked: dict[str, int]) -> None:
    client = start(flavour)
    assert client.call("MemPoolCreate", ctypes.byref(ctypes.c_void_p()), properties(**asked)) == INVALID_VALUE
    assert not client.seen(Seen.NOT_SIMULATED)


def test_what_is_not_simulated_says_so(start: Any, capfd: pytest.CaptureFixture[str]) -> None:
    client, place = start("cuda:13"), ctypes.byref(ctypes.c_void_p())
    assert client.call("MemPoolCreate", place, properties(allocation=MANAGED)) == NOT_SUPPORTED
    assert client.call("MemGetMemPool", place, location(DEVICE), MANAGED) == NOT_SUPPORTED
    pool, stream = client.make("MemPoolCreate", properties()), client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 0)
    assert client.call("MallocFromPoolAsync", place, 64, pool, stream) == NOT_SUPPORTED
    said = capfd.readouterr().err
    for name in ("cudaMemPoolCreate", "cudaMemGetMemPool", "cudaMallocFromPoolAsync"):
        assert f"{name} is not simulated" in said


def test_the_driver_has_them_too(start: Any) -> None:
    client, pool, address = start("cuda:13"), ctypes.c_void_p(), ctypes.c_uint64()
    client.ok("SetDevice", 0)
    library = client.machine.library
    assert library.cuMemPoolCreate(ctypes.byref(pool), properties()) == 0
    assert library.cuMemAllocFromPoolAsync(ctypes.byref(address), ctypes.c_size_t(64), pool, None) == 0
    assert counted(client) == (0, 1)
    assert library.cuMemFreeAsync(address, None) == library.cuMemPoolDestroy(pool) == 0
    assert counted(client) == (0, 0)
