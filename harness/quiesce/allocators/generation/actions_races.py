"""Actions for races: memory in use comes into other hands. Where no order is reported, only answers prove one."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from quiesce.allocators.generation.actions_exhaustion import whole_bytes
from quiesce.allocators.generation.actions_memory import (
    ALIGNMENTS,
    TOUCHED_BYTES_MAX,
    UNIT_BYTES,
    a_pool,
    allocate_block,
    create_stream,
    free_on,
    some_streams,
    stream_beside_default,
    work_on,
)
from quiesce.allocators.generation.things import Block, Stream
from quiesce.allocators.generation.writer import STREAMS_MAX, Writer
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import MemoryKind


class _Way(Enum):
    """How memory that a stalled stream uses comes into other hands."""

    ASKED_FOR = auto()
    TRIMMED = auto()
    LACKING = auto()
    """A request for more than is left has the library give back what it has."""
    JOINED = auto()
    """One of several neighbours is in use, and all of them are asked for as one."""
    FREED_ELSEWHERE = auto()
    """The stalled stream freed it, which did not allocate it."""
    USED_BY_ALL = auto()


_WAYS: Final = (
    _Way.ASKED_FOR,
    _Way.TRIMMED,
    _Way.ASKED_FOR,
    _Way.LACKING,
    _Way.JOINED,
    _Way.JOINED,
    _Way.FREED_ELSEWHERE,
    _Way.USED_BY_ALL,
)
_OF_PINNED_TOO: Final = (_Way.ASKED_FOR, _Way.TRIMMED, _Way.LACKING)
_NOT_AT_HOME: Final = (_Way.FREED_ELSEWHERE, _Way.USED_BY_ALL)


def hand_over(writer: Writer, a: int, b: int, c: int) -> None:
    """Free memory with work on a stalled stream, let it come into other hands, and ask who is done."""
    streams = some_streams(writer, 3, b)
    if len(set(streams)) < 3:
        return
    for stream in streams:
        writer.write(ops.SynchronizeStream(stream.slot))
    stalled, other, third = streams
    way = _WAYS[c >> 5]
    pinned = way in _OF_PINNED_TOO and c & 3 == 3 and writer.can(Capability.PINNED, Capability.COPY)
    kind = MemoryKind.PINNED if pinned else MemoryKind.DEVICE
    owner = other if c & 4 or way in _NOT_AT_HOME else stalled
    size = writer.size(a)
    owners, place = [owner], 0
    if way is _Way.JOINED:
        size = -(-size // UNIT_BYTES) * UNIT_BYTES
        owners = [other, third][: 1 + (c & 1)]
        owners.insert(place := (b >> 4) % (len(owners) + 1), owner)
    blocks = [allocate_block(writer, size, each, kind=kind) for each in owners]
    busy = blocks[place]
    others = [owner, third] if way is _Way.USED_BY_ALL else [owner]
    _keep_busy(writer, blocks, busy, stalled, others, (c & 1) + (c >> 4 & 1))
    is_freed_by_user = way is _Way.FREED_ELSEWHERE or (way is _Way.JOINED and c & 16)
    for block in blocks:
        free_on(writer, block, stalled if block is busy and is_freed_by_user else None)
    if way is _Way.TRIMMED and writer.can(Capability.POOL, Capability.BACKING_LEDGER):
        writer.write(ops.Trim(kind))
    else:
        _ask(writer, _size_bytes(writer, way, kind, size, c), third if c & 8 else other, kind)
    writer.write(ops.QueryStream(stalled.slot))


class _Origin(Enum):
    """Where a block comes from that is not simply allocated from the default pool."""

    STAGED = auto()
    MANAGED = auto()
    POOL = auto()
    ALIGNED = auto()


_NEEDS: Final = {
    _Origin.STAGED: (Capability.STAGING, Capability.PINNED),
    _Origin.MANAGED: (Capability.MANAGED,),
    _Origin.POOL: (Capability.POOLS,),
    _Origin.ALIGNED: (Capability.ALIGNMENT,),
}


def hand_over_of_any_origin(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block that was not simply allocated, with work on a stalled stream; make another like it, and ask.

    Who keeps track of uses has to know of every block, whatever made it.
    """
    origins = [origin for origin, needs in _NEEDS.items() if writer.can(*needs)]
    streams = some_streams(writer, 3, b)
    if not origins or len(set(streams)) < 3:
        return
    for stream in streams:
        writer.write(ops.SynchronizeStream(stream.slot))
    stalled, owner, third = streams
    assert stalled.slot is not None
    make = _maker(writer, origins[c % len(origins)], a, b)
    block = make(owner)
    copied = c & 64 and writer.can(Capability.COPY)
    target = allocate_block(writer, block.size_bytes, stalled) if copied else None
    writer.write(ops.Stall(stalled.slot))
    if target is None:
        work_on(writer, block, stalled)
    elif writer.order_use(block, stalled):
        size = min(block.size_bytes, TOUCHED_BYTES_MAX)
        writer.write(ops.Copy(block.slot, target.slot, size, stalled.slot))
    free_on(writer, block, third if c & 32 and block.kind is MemoryKind.DEVICE else None)
    asker = third if c & 16 else owner
    work_on(writer, make(asker), asker)
    writer.write(ops.QueryStream(asker.slot))
    writer.write(ops.QueryStream(stalled.slot))


