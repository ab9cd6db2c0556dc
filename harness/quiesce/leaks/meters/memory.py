"""Memory of the process: Python's blocks, the bytes in use of the C heap, and pages that native code maps itself.

The first two are counted while nothing is traced: that costs microseconds, and equal states then give equal counts.
Traces take blocks of their own, tens of thousands in a round, after which malloc's leftovers alone differ by hundreds
of bytes.

The count of anonymous pages is coarse. It has also those that an allocator keeps at hand, that stacks of threads
touched, or that are holes of malloc and of the interpreter. So growth is told only where it never falls, is large, and
nothing better explains it.

glibc keeps every text that a variable of the environment ever had, for the life of the process (``setenv`` stores each
text that it has not seen in a tree: stdlib/setenv.c). CPython 3.12.1 keeps each text that was ever interned: each part
of a path of :mod:`pathlib`, each name of an attribute; 3.11.7 and 3.13.0 free what nobody holds any more. What a test
with a new ``tmp_path`` in each round leaves in these ways is none of the tested code's.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from quiesce.leaks.meters.at_hand import ChunksAtHand
from quiesce.leaks.quantities import ANONYMOUS, C_HEAP, PYTHON, BaseMeter, Meter, Quantity, Surroundings, Unreadable
from quiesce.leaks.system_calls import SystemCalls


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


class GlibcHeap:
    """The heap of this process. ``absent`` says why it cannot be asked; then nothing else may be called."""

    def __init__(self) -> None:
        self.absent = _why_absent()
        if not self.absent:
            self.library = ctypes.PyDLL(None)
            self.library.mallinfo2.restype = _Mallinfo2
            self.library.malloc_trim.argtypes = [ctypes.c_size_t]

    def in_use_bytes(self) -> int:
        """Return what is in use in every arena and in mappings of their own; what malloc keeps at hand counts."""
        info = self.library.mallinfo2()
        return int(info.uordblks + info.hblkhd)

    def trim(self) -> None:
        """Give the pages back to the system on which nothing is in use."""
        self.library.malloc_trim(0)


def _why_absent() -> str:
    if sys.platform != "linux":
        return f"{platform.system()} does not count it"
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return "this C library has no mallinfo2; glibc has it since 2.33"
    return ""


FLOOR_BYTES: Final = 64 << 10
"""Growth per round that is noise; readings closer to each other than that are the same."""

MAPPED: Final = Quantity(ANONYMOUS, "memory that native code maps itself", floor=FLOOR_BYTES)

FOLDER: Final = "/proc/self"


class AnonymousMemoryMeter(BaseMeter):
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

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Count none on a simulated machine, whose memory is the process's own."""
        return () if surroundings.machine else (cls(),)

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
        _, resident, shared, *_ = SystemCalls.line(f"{self._folder}/statm").split()
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


Text: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

SEEN_BITS: Final = 1 << 20
"""Room to remember which texts were seen. Of a thousand, two share a bit in every other run, and count as one then."""

WORD: Final = 8
CHUNK_MIN: Final = 32
CHUNK_STEP: Final = 16
"""glibc's malloc on 64-bit machines: a word before each chunk, the smallest chunk, and what sizes are a multiple of."""

COMES_AND_GOES: Final = "QUIESCE_COMES_AND_GOES"
TABLE_MIN: Final = 8

NODE_BYTES: Final = 24
"""What a node of the tree asks for: three pointers (misc/tsearch.c)."""


