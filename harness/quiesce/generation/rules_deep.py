"""Rules that reach a deep state in one record: memory freed in flight, reshaped, exhausted; streams replaced.

Record by record these states are rare, since each needs several things of the same size or stream to meet. What a
rule does here is a pattern of many bug reports, over whatever sizes and streams the sequence has.
"""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.rules_memory import free_block, free_on, pool_slot, settle_unseen
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import STREAMS_MAX, Writer, pick
from quiesce.operations import MemoryKind, Slot

_EXHAUSTING_BLOCKS_MAX: Final = 24
_ELSEWHERE: Final = 2 | 16 | 32
"""The bits of a block in flight that put work on other streams than its own."""
_FROM_EMPTY: Final = (6, 7)
_PARTS: Final = (2, 3, 4, 8)
_PARTS_OF_ALL: Final = (2, 3, 4, 1)
"""To the last byte, where nothing but what was exhausted can be in the way: limits are off by one there."""
_EXHAUSTED_IN_FLIGHT: Final = (1, 4, 6)
_CHURNS_MAX: Final = 6
_UNIT_BYTES: Final = 512
_SMALL_COPY_BYTES: Final = 4096
_UNLIMITED_BYTES: Final = 16 << 20
"""What counts as everything where no capacity is honoured."""


def free_in_flight(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block with work on up to three streams, on a stalled one where that can be had; ask for as much again."""
    stream = _streams(writer, 1 + (c >> 3 & 1), b)[-1]
    pinned = c & 4 and writer.can(Capability.PINNED, Capability.COPY)
    block = _allocate(writer, writer.size(a), stream, kind=MemoryKind.PINNED if pinned else MemoryKind.DEVICE)
    if c & 1 and writer.can(Capability.STALL) and stream.slot is not None:
        writer.write(ops.Stall(stream.slot))
    _work(writer, block, stream)
    others = _streams(writer, 3 if c & 16 else 2, b)[1:] if c & 18 else []
    for other in others:
        _work(writer, block, other)
    free_on(writer, block, others[-1] if c & 128 and others and not pinned else None)
    if c & 32:
        next_owner = _streams(writer, 1 + (c >> 6 & 1), b)[-1]
        _work(writer, _allocate(writer, block.size_bytes, next_owner, kind=block.kind), next_owner)


def hand_over(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block with work on a stalled stream, ask for as much, and ask who is done.

    Where no order is told only answers prove a race: the next owner is done, and what it should have waited for is not.
    Nothing but the block's own free may come between, so the streams are idle before.
    """
    streams = _streams(writer, 3, b)
    if len(set(streams)) < 3:
        return
    stalled, other, third = streams
    assert stalled.slot is not None
    for stream in streams:
        writer.write(ops.SynchronizeStream(stream.slot))
    pinned = c & 3 == 3 and writer.can(Capability.PINNED, Capability.COPY)
    kind = MemoryKind.PINNED if pinned else MemoryKind.DEVICE
    owner = other if c & 4 else stalled
    block = _allocate(writer, writer.size(a), owner, kind=kind)
    writer.write(ops.Stall(stalled.slot))
    for user in dict.fromkeys((owner, stalled)):
        _work(writer, block, user)
    free_block(writer, block)
    if c >> 5 == 1 and writer.can(Capability.POOL, Capability.UPSTREAM_LEDGER):
        writer.write(ops.Trim(kind))
    else:
        later = _allocate(writer, block.size_bytes >> (c >> 4 & 1) or 1, third if c & 8 else other, kind=kind)
        if not pinned:
            _work(writer, later, later.stream)
            writer.write(ops.QueryStream(later.stream.slot))
    writer.write(ops.QueryStream(stalled.slot))


def free_on_default(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block with work on the default stream, which another one holds; ask for as much where nothing waits.

    The default stream cannot be stalled, so one that can be holds it. Asked in the end, the next owner's stream may say
    that it is done, which the default stream then cannot be.
    """
    default = writer.state.order.defaults[writer.state.device]
    before = _streams(writer, 1, b)[0]
    after = _outsider(writer, before)
    if before.slot is None or after is None:
        return
    if c & 1 and writer.can(Capability.STALL):
        writer.write(ops.Stall(before.slot))
    if writer.can(Capability.EVENTS):
        event = writer.event(a)
        writer.write(ops.RecordEvent(event.slot, before.slot))
        writer.write(ops.WaitEvent(event.slot))
    block = _allocate(writer, writer.size(a), after if c & 8 else default)
    _work(writer, block, default)
    free_on(writer, block, before if c & 2 else None)
    _work(writer, _allocate(writer, block.size_bytes, after), after)
    if c & 4:
        writer.write(ops.QueryStream(after.slot))


def reshape(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a large block follow on small ones that streams still use, or small ones of several streams on a large."""
    parts = 2 + c % 3
    small = -(-writer.size(a) // _UNIT_BYTES) * _UNIT_BYTES
    streams = _streams(writer, parts, b)
    sizes, later = [small] * parts, [small * parts]
    if c & 64:
        sizes, later = later, sizes
    blocks = []
    for size, stream in zip(sizes, streams, strict=False):
        blocks.append(_allocate(writer, size, stream))
        if c & 128 and writer.can(Capability.STALL) and stream.slot is not None:
            writer.write(ops.Stall(stream.slot))
        _work(writer, blocks[-1], stream)
    for block in blocks:
        free_block(writer, block)
    for size, stream in zip(later, reversed(streams), strict=False):
        _work(writer, _allocate(writer, size, stream), stream)


def replace_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a stream with work on blocks that are freed before or after, and ask for as much on a new one.

    The new stream may have the old one's handle.
    """
    if len(writer.state.streams) >= STREAMS_MAX:
        return
    old = _create(writer, nonblocking=bool(c & 2))
    assert old.slot is not None
    size = writer.size(a)
    outlives = bool(c & 4)
    count = 1 + (c >> 3 & 3)
    blocks = [_allocate(writer, size, writer.stream(b) if outlives else old) for _ in range(count)]
    if c & 1 and writer.can(Capability.STALL):
        writer.write(ops.Stall(old.slot))
    for block in blocks:
        _work(writer, block, old)
    for block in () if outlives else blocks:
        free_block(writer, block)
    if not writer.state.is_needed(old):
        writer.write(ops.DestroyStream(old.slot))
        writer.dead_streams.append(old.slot)
    for block in blocks if outlives else ():
        free_block(writer, block)
    new = _create(writer, nonblocking=bool(b & 1))
    for _ in range(count):
        _work(writer, _allocate(writer, size, new), new)


def settle_partly(writer: Writer, a: int, b: int, c: int) -> None:
    """Wait for one stream while others are busy, and trim."""
    for turn in range(2 - len(_busy(writer))):
        free_in_flight(writer, a, b + 2 * turn, c & ~_ELSEWHERE | (0 if turn else 1))
    stream = pick(_busy(writer), a)
    if stream is None:
        return
    writer.write(ops.SynchronizeStream(stream.slot))
    if c & 4 and writer.can(Capability.PINNED):
        writer.write(ops.Trim(MemoryKind.PINNED))
    elif writer.can(Capability.POOL):
        writer.write(ops.Trim(pool=pool_slot(writer, b)))


def _busy(writer: Writer) -> list[Stream]:
    """Return the sequence's own streams of the current device that the host has not waited for, newest first."""
    state = writer.state
    known = state.order.known
    streams = [stream for stream in state.streams.values() if stream.device == state.device]
    return [stream for stream in streams if stream.passed > known.get(stream, 0)][::-1]


def exhaust(writer: Writer, a: int, b: int, c: int) -> None:
    """Take all there is in blocks of one size, free them or every other one, idle or not, and ask for another size."""
    if c >> 5 in _FROM_EMPTY:  # whoever runs out then has nobody else to blame
        for block in list(writer.state.blocks.values()):
            free_block(writer, block)
        if writer.can(Capability.POOL):
            writer.write(ops.Trim())
    pool = pool_slot(writer, a)
    pinned = pool is None and c & 16 and writer.can(Capability.PINNED)
    kind = MemoryKind.PINNED if pinned else MemoryKind.DEVICE
    whole = _whole_bytes(writer, kind, pool)
    stream = writer.stream(b)
    size = max(writer.size(a), whole // _EXHAUSTING_BLOCKS_MAX)
    blocks = [_allocate(writer, size, stream, kind=kind, pool=pool) for _ in range(whole // size + c % 2)]
    if c >> 5 in _EXHAUSTED_IN_FLIGHT:
        if writer.can(Capability.STALL) and stream.slot is not None:
            writer.write(ops.Stall(stream.slot))
        for block in blocks if c >> 5 in _FROM_EMPTY else blocks[-2:]:
            _work(writer, block, stream)
    for block in blocks[:: 2 if c & 2 else 1]:
        free_block(writer, block)
    if c >> 5 not in _EXHAUSTED_IN_FLIGHT:
        settle_unseen(writer)
    parts = _PARTS_OF_ALL if c >> 5 in _FROM_EMPTY else _PARTS
    _allocate(writer, whole // parts[c >> 2 & 3], stream, kind=kind, pool=pool)


def churn(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate and free again and again: a little more each time, or in turn little and nearly all there is.

    A trim in between lets whatever grows show itself on an allocator that holds nothing.
    """
    pool = pool_slot(writer, a)
    stream = writer.stream(b)
    whole = _whole_bytes(writer, MemoryKind.DEVICE, pool)
    size = writer.size(a)
    for turn in range(2 + c % _CHURNS_MAX):
        little = size if c & 64 else size + turn * (size // 4 + _UNIT_BYTES)
        now = whole - whole // 16 if c & 64 and turn % 2 else little
        free_block(writer, _allocate(writer, now, stream, pool=pool))
        if c & 128 and writer.can(Capability.POOL):
            writer.write(ops.Trim(pool=pool))


def _whole_bytes(writer: Writer, kind: MemoryKind, pool: Slot | None) -> int:
    """Return all the bytes there are to be had, as far as they are limited."""
    profile = writer.state.profile
    if not writer.can(Capability.CAPACITY):
        whole = _UNLIMITED_BYTES
    else:
        whole = profile.pinned_capacity_bytes if kind is MemoryKind.PINNED else profile.capacity_bytes
    limit = None if pool is None else writer.state.pools[pool].limit_bytes
    return whole if limit is None else min(whole, limit)


def _allocate(
    writer: Writer,
    size_bytes: int,
    stream: Stream,
    *,
    kind: MemoryKind = MemoryKind.DEVICE,
    pool: Slot | None = None,
) -> Block:
    slot = writer.fresh("b")
    on = stream.slot if kind is MemoryKind.DEVICE else None
    writer.write(ops.Allocate(slot, size_bytes, kind, stream=on, pool=pool))
    return writer.state.blocks[slot]


def _work(writer: Writer, block: Block, stream: Stream) -> None:
    """Put work that uses a block on a stream."""
    if block.kind is MemoryKind.PINNED:
        size = min(_SMALL_COPY_BYTES, block.size_bytes)
        destination = _allocate(writer, size, stream)
        writer.write(ops.Copy(block.slot, destination.slot, size, stream.slot))
    elif writer.can(Capability.LAUNCH) and writer.order_use(block, stream):
        writer.write(ops.Launch(writes=(block.slot,), stream=stream.slot))


def _streams(writer: Writer, count: int, byte: int) -> list[Stream]:
    """Return so many streams of the current device, those of the sequence's own first, some of them made for it."""
    state = writer.state
    named = [stream for stream in state.streams.values() if stream.device == state.device]
    while len(named) < count and len(state.streams) < STREAMS_MAX:
        named.append(_create(writer, nonblocking=bool(byte & 1)))
    if not named:
        named = [state.order.defaults[state.device]]
    first = byte // 2 % len(named)
    return [*named[first:], *named[:first], *named][:count]


def _outsider(writer: Writer, other: Stream) -> Stream | None:
    """Return a stream of the current device that the default one has no order with, and that is not ``other``."""
    state = writer.state
    streams = [stream for stream in state.streams.values() if stream.device == state.device and stream.nonblocking]
    outsider = next((stream for stream in streams if stream is not other), None)
    if outsider is None and len(state.streams) < STREAMS_MAX:
        return _create(writer, nonblocking=True)
    return outsider


def _create(writer: Writer, *, nonblocking: bool) -> Stream:
    slot = writer.fresh("s")
    writer.write(ops.CreateStream(slot, nonblocking=nonblocking))
    return writer.state.streams[slot]
