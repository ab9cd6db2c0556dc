"""The reader of a ledger, which a run on the simulated runtime leaves, also if it was killed.

The layout is that of ``native/ledger/ledger.h``; a test compares the two. Reading never needs the library.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import itertools
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from quiesce.model.errors import QuiesceError
from quiesce.model.outcomes import Flavour
from quiesce.simulator.runtime.flavours import KNOWN, Simulated
from quiesce.simulator.runtime.run_folder import DamagedFile, refusing_damage

MAGIC: Final = 0x3152474445535155
LAYOUT: Final = 14
HEADER: Final = struct.Struct("<Q6I20Q")
COUNTED: Final = struct.Struct("<2Q")
CALL_KINDS: Final = (
    "device",
    "pinned",
    "managed",
    "stream",
    "event",
    "graph",
    "copy",
    "launch",
    "synchronize",
    "memory",
)
"""Kinds of calls that can be made to fail, in the order of ``native/ledger/call_kinds.h``."""
LIVE: Final = struct.Struct("<5QIHHBBBxI8x")
_WITHOUT_ADDRESS: Final = struct.Struct("<Q8x3QIHHBBBxI8x")
OBSERVATION: Final = struct.Struct("<BBHIHHI6Q")
_NO_LINE: Final = (1 << 64) - 1
KEPT_NUMBER: Final = struct.Struct("<Q")
_KEPT: Final = struct.Struct("<QBBHIHHI6Q")
_READ_AT_ONCE: Final = 4096
"""So many records are copied from a ledger together, and as many from the file beside it."""
NAME_BYTES: Final = 64
NAMES_MAX: Final = 1024


class Thing(enum.IntEnum):
    """What can be live."""

    __hash__ = int.__hash__  # that of enum takes longer than to judge what it is asked for

    NONE = 0
    DEVICE = 1
    PINNED = 2
    MANAGED = 3
    REGISTERED = 4
    STREAM = 5
    EVENT = 6
    GRAPH = 7
    GRAPH_EXEC = 8
    POOL = 9
    MODULE = 10
    TEXTURE = 11
    PHYSICAL = 12
    RESERVATION = 13
    LINKER = 14
    USER_OBJECT = 15
    BLAS_HANDLE = 16
    SPARSE_HANDLE = 17
    SOLVER_HANDLE = 18
    FFT_PLAN = 19
    GENERATOR = 20
    DNN_HANDLE = 21
    COMMUNICATOR = 22
    CONTEXT = 23
    HEAP = 24  # memory that a kernel allocated with malloc
    IMPORTED = 25  # memory of another process that was opened

    @property
    def is_memory(self) -> bool:
        """Whether it is memory, rather than a handle."""
        return Thing.DEVICE <= self <= Thing.REGISTERED or self in (Thing.PHYSICAL, Thing.HEAP, Thing.IMPORTED)


OF_LIBRARIES: Final = tuple(each for each in Thing if Thing.BLAS_HANDLE <= each <= Thing.COMMUNICATOR)
"""Handles of cuBLAS, cuSPARSE, cuSOLVER, cuFFT, cuRAND, cuDNN, NCCL and ROCm's libraries."""


