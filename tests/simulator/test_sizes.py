"""Sizes beyond what 31 or 32 bits hold: address space that stays untouched, and copies that the kernel splits."""

from __future__ import annotations

import ctypes
import mmap
import struct
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Compile, Run
from tests.simulator.test_driver import Driver

from quiesce.simulator.runtime.ledger import Seen, Thing

GIB: Final = 1 << 30
SIZES: Final = (2 * GIB, 4 * GIB, 16 * GIB)
TOUCHED_BYTES_MAX: Final = 64 << 20
INVALID_VALUE, OUT_OF_MEMORY = 1, 2
TO_DEVICE, TO_HOST, BETWEEN_DEVICES = 1, 2, 3

SHORT: Final = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long targets, const struct iovec *from,
                         unsigned long sources, unsigned long flags) {
    struct iovec target = *to, source = *from;
    if (target.iov_len > 1000) target.iov_len = source.iov_len = 1000;
    return syscall(SYS_process_vm_readv, pid, &target, targets, &source, sources, flags);
}
"""
"""A kernel that moves at most 1,000 bytes a call."""
CLIENT: Final = """
import ctypes, mmap, sys
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings
from quiesce.simulator.runtime.ledger import Seen
from quiesce.simulator.runtime.machine import Machine

PAGE, SIZE = mmap.PAGESIZE, 3 * mmap.PAGESIZE
machine = Machine(MachineSettings(parse_flavour("cuda:12"), "eager", 0, {}))
device = ctypes.c_void_p()
assert machine.call("Malloc", ctypes.byref(device), SIZE) == 0
source, target = mmap.mmap(-1, SIZE), mmap.mmap(-1, SIZE)
start_of = lambda mapping: ctypes.addressof(ctypes.c_char.from_buffer(mapping))
source[:] = bytes(range(256)) * (SIZE // 256)
assert machine.call("Memcpy", device, ctypes.c_void_p(start_of(source)), SIZE, 1) == 0
assert machine.call("Memcpy", ctypes.c_void_p(start_of(target)), device, SIZE, 2) == 0
assert target[:] == source[:], "not all of it arrived"
assert not [record for record in machine.ledger.records() if record.seen is Seen.USED_AFTER_FREE]
"""


@pytest.fixture
def short(compile_c: Compile) -> Path:
    return compile_c("short.so", SHORT, "-shared", "-fPIC")


def touched_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_what_the_kernel_copies_in_portions_arrives_whole(short: Path, run_python: Run) -> None:
    done = run_python(CLIENT, LD_PRELOAD=str(short))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("portions", ["whole", "short"])
def test_a_hole_in_the_middle_is_told_where_it_begins(side: str, portions: str, short: Path, run_python: Run) -> None:
    """What lies before it is copied; what lies behind it is not said to be freed."""
    words = "device, ctypes.c_void_p(start), SIZE, 1" if side == "source" else "ctypes.c_void_p(start), device, SIZE, 2"
    hole = f"""
start = start_of({side})
assert ctypes.CDLL(None).munmap(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE)) == 0
status = machine.call("Memcpy", {words})
(seen,) = [record for record in machine.ledger.records() if record.seen is Seen.USED_AFTER_FREE]
assert (seen.address, seen.size_bytes) == (start + PAGE, SIZE - PAGE), hex(seen.address - start)
assert status == {INVALID_VALUE if side == "source" else 0}
import os
os._exit(0)  # Python would unmap the hole
"""
    environment = {"LD_PRELOAD": str(short)} if portions == "short" else {}
    done = run_python(CLIENT + hole, **environment)
    assert done.returncode == 0, done.stderr


def test_the_rows_behind_a_hole_are_told_once(run_python: Run) -> None:
    hole = """
