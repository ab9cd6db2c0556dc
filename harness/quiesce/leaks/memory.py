"""Memory of the process: what Python's allocators gave out, and what is in use of the C heap.

At first only counts are taken, which costs microseconds. Once there is a suspicion, :mod:`tracemalloc` says which code
asked for what is kept, so that what the test runner keeps for itself is left out and a leak has a place.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import tracemalloc
from collections.abc import Mapping
from typing import Final

from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import C_HEAP, PYTHON, Quantity
from quiesce.leaks.tracing import FRAMES, SITES_SHOWN, Sample, site_text, sites_that_grew, take_sample

BLOCKS: Final = Quantity(PYTHON, "Python's memory", "blocks")
BYTES: Final = Quantity(PYTHON, "Python's memory")
HEAP: Final = Quantity(C_HEAP, "the C heap", floor=32, exact=False)
"""Its floor is the smallest chunk of glibc's malloc on 64-bit machines (MINSIZE in malloc.c). It is not exact because
blocks that Python got before the tracing began are not subtracted, and are given back at any time."""

AT_HAND_SIZES: Final = range(24, 1033, 16)
AT_HAND_COUNT: Final = 7
"""glibc's malloc keeps up to 7 free chunks of each of these sizes at hand for each thread (tcache in malloc.c)."""

AT_HAND_TRIES: Final = 32


class PythonMeter:
    """Counts blocks by :func:`sys.getallocatedblocks`; while it observes, the bytes that the tested code keeps."""

    family = PYTHON

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._observes = False
        self._stop = False
        self._first: Sample | None = None
        self.last = Sample()

    def absent(self) -> str:
        """Say so on an interpreter that cannot count its blocks."""
        return "" if hasattr(sys, "getallocatedblocks") else f"{sys.implementation.name} does not count its blocks"

    def settle(self) -> None:
        """Do nothing: collecting garbage is the check's business."""

    def read(self) -> Mapping[Quantity, int]:
        """Count blocks; while observing, bytes. A test that stops the tracing leaves nothing to count."""
        if not self._observes:
            return {BLOCKS: sys.getallocatedblocks()}
        if not tracemalloc.is_tracing():
            return {}
        self.last = take_sample(self._owners)
        if self._first is None:
            self._first = self.last
        return {BYTES: self.last.size_bytes}

    def observe(self) -> None:
        """Take traces, unless somebody else does already."""
        self._observes = True
        self._first = None
        if not tracemalloc.is_tracing():
            tracemalloc.start(FRAMES)
            self._stop = True

    def rest(self) -> None:
        """Stop taking traces, and forget what they said."""
        if self._stop:
            tracemalloc.stop()
        self._observes = self._stop = False
        self._first = None
        self.last = Sample()

    def origin(self, quantity: Quantity) -> str:
        """Name the line that keeps most."""
        return next(iter(self._grown()), "")

    def evidence(self, quantity: Quantity) -> str:
        """Name the lines that keep something."""
        grown = self._grown()
        left_out = len(grown) - SITES_SHOWN
        return "\n".join([*grown[:SITES_SHOWN], *([f"and {left_out} more lines"] if left_out > 0 else [])])

    def _grown(self) -> list[str]:
        if self._first is None:
            return []
        return [site_text(filename, line) for filename, line, _ in sites_that_grew(self._first, self.last)]


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc's malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


class HeapMeter:
    """Counts the bytes in use of glibc's heap, in every arena and in mappings of their own.

    What Python takes of the heap is Python's: while it observes, that is subtracted.
    """

    family = C_HEAP

    def __init__(self, python: PythonMeter) -> None:
        self._python = python
        self._observes = False
        self._absent = _why_no_mallinfo2()
        if not self._absent:
            self._taken = [0] * AT_HAND_TRIES
            self._library = ctypes.PyDLL(None)
            self._library.mallinfo2.restype = _Mallinfo2
            self._library.malloc.restype = ctypes.c_void_p
            self._library.malloc.argtypes = [ctypes.c_size_t]
            self._library.free.argtypes = [ctypes.c_void_p]
            self._library.malloc_usable_size.restype = ctypes.c_size_t
            self._library.malloc_usable_size.argtypes = [ctypes.c_void_p]

    def absent(self) -> str:
        """Say why the heap cannot be counted."""
        return self._absent

    def settle(self) -> None:
        """Do nothing: what malloc caches is not in use, but for a bounded rest for each thread."""

    def read(self) -> Mapping[Quantity, int]:
        """Count; read it behind the Python meter, whose last sample is subtracted.

        The free chunks that malloc keeps at hand count as in use, so there must be equally many each time. Otherwise a
        small leak lives on them for rounds, and a block seems to leak that is allocated past them and freed to them.
        """
        if self._observes and not tracemalloc.is_tracing():
            return {}
        self._fill_up()
        info = self._library.mallinfo2()
        in_use = info.uordblks + info.hblkhd
        return {HEAP: in_use - self._python.last.on_c_heap_bytes}

    def _fill_up(self) -> None:
        """Have malloc keep as many chunks at hand as it will, of each size it keeps.

        A free chunk that is a little too large is given out whole. When it is freed it counts for another size, so it
        is held back until enough of the right size were taken.
        """
        malloc, usable_size, taken = self._library.malloc, self._library.malloc_usable_size, self._taken
        for size in AT_HAND_SIZES:
            missing = AT_HAND_COUNT
            for count in range(AT_HAND_TRIES):
                taken[count] = address = malloc(size)
                missing -= usable_size(address) == size
                if not missing:
                    break
            for index in range(count + 1):
                self._library.free(taken[index])

    def observe(self) -> None:
        """Subtract what the Python meter sees from now on."""
        self._observes = True

    def rest(self) -> None:
        """Subtract nothing."""
        self._observes = False

    def origin(self, quantity: Quantity) -> str:
        """Say that native code has no place that can be seen from here."""
        return "native code; run the test under heaptrack or memray --native to see where"

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""


def _why_no_mallinfo2() -> str:
    if os.environ.get("PYTHONMALLOC", "").startswith("malloc"):
        return "PYTHONMALLOC puts Python's own memory there"
    if sys.platform != "linux":
        return f"{platform.system()} does not count it"
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return "this C library has no mallinfo2; glibc has it since 2.33"
    return ""
