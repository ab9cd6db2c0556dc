"""Memory of the process: the blocks that Python's allocators gave out, and the bytes in use of the C heap.

Both are counted while nothing is traced: that costs microseconds, and equal states then give equal counts. Traces take
blocks of their own, tens of thousands in a round, after which malloc's leftovers alone differ by hundreds of bytes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from array import array
from collections.abc import Callable, Mapping
from typing import Final

from quiesce.leaks.environment import EnvironmentTexts
from quiesce.leaks.glibc_heap import GlibcHeap
from quiesce.leaks.immortal_texts import immortal_texts
from quiesce.leaks.quantities import C_HEAP, PYTHON, Quantity

BLOCKS: Final = Quantity(PYTHON, "Python's memory", "blocks")
HEAP: Final = Quantity(C_HEAP, "the C heap", floor=4)
"""Its floor is an eighth of the smallest chunk of glibc's malloc on 64-bit machines (MINSIZE in malloc.c): a free chunk
that is 16 bytes too large is given out whole, which adds up to less than a chunk in eight rounds."""

AT_HAND_SIZES: Final = range(24, 1033, 16)
AT_HAND_COUNT: Final = 7
"""glibc's malloc keeps up to 7 free chunks of each of these sizes at hand for each thread (tcache in malloc.c)."""

AT_HAND_TRIES: Final = 4096
"""A heap may hold thousands of free chunks that are 16 bytes too large, and gives those out first."""


class PythonMeter:
    """Counts blocks by :func:`sys.getallocatedblocks`."""

    family = PYTHON

    def absent(self) -> str:
        """Say so on an interpreter that cannot count its blocks."""
        return "" if hasattr(sys, "getallocatedblocks") else f"{sys.implementation.name} does not count its blocks"

    def settle(self) -> None:
        """Do nothing: collecting garbage is the check's business."""

    def read(self) -> Mapping[Quantity, int]:
        """Count; a text that is interned for ever is the interpreter's."""
        return {BLOCKS: sys.getallocatedblocks() - immortal_texts()}

    def observe(self) -> None:
        """Do nothing: where blocks come from takes traces."""

    def rest(self) -> None:
        """Do nothing."""

    def origin(self, quantity: Quantity) -> str:
        """Know nothing of where they come from."""
        return "unknown, because the test stops tracemalloc"

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""


class HeapMeter:
    """Counts the bytes in use of glibc's heap, in every arena and in mappings of their own, Python's among them.

    ``not_of_tests`` returns what there is of them that does not count: a simulated runtime's own.
    """

    family = C_HEAP

    def __init__(self, not_of_tests: Callable[[], int] = int) -> None:
        self._not_of_tests = not_of_tests
        self._heap = GlibcHeap()
        self._absent = self._heap.absent
        if not self._absent:
            self._environment = EnvironmentTexts()
            self._taken = array("Q", bytes(8 * AT_HAND_TRIES))  # numbers in a list would be blocks of Python's
            self._library = self._heap.library
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
        """Count.

        The free chunks that malloc keeps at hand count as in use, so there must be equally many each time. Otherwise a
        small leak lives on them for rounds, and a block seems to leak that is allocated past them and freed to them.
        What the C library keeps of the environment does not count.
        """
        self._environment.watch()
        self._fill_up()
        return {HEAP: self._heap.in_use_bytes() - self._environment.kept_bytes - self._not_of_tests()}

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

    def begin(self) -> None:
        """Watch the environment from before the first round on: what a test puts there is new in its first round."""
        if not self._absent:
            self._environment.watch()

    def observe(self) -> None:
        """Do nothing."""

    def rest(self) -> None:
        """Watch the environment no more; idempotent."""
        if not self._absent:
            self._environment.rest()

    def origin(self, quantity: Quantity) -> str:
        """Say that native code has no place that can be seen from here, and what shows more."""
        if importlib.util.find_spec("memray") is None:
            return "native code; install memray, or run the test under heaptrack, to see where"
        return "native code, of which memray names no line; run the test under heaptrack to see where"

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""
