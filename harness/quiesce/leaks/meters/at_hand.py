"""The free chunks that glibc's malloc keeps at hand for each thread, which count as in use (tcache in malloc.c).

Before each reading of the C heap there must be equally many. To take and free seven chunks of each size costs 0.6 ms,
of which a check of a quick test has several. So the counts of the chunks are read where malloc has them, and only sizes
of which some are missing are filled up.

The main thread's counts begin the first chunk of the heap (``tcache_init``), as 16-bit numbers since glibc 2.30. That
is no interface, so it is tried first: the size of that chunk must be right, all counts must be full after a fill-up,
and each must go down and up as a chunk of its size is taken and freed. Elsewhere, and in other threads, all sizes are
filled up.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from typing import Any, Final

from quiesce.leaks.system_calls import SystemCalls

AT_HAND_SIZES: Final = range(24, 1033, 16)
AT_HAND_COUNT: Final = 7
"""glibc's malloc keeps up to 7 free chunks of each of these sizes at hand for each thread (tcache in malloc.c)."""

AT_HAND_TRIES: Final = 4096
"""A heap may hold thousands of free chunks that are 16 bytes too large, and gives those out first."""

_Counts = ctypes.c_uint16 * len(AT_HAND_SIZES)
_Heads = ctypes.c_size_t * 2

_FULL: Final = bytes(_Counts(*[AT_HAND_COUNT] * len(AT_HAND_SIZES)))

FIRST_CHUNK_HEAD: Final = 0x291
"""The size of ``tcache_perthread_struct`` with its chunk's head, 64 counts and 64 pointers, and the bit PREV_INUSE."""


class ChunksAtHand:
    """Keeps as many at hand as malloc will. ``library`` is the C library; ``maps`` lists the process's memory."""

    def __init__(self, library: Any, maps: str = "/proc/self/maps") -> None:
        self._library = library
        self._maps = maps
        self._taken = array("Q", bytes(8 * AT_HAND_TRIES))  # numbers in a list would be blocks of Python's
        self._counts: ctypes.Array[ctypes.c_uint16] | None = None
        self._thread = 0
        self._was_tried = False
        library.malloc.restype = ctypes.c_void_p
        library.malloc.argtypes = [ctypes.c_size_t]
        library.free.argtypes = [ctypes.c_void_p]
        library.malloc_usable_size.restype = ctypes.c_size_t
        library.malloc_usable_size.argtypes = [ctypes.c_void_p]

    @property
    def reads_counts(self) -> bool:
        """Whether malloc's own counts are read in this thread."""
        return self._counts is not None and threading.get_ident() == self._thread

    def fill_up(self) -> None:
        """Have malloc keep as many chunks at hand as it will, of each size it keeps."""
        counts = self._counts
        if counts is None or threading.get_ident() != self._thread:
            for size in AT_HAND_SIZES:
                self._fill(size)
            self._try_counts()
        elif bytes(counts) != _FULL:
            for index, size in enumerate(AT_HAND_SIZES):
                if counts[index] < AT_HAND_COUNT:
                    self._fill(size)

    def _fill(self, size: int) -> None:
        """Fill up one size.

        A free chunk that is a little too large is given out whole. When it is freed it counts for another size, so it
        is held back until enough of the right size were taken.
        """
        malloc, usable_size, taken = self._library.malloc, self._library.malloc_usable_size, self._taken
        missing = AT_HAND_COUNT
        for count in range(AT_HAND_TRIES):
            taken[count] = address = malloc(size)
            missing -= usable_size(address) == size
            if not missing:
                break
        for index in range(count + 1):
            self._library.free(taken[index])

    def _try_counts(self) -> None:
        """Find the counts after a first fill-up; once, and in the main thread, whose heap is the one that is found."""
        if self._was_tried or threading.current_thread() is not threading.main_thread():
            return
        self._was_tried = True
        start = self._heap_start()
        if start and _Heads.from_address(start)[1] == FIRST_CHUNK_HEAD:
            counts = _Counts.from_address(start + ctypes.sizeof(_Heads))
            if bytes(counts) == _FULL and all(self._is_count(counts, index) for index in range(len(counts))):
                self._counts, self._thread = counts, threading.get_ident()

    def _heap_start(self) -> int:
        """Return the address of the heap that ``brk`` grows, or 0."""
        try:
            with SystemCalls.open_file(self._maps, encoding="utf-8", errors="replace") as file:
                heap = next((line for line in file if line.rstrip().endswith("[heap]")), "")
        except OSError:
            return 0
        start, _, rest = heap.partition("-")
        return int(start, 16) if rest.partition(" ")[2].startswith("rw") else 0

    def _is_count(self, counts: ctypes.Array[ctypes.c_uint16], index: int) -> bool:
        """Whether a number goes down as a chunk of its size is taken, and up again as it is freed."""
        address = self._library.malloc(AT_HAND_SIZES[index])
        when_taken = counts[index]
        self._library.free(address)
        return (when_taken, counts[index]) == (AT_HAND_COUNT - 1, AT_HAND_COUNT)
