"""What memory a request could need at worst, and what could be free for it at worst: the basis of every OOM verdict.

Every bound errs on the allocator's side: what is not known to be free counts as taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quiesce.allocators.oracle.blocks import BlockState
from quiesce.allocators.oracle.clocks import Clock, StreamState
from quiesce.allocators.oracle.memory import ON_THE_DEVICE, SOME_POOL, BackingRange
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.promised import IntactBlocks
from quiesce.model import operations as ops
from quiesce.model.backend import Promise
from quiesce.model.operations import MemoryKind, Slot

LARGE_REQUEST_BYTES: Final = 1 << 20
"""Above this, ``exact-footprint`` holds: no pool of the catalogue that promises it cuts a chunk for such a request."""

SHARED_CHUNK_BYTES: Final = 4 << 20
"""So large a chunk serves more than one small block. A block may have smaller pages of a device to itself."""
_BLOCKS_OF_A_CHUNK: Final = 64
_CHUNKS_LEAST: Final = 4


def worst_footprint(model: Model, kind: MemoryKind, size_bytes: int, alignment_bytes: int = 0) -> int:
    """Return the most backing bytes that a correct backend of this description takes for one request.

    An alignment beyond the backend's own may cost as much again: the allocator may ask for size and alignment.
    """
    rounded = _round(model, size_bytes)
    if alignment_bytes > model.description.alignment_bytes:
        rounded += _round(model, alignment_bytes)
    exact = model.promises(Promise.EXACT_FOOTPRINT) and kind in ON_THE_DEVICE
    if exact and size_bytes > LARGE_REQUEST_BYTES:
        return rounded
    return _scale(model, rounded) + model.description.chunk_bytes


def known_footprint(model: Model, request: ops.Allocate) -> int | None:
    """Return the most that a request takes as it was served before, when its pool held nothing; None: it was not.

    A pool that grows takes its next chunk in addition, unless it promises to start over and can give back all it has.
    """
    taken = model.chunks.from_nothing.of_pool(request)
    if taken is None:
        return None
    starts_over = model.promises(Promise.GROWTH_RESETS) and _holds_nothing_that_stays(model, request)
    return taken if starts_over else taken + model.description.chunk_bytes


def _holds_nothing_that_stays(model: Model, request: ops.Allocate) -> bool:
    """Whether all that the pool of a request holds can be given back, as far as that is known."""
    must_stay = _must_stay(model)
    of_pool = (each for each in model.memory.backing if each[2].pool in (request.pool, SOME_POOL) or each[2].is_shared)
    return not any(held.pool == SOME_POOL or must_stay(model, start, end, held) for start, end, held in of_pool)


def worst_class(model: Model, size_bytes: int) -> int:
    """Return the most bytes that one block takes inside a chunk."""
    return max(_scale(model, _round(model, size_bytes)), 1 << (size_bytes - 1).bit_length() if size_bytes else 1)


def _round(model: Model, size_bytes: int) -> int:
    granularity = model.profile.granularity_bytes
    return -(-size_bytes // granularity) * granularity


def _scale(model: Model, rounded_bytes: int) -> int:
    factor = model.description.footprint_factor
    if factor == 1:  # a request that is not large may still go to a class of a power of two
        return max(rounded_bytes, 1 << (rounded_bytes - 1).bit_length())
    return factor * rounded_bytes


def certain_room(model: Model, kind: MemoryKind, pool: Slot | None) -> int:
    """Return the largest contiguous room that is certainly free once everything cached was released.

    n pinned ranges leave at least one hole of a (n+1)-th of the rest. What is in flight counts as taken unless the
    backend promises to wait for it.
    """
    capacity = model.profile.pinned_capacity_bytes if kind is MemoryKind.PINNED else model.profile.capacity_bytes
    is_seen = model.memory.is_backing_seen(kind)
    pinned = _pinned_backing(model, kind, pool) if is_seen else _pinned_at_worst(model, kind)
    if pinned is None:
        return 0
    taken, count, by_pool = pinned
    room = max(0, capacity - taken) // (count + 1)
    limit = _limit(model, pool)
    return room if limit is None else min(room, max(0, limit - by_pool))


def _limit(model: Model, pool: Slot | None) -> int | None:
    return model.pools.get(pool) if pool is not None else None


def _pinned_backing(model: Model, kind: MemoryKind, pool: Slot | None) -> tuple[int, int, int] | None:
    """Return bytes and number of the backing ranges that cannot go, and the pool's own bytes of them.

    None where that is not known. Those of a pool without a limit are not looked for.
    """
    if kind is MemoryKind.PINNED and model.staged:
        return None  # a library's own buffers cannot be told from its cache
    shared = model.promises(Promise.SHARES_BACKING)
    must_stay = _must_stay(model)
    kinds = ON_THE_DEVICE if kind in ON_THE_DEVICE else (kind,)
    limited = _limit(model, pool) is not None
    pinned = count = by_pool = 0
    for start, end, held in model.memory.backing:
        if held.kind not in kinds:
            continue
        own = held.pool == SOME_POOL or held.pool in model.orphans  # it may be the library's own, or stay for a block
        is_left = is_of_destroyed_pool(model, held)  # then it's nobody's, but nobody promises to wait for it either
        of_others = held.kind is not kind or (held.pool != pool and not is_left) or held.is_shared
        if own or (of_others and not shared) or (is_in_use if is_left else must_stay)(model, start, end, held):
            pinned += held.size_bytes
            count += 1
            by_pool += held.size_bytes if limited and _is_of_pool(model, start, end, held, pool) else 0
    return pinned, count, by_pool


def _must_stay(model: Model) -> Callable[[Model, int, int, BackingRange], bool]:
    """Return what says whether a backing range can't go when memory runs out."""
    return _is_owned if model.promises(Promise.WAITS_BEFORE_OOM) else is_in_use


