"""The meter of the C heap, on the heap of a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from quiesce.leaks.meters.memory import HEAP, HeapMeter

pytestmark = pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap")

FREE_CHUNKS = 500
"""Free chunks of 96 bytes, which glibc gives out whole for a request that needs 80, as 16 bytes are no chunk."""

PROGRAM = f"""\
import ctypes
from quiesce.leaks.meters.memory import HEAP, HeapMeter

library = ctypes.PyDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
meter = HeapMeter()
meter.read()
apart = [(library.malloc(88), library.malloc(24)) for _ in range({FREE_CHUNKS})]
for address, _ in apart:
    library.free(address)
library.free(library.malloc(100_000))  # has malloc sort small free chunks
read = [0] * 12
for index in range(12):
    library.malloc(64)
    read[index] = meter.read()[HEAP]
print(*(after - before for before, after in zip(read, read[1:])))
"""


def test_a_small_leak_shows_at_once_on_a_heap_full_of_chunks_a_little_too_large() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    steps = [int(word) for word in done.stdout.split()]
    assert len(steps) == 11
    assert min(steps) >= 80


BLOCKS_PROGRAM = f"""\
import ctypes, sys
from quiesce.leaks.meters.memory import HEAP, HeapMeter

library = ctypes.PyDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
meter = HeapMeter()
apart = [(library.malloc(88), library.malloc(24)) for _ in range({FREE_CHUNKS})]
meter.read()
before = sys.getallocatedblocks()
meter.read()
base = sys.getallocatedblocks() - before
for address, _ in apart:
    library.free(address)
library.free(library.malloc(100_000))
library.malloc(64)
before = sys.getallocatedblocks()
meter.read()
print(sys.getallocatedblocks() - before - base)
"""


def test_a_heap_that_takes_more_tries_leaves_no_blocks_of_python() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKS_PROGRAM], capture_output=True, text=True, check=True)
    assert abs(int(done.stdout)) < 10


@pytest.mark.parametrize(("found", "advice"), [(None, "install memray"), (object(), "memray names no line")])
def test_who_has_memray_is_not_asked_to_install_it(monkeypatch: pytest.MonkeyPatch, found: object, advice: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found if name == "memray" else None)
    assert advice in HeapMeter().origin(HEAP)