class Seen(enum.IntEnum):
    """What can be observed; ``native/ledger/ledger.h`` says which fields each has."""

    __hash__ = int.__hash__

    NOTHING = 0
    ALLOCATED = 1
    FREED = 2
    REFUSED = 3
    READ = 4
    WRITTEN = 5
    COPIED = 6
    LAUNCHED = 7
    RECORDED = 8
    STREAM_WAITED = 9
    EVENT_WAITED = 10
    EVENT_COMPLETE = 11
    STREAM_COMPLETE = 12
    STREAM_WAITED_FOR = 13
    DEVICE_WAITED_FOR = 14
    CREATED = 15
    DESTROYED = 16
    HOST_WAITED_WORK = 17
    FREED_TWICE = 18
    FREED_FOREIGN = 19
    USED_AFTER_FREE = 20
    OUT_OF_BOUNDS = 21
    DAMAGED = 22
    NOT_SIMULATED = 23
    STAGED_AGAIN = 24
    MARK = 25
    DEAD_HANDLE = 26
    CONTEXT_BROKEN = 27
    STREAM_WAITED_VALUE = 28
    KERNEL_OUT_OF_BOUNDS = 29
    KERNEL_USED_FREED = 30
    KERNEL_MISALIGNED = 31
    KERNEL_READ_UNWRITTEN = 32
    KERNEL_OUTSIDE_SHARED = 33
    KERNEL_OUTSIDE_LOCAL = 34
    KERNEL_NO_MEMORY = 35
    KERNEL_OTHER_DEVICE = 36
    KERNEL_READ_ONLY = 37
    KERNEL_RACE_IN_SHARED = 38
    KERNEL_WAITS_FOR_EVER = 39
    KERNEL_NO_TEXTURE = 40
    KERNEL_OUTSIDE_SURFACE = 41
    KERNEL_DEPENDS_ON_ORDER = 42
    KERNEL_RACE_IN_WARP = 43
    KERNEL_USED_UNCOPIED = 44
    KERNEL_OUTSIDE_HEAP = 45
    KERNEL_FREED_IN_HEAP = 46
    KERNEL_OTHERS_LOCAL = 47
    KERNEL_BARRIERS_DIFFER = 48
    KERNEL_RACE_OF_BLOCKS = 49
    KERNEL_MEMORY_RACE_IN_BLOCK = 50
    KERNEL_MEMORY_RACE_IN_WARP = 51
    KERNEL_OUTSIDE_ARRAY = 52
    KERNEL_SHUFFLES_ABSENT = 53
    KERNEL_SHARED_UNWRITTEN = 54
    KERNEL_WARP_LEFT = 55
    COPIED_UNWRITTEN = 56
    COPY_MISDIRECTED = 57
    KERNEL_FREED_TWICE = 58
    KERNEL_FREED_FOREIGN = 59
    KERNEL_STACK_OVERFLOW = 60
    KERNEL_LOOKS_FOR_EVER = 61
    HOST_READ = 62
    HOST_WROTE = 63
    HOST_UNSEEN = 64
    EXPORTED = 65
    FREED_WHILE_OPEN = 66
    IMPORTED = 67
    TICK = 68
    EXPORTER_FREED = 69
    BRANCH_BEGAN = 70
    NODE_RAN = 71


OF_KERNELS: Final = frozenset(each for each in Seen if each.name.startswith("KERNEL_"))
"""What is wrong with an access of a kernel."""


class Reach(enum.IntEnum):
    """Whether somebody could still give a thing back when its process was searched; ``native/reach/reach.h``."""

    LOST = 0
    """Its address stands nowhere that counts."""
    INDIRECTLY_LOST = 1
    """Its address stands only in memory that is in use and is lost itself."""
    UNKNOWN = 2
    """Its address stands only in memory of an allocator that is not known: nobody can say whether that is in use."""
    HELD = 3


class Flag(enum.IntFlag):
    """What is said beside an observation."""

    __and__ = int.__and__  # type: ignore[assignment]

    STREAM_DEAD = 1
    NONBLOCKING = 2
    ORDERED = 4
    STAGED = 8
    CAPTURED = 16
    INJECTED = 32
    WRITES = 64
    OF_NULL = 128
    PARTLY = 256
    STRICT = 512
    OF_GRAPH = 1024


class Full(enum.IntFlag):
    """Files of a process for which there was no room on the disk; what they should have is missing."""

    LEDGER = 1
    """What came after the moment in which it found no room is not in it."""
    STACKS = 2
    TOUCHED = 4
    FAILED = 8
    ACCESSES = 16
    OTHERS = 32


_SEEN: Final = tuple(Seen)
_THINGS: Final = tuple(Thing)
_flag: Final = functools.cache(Flag)


