"""Actions that propose legal operations on memory, and the steps that other actions are made of.

Each takes the writer and the three bytes of its record.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.generation.things import Block, Stream
from quiesce.allocators.generation.writer import STREAMS_MAX, Writer, newest, pick
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import MemoryKind, Slot

POOLS_MAX: Final = 3
TOUCHED_BYTES_MAX: Final = 1 << 20
"""A fill or copy touches no more: real memory is slow, and the rest of a block is like its beginning."""
BURST_MAX: Final = 20
"""Allocations of one size at once: more than the first chunk of any pool of the catalogue holds (Thrust's: 16)."""
_LONG: Final = 244
"""From this byte on a burst is a long one, of up to a hundred: it fills what is cut into many small parts."""
_MANY: Final = (24, 8, 40, 16, 72, 33, 64, 12)
"""So many blocks fill a part of a slab's map, one or two words of it, or a little more."""
_MAPPED_BYTES_MAX: Final = 1024
"""Small blocks are what allocators keep maps of, with more than a word for a slab of the smallest."""
_LIMIT_EIGHTHS: Final = (4, 6, 2, 1)
ALIGNMENTS: Final = (512, 64, 4096, 256, 128, 65536, 2, 1 << 21)


def allocate(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate device memory; with the hands full, free instead."""
    if writer.state.live_bytes > writer.full_bytes and a & 3:
        free(writer, a, b, c)
        return
    stream = writer.stream(b)
    writer.write(ops.Allocate(writer.fresh("b"), writer.size(a), stream=stream.slot, pool=pool_slot(writer, c)))


def pool_slot(writer: Writer, byte: int) -> Slot | None:
    """Return a pool of the current device, or None for the default allocator, as it is for 0."""
    pools = [pool for pool in writer.state.pools.values() if pool.device == writer.state.device]
    if not pools or byte % 4 == 0:
        return None
    return pools[byte // 4 % len(pools)].slot


def a_pool(writer: Writer, byte: int) -> Slot | None:
    """Return a pool of the current device, a new one if there is room for it and the byte is even."""
    if byte % 2 and (slot := pool_slot(writer, byte)) is not None:
        return slot
    if len(writer.state.pools) >= POOLS_MAX:
        return pool_slot(writer, 1)
    writer.write(ops.CreatePool(slot := writer.fresh("p")))
    return slot


def allocate_aligned(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate with an alignment."""
    alignment = ALIGNMENTS[c % len(ALIGNMENTS)]
    stream = writer.stream(b)
    writer.write(ops.Allocate(writer.fresh("b"), writer.size(a), alignment_bytes=alignment, stream=stream.slot))


def allocate_burst(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate many blocks of one size: a chunk fills up, and the next one begins."""
    count = 2 + c % BURST_MAX if c < _LONG else 8 * (c - _LONG) + BURST_MAX
    _fill_up(writer, writer.size(a), writer.stream(b).slot, pool_slot(writer, c >> 2), count)


def _fill_up(writer: Writer, size_bytes: int, stream: Slot | None, pool: Slot | None, count: int) -> None:
    """Allocate so many blocks of one size, or fewer where that fills the hands."""
    for _ in range(count):
        writer.write(ops.Allocate(writer.fresh("b"), size_bytes, stream=stream, pool=pool))
        if writer.state.live_bytes > writer.full_bytes:
            return


def allocate_pinned(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate pinned host memory: sometimes one byte more than a power of two, sometimes with an alignment."""
    size = writer.size(a)
    if b & 3 == 3:  # pools of pinned memory round to powers of two
        size = (1 << (size - 1).bit_length()) + 1
    aligned = c & 7 == 7 and writer.can(Capability.ALIGNMENT)
    alignment = ALIGNMENTS[c >> 3 & 7] if aligned else None
    writer.write(ops.Allocate(writer.fresh("b"), size, MemoryKind.PINNED, alignment_bytes=alignment))


def allocate_pageable(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate pageable host memory."""
    writer.write(ops.Allocate(writer.fresh("b"), min(writer.size(a), TOUCHED_BYTES_MAX), MemoryKind.PAGEABLE))


def allocate_managed(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate managed memory."""
    writer.write(ops.Allocate(writer.fresh("b"), writer.size(a), MemoryKind.MANAGED))


def free(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block, mostly where it was allocated, sometimes on another stream."""
    block = newest(writer.state.blocks.values(), b)
    if block is None:
        allocate(writer, a, 0, 0)
    elif c % 3 == 2 and block.kind is MemoryKind.DEVICE and block.device == writer.state.device:
        free_on(writer, block, writer.named_stream(c // 3))
    else:
        free_block(writer, block)


def free_block(writer: Writer, block: Block) -> None:
    """Free a block on its own stream, if that can be legal."""
    stream = block.stream
    if stream.alive and (stream.slot is not None or not writer.state.captures) and writer.order_free(block, stream):
        writer.write(ops.Free(block.slot))
        writer.dead_blocks.append(block.slot)


def free_on(writer: Writer, block: Block, stream: Stream | None) -> None:
    """Free a block on a stream of the sequence's own, if that can be legal; without one, on the block's."""
    if stream is None or stream.slot is None:
        free_block(writer, block)
    elif writer.order_free(block, stream):
        writer.write(ops.Free(block.slot, stream.slot))
        writer.dead_blocks.append(block.slot)


def free_alternate(writer: Writer, a: int, b: int, c: int) -> None:
    """Free every other of the newest blocks: what is left pins its chunks."""
    blocks = list(writer.state.blocks.values())[-2 * (2 + a % BURST_MAX) :: 2]
    if len(blocks) < 2:
        allocate_burst(writer, a, b, c)
        return
    for block in blocks:
        free_block(writer, block)


def free_part(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate many blocks of one size, free the oldest or the newest of them, trim, and ask for some more.

    The few that are left keep what they lie in, wherever in it they lie.
    """
    if c & 128:  # nothing else lies among them then
        free_all(writer, a, b, c)
    before = len(writer.state.blocks)
    pool = pool_slot(writer, b >> 2)
    size = min(writer.size(a), _MAPPED_BYTES_MAX) if b & 128 else writer.size(a)
    _fill_up(writer, size, writer.stream(b & 3).slot, pool, _MANY[c & 7])
    blocks = list(writer.state.blocks.values())[before:]
    kept = 1 + (c >> 3 & 7)
    part = blocks[:-kept] if c & 64 else blocks[kept:]
    for block in part:
        free_block(writer, block)
    if writer.can(Capability.POOL):
        settle_unseen(writer)
        writer.write(ops.Trim(pool=pool))
    if part:
        _fill_up(writer, part[0].size_bytes, part[0].stream.slot, pool, kept)


def free_all(writer: Writer, a: int, b: int, c: int) -> None:
    """Free everything, oldest or newest first."""
    blocks = list(writer.state.blocks.values())
    for block in blocks if a & 1 else reversed(blocks):
        free_block(writer, block)


def trim(writer: Writer, a: int, b: int, c: int) -> None:
    """Trim the default allocators of a kind, or one pool."""
    trims = [ops.Trim()]
    trims += [ops.Trim(pool=pool) for pool in writer.state.pools]
    trims += [ops.Trim(MemoryKind.PINNED)] if writer.can(Capability.PINNED) else []
    trims += [ops.Trim(MemoryKind.MANAGED)] if writer.can(Capability.MANAGED) else []
    if b & 1:
        settle_unseen(writer)
    writer.write(trims[a % len(trims)] if a & 192 else trims[0])


def settle_unseen(writer: Writer) -> None:
    """Wait for what a backend that tells no order may have put on streams with every free: nothing excuses it then."""
    told = writer.can(Capability.ORDER_LEDGER) or not writer.can(Capability.STREAMS)
    if not told and not writer.state.captures:
        writer.write(ops.SynchronizeDevice())


def copy(writer: Writer, a: int, b: int, c: int) -> None:
    """Copy between two blocks."""
    source, destination = writer.block(a), writer.block(b)
    stream = writer.working_stream(c)
    if source is None or destination is None or source is destination:
        allocate(writer, a, c, 0)
        return
    pageable = MemoryKind.PAGEABLE in (source.kind, destination.kind)
    smaller = min(source.size_bytes, destination.size_bytes)
    size = None if smaller <= TOUCHED_BYTES_MAX else TOUCHED_BYTES_MAX
    if pageable and writer.state.captures:
        return
    if writer.order_use(source, stream) and writer.order_use(destination, stream):
        writer.write(ops.Copy(source.slot, destination.slot, size, stream.slot))


def fill(writer: Writer, a: int, b: int, c: int) -> None:
    """Fill a block."""
    block, stream = writer.kernel_block(a), writer.working_stream(b)
    if block is None or block.size_bytes > TOUCHED_BYTES_MAX:
        launch(writer, a, b, c)
    elif writer.order_use(block, stream):
        writer.write(ops.Fill(block.slot, c, stream.slot))


def launch(writer: Writer, a: int, b: int, c: int) -> None:
    """Launch a kernel that uses a block or two, or none."""
    stream = writer.working_stream(b)
    if not writer.can(Capability.LAUNCH):
        return
    block, other = writer.kernel_block(a), writer.kernel_block(c // 4)
    writes = (block.slot,) if block is not None and writer.order_use(block, stream) else ()
    reads: tuple[Slot, ...] = ()
    if c % 4 == 1 and other is not None and other is not block and writer.order_use(other, stream):
        reads = (other.slot,)
    writer.write(ops.Launch(reads, writes, stream=stream.slot))


def stage(writer: Writer, a: int, b: int, c: int) -> None:
    """Stage a host block; make one where there is none."""
    kinds = (MemoryKind.PINNED, MemoryKind.PAGEABLE)
    source = newest([block for block in writer.state.host_blocks.values() if block.kind in kinds], a)
    if source is None:
        if writer.can(Capability.PINNED):
            allocate_pinned(writer, a, b, c)
        elif writer.can(Capability.PAGEABLE):
            allocate_pageable(writer, a, b, c)
    else:
        writer.write(ops.Stage(writer.fresh("b"), source.slot, writer.stream(b).slot))


def create_pool(writer: Writer, a: int, b: int, c: int) -> None:
    """Create a pool, with or without a limit; allocate where there are enough of them."""
    if len(writer.state.pools) >= POOLS_MAX:
        allocate(writer, a, b, c | 1)
        return
    limited = a % 2 == 1 and writer.can(Capability.POOL_LIMIT)
    limit = writer.state.profile.capacity_bytes * _LIMIT_EIGHTHS[b % 4] // 8 if limited else None
    writer.write(ops.CreatePool(writer.fresh("p"), limit))


def destroy_pool(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a pool, after freeing what is out."""
    pool = pick(list(writer.state.pools.values()), a)
    if pool is None:
        create_pool(writer, a, b, c)
        return
    for block in [block for block in writer.state.blocks.values() if block.pool is pool]:
        free_block(writer, block)
    if not pool.blocks:
        writer.write(ops.DestroyPool(pool.slot))


_SMALL_COPY_BYTES: Final = 4096
UNIT_BYTES: Final = 512
"""Blocks of whole units lie side by side on most allocators."""


def allocate_block(
    writer: Writer,
    size_bytes: int,
    stream: Stream,
    *,
    kind: MemoryKind = MemoryKind.DEVICE,
    pool: Slot | None = None,
    alignment_bytes: int | None = None,
) -> Block:
    """Allocate a block and return it."""
    slot = writer.fresh("b")
    on = stream.slot if kind is MemoryKind.DEVICE else None
    writer.write(ops.Allocate(slot, size_bytes, kind, alignment_bytes, stream=on, pool=pool))
    return writer.state.blocks[slot]


def work_on(writer: Writer, block: Block, stream: Stream) -> None:
    """Put work that uses a block on a stream, if the backend can do some."""
    if block.kind is MemoryKind.PINNED:
        if not writer.can(Capability.COPY, Capability.MEMORY):
            return
        size = min(_SMALL_COPY_BYTES, block.size_bytes)
        destination = allocate_block(writer, size, stream)
        writer.write(ops.Copy(block.slot, destination.slot, size, stream.slot))
    elif writer.can(Capability.LAUNCH) and writer.order_use(block, stream):
        writer.write(ops.Launch(writes=(block.slot,), stream=stream.slot))


def some_streams(writer: Writer, count: int, byte: int) -> list[Stream]:
    """Return so many streams of the current device, those of the sequence's own first, some of them made for it."""
    state = writer.state
    named = [stream for stream in state.streams.values() if stream.device == state.device]
    while len(named) < count and len(state.streams) < STREAMS_MAX:
        named.append(create_stream(writer, nonblocking=bool(byte & 1)))
    if not named:
        named = [state.order.defaults[state.device]]
    first = byte // 2 % len(named)
    return [*named[first:], *named[:first], *named][:count]


def stream_beside_default(writer: Writer, other: Stream) -> Stream | None:
    """Return a stream of the current device that the default one has no order with, and that is not ``other``."""
    state = writer.state
    streams = [stream for stream in state.streams.values() if stream.device == state.device and stream.nonblocking]
    found = next((stream for stream in streams if stream is not other), None)
    if found is None and len(state.streams) < STREAMS_MAX:
        return create_stream(writer, nonblocking=True)
    return found


def create_stream(writer: Writer, *, nonblocking: bool, slot: Slot | None = None) -> Stream:
    """Create a stream and return it; ``slot`` may be the name of one that is gone."""
    slot = slot or writer.fresh("s")
    writer.write(ops.CreateStream(slot, nonblocking=nonblocking))
    return writer.state.streams[slot]