class EnvironmentTexts:
    """Counts the bytes of the C heap that new texts took which Python put into the environment."""

    def __init__(self) -> None:
        self.kept_bytes = 0
        self._seen = bytearray(SEEN_BITS // 8)
        self._put = os.putenv
        self._is_watching = False

    def watch(self) -> None:
        """Begin to count; idempotent."""
        self._is_watching = True
        if os.putenv != self._counting:
            self._put = os.putenv
            os.putenv = self._counting

    def rest(self) -> None:
        """Count no more; idempotent."""
        self._is_watching = False
        if os.putenv == self._counting:
            os.putenv = self._put

    def _counting(self, name: Text, value: Text, /) -> None:
        self._put(name, value)
        if not self._is_watching:
            return  # somebody who took it for the original has put it back
        name, value = os.fsencode(name), os.fsencode(value)
        index, bit = divmod(hash((name, value)) % SEEN_BITS, 8)
        if not self._seen[index] & 1 << bit:
            self._seen[index] |= 1 << bit
            self.kept_bytes += chunk_bytes(len(name) + len(value) + len("=\0")) + chunk_bytes(NODE_BYTES)


def enlarge_table() -> None:
    """Have the table behind ``os.environ`` grow now, as it does once where a variable comes and goes for long enough.

    pytest sets and deletes one in each phase of a test, so the growth would come in the rounds of some test.
    """
    for _ in range(3 * len(os.environ) + TABLE_MIN):
        os.environ[COMES_AND_GOES] = ""
        del os.environ[COMES_AND_GOES]


def chunk_bytes(size_bytes: int) -> int:
    """Return what glibc's malloc takes for a request."""
    return max(CHUNK_MIN, -(-(size_bytes + WORD) // CHUNK_STEP) * CHUNK_STEP)


def _none() -> int:
    return 0


def _count() -> Callable[[], int]:
    """Return what counts them: found out by a text that nobody holds."""
    interned: Callable[[], int] = getattr(sys, "getunicodeinternedsize", _none)
    if not getattr(sys, "getallocatedblocks", _none)():
        return _none  # without pymalloc, as PYTHONMALLOC=malloc has it, no block is counted
    before = interned()
    sys.intern(" ".join((__name__, "is for ever")))
    return interned if interned() > before else _none


immortal_texts: Final[Callable[[], int]] = _count()
"""Return how many texts are interned that will never be freed."""


BLOCKS: Final = Quantity(PYTHON, "Python's memory", "blocks")
HEAP: Final = Quantity(C_HEAP, "the C heap", floor=4)
"""Its floor is an eighth of the smallest chunk of glibc's malloc on 64-bit machines (MINSIZE in malloc.c): a free chunk
that is 16 bytes too large is given out whole, which adds up to less than a chunk in eight rounds."""


class PythonMeter(BaseMeter):
    """Counts blocks by :func:`sys.getallocatedblocks`."""

    family = PYTHON

    def absent(self) -> str:
        """Say so on an interpreter that cannot count its blocks."""
        return "" if hasattr(sys, "getallocatedblocks") else f"{sys.implementation.name} does not count its blocks"

    def read(self) -> Mapping[Quantity, int]:
        """Count; a text that is interned for ever is the interpreter's."""
        return {BLOCKS: sys.getallocatedblocks() - immortal_texts()}

    def origin(self, quantity: Quantity) -> str:
        """Know nothing of where they come from."""
        return "unknown, because the test stops tracemalloc"


class HeapMeter(BaseMeter):
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
            self._at_hand = ChunksAtHand(self._heap.library)

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Leave out what a simulated machine has on the heap itself."""
        return (cls(surroundings.machine.heap_bytes) if surroundings.machine else cls(),)

    def absent(self) -> str:
        """Say why the heap cannot be counted."""
        return self._absent

    def read(self) -> Mapping[Quantity, int]:
        """Count.

        The free chunks that malloc keeps at hand count as in use, so there must be equally many each time. Otherwise a
        small leak lives on them for rounds, and a block seems to leak that is allocated past them and freed to them.
        What the C library keeps of the environment does not count.
        """
        self._environment.watch()
        self._at_hand.fill_up()
        return {HEAP: self._heap.in_use_bytes() - self._environment.kept_bytes - self._not_of_tests()}

    def begin(self) -> None:
        """Watch the environment from before the first round on: what a test puts there is new in its first round."""
        if not self._absent:
            self._environment.watch()

    def rest(self) -> None:
        """Watch the environment no more; idempotent."""
        if not self._absent:
            self._environment.rest()

    def origin(self, quantity: Quantity) -> str:
        """Say that native code has no place that can be seen from here, and what shows more."""
        if importlib.util.find_spec("memray") is None:
            return "native code; install memray, or run the test under heaptrack, to see where"
        return "native code, of which memray names no line; run the test under heaptrack to see where"