@dataclass(frozen=True, slots=True)
class LiveThing:
    """Something that was not freed or destroyed. ``size_bytes`` is 0 for a handle.

    ``number`` is that of the record that made it; ``reach`` says whether its address stood in the memory
    of the process when that was searched, at its exit at the latest; ``stack`` is a number in the log of call stacks
    beside the ledger, 0 where none was kept. ``line`` is that of the log of accesses which says what kernel allocated
    it (:mod:`quiesce.simulator.runtime.kernel_logs`), where one did.
    """

    serial: int
    thing: Thing
    device: int
    address: int
    size_bytes: int
    function: str
    number: int
    reach: Reach
    stack: int = 0
    line: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether nobody could give it back any more."""
        return self.reach <= Reach.INDIRECTLY_LOST

    @property
    def is_primary_context(self) -> bool:
        """Whether it is the context that a device has by itself, whose handle is the device's number and one."""
        return self.thing is Thing.CONTEXT and self.address == self.device + 1


class Record(NamedTuple):
    """One observation. ``number`` counts all of the run's, from 0; ``ledger/ledger.h`` says which fields each has."""

    number: int
    seen: Seen
    thing: Thing
    device: int
    thread: int
    function: str
    flags: Flag
    stream: int
    object: int
    address: int
    other: int
    size_bytes: int
    other_bytes: int
    stack: int = 0


class Header(NamedTuple):
    """The fields of ``struct ledger_header``, in its order."""

    magic: int
    layout: int
    process: int
    parent: int
    flavour: int
    version: int
    devices: int
    capacity_bytes: int
    live_offset: int
    live_entries: int
    live_high: int
    ring_offset: int
    ring_entries: int
    ring_count: int
    names_offset: int
    names_count: int
    exited: int
    launches: int
    made: int
    kept_offset: int
    kept_entries: int
    kept_count: int
    computed: int
    checked: int
    saved: int
    lost: int
    full: int


