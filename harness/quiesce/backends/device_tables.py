"""Streams, events and blocks by slot, and the gates that hold them back: the bookkeeping of backends on real devices.

A stall is a gate that later work of a stream waits before. Every stream carries the closed gates that its work waits
for, handed on along each edge from stream to stream; whoever waits for a stream opens exactly those first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE


class Refused(Exception):
    """The sequence asked for something that is refused with ``code`` before the device's library is touched."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Gate(Protocol):
    """What a stalled stream waits before."""

    @property
    def closed(self) -> bool:
        """Whether work still waits here."""

    def open(self) -> None:
        """Let the work pass; opening twice is harmless."""


GateT = TypeVar("GateT", bound=Gate)


@dataclass(slots=True, eq=False)
class GatedStream(Generic[GateT]):
    """One stream; ``handle`` is the library's object, or None once it is destroyed."""

    name: str
    handle: Any
    gates: set[GateT] = field(default_factory=set, kw_only=True)
    stalls: list[GateT] = field(default_factory=list, kw_only=True)

    def require(self) -> Any:
        """Return the library's object. Raises :class:`Refused` where the stream was destroyed."""
        if self.handle is None:
            raise Refused(INVALID_HANDLE)
        return self.handle

    def pending(self) -> frozenset[GateT]:
        """Return the closed gates that work enqueued so far waits for."""
        self.gates = {gate for gate in self.gates if gate.closed}
        return frozenset(self.gates)


@dataclass(slots=True, eq=False)
class GatedEvent(Generic[GateT]):
    """One event; ``handle`` is the library's object, and ``gates`` are those that its last record waits for."""

    handle: Any
    gates: frozenset[GateT] = field(default=frozenset(), kw_only=True)

    def pending(self) -> frozenset[GateT]:
        """Return the closed gates that the last record waits for."""
        return frozenset(gate for gate in self.gates if gate.closed)


StreamT = TypeVar("StreamT", bound=GatedStream[Any])
EventT = TypeVar("EventT", bound=GatedEvent[Any])


class StreamTable(Generic[StreamT, EventT, GateT]):
    """All streams and events that a sequence made. A slot that names a destroyed one holds it, dead, or None."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamT] = {}
        self._events: dict[str, EventT | None] = {}
        self._closed_gates: set[GateT] = set()

    def _find(self, slot: str) -> StreamT:
        if slot not in self._streams:
            raise Refused(INVALID_VALUE)
        self._streams[slot].require()
        return self._streams[slot]

    def find_event(self, slot: str) -> EventT:
        """Return a living event. Raises :class:`Refused`."""
        if slot not in self._events:
            raise Refused(INVALID_VALUE)
        event = self._events[slot]
        if event is None:
            raise Refused(INVALID_HANDLE)
        return event

    def _add(self, slot: str, make: Callable[[], StreamT]) -> StreamT:
        """Enter a new stream; a slot that names a living one is refused."""
        if slot in self._streams and self._streams[slot].handle is not None:
            raise Refused(INVALID_VALUE)
        self._streams[slot] = make()
        return self._streams[slot]

    def _add_event(self, slot: str, make: Callable[[], EventT]) -> None:
        """Enter a new event; a slot that names a living one is refused."""
        if self._events.get(slot) is not None:
            raise Refused(INVALID_VALUE)
        self._events[slot] = make()

    def destroy_event(self, slot: str) -> None:
        """Drop an event; waits that were enqueued for it hold on."""
        self.find_event(slot)
        self._events[slot] = None

    def _hold(self, stream: StreamT, gate: GateT) -> None:
        """Note that later work of ``stream`` waits before a new gate."""
        self._closed_gates.add(gate)
        stream.gates.add(gate)
        stream.stalls.append(gate)

    def release(self, stream: StreamT) -> None:
        """End every stall of ``stream``."""
        self._open(stream.stalls)
        stream.stalls.clear()

    def _open(self, gates: Iterable[GateT]) -> None:
        for gate in tuple(gates):
            gate.open()
            self._closed_gates.discard(gate)


class SizedBlock(Protocol):
    """A block of any kind of memory."""

    size_bytes: int


BlockT = TypeVar("BlockT", bound=SizedBlock)


class BlockTable(Generic[BlockT]):
    """The living blocks of a sequence."""

    def __init__(self) -> None:
        self._blocks: dict[str, BlockT] = {}

    def find(self, slot: str) -> BlockT:
        """Return a living block. Raises :class:`Refused` for an unknown or freed one."""
        if slot not in self._blocks:
            raise Refused(INVALID_VALUE)
        return self._blocks[slot]

    def _require_unused(self, slot: str) -> None:
        if slot in self._blocks:
            raise Refused(INVALID_VALUE)

    def _ends_of_copy(self, source: str, destination: str, size_bytes: int | None) -> tuple[BlockT, BlockT, int]:
        """Return both blocks and how many bytes to copy. Raises :class:`Refused` for more than both have."""
        reader, writer = self.find(source), self.find(destination)
        smaller_bytes = min(reader.size_bytes, writer.size_bytes)
        if size_bytes is not None and size_bytes > smaller_bytes:
            raise Refused(INVALID_VALUE)
        return reader, writer, smaller_bytes if size_bytes is None else size_bytes


def pageable_array(size_bytes: int, alignment_bytes: int) -> tuple[Any, int]:
    """Return a NumPy array of bytes and its aligned address, which NumPy does not tell of an empty one.

    Raises :class:`MemoryError` where there is no memory.
    """
    import numpy

    try:
        room = numpy.empty(size_bytes + alignment_bytes, numpy.uint8)
    except (ValueError, OverflowError) as error:  # beyond the largest array
        raise MemoryError(size_bytes) from error
    start = int(room.ctypes.data)
    padding_bytes = -start % alignment_bytes
    return room[padding_bytes : padding_bytes + size_bytes], start + padding_bytes
