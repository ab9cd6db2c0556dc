"""Actions that take all there is, or nearly all, and ask for more, and actions that let a call below fail.

What allocators do then is seldom tried.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.generation.actions_memory import (
    ALIGNMENTS,
    POOLS_MAX,
    UNIT_BYTES,
    allocate,
    allocate_block,
    allocate_managed,
    allocate_pinned,
    free_block,
    pool_slot,
    settle_unseen,
    some_streams,
    stage,
    trim,
    work_on,
)
from quiesce.allocators.generation.actions_runtime import create_instance, initialize, launch_instance, partition
from quiesce.allocators.generation.things import Block, Stream
from quiesce.allocators.generation.writer import Writer
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import FailurePoint, InjectedError, MemoryKind, Slot

_BLOCKS_MAX: Final = (4, 8, 6, 24, 5, 8, 3, 72)
"""So many blocks take all there is, mostly few, which show as much; many small ones are for size classes and slabs."""
_FROM_EMPTY: Final = (6, 7)
_PARTS: Final = (2, 3, 4, 8)
_PARTS_OF_ALL: Final = (2, 3, 4, 1)
"""To the last byte, where nothing but what was exhausted can be in the way: limits are off by one there."""
_IN_FLIGHT: Final = (1, 4, 6)
_ASKS_MANAGED: Final = 192
_CHURNS_MAX: Final = 6
_LARGE_ALIGNMENTS: Final = (16 << 20, 8 << 20, 4 << 20, 16 << 20, 1 << 20)
_WHOLE_LESS_BITS: Final = 24
_FILLINGS: Final = (16, 6, 48, 2)
_LIMIT_PARTS: Final = (1, 2, 4, 3)
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


def align_large(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate a few large blocks with alignments of up to 16 MiB, of as much, less, or a little more; free some."""
    stream, pool = writer.stream(b), pool_slot(writer, b >> 2)
    whole = whole_bytes(writer, MemoryKind.DEVICE, pool)
    for turn in range(2 + (c & 1)):
        alignment = _LARGE_ALIGNMENTS[(a >> turn) % len(_LARGE_ALIGNMENTS)]
        sizes = (alignment, alignment // 4 * 3, alignment + UNIT_BYTES, writer.size(a))
        size = min(sizes[c >> 2 * turn + 1 & 3], max(1, whole // 4))
        block = allocate_block(writer, size, stream, pool=pool, alignment_bytes=alignment)
        if c & 128 or writer.state.live_bytes > writer.full_bytes:
            free_block(writer, block)


def ask_again(writer: Writer, a: int, b: int, c: int) -> None:
    """Ask a pool that has nothing for nearly all there is, fill it with small blocks, free them, and ask for the same.

    What was served once is served again then: neither a byte next to each block nor a chunk in reserve is missed. How
    much less than all an allocator can serve is its own affair, so several sizes are asked for.
    """
    pool = _pool_with_nothing(writer, c)
    stream = writer.stream(0)
    whole = whole_bytes(writer, MemoryKind.DEVICE, pool)
    sizes = [whole, *(whole - (1 << bits) for bits in range(a & 3, _WHOLE_LESS_BITS, 4) if 1 << bits < whole)]
    for size in sizes:
        free_block(writer, allocate_block(writer, size, stream, pool=pool))
        if writer.can(Capability.POOL):
            writer.write(ops.Trim(pool=pool))
    blocks = [allocate_block(writer, writer.size(b + turn), stream, pool=pool) for turn in range(_FILLINGS[c >> 2 & 3])]
    for block in (blocks, blocks[::-1], [*blocks[::2], *blocks[1::2]], blocks)[c >> 4 & 3]:
        free_block(writer, block)
    settle_unseen(writer)
    for size in sizes:
        free_block(writer, allocate_block(writer, size, stream, pool=pool))


def _pool_with_nothing(writer: Writer, byte: int) -> Slot | None:
    """Free everything, trim all pools, and return one that holds nothing: a new one where there is room for it."""
    for block in list(writer.state.blocks.values()):
        free_block(writer, block)
    if writer.can(Capability.POOL):
        settle_unseen(writer)
        for pool in (None, *writer.state.pools):
            writer.write(ops.Trim(pool=pool))
    if byte & 1 and writer.can(Capability.POOLS) and len(writer.state.pools) < POOLS_MAX:
        limited = byte & 2 and writer.can(Capability.POOL_LIMIT)
        limit = writer.state.profile.capacity_bytes // _LIMIT_PARTS[byte >> 6] if limited else None
        writer.write(ops.CreatePool(new := writer.fresh("p"), limit))
        return new
    return pool_slot(writer, byte)


def abandon_pool(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a pool with memory in flight, wait for the work, and trim, or ask the default one for all there is."""
    stream = some_streams(writer, 1, b)[0]
    if len(writer.state.pools) >= POOLS_MAX:
        return
    pool = writer.fresh("p")
    writer.write(ops.CreatePool(pool))
    whole = whole_bytes(writer, MemoryKind.DEVICE, pool)
    size = whole // _PARTS[a & 3] if c & 1 else writer.size(a)
    blocks = [allocate_block(writer, size, stream, pool=pool) for _ in range(1 + (c >> 1 & 1))]
    _keep_busy(writer, blocks, stream)
    for block in blocks:
        free_block(writer, block)
    writer.write(ops.DestroyPool(pool))
    writer.synchronize_device(writer.state.device)
    if c & 4 and writer.can(Capability.POOL):
        writer.write(ops.Trim())
    free_block(writer, allocate_block(writer, whole // _PARTS_OF_ALL[c >> 3 & 3], stream))


def trim_beside_flight(writer: Writer, a: int, b: int, c: int) -> None:
    """Free blocks that are in flight among others that are idle, in any order, and trim: those that are idle go back.

    So large are they that some have a chunk to themselves, and nothing else lies there.
    """
    busy, idle = [*some_streams(writer, 2, b), None][:2]
    if busy is None or idle is None or busy is idle or busy.slot is None or idle.slot is None:
        return
    pool = _pool_with_nothing(writer, c & 3)
    whole = whole_bytes(writer, MemoryKind.DEVICE, pool)
    size = max(1, min((writer.chunk_bytes or whole // 8, whole // 8, writer.size(a), whole // 16)[a & 3], whole // 4))
    on = (busy, idle, idle, busy) if c & 4 else (idle, busy, idle, busy)
    blocks = [allocate_block(writer, size, stream, pool=pool) for stream in on]
    _keep_busy(writer, [block for block in blocks if block.stream is busy], busy)
    for block in blocks[::-1] if c & 8 else blocks:
        free_block(writer, block)
    writer.write(ops.SynchronizeStream(idle.slot))
    if c & 16:  # what is in flight need not have come first where an allocator looks
        free_block(writer, allocate_block(writer, size, idle, pool=pool))
        writer.write(ops.SynchronizeStream(idle.slot))
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


_INJECTIONS: Final = (
    (FailurePoint.BACKING, InjectedError.OUT_OF_MEMORY),
    (FailurePoint.BOOKKEEPER, InjectedError.FOREIGN),
    (FailurePoint.BACKING, InjectedError.FOREIGN),
    (FailurePoint.BOOKKEEPER, InjectedError.OUT_OF_MEMORY),
)
_ASKERS: Final = (
    (allocate, ()),
    (allocate, ()),
    (allocate_pinned, (Capability.PINNED,)),
    (allocate_managed, (Capability.MANAGED,)),
    (stage, (Capability.STAGING,)),
    (trim, (Capability.POOL,)),
)
"""What makes calls below a library, and what it needs."""
_POOLS: Final = (0, 5, 10, 15)
"""Bytes that stand for the default allocator, and for the second pool, the third, and the first again."""


def inject_failure(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a call below the library fail, one of the next three, and ask for something that makes such calls."""
    point, error = _INJECTIONS[a % len(_INJECTIONS)]
    writer.write(ops.InjectFailure(point, (1, 1, 2, 3)[a >> 2 & 3], error))
    askers = [action for action, needs in _ASKERS if writer.can(*needs)]
    askers[(a >> 4) % len(askers)](writer, b & ~3, c, _POOLS[b & 3])


def fail_runtime(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a call below a runtime that is up fail, and make instances of it, or launch on one."""
    has_lifecycle = writer.can(Capability.LIFECYCLE)
    if has_lifecycle and not writer.state.initialized:
        initialize(writer, a, b, c)
    point, error = _INJECTIONS[a % len(_INJECTIONS)]
    writer.write(ops.InjectFailure(point, (1, 2, 1, 3)[a >> 2 & 3], error))
    askers = (launch_instance, create_instance, partition) if has_lifecycle else (launch_instance, create_instance)
    askers[(a >> 4) % len(askers)](writer, b, c & ~1, c)  # an even byte: a launch goes to an instance
