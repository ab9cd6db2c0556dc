"""The reader of a ledger: what a run on the simulated runtime left behind, also where it was killed.

The layout is that of ``native/ledger.h``; a test compares the two. Reading never needs the library.
"""

from __future__ import annotations

import enum
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from quiesce.backend import Flavour
from quiesce.errors import QuiesceError

MAGIC: Final = 0x3152474445535155
LAYOUT: Final = 1
HEADER: Final = struct.Struct("<Q6I12Q")
LIVE: Final = struct.Struct("<5QIHHBB14x")
OBSERVATION: Final = struct.Struct("<BBHIHHI6Q")
NAME_BYTES: Final = 64


class Thing(enum.IntEnum):
    """What can be live."""

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

    @property
    def is_memory(self) -> bool:
        """Whether it is memory, rather than a handle."""
        return Thing.DEVICE <= self <= Thing.REGISTERED


class Seen(enum.IntEnum):
    """What can be observed; ``native/ledger.h`` says which fields each has."""

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


class Flag(enum.IntFlag):
    """What is said beside an observation."""

    STREAM_DEAD = 1
    NONBLOCKING = 2
    ORDERED = 4
    STAGED = 8
    CAPTURED = 16


@dataclass(frozen=True, slots=True)
class LiveThing:
    """Something that was not freed or destroyed. ``size_bytes`` is 0 for a handle.

    ``observation`` counts what was observed before it was made; ``reachable`` says whether its address stood anywhere
    in the memory of the process when that exited.
    """

    serial: int
    thing: Thing
    device: int
    address: int
    size_bytes: int
    function: str
    observation: int
    reachable: bool


@dataclass(frozen=True, slots=True)
class Record:
    """One observation. ``number`` counts all of the run's, from 0."""

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


class Ledger:
    """An opened ledger. Raises :class:`quiesce.errors.QuiesceError` for a file that is none, or of another layout."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as opened:
            try:
                self._data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
                fields = HEADER.unpack_from(self._data, 0)
            except (ValueError, struct.error):
                raise QuiesceError(f"{path}: this is no ledger; it is shorter than one's header") from None
        if fields[0] != MAGIC or fields[1] != LAYOUT:
            self._data.close()
            raise QuiesceError(f"{path}: this is no ledger of layout {LAYOUT}; read it with the quiesce that wrote it")
        _, _, self.process, self.parent, flavour, self.version, self.devices, self.capacity_bytes = fields[:8]
        self.flavour = Flavour.HIP if flavour else Flavour.CUDA
        self._live_offset, _, self._live_high, self._ring_offset, self._ring_entries, self.observations = fields[8:14]
        names_offset, names_count, exited, self.launches, self.live_count = fields[14:19]
        self.exited = bool(exited)
        self._names = [
            self._data[start : start + NAME_BYTES].split(b"\0", 1)[0].decode("utf-8", "replace")
            for start in range(names_offset, names_offset + names_count * NAME_BYTES, NAME_BYTES)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._data.close()

    @property
    def lost(self) -> int:
        """How many observations were overwritten by later ones."""
        return max(0, self.observations - self._ring_entries)

    def live(self) -> Iterator[LiveThing]:
        """Yield what is live, in the order in which it was made."""
        start = self._live_offset + LIVE.size
        data = self._data[start : self._live_offset + self._live_high * LIVE.size]
        for fields in sorted(entry for entry in LIVE.iter_unpack(data) if entry[0]):
            serial, address, size, _, observation, _, device, function, thing, reachable = fields
            yield LiveThing(
                serial, Thing(thing), device, address, size, self._names[function], observation, bool(reachable)
            )

    def records(self) -> Iterator[Record]:
        """Yield the observations that are kept, oldest first."""
        for number in range(self.lost, self.observations):
            place = self._ring_offset + (number % self._ring_entries) * OBSERVATION.size
            fields = OBSERVATION.unpack_from(self._data, place)
            seen, thing, device, thread, function, flags, _, stream, about, address, other, size, reach = fields
            name = self._names[function]
            yield Record(
                number, Seen(seen), Thing(thing), device, thread, name, Flag(flags), stream, about, address, other, size, reach
            )
