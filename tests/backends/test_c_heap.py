"""The ledger at the C library's door is exact: it agrees with the C library's statistics where these are exact."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.backends.c_heap import CHeap, HeapFunctions, identify_provider
from quiesce.model.backend import BackendFault
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.model.operations import MemoryKind

AGAINST_STATISTICS = """
import ctypes, random, sys
from quiesce.backends.c_heap import CHeap, HeapFunctions, c_library
from quiesce.model.operations import MemoryKind

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
class Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]
mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.argtypes, mallinfo2.restype = (), Statistics

def in_use():
    statistics = mallinfo2()
    return statistics.uordblks + statistics.hblkhd

changed_bytes = 0
def watched(function):
    def call(*arguments):
        global changed_bytes
        before = in_use()
        result = function(*arguments)
        changed_bytes += in_use() - before
        return result
    return call

functions = c_library()
heap = CHeap(HeapFunctions(*map(watched, (functions.allocate, functions.allocate_aligned, functions.free))))
draw = random.Random(3)
live = {}
for step in range(3000):
    if live and draw.random() < 0.5:
        address = draw.choice(list(live))
        heap.free(address)
        del live[address]
    else:
        size_bytes = draw.choice((0, 1, 24, 25, 100, 1032, 1033, 5000, 200_000))
        address = heap.allocate(size_bytes, draw.choice((None, None, 64, 4096)), MemoryKind.DEVICE)
        live[address] = size_bytes
    # a chunk is its block, a header and rounding: at most two pages more than was asked for
    assert heap.held_bytes <= changed_bytes <= heap.held_bytes + 8192 * heap.blocks, step
    assert heap.blocks == len(live)
peak_blocks = len(live)
for address in sorted(live)[1:]:
    heap.free(address)
forgotten = heap.held_bytes, changed_bytes
heap.free(min(live))
print(peak_blocks > 20, forgotten[0] <= forgotten[1] and forgotten[1] > 0, heap.held_bytes, changed_bytes)
"""


def run(code: str, **environment: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def test_it_agrees_with_the_c_librarys_statistics() -> None:
    assert run(AGAINST_STATISTICS, GLIBC_TUNABLES="glibc.malloc.tcache_count=0") == "True True 0 0"


def scripted(*addresses: int | None) -> tuple[CHeap, list[int]]:
    answers, freed = iter(addresses), list[int]()
    return CHeap(HeapFunctions(lambda size: next(answers), lambda alignment, size: next(answers), freed.append)), freed


def test_every_call_is_counted_and_seen() -> None:
    heap, freed = scripted(0x100, 0x200, None)
    assert heap.allocate(10, None, MemoryKind.DEVICE) == 0x100
    assert heap.allocate(20, 64, MemoryKind.PAGEABLE) == 0x200
    assert heap.allocate(30, None, MemoryKind.DEVICE) is None
    assert (heap.blocks, heap.held_bytes, heap.device_bytes, heap.calls) == (2, 30, 10, 3)
    heap.free(0x200)
    assert (heap.blocks, heap.held_bytes, heap.device_bytes, heap.calls, freed) == (1, 10, 10, 4, [0x200])
    assert heap.take() == (
        BackingAllocated(0x100, 10),
        BackingAllocated(0x200, 20, MemoryKind.PAGEABLE),
        BackingRefused(30),
        BackingFreed(0x200, 20, MemoryKind.PAGEABLE),
    )
    assert heap.take() == ()


def test_a_block_handed_out_twice_is_a_fault() -> None:
    heap, _ = scripted(0x100, 0x100)
    heap.allocate(10, None, MemoryKind.DEVICE)
    with pytest.raises(BackendFault, match="handed out 11 bytes where another block still is"):
        heap.allocate(11, None, MemoryKind.DEVICE)


@pytest.mark.parametrize("address", [0x100, 0x108])
def test_a_free_of_what_is_not_held_never_reaches_the_heap(address: int) -> None:
    heap, freed = scripted(0x100)
    heap.allocate(10, None, MemoryKind.DEVICE)
    heap.free(0x100)
    with pytest.raises(BackendFault, match="already got back"):
        heap.free(address)
    assert freed == [0x100]
    assert heap.calls == 2


def test_the_c_librarys_own_heap_is_named_by_its_version() -> None:
    provider = run(
        "from quiesce.backends.c_heap import identify_provider; print(identify_provider().version)", LD_PRELOAD=""
    )
    assert provider.startswith("glibc 2.")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler to make another heap")
def test_a_preloaded_heap_is_named(tmp_path: Path) -> None:
    source, library = tmp_path / "heap.c", tmp_path / "libother.so"
    source.write_text(
        "#include <stddef.h>\nvoid *__libc_malloc(size_t);\nvoid *malloc(size_t n) { return __libc_malloc(n); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    code = "from quiesce.backends.c_heap import identify_provider as who; print(who().version, who().alignment_bytes)"
    assert run(code, LD_PRELOAD=str(library)) == f"libother.so on {identify_provider().version.split(' on ')[-1]} 8"
