"""Anonymous memory that malloc did not hand out: what libraries with an allocator of their own take from the system.

The figure is coarse. It counts resident pages, also those that an allocator keeps at hand, that stacks of threads
touched, or that are holes of malloc and of the interpreter. So growth is told only where it never falls, is large, and
nothing better explains it.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Final

from quiesce.leaks.glibc_heap import GlibcHeap
from quiesce.leaks.quantities import ANONYMOUS, Quantity, Unreadable
from quiesce.leaks.system_calls import SystemCalls

FLOOR_BYTES: Final = 64 << 10
"""Growth per round that is noise; readings closer to each other than that are the same."""

MAPPED: Final = Quantity(ANONYMOUS, "memory that native code maps itself", floor=FLOOR_BYTES)

FOLDER: Final = "/proc/self"


class AnonymousMemoryMeter:
    """Reads Linux's count of anonymous pages, less the bytes in use of glibc's heap.

    ``statm`` costs microseconds, but proc(5) calls it inaccurate; ``smaps_rollup`` is exact, and walks over all pages.
    So that is read only where the first has moved.
    """

    family = ANONYMOUS

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._heap = GlibcHeap()
        self._is_watched = False
        self._quick_bytes = -FLOOR_BYTES
        self._value = 0

    def absent(self) -> str:
        """Say why it cannot be counted: without malloc's own count nobody knows what it handed out."""
        return self._heap.absent

    def settle(self) -> None:
        """Have malloc give back its free pages, where the figure moved: for all tests that would take too long."""
        if self._is_watched:
            self._heap.trim()

    def read(self) -> Mapping[Quantity, int]:
        """Count. Raises :class:`Unreadable` where the system does not say."""
        try:
            quick_bytes = self._resident_pages() * mmap.PAGESIZE
            if abs(quick_bytes - self._quick_bytes) >= FLOOR_BYTES:
                self._value = self._anonymous_bytes() - self._heap.in_use_bytes()
                self._quick_bytes = quick_bytes
        except OSError as error:
            raise Unreadable(f"{self._folder} cannot be read: {error.strerror}") from None
        return {MAPPED: self._value}

    def _resident_pages(self) -> int:
        """Return how many pages are resident that belong to no file."""
        with SystemCalls.open_file(f"{self._folder}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
        return int(resident) - int(shared)

    def _anonymous_bytes(self) -> int:
        with SystemCalls.open_file(f"{self._folder}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Anonymous:"):
                    return int(line.split()[1]) << 10
        raise Unreadable(f"{self._folder}/smaps_rollup has no line 'Anonymous:'")

    def observe(self) -> None:
        """From now on have malloc give back its free pages before each reading."""
        self._is_watched = True

    def rest(self) -> None:
        """Do so no more; idempotent."""
        self._is_watched = False

    def origin(self, quantity: Quantity) -> str:
        """Say that native code has no place that can be seen from here."""
        return "native code with an allocator of its own, or a mapping without munmap; see memray --native"

    def evidence(self, quantity: Quantity) -> str:
        """Say what the figure is worth."""
        return "resident anonymous pages of the process, less the C heap"