class Ledger:
    """A ledger in ``data``, a file's or the memory of a running machine, which is read again at every call.

    ``saved`` is the file beside it, for what its ring had no more room for.

    Raises :class:`QuiesceError` for data that is no ledger, or one of another layout.
    """

    def __init__(self, data: mmap.mmap | memoryview, name: str = "the ledger", saved: Path | None = None) -> None:
        self._data = data
        self._file = name
        self._saved = saved
        if len(data) < HEADER.size:
            raise QuiesceError(f"{name}: this is no ledger; it is shorter than one's header")
        header = self._header()
        if (header.magic, header.layout) != (MAGIC, LAYOUT):
            raise QuiesceError(f"{name}: this is no ledger of layout {LAYOUT}; read it with the quiesce that wrote it")
        self.process, self.parent = header.process, header.parent
        self.flavour = Flavour.HIP if header.flavour else Flavour.CUDA
        self.version, self.devices, self.capacity_bytes = header.version, header.devices, header.capacity_bytes
        self._live_offset, self._names_offset = header.live_offset, header.names_offset
        self._ring_offset, self._ring_entries = header.ring_offset, header.ring_entries
        self._kept_offset, self._kept_entries = header.kept_offset, header.kept_entries
        self._names = [""]
        self._require_room()

    def _require_room(self) -> None:
        """Raise :class:`QuiesceError` where a part of it lies outside, as of a file that was cut off."""
        counted = HEADER.size + COUNTED.size * (len(Thing) + len(CALL_KINDS))
        header = self._header()
        live = self._live_offset + header.live_entries * LIVE.size
        ring = self._ring_offset + self._ring_entries * OBSERVATION.size
        kept = self._kept_offset + self._kept_entries * (KEPT_NUMBER.size + OBSERVATION.size)
        names = self._names_offset + NAMES_MAX * NAME_BYTES
        is_known = Simulated(self.flavour, self.version) in KNOWN
        if (
            not is_known
            or max(counted, live, ring, kept, names) > len(self._data)
            or header.live_high > header.live_entries
            or not self._ring_entries
        ):
            raise DamagedFile(self._file)

    def _header(self) -> Header:
        return Header._make(HEADER.unpack_from(self._data))

    @property
    def observations(self) -> int:
        """How many observations were made, also those that were overwritten."""
        return self._header().ring_count

    @property
    def exited(self) -> bool:
        """Whether the process ran its exit handlers."""
        return bool(self._header().exited)

    @property
    def launches(self) -> int:
        """How many kernels were launched."""
        return self._header().launches

    @property
    def computed(self) -> int:
        """How many of the launches were of kernels that compute."""
        return self._header().computed

    @property
    def checked(self) -> int:
        """How many of these were of kernels whose accesses are judged."""
        return self._header().checked

    @property
    def made(self) -> int:
        """How many things were ever made, which is the serial of the last."""
        return self._header().made

    @property
    def overwritten(self) -> int:
        """How many observations, the first, are not in the ring any more: saved or lost."""
        return self._header().saved

    @property
    def full(self) -> Full:
        """For which files of the process there was no room on the disk."""
        return Full(self._header().full)

    @property
    def lost(self) -> int:
        """How many observations, the first, are not kept at all."""
        return self._header().saved if self._saved is None else self._header().lost

    def counted(self, *things: Thing) -> tuple[int, int]:
        """Return how many of ``things`` are live, and their bytes."""
        pairs = [COUNTED.unpack_from(self._data, HEADER.size + COUNTED.size * thing) for thing in things]
        return sum(count for count, _ in pairs), sum(size for _, size in pairs)

    def met(self, kind: str) -> tuple[int, int]:
        """Return how many calls of a kind of :data:`CALL_KINDS` were made, and how many of them the run let fail."""
        place = HEADER.size + COUNTED.size * (len(Thing) + CALL_KINDS.index(kind))
        calls, failed = COUNTED.unpack_from(self._data, place)
        return calls, failed

    def _name(self, number: int) -> str:
        if number >= NAMES_MAX:
            raise DamagedFile(self._file)
        while number >= len(self._names):
            start = self._names_offset + len(self._names) * NAME_BYTES
            text = bytes(self._data[start : start + NAME_BYTES]).split(b"\0", 1)[0]
            self._names.append(text.decode("utf-8", "replace"))
        return self._names[number]

    def live(self) -> Iterator[LiveThing]:
        """Yield what is live, in the order in which it was made; what is part of another thing is not told apart."""
        start, end = (self._live_offset + count * LIVE.size for count in (1, self._header().live_high))
        for fields in sorted(entry for entry in LIVE.iter_unpack(self._data[start:end]) if entry[0]):
            serial, address, size, stream, observation, _, device, function, thing, reach, part, stack = fields
            if part:
                continue
            name = self._name(function)
            line = stream if thing == Thing.HEAP and stream != _NO_LINE else None
            with refusing_damage(self._file):
                kind, reached = Thing(thing), Reach(reach)
            yield LiveThing(serial, kind, device, address, size, name, observation, reached, stack, line)

    def made_since(self, serial: int) -> Iterator[LiveThing]:
        """Yield what is live and was made after a serial, in no order and without addresses.

        A process that reads its own ledger must hold none: it would look like an owner of the memory there.
        """
        start, end = (self._live_offset + count * LIVE.size for count in (1, self._header().live_high))
        for fields in _WITHOUT_ADDRESS.iter_unpack(self._data[start:end]):
            if fields[0] > serial and not fields[9]:
                made, size, _, observation, _, device, function, thing, reach, _, stack = fields
                name = self._name(function)
                yield LiveThing(made, Thing(thing), device, 0, size, name, observation, Reach(reach), stack)

    def records(self, first: int = 0) -> Iterator[Record]:
        """Yield the observations that are kept, oldest first, from the one with the number ``first``.

        Those that the ring has overwritten come from the file beside the ledger. Where they were lost, what the program
        did wrong is kept apart.
        """
        lost, count = self.lost, self.observations
        if count - self.overwritten > self._ring_entries:  # which was read later, and only grows
            raise DamagedFile(self._file)
        for place in range(min(self._kept_entries, self._header().kept_count)):
            start = self._kept_offset + place * (KEPT_NUMBER.size + OBSERVATION.size)
            (number,) = KEPT_NUMBER.unpack_from(self._data, start)
            if first <= number < lost:
                yield self._record_at(number, start + KEPT_NUMBER.size)
        number = max(first, lost)
        while number < self.observations:
            fields = self._from_ring(number)
            if self.overwritten <= number:  # also after they were copied
                yield from map(self._record, itertools.count(number), fields)
                number += len(fields)
            else:
                end = self.overwritten
                yield from (self._record(each, rest) for each, *rest in self._from_file(number) if each < end)
                number = end

    def _from_ring(self, number: int) -> list[tuple[int, ...]]:
        """Return some observations from a number on, as long as they are side by side."""
        place = number % self._ring_entries
        length = min(_READ_AT_ONCE, self.observations - number, self._ring_entries - place)
        start = self._ring_offset + place * OBSERVATION.size
        return [*OBSERVATION.iter_unpack(bytes(self._data[start : start + length * OBSERVATION.size]))]

    def _from_file(self, first: int) -> Iterator[tuple[int, ...]]:
        """Yield observations that were saved, from the one with the number ``first``."""
        if self._saved is None:
            return
        with self._saved.open("rb") as opened:
            low, high = 0, opened.seek(0, os.SEEK_END) // _KEPT.size
            while low < high:
                middle = (low + high) // 2
                opened.seek(middle * _KEPT.size)
                (number,) = KEPT_NUMBER.unpack(opened.read(KEPT_NUMBER.size))
                low, high = (middle + 1, high) if number < first else (low, middle)
            opened.seek(low * _KEPT.size)
            while content := opened.read(_READ_AT_ONCE * _KEPT.size):
                yield from _KEPT.iter_unpack(content[: len(content) // _KEPT.size * _KEPT.size])

    def record(self, number: int) -> Record:
        """Return one observation of those in the ring."""
        return self._record_at(number, self._ring_offset + (number % self._ring_entries) * OBSERVATION.size)

    def _record_at(self, number: int, place: int) -> Record:
        return self._record(number, OBSERVATION.unpack_from(self._data, place))

    def _record(self, number: int, fields: Sequence[int]) -> Record:
        seen, thing, device, thread, function, flags, stack, stream, about, address, other, size, reach = fields
        if seen >= len(_SEEN) or thing >= len(_THINGS):
            raise DamagedFile(self._file)
        return Record(
            number,
            _SEEN[seen],
            _THINGS[thing],
            device,
            thread,
            self._names[function] if function < len(self._names) else self._name(function),
            _flag(flags),
            stream,
            about,
            address,
            other,
            size,
            reach,
            stack,
        )

    def numbers_of(self, seen: Seen) -> Iterator[int]:
        """Yield the numbers of the observations of one kind that are in the ring; far faster than reading each."""
        lost, count = self.overwritten, self.observations - self.overwritten
        with memoryview(self._data) as whole, whole[self._ring_offset :] as ring, ring[:: OBSERVATION.size] as first:
            kinds = bytes(first[:count])
        kinds = kinds[lost % self._ring_entries :] + kinds[: lost % self._ring_entries]
        place = kinds.find(seen)
        while place >= 0:
            yield lost + place
            place = kinds.find(seen, place + 1)


def mapped_ledger(library: ctypes.CDLL) -> Ledger | None:
    """Return the ledger of the machine that runs in this process, which lives as long as the machine; None without one.

    ``library`` is the simulated runtime.
    """
    library.quiesce_ledger.restype = ctypes.c_void_p
    address = library.quiesce_ledger()
    if not address:
        return None
    header = Header._make(HEADER.unpack_from(ctypes.string_at(address, HEADER.size)))
    length = header.ring_offset + header.ring_entries * OBSERVATION.size
    return Ledger(memoryview((ctypes.c_char * length).from_address(address)).cast("B"))


def was_begun(path: Path) -> bool:
    """Say whether a file that is mapped has its header: the magic number, which comes first, is written last."""
    with path.open("rb") as opened:
        return any(opened.read(8))


@contextmanager
def open_ledger(path: Path) -> Iterator[Ledger]:
    """Open the ledger in a file. Raises :class:`QuiesceError` where it is none."""
    with path.open("rb") as opened:
        try:
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise QuiesceError(f"{path}: this is no ledger; it is empty") from None
    with data:
        yield Ledger(data, str(path), path.with_suffix(".saved"))
