"""What some sequences begin with: many blocks of one size, blocks of all sizes, several chunks, a pool of one block.

These patterns need a context that holds nothing, and many requests. Record by record they hardly ever come about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.actions_memory import free_block, settle_unseen
from quiesce.generation.actions_pressure import whole_bytes
from quiesce.generation.steps import allocate_block
from quiesce.generation.things import Block
from quiesce.generation.writer import Writer
from quiesce.operations import MemoryKind, Slot

Opening: TypeAlias = Callable[[Writer, int, int, int], None]

_LADDER_FIRST_BITS: Final = (8, 10, 12, 14, 9, 11, 13, 16)
_LADDER_OCTAVES: Final = 5
_RUNGS: Final = 16
"""Size classes are seldom closer than that between two powers of two."""
_COUNTS: Final = (256, 256, 256, 512, 256, 512, 256, 1024)
"""So many blocks fill a counter of eight, nine or ten bits, or four to sixteen words of a map."""
_SMALL_BYTES: Final = (256, 64, 512, 16, 1024, 128, 2048, 4096)
_CHUNKS: Final = (3, 2, 4, 3)
_BLOCKS_MAX: Final = 320
_CHUNK_BYTES_MIN: Final = 2 << 20
_EXTRA_BYTES: Final = (0, 0, 0, 1)
_PARTS: Final = (2, 4, 2, 3)


def climb(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate two or three blocks of each of many sizes: blocks of neighbouring size classes lie side by side then."""
    first = _LADDER_FIRST_BITS[a & 7]
    stream = writer.stream(0)
    for bits in range(first, first + _LADDER_OCTAVES):
        step = (1 << bits) // _RUNGS
        for rung in range(_RUNGS):
            size = (1 << bits) + step * rung + step * b // 256
            for _ in range(2 + (c & 1)):
                if writer.state.live_bytes + size > writer.full_bytes // 2:
                    return
                allocate_block(writer, size, stream)


def fill_counters(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate so many small blocks that a narrow counter of them would be 0; trim, and ask for more."""
    size, count = _SMALL_BYTES[a & 7], _COUNTS[b & 7]
    extra = c & 63
    blocks = _blocks(writer, size, count + extra)
    freed = (blocks[:extra], blocks[count:], blocks[::2][:extra], blocks[:extra])[c >> 6]
    for block in freed:
        free_block(writer, block)
    _trim(writer)
    _blocks(writer, _SMALL_BYTES[(a >> 3) & 7], 1 + extra)


def fill_chunks(writer: Writer, a: int, b: int, c: int) -> None:
    """Fill several chunks with blocks of one size, free all of them, or all but one, and trim."""
    chunk = max(_CHUNK_BYTES_MIN, min(writer.chunk_bytes, whole_bytes(writer, MemoryKind.DEVICE, None) // 4))
    total = chunk * _CHUNKS[a & 3]
    size = max(writer.size(b), -(-total // _BLOCKS_MAX)) if a & 4 else total // (16 << (a >> 3 & 3))
    pool = None
    if a & 128 and writer.can(Capability.POOLS):
        pool = writer.fresh("p")
        writer.write(ops.CreatePool(pool))
    blocks = _blocks(writer, size, max(4, total // size), pool)
    if c & 1:
        del blocks[c % len(blocks)]
    for block in _in_order(blocks, c >> 1 & 3):
        free_block(writer, block)
    settle_unseen(writer)
    _trim(writer, pool)
    if c & 8:
        _blocks(writer, size, 2, pool)


def reach_limits(writer: Writer, a: int, b: int, c: int) -> None:
    """Let pools without a limit serve requests, and then pools with a limit of just as much, or a chunk's worth."""
    if not writer.can(Capability.POOLS, Capability.POOL_LIMIT):
        fill_chunks(writer, a, b, c)
        return
    whole = whole_bytes(writer, MemoryKind.DEVICE, None)
    unit = writer.state.profile.granularity_bytes
    chunk = min(max(writer.chunk_bytes, unit), whole // 2)
    for size in (chunk, writer.size(b), whole // _PARTS[a & 3] + _EXTRA_BYTES[a >> 2 & 3]):
        _ask_new_pool(writer, None, size)
        rounded = -(-size // unit) * unit
        for limit in dict.fromkeys((rounded, max(rounded, chunk), 1 << (rounded - 1).bit_length())):
            _ask_new_pool(writer, limit, size, 1 if c & 1 else size)


def _ask_new_pool(writer: Writer, limit_bytes: int | None, *sizes: int) -> None:
    """Ask a pool that was made for this for blocks; free them, and destroy it."""
    pool, stream = writer.fresh("p"), writer.stream(0)
    writer.write(ops.CreatePool(pool, limit_bytes))
    for block in [allocate_block(writer, size, stream, pool=pool) for size in sizes]:
        free_block(writer, block)
    if not writer.state.pools[pool].blocks:
        writer.write(ops.DestroyPool(pool))


def _blocks(writer: Writer, size_bytes: int, count: int, pool: Slot | None = None) -> list[Block]:
    """Allocate so many blocks of one size, or as many as there is room for."""
    stream = writer.stream(0)
    room = max(1, whole_bytes(writer, MemoryKind.DEVICE, None) // size_bytes)
    return [allocate_block(writer, size_bytes, stream, pool=pool) for _ in range(min(count, room))]


def _in_order(blocks: list[Block], order: int) -> list[Block]:
    return (blocks, blocks[::-1], [*blocks[::2], *blocks[1::2]], blocks)[order]


def _trim(writer: Writer, pool: Slot | None = None) -> None:
    if writer.can(Capability.POOL):
        writer.write(ops.Trim(pool=pool))


OPENINGS: Final[tuple[Opening, ...]] = (climb, fill_counters, fill_chunks, reach_limits)


def end_in_flight(writer: Writer) -> None:
    """Launch on a stalled stream at the very end: the context then closes with work in flight and all that is owned."""
    if not writer.can(Capability.STREAMS, Capability.STALL, Capability.LAUNCH) or writer.state.captures:
        return
    stream = writer.fresh("s")
    writer.write(ops.CreateStream(stream))
    block = writer.fresh("b")
    writes: tuple[Slot, ...] = ()
    if writer.can(Capability.MEMORY):
        writer.write(ops.Allocate(block, writer.size(0), stream=stream))
        writes = (block,)
    writer.write(ops.Stall(stream))
    writer.write(ops.Launch(writes=writes, stream=stream))