def is_of_destroyed_pool(model: Model, held: BackingRange) -> bool:
    """Whether a backing range is what a destroyed pool left in flight, and not for blocks that stay."""
    return held.pool not in (None, SOME_POOL) and held.pool not in model.pools | model.orphans.keys()


def _is_of_pool(model: Model, start: int, end: int, held: BackingRange, pool: Slot | None) -> bool:
    """Whether a backing range may count against a pool's limit: it was taken for it, or holds something of it."""
    blocks = [block for _, _, block in model.memory.live.overlapping(start, end)]
    blocks += [freed.block for _, _, freed in model.memory.guarded.overlapping(start, end)]
    return held.pool in (pool, SOME_POOL) or held.is_shared or any(block.pool == pool for block in blocks)


def intact_block(model: Model, intact: IntactBlocks, request: ops.Allocate) -> BlockState | None:
    """Return a freed block of the request's size on its stream that nothing is in the way of, or None.

    The device's memory alone: a library may put buffers of its own into the host's. Blocks of no bytes may be anywhere.
    """
    if request.kind not in ON_THE_DEVICE or model.empty_blocks or not model.memory.is_backing_seen(request.kind):
        return None
    if _limit(model, request.pool) is not None:
        return None  # a limit may count more than was asked for
    waits = model.promises(Promise.WAITS_BEFORE_OOM)
    stream = model.stream(request.stream)
    margin_bytes = worst_class(model, request.size_bytes + (request.alignment_bytes or 0)) - request.size_bytes
    for idle in intact.like(request, stream):
        held = model.memory.holding(idle.block)
        if not held or held[-1].end < idle.block.end or (_may_be_pending(model, idle.guard) and not waits):
            continue
        if intact.is_in_place(idle, margin_bytes, range(held[0].address, held[-1].end)):
            return idle.block
    return None


def shared_chunks(model: Model, request: ops.Allocate) -> list[BackingRange]:
    """Return the chunks of the request's pool that hold a few blocks like it, and held nothing else: they have room.

    A chunk of a few MiB is there to be shared by blocks that are so much smaller. Page by page may be taken for each
    of them, so smaller chunks say nothing. Nor does a single one: an allocator may have begun another for its reasons.
    """
    if (
        model.empty_blocks
        or model.runtime.instances
        or model.tape.was_used
        or model.graphs
        or model.captures.any_active
    ):
        return []
    if not model.memory.is_backing_seen(request.kind) or (request.kind is MemoryKind.PINNED and model.staged):
        return []
    stream = model.stream(request.stream)
    asked = (request.size_bytes, request.alignment_bytes or 0, request.kind, request.pool, stream)
    class_bytes = worst_class(model, request.size_bytes + (request.alignment_bytes or 0))
    least_bytes = max(SHARED_CHUNK_BYTES, _BLOCKS_OF_A_CHUNK * class_bytes)
    found = []
    for start, end, held in model.memory.backing:
        if held.size_bytes < least_bytes or not _is_untouched(model, held):
            continue
        blocks = [block for _, _, block in model.memory.live.overlapping(start, end)]
        alike = all((b.size_bytes, b.alignment_bytes, b.kind, b.pool, b.stream) == asked for b in blocks)
        if blocks and alike and 4 * len(blocks) * class_bytes <= held.size_bytes and held.device == blocks[0].device:
            found.append(held)
    return found if len(found) >= _CHUNKS_LEAST else []


