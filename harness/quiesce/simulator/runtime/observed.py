"""What a ledger observed, in the harness's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    CopyEnqueued,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleCreated,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
    default_stream_of,
)
from quiesce.model.operations import MemoryKind, Slot
from quiesce.simulator.runtime.ledger import Flag, Record, Seen, Thing

_KINDS: Final = {
    Thing.DEVICE: MemoryKind.DEVICE,
    Thing.PINNED: MemoryKind.PINNED,
    Thing.REGISTERED: MemoryKind.PINNED,
    Thing.MANAGED: MemoryKind.MANAGED,
}
_HANDLES: Final = {Thing.STREAM: HandleKind.STREAM, Thing.EVENT: HandleKind.EVENT, Thing.GRAPH_EXEC: HandleKind.GRAPH}


def observations_of(record: Record, names: Mapping[int, Slot]) -> Iterator[Observation]:
    """Yield what a record says. ``names`` maps the serials of streams and events to the slots of a sequence."""
    about = names.get(record.object, f"internal:{record.object}")
    default = default_stream_of(record.device)
    stream = names.get(record.stream, f"internal:{record.stream}") if record.stream else default
    alive = not record.flags & Flag.STREAM_DEAD
    match record.seen:
        case Seen.ALLOCATED if record.thing in _KINDS:
            yield BackingAllocated(record.address, record.size_bytes, _KINDS[record.thing], record.device)
        case Seen.FREED if record.thing in _KINDS:
            yield BackingFreed(record.address, record.size_bytes, _KINDS[record.thing], record.device)
        case Seen.REFUSED if record.thing in _KINDS:
            yield BackingRefused(record.size_bytes, _KINDS[record.thing], record.device)
        case Seen.COPIED:
            yield CopyEnqueued(record.other, record.address, record.size_bytes, stream)
        case Seen.RECORDED:
            yield EventRecorded(about, stream)
        case Seen.STREAM_WAITED:
            yield EventWaited(about, stream, alive)
        case Seen.EVENT_WAITED:
            yield EventWaited(about, None, alive)
        case Seen.EVENT_COMPLETE:
            yield EventCompleted(about)
        case Seen.STREAM_WAITED_FOR | Seen.HOST_WAITED_WORK:
            yield StreamSynchronized(stream)
        case Seen.DEVICE_WAITED_FOR:
            yield DeviceSynchronized(record.device)
        case Seen.CREATED if record.thing in _HANDLES:
            yield HandleCreated(_HANDLES[record.thing], about)
        case Seen.DESTROYED if record.thing in _HANDLES:
            yield HandleDestroyed(_HANDLES[record.thing], about)
        case _:
            pass
