"""What a generated sequence owns: streams, blocks, events, captures and the rest, as plain data.

And the order between streams that a sequence has asked for, point by point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from quiesce.model.operations import CaptureMode, MemoryKind, Slot


@dataclass(slots=True, eq=False)
class Stream:
    """A stream: how many points of its order have passed, and which points of others it comes behind."""

    slot: Slot | None
    device: int
    nonblocking: bool = False
    alive: bool = True
    passed: int = 0
    behind: Clock = field(default_factory=dict)
    stalled: bool = False
    capture: Capture | None = None


Clock: TypeAlias = dict[Stream, int]
"""Up to which point of each stream something comes behind."""


@dataclass(slots=True, eq=False)
class Block:
    """A block: allocated at the point ``made_at`` of its stream; ``uses`` is its last use on each stream."""

    slot: Slot
    size_bytes: int
    kind: MemoryKind
    stream: Stream
    made_at: int
    pool: Pool | None
    device: int
    uses: Clock = field(default_factory=dict)
    alive: bool = True
    capture: Capture | None = None
    """The capture that its stream took part in."""
    is_of_graph: bool = False
    """Whether the same capture freed it, and its memory stays the graph's."""


@dataclass(slots=True, eq=False)
class Pool:
    """A pool of the sequence's own."""

    slot: Slot
    device: int
    limit_bytes: int | None
    blocks: int = 0


@dataclass(slots=True, eq=False)
class Event:
    """An event; ``clock`` is what its last record stands for, None where that was in a capture."""

    slot: Slot
    device: int
    clock: Clock | None = field(default_factory=dict)
    capture: Capture | None = None
    recorded_on: Stream | None = None


@dataclass(slots=True, eq=False)
class Capture:
    """A capture in progress. It is ``spoiled`` once a call was made that it forbids."""

    origin: Stream
    mode: CaptureMode
    members: list[Stream]
    unjoined: list[Stream] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    spoiled: bool = False
    over: bool = False


@dataclass(slots=True, eq=False)
class Graph:
    """A captured graph and the blocks that running it uses."""

    slot: Slot
    device: int
    blocks: tuple[Block, ...]


@dataclass(slots=True, eq=False)
class Instance:
    """An execution-space instance; one that owns its stream takes it along."""

    slot: Slot
    stream: Stream
    owned: bool


@dataclass(slots=True, eq=False)
class Node:
    """A node of the autodiff tape that the sequence holds."""

    slot: Slot
    holds: int = 1


class Order:
    """All streams of one context; ``legacy`` is whether the default stream and blocking ones wait for each other."""

    def __init__(self, devices: int, *, legacy: bool) -> None:
        self.defaults = tuple(Stream(None, device) for device in range(devices))
        self.streams: list[Stream] = list(self.defaults)
        self.known: Clock = {}
        """What the host has waited for."""
        self._legacy = legacy

    def add(self, stream: Stream) -> Stream:
        """Enter a stream."""
        self.streams.append(stream)
        return stream

    def advance(self, stream: Stream) -> int:
        """Pass a point of the stream and return its number."""
        stream.passed += 1
        return stream.passed

    def snapshot(self, stream: Stream) -> Clock:
        """Return what an event recorded on the stream now stands for."""
        return {**stream.behind, stream: stream.passed}

    def join(self, stream: Stream, clock: Clock) -> None:
        """Put later points of the stream behind ``clock``."""
        raise_to(stream.behind, clock)

    def complete(self, clock: Clock) -> None:
        """Note that the host has waited for ``clock``."""
        raise_to(self.known, clock)

    def complete_device(self, device: int) -> None:
        """Note that the host has waited for everything on a device, and for all that this waits for."""
        for stream in self.streams:
            if stream.device == device:
                raise_to(self.known, stream.behind)
                self.known[stream] = stream.passed

    def is_behind(self, stream: Stream | None, other: Stream, point: int, *, implicitly: bool) -> bool:
        """Whether later points of ``stream`` (None: the host) come behind ``point`` of ``other``.

        ``implicitly`` is whether the legacy default stream's order counts. It holds for work, not for a free, and it
        is never followed from stream to stream: work in between may be skipped because an allocation failed.
        """
        if stream is other or point <= self.known.get(other, 0):
            return True
        if stream is None:
            return False
        if point <= stream.behind.get(other, 0):
            return True
        if not (implicitly and self._legacy and other.alive) or stream.nonblocking or other.nonblocking:
            return False
        default = self.defaults[stream.device]
        return stream.device == other.device and default in (stream, other)

    def are_behind(self, stream: Stream | None, clock: Clock) -> bool:
        """Whether later points of ``stream`` (None: the host) come behind everything in ``clock`` without its help."""
        return all(self.is_behind(stream, other, point, implicitly=False) for other, point in clock.items())


def raise_to(clock: Clock, other: Clock) -> None:
    """Raise ``clock`` to ``other`` wherever that is further on."""
    for stream, point in other.items():
        if point > clock.get(stream, 0):
            clock[stream] = point
