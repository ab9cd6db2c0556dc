"""Actions that take all there is, or nearly all, and ask for more: what allocators do then is seldom tried.

What an allocator does about a lack of memory begins here: it gives back what it has cached, waits for what is in flight
and looks again, or asks for less than usual.
"""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.actions_memory import ALIGNMENTS, free_block, pool_slot, settle_unseen
from quiesce.generation.steps import UNIT_BYTES, allocate_block, some_streams, work_on
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import Writer
from quiesce.operations import MemoryKind, Slot

_BLOCKS_MAX: Final = (24, 24, 24, 24, 24, 24, 24, 72)
"""So many blocks take all there is: many small ones are what size classes and slabs are for."""
_FROM_EMPTY: Final = (6, 7)
_PARTS: Final = (2, 3, 4, 8)
_PARTS_OF_ALL: Final = (2, 3, 4, 1)
"""To the last byte, where nothing but what was exhausted can be in the way: limits are off by one there."""
_IN_FLIGHT: Final = (1, 4, 6)
_ASKS_MANAGED: Final = 192
_CHURNS_MAX: Final = 6
_UNLIMITED_BYTES: Final = 16 << 20
"""What counts as everything where no capacity is honoured."""


def exhaust(writer: Writer, a: int, b: int, c: int) -> None:
    """Take all there is in blocks of one size, free them or every other one, idle or not, and ask again.

    For another size, or for the same: then what was freed serves, once nobody uses it any more. Or for managed memory,
    which may have to share the device's.
    """
    mode = c >> 5
    if mode in _FROM_EMPTY:  # whoever runs out then has nobody else to blame
        for block in list(writer.state.blocks.values()):
            free_block(writer, block)
        if writer.can(Capability.POOL):
            writer.write(ops.Trim())
    pool = pool_slot(writer, a)
    pinned = pool is None and c & 16 and writer.can(Capability.PINNED)
    kind = MemoryKind.PINNED if pinned else MemoryKind.DEVICE
    whole = whole_bytes(writer, kind, pool)
    stream = writer.stream(b)
    size = max(writer.size(a), whole // _BLOCKS_MAX[b >> 3 & 7])
    blocks = [allocate_block(writer, size, stream, kind=kind, pool=pool) for _ in range(whole // size + c % 2)]
    if c & b & 1:  # a byte too many, which is more easily overlooked than a block
        blocks.append(allocate_block(writer, 1, stream, kind=kind, pool=pool))
    freed = blocks[:: 2 if c & 2 else 1]
    user = _user(writer, stream, b) if mode in _IN_FLIGHT else stream
    asker = user if b & 64 else stream
    if mode in _IN_FLIGHT:
        _keep_busy(writer, blocks if mode in _FROM_EMPTY else freed if user is not stream else blocks[-2:], user)
    for block in freed:
        free_block(writer, block)
    if mode not in _IN_FLIGHT:
        settle_unseen(writer)
    parts = _PARTS_OF_ALL if mode in _FROM_EMPTY else _PARTS
    again = size if user is not stream and a & 24 else max(1, whole // parts[c >> 2 & 3])  # a limit may be tiny
    aligned = a & 12 == 12 and writer.can(Capability.ALIGNMENT) and not pinned
    alignment = ALIGNMENTS[b % len(ALIGNMENTS)] if aligned else None
    if kind is MemoryKind.DEVICE and pool is None and a >= _ASKS_MANAGED and writer.can(Capability.MANAGED):
        kind = MemoryKind.MANAGED
    allocate_block(writer, again, asker, kind=kind, pool=pool, alignment_bytes=alignment)


def churn(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate and free again and again: a little more each time, or in turn little and nearly all there is.

    A trim in between lets whatever grows show itself on an allocator that holds nothing.
    """
    pool = pool_slot(writer, a)
    stream = writer.stream(b)
    whole = whole_bytes(writer, MemoryKind.DEVICE, pool)
    size = writer.size(a)
    for turn in range(2 + c % _CHURNS_MAX):
        little = size if c & 64 else size + turn * (size // 4 + UNIT_BYTES)
        now = whole - whole // 16 if c & 64 and turn % 2 else little
        free_block(writer, allocate_block(writer, now, stream, pool=pool))
        if c & 128 and writer.can(Capability.POOL):
            writer.write(ops.Trim(pool=pool))


def _user(writer: Writer, stream: Stream, byte: int) -> Stream:
    """Return the stream that is to use the blocks of ``stream``: itself, or by the byte's highest bit another one."""
    if byte < 128 or not writer.can(Capability.STREAMS):
        return stream
    return next((other for other in some_streams(writer, 2, byte) if other is not stream), stream)


def _keep_busy(writer: Writer, blocks: list[Block], stream: Stream) -> None:
    """Put work that uses the blocks on a stream, a stalled one where that can be had."""
    if writer.can(Capability.STALL) and stream.slot is not None:
        writer.write(ops.Stall(stream.slot))
    for block in blocks:
        work_on(writer, block, stream)


def whole_bytes(writer: Writer, kind: MemoryKind, pool: Slot | None) -> int:
    """Return all the bytes there are to be had, as far as they are limited."""
    profile = writer.state.profile
    if not writer.can(Capability.CAPACITY):
        whole = _UNLIMITED_BYTES
    else:
        whole = profile.pinned_capacity_bytes if kind is MemoryKind.PINNED else profile.capacity_bytes
    limit = None if pool is None else writer.state.pools[pool].limit_bytes
    return whole if limit is None else min(whole, limit)