def _is_untouched(model: Model, held: BackingRange) -> bool:
    """Whether nothing but the blocks in a backing range was ever in it."""
    was_freed_in = bool(held.freed_on or held.used_on or held.freed_behind or held.graphs or held.is_shared)
    return not was_freed_in and held.launches_before == model.memory.scratch.launches


def is_in_use(model: Model, start: int, end: int, held: BackingRange) -> bool:
    """Whether a backing range may have to stay: a block is in it, or work that may be in flight."""
    if _is_owned(model, start, end, held):
        return True
    if any(_may_be_pending(model, behind) for behind in model.memory.behind_of(held)):
        return True
    if _is_any_busy(model, model.memory.streams_of(held)):
        return True
    if any(_is_any_busy(model, graph.launched_on.values()) for graph in held.graphs):
        return True
    return any(_may_be_pending(model, freed.guard) for _, _, freed in model.memory.guarded.overlapping(start, end))


def _is_owned(model: Model, start: int, end: int, held: BackingRange) -> bool:
    """Whether a block is in a backing range, or a graph may use it: then it stays, whatever else is waited for."""
    if model.memory.live.overlapping(start, end) or any(not graph.is_gone for graph in held.graphs):
        return True
    return any(addresses.start < end and start < addresses.stop for addresses in model.empty_blocks.values())


def is_anything_in_flight(model: Model) -> bool:
    """Whether some freed memory may still be used by work, or wait for its turn on a stream."""
    memory = model.memory
    return (
        _may_be_pending(model, memory.freed_behind)
        or _is_any_busy(model, memory.freed_on.values())
        or _is_any_busy(model, memory.scratch.streams(0))
        or any(_may_be_pending(model, behind) for behind in memory.scratch.deferred(0))
        or any(not graph.is_gone or _is_any_busy(model, graph.launched_on.values()) for graph in memory.graphs)
        or any(_may_be_pending(model, freed.guard) for _, _, freed in memory.guarded)
    )


def _is_anything_unwaited(model: Model) -> bool:
    """Whether some freed memory may still be used by work that nobody promises to wait for.

    That is work of graphs too, and what is left of a pool that was destroyed.
    """
    memory = model.memory
    if not model.promises(Promise.WAITS_BEFORE_OOM) or memory.graphs:
        return is_anything_in_flight(model)
    orphaned = (freed for _, _, freed in memory.guarded if freed.block.pool not in (None, *model.pools))
    return any(_may_be_pending(model, freed.guard) for freed in orphaned)


def _is_any_busy(model: Model, streams: Iterable[StreamState]) -> bool:
    """Whether one of the streams may hold something unfinished.

    Memory may go back in the order of the stream that it was last on, and so behind what that was given since:
    ``clEnqueueSVMFree`` frees when its command runs (OpenCL API), ``cudaFreeAsync`` in stream order (CUDA Runtime API).
    Where that stream is gone, it may go back in the default one's.
    """
    remaining = (model.remaining(stream, stream.device) for stream in streams)
    return any(model.order.may_be_busy(stream) for stream in remaining)


def _may_be_pending(model: Model, clock: Clock) -> bool:
    """Whether anything in a clock may be unfinished.

    An order that only a record, a wait or a library's own action could have made, if those take part in the legacy
    default stream's order, completes nothing for certain.
    """
    return not model.order.is_surely_complete(clock)


def _pinned_at_worst(model: Model, kind: MemoryKind) -> tuple[int, int, int] | None:
    """Return the same where the backing allocator is not seen, from what the sequence owns alone.

    A small block may hold all that a larger one left, which goes back as a whole or not at all.
    """
    kinds = ON_THE_DEVICE if kind in ON_THE_DEVICE else (kind,)
    if model.doubts.kept:
        return None
    if model.empty_blocks or _is_anything_unwaited(model) or len(model.asked.kinds.intersection(kinds) - {kind}):
        return None
    if (model.pools and not model.promises(Promise.SHARES_BACKING)) or (kind is MemoryKind.PINNED and model.staged):
        return None
    blocks = [block for _, _, block in model.memory.live if block.kind in kinds]
    if model.pools and any(block.may_lie_in_bytes for block in blocks):
        return None  # what several blocks left may have become one chunk, whose rest is of no use to another pool
    chunk = model.description.chunk_bytes
    sizes = (max(block.size_bytes + block.alignment_bytes, block.may_lie_in_bytes) for block in blocks)
    taken = sum(_scale(model, _round(model, size)) + chunk for size in sizes)
    return taken, len(blocks), taken  # which pool has how much of it is not known