start = start_of(target)
assert ctypes.CDLL(None).munmap(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE)) == 0
assert machine.call("Memcpy2D", ctypes.c_void_p(start), 64, device, 64, 32, SIZE // 64, 2) == 0
(seen,) = [record for record in machine.ledger.records() if record.seen is Seen.USED_AFTER_FREE]
assert seen.address == start + PAGE
import os
os._exit(0)
"""
    done = run_python(CLIENT + hole)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["Malloc", "HostAlloc", "MallocManaged"])
def test_zeros_cost_no_memory(start: Any, kind: str, size: int) -> None:
    client = start(capacity=17 * GIB, pinned=17 * GIB)
    block = client.make(kind, ctypes.c_size_t(size), *([] if kind == "Malloc" else [1]))
    ctypes.memset(block + size - 3, 7, 3)
    before = touched_bytes()
    client.ok("Memset", block + 5, 0, ctypes.c_size_t(size - 6))
    client.ok("DeviceSynchronize")
    assert touched_bytes() - before < TOUCHED_BYTES_MAX
    assert ctypes.string_at(block + size - 3, 3) == b"\0\0\7"
    client.ok("Free" if kind != "HostAlloc" else "FreeHost", block)
    assert touched_bytes() - before < TOUCHED_BYTES_MAX
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


def test_small_zeros_are_zeros_too(start: Any) -> None:
    client = start()
    block = client.make("Malloc", 4 << 20)
    ctypes.memset(block, 7, 4 << 20)
    for at, size in ((3, 5), (4095, 2), (8192, 4096), (100, (1 << 20) + 7)):
        client.ok("Memset", block + at, 0, size)
        assert ctypes.string_at(block + at - 1, size + 2) == b"\7" + bytes(size) + b"\7"
        ctypes.memset(block, 7, 4 << 20)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 3, 5000, 50_001])
def test_every_width_fills_all_and_no_more(start: Any, width: int, count: int) -> None:
    client = start()
    driver, value, edge = Driver(client), 0x04030201 & ((1 << 8 * width) - 1), b"\x77" * width
    block = client.make("Malloc", (count + 2) * width)
    ctypes.memset(block, 0x77, (count + 2) * width)
    assert driver.call(f"MemsetD{8 * width}_v2", block + width, value, count) == 0
    assert ctypes.string_at(block, (count + 2) * width) == edge + struct.pack("<I", value)[:width] * count + edge


@pytest.mark.parametrize("size", SIZES)
def test_the_ends_of_a_large_block_are_copied(start: Any, size: int) -> None:
    client = start(capacity=33 * GIB)
    block, other = (client.make("Malloc", ctypes.c_size_t(size)) for _ in range(2))
    client.ok("Memset", block + size - 8, 5, 8)
    client.ok("Memcpy", other + size - 8, block + size - 8, 8, BETWEEN_DEVICES)
    assert ctypes.string_at(other + size - 8, 8) == b"\5" * 8
    assert client.call("Memcpy", other + size - 8, block + size - 8, 9, BETWEEN_DEVICES) == INVALID_VALUE
    assert [record.size_bytes for record in client.seen(Seen.OUT_OF_BOUNDS)] == [9]


@pytest.mark.parametrize("pitch", [3 * GIB, 5 * GIB])
def test_rows_lie_a_large_pitch_apart(start: Any, pitch: int) -> None:
    client = start(capacity=40 * GIB)
    block, other = (client.make("Malloc", ctypes.c_size_t(2 * pitch + 9)) for _ in range(2))
    client.ok("Memset2D", block, ctypes.c_size_t(pitch), 5, ctypes.c_size_t(8), ctypes.c_size_t(3))
    sizes = map(ctypes.c_size_t, (pitch, 8, 3))
    client.ok("Memcpy2D", other, ctypes.c_size_t(pitch), block, *sizes, BETWEEN_DEVICES)
    assert [ctypes.string_at(other + row * pitch, 9) for row in range(3)] == [b"\5" * 8 + b"\0"] * 3


@pytest.mark.parametrize("size", [(1 << 64) - 1, (1 << 64) - 4096, 1 << 63])
def test_no_size_wraps_around_the_end_of_memory(start: Any, size: int) -> None:
    client = start()
    block = client.make("Malloc", 4096)
    assert client.call("Memset", block + 64, 1, ctypes.c_size_t(size)) == INVALID_VALUE
    assert client.call("Memset2D", block, ctypes.c_size_t(size), 1, 8, ctypes.c_size_t(1 << 33)) == INVALID_VALUE
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size)) == OUT_OF_MEMORY
    assert client.call("HostRegister", 4096, ctypes.c_size_t((1 << 64) - 4096), 0) == INVALID_VALUE


@pytest.mark.parametrize("source", [16, 4097, (1 << 47) + 5, (1 << 64) - 4096, (1 << 64) - 1])
def test_a_source_that_is_no_memory_at_all_is_refused(start: Any, source: int) -> None:
    """The program's mistake is told, and does not end it."""
    client = start()
    block = client.make("Malloc", 4096)
    assert client.call("Memcpy", block, ctypes.c_uint64(source), 4096, TO_DEVICE) == INVALID_VALUE
    (seen,) = client.seen(Seen.USED_AFTER_FREE)
    assert (seen.address, seen.size_bytes) == (source, 4096)


@pytest.mark.long
def test_a_copy_beyond_2_gib_of_pageable_memory_is_whole(start: Any) -> None:
    """It takes as much memory as it copies: no second copy of the source is made."""
    size = 2 * GIB + (1 << 20)
    available = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")]
    if int(available[0].split()[1]) << 10 < 3 * size:
        pytest.skip("less than 6 GiB of memory are free here")
    client = start(capacity=3 * GIB)
    block = client.make("Malloc", ctypes.c_size_t(size))
    host = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    host[size - 1] = 7
    source = (ctypes.c_char * size).from_buffer(host)
    before = touched_bytes()
    client.ok("Memcpy", block, ctypes.addressof(source), ctypes.c_size_t(size), TO_DEVICE)
    assert ctypes.string_at(block + size - 2, 2) == b"\0\7"
    assert not client.seen(Seen.USED_AFTER_FREE)
    assert touched_bytes() - before < size + TOUCHED_BYTES_MAX
    del source
    host.close()