def _maker(writer: Writer, origin: _Origin, a: int, b: int) -> Callable[[Stream], Block]:
    """Return what makes a block of that origin on a stream, each time one of the same size."""
    size = writer.size(a)
    if origin is _Origin.STAGED:
        source = allocate_block(writer, size, writer.stream(0), kind=MemoryKind.PINNED)

        def stage(stream: Stream) -> Block:
            slot = writer.fresh("b")
            writer.write(ops.Stage(slot, source.slot, stream.slot))
            return writer.state.blocks[slot]

        return stage
    pool = a_pool(writer, b) if origin is _Origin.POOL else None
    kind = MemoryKind.MANAGED if origin is _Origin.MANAGED else MemoryKind.DEVICE
    alignment = ALIGNMENTS[b % len(ALIGNMENTS)] if origin is _Origin.ALIGNED else None
    return lambda stream: allocate_block(writer, size, stream, kind=kind, pool=pool, alignment_bytes=alignment)


def hand_over_of_default(writer: Writer, a: int, b: int, c: int) -> None:
    """Free memory with work on the default stream, let it come into other hands, and ask who is done.

    The default stream cannot be stalled. It comes behind one that is by the legacy order, or waits for an event. It may
    answer for others, so all of them have nothing else to do.
    """
    state = writer.state
    default = state.order.defaults[state.device]
    blocking = [stream for stream in state.streams.values() if stream.device == state.device and not stream.nonblocking]
    if not blocking and len(state.streams) < STREAMS_MAX:
        blocking = [create_stream(writer, nonblocking=False)]
    other = stream_beside_default(writer, default)
    stalled = blocking[b % len(blocking)] if blocking else default
    if stalled.slot is None or other is None:
        return
    writer.write(ops.SynchronizeDevice())
    held = allocate_block(writer, UNIT_BYTES, stalled)
    block = allocate_block(writer, writer.size(a), other if c & 1 else default)
    event = writer.event(b >> 5)
    writer.write(ops.Stall(stalled.slot))
    work_on(writer, held, stalled)
    if c & 8 or not writer.can(Capability.LEGACY_DEFAULT_STREAM):
        writer.write(ops.RecordEvent(event.slot, stalled.slot))
        writer.write(ops.WaitEvent(event.slot))
    work_on(writer, block, default)
    free_on(writer, block, stalled if c & 2 else None)
    if c & 4 and writer.can(Capability.POOL, Capability.BACKING_LEDGER):
        writer.write(ops.Trim())
    else:
        _ask(writer, block.size_bytes, other, MemoryKind.DEVICE)
    writer.write(ops.QueryStream())


def _keep_busy(
    writer: Writer, blocks: list[Block], busy: Block, stalled: Stream, others: list[Stream], place: int
) -> None:
    """Put work on the owners of the blocks, and on the stalled stream, as one of several, for the one that is busy."""
    assert stalled.slot is not None
    writer.write(ops.Stall(stalled.slot))
    for block in blocks:
        users = [block.stream]
        if block is busy:
            users = others.copy()
            users.insert(place % (len(users) + 1), stalled)
        for user in dict.fromkeys(users):
            work_on(writer, block, user)


def _size_bytes(writer: Writer, way: _Way, kind: MemoryKind, size_bytes: int, byte: int) -> int:
    """Return what to ask for next: as much, half of it or all of several; or more than is left."""
    if way is _Way.JOINED:
        return size_bytes * (2 + (byte & 1))
    if way is _Way.LACKING:
        return max(size_bytes, whole_bytes(writer, kind, None) - writer.state.live_bytes)
    return size_bytes >> (byte >> 4 & 1) or 1


def _ask(writer: Writer, size_bytes: int, stream: Stream, kind: MemoryKind) -> None:
    later = allocate_block(writer, size_bytes, stream, kind=kind)
    if kind is MemoryKind.DEVICE:
        work_on(writer, later, stream)
        writer.write(ops.QueryStream(stream.slot))
