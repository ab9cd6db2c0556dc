"""Rules of policy: each applies only where the backend made the promise that it reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.footprints import (
    intact_block,
    is_anything_in_flight,
    is_in_use,
    is_of_destroyed_pool,
    worst_class,
)
from quiesce.allocators.oracle.memory import SOME_POOL, BackingRange, held_in_words
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import MAKING_BLOCKS, Rule, found
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Promise
from quiesce.model.findings import Finding, Grade
from quiesce.model.gauges import Gauge, best_reading
from quiesce.model.observations import BackingRefused, CopyEnqueued
from quiesce.model.operations import InjectedError, MemoryKind, Slot
from quiesce.model.outcomes import Done, OutOfMemory
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words

_KINDS: Final = {
    MemoryKind.DEVICE: Gauge.RESERVED,
    MemoryKind.MANAGED: Gauge.RESERVED,
    MemoryKind.PINNED: Gauge.PINNED,
}

_PINNED_UNIT_BYTES: Final = 512


def trim_returns_what_nobody_uses(model: Model, change: Change) -> Iterator[Finding]:
    """After a trim, everything still held has a block in it, or work that may be in flight."""
    operation = change.operation
    if not isinstance(operation, ops.Trim) or not isinstance(change.outcome, Done):
        return
    if model.captures.any_active or model.doubts.completion:
        return
    if operation.kind is MemoryKind.PINNED and _may_be_staging(model):
        return
    if model.memory.is_backing_seen(operation.kind):
        ranges = [
            held
            for start, end, held in model.memory.backing
            if _is_trimmed(model, operation, held) and not is_in_use(model, start, end, held)
        ]
        observed = held_in_words(ranges) if ranges else ""
    elif _is_alone(model, operation):
        size_bytes = best_reading(change.after, _KINDS[operation.kind]) or 0
        observed = bytes_in_words(size_bytes) if size_bytes else ""
    else:
        return
    if observed:
        yield found("no memory that nobody owns and no work uses", f"still held: {observed}", grade=Grade.CACHED)


def _may_be_staging(model: Model) -> bool:
    return model.staged and model.is_any_stream_busy()


def _is_trimmed(model: Model, operation: ops.Trim, held: BackingRange) -> bool:
    if held.is_shared:
        return False
    if operation.pool is not None:
        return held.pool == operation.pool
    # The host's memory is often said to be of the first device, whichever is current.
    elsewhere = held.device != model.device and (held.kind is MemoryKind.DEVICE or held.device > 0)
    # What was in flight when its pool was destroyed is nobody's any more.
    is_nobodys = held.pool is None or is_of_destroyed_pool(model, held)
    return held.kind is operation.kind and is_nobodys and not elsewhere


def _is_alone(model: Model, operation: ops.Trim) -> bool:
    """Whether the gauge counts nothing else than what the trim is about, and nobody uses any of that."""
    if operation.kind not in _KINDS or operation.pool is not None or model.pools or model.profile.devices > 1:
        return False
    if _KINDS[operation.kind] in model.doubts.kept:
        return False
    counted = {kind for kind, gauge in _KINDS.items() if gauge is _KINDS[operation.kind]}
    if operation.kind is MemoryKind.PINNED:
        counted.add(MemoryKind.PAGEABLE)  # which may lie in registered memory
    used = {kind for kind in counted if kind in model.asked.kinds or model.memory.is_backing_seen(kind)}
    others = used - {operation.kind}
    owned = any(block.kind in counted for block in model.blocks.values())
    return not (others or owned or model.empty_blocks or is_anything_in_flight(model))


def freed_block_serves_its_size(model: Model, change: Change) -> Iterator[Finding]:
    """A backend that reuses blocks is not out of memory for a request for which it has a block."""
    operation = change.operation
    if not isinstance(change.outcome, OutOfMemory) or not isinstance(operation, ops.Allocate) or model.intact is None:
        return
    if change.armed is not None or model.captures.any_active or not model.can(Capability.CAPACITY):
        return
    freed = intact_block(model, model.intact, operation)
    if freed is not None:
        yield found(
            f"allocated: '{freed.slot}' had as much memory on that stream, and its place is free", "out of memory"
        )


def pinned_source_is_copied_directly(model: Model, change: Change) -> Iterator[Finding]:
    """A source that is pinned already is the source of the copy; no other pinned buffer is made for it."""
    operation = change.operation
    if not isinstance(operation, ops.Stage):
        return
    source = model.blocks.get(operation.source)
    if source is None or source.kind is not MemoryKind.PINNED:
        return
    through = [o for o in change.observations if isinstance(o, CopyEnqueued) and o.source_address != source.address]
    before, after = (best_reading(readings, Gauge.PINNED) for readings in (change.before, change.after))
    grew = (after or 0) - (before or 0)
    if through or grew > 0:
        observed = f"pinned memory grew by {bytes_in_words(grew)}" if grew > 0 else "the copy reads another buffer"
        yield found(f"a copy from '{source.slot}' itself", observed, source.made_by)


def pinned_sizes_are_powers_of_two(model: Model, change: Change) -> Iterator[Finding]:
    """A pinned block that has a backing allocation to itself takes a power of two of 512 bytes, as in CuPy's pool."""
    made = change.made
    if made is None or made.kind is not MemoryKind.PINNED:
        return
    holding = model.memory.holding(made) if model.memory.is_backing_seen(made.kind) else []
    if not holding or holding[0].address != made.address or made.alignment_bytes:
        return
    units = -(-made.size_bytes // _PINNED_UNIT_BYTES)
    granularity = model.profile.granularity_bytes
    expected = -(-(_PINNED_UNIT_BYTES << (units - 1).bit_length()) // granularity) * granularity
    if holding[0].size_bytes != expected:
        yield found(
            f"{bytes_in_words(expected)} held for a pinned block of {bytes_in_words(made.size_bytes)}",
            f"{bytes_in_words(holding[0].size_bytes)} held",
            made.made_by,
        )


def destroyed_pools_own_nothing(model: Model, change: Change) -> Iterator[Finding]:
    """Once a pool is destroyed, everything that it took from the backing allocator is back, but for what is in flight.

    With blocks out, it may stay whole until the last of them is freed, or is refused as one that died with it.
    """
    operation = change.operation
    if isinstance(operation, ops.DestroyPool):
        pool = operation.slot if isinstance(change.outcome, Done) else None
    else:
        pool = change.orphan if change.armed is None else None
    if pool is None:
        return
    ranges = [
        held
        for start, end, held in model.memory.backing
        if held.pool == pool and not held.is_shared and not is_in_use(model, start, end, held)
    ]
    if ranges:
        last = ", and its last block is gone" if change.orphan else ""
        yield found(
            f"no memory held: pool '{pool.partition(SOME_POOL)[0]}' is destroyed{last}",
            f"still held: {held_in_words(ranges)}",
            grade=Grade.LIVE_LEAK,
        )


def growth_starts_over_after_squeeze(model: Model, change: Change) -> Iterator[Finding]:
    """When nothing is held any more, a pool asks for no more backing memory than it did for such a request at first."""
    operation = change.operation
    if not change.asks or not isinstance(operation, ops.Allocate):
        return
    size = max(operation.size_bytes, operation.alignment_bytes or 1)
    size_class = (size - 1).bit_length()
    # An aligned request may have a backing allocation to itself, and the next of its class a place in a chunk.
    key = (operation.pool, operation.kind, size_class, operation.alignment_bytes or 0)
    for ask in change.asks:
        seen = ask.observation
        if seen.kind is not operation.kind or ask.held_bytes:
            continue  # what others hold may make the first chunk a small one
        if ask is change.asks[0] and change.armed is None:  # nor is one the usual that comes after a failure
            model.chunks.first.setdefault(key, (seen.size_bytes, size))
        if key not in model.chunks.first:
            continue
        first, smallest = model.chunks.first[key]
        # The first request may have been the smallest of the class and this the largest: a chunk of n blocks doubles.
        most = (first if size <= smallest else 2 * first) + (2 << size_class)
        if seen.size_bytes > most:
            yield found(
                f"a chunk of at most {bytes_in_words(most)}, as for the first such request",
                f"a request to the backing allocator for {bytes_in_words(seen.size_bytes)}, with nothing held",
            )
            return


def pool_falls_back_to_a_smaller_chunk(model: Model, change: Change) -> Iterator[Finding]:
    """A pool that cannot get its usual chunk asks for a smaller one before it gives up.

    It is known to have a smaller one where it asked for one before, and where the usual one is about the largest that
    it declares: with one size of chunk, nobody promises to try another. How much smaller is its own business.
    """
    operation = change.operation
    if not change.asks or not isinstance(operation, ops.Allocate):
        return
    key = (operation.pool, operation.kind)
    sizes = [ask.observation.size_bytes for ask in change.asks if ask.observation.kind is operation.kind]
    if not sizes:
        return
    known = model.chunks.smallest_bytes.get(key, max(sizes))
    model.chunks.smallest_bytes[key] = min(known, *sizes)
    if not isinstance(change.outcome, OutOfMemory) or change.armed is InjectedError.FOREIGN:
        return
    if not all(isinstance(ask.observation, BackingRefused) for ask in change.asks):
        return
    is_smaller_tried = any(later < earlier for earlier, later in itertools.pairwise(sizes))
    if is_smaller_tried or _is_short_of_a_chunk(model, operation.pool):
        return
    least = 2 * worst_class(model, operation.size_bytes + (operation.alignment_bytes or 0))
    largest = max(least, min(known, model.description.chunk_bytes // 2))
    if min(sizes) > largest:
        yield found(
            f"a last attempt with at most {bytes_in_words(largest)}",
            f"it gave up after it asked for {bytes_in_words(min(sizes))}",
        )


def _is_short_of_a_chunk(model: Model, pool: Slot | None) -> bool:
    """Whether a pool's limit leaves less than its largest chunk: what it asks for may be the smaller one already."""
    limit = model.pools.get(pool) if pool is not None else None
    if limit is None:
        return False
    of_pool = (each for _, _, each in model.memory.backing if each.pool in (pool, SOME_POOL) or each.is_shared)
    held_bytes = sum(held.size_bytes for held in of_pool)
    return limit - held_bytes < model.description.chunk_bytes


RULES: Final = (
    Rule("A destroyed pool holds nothing.", Kind.MEMORY_LEAK, destroyed_pools_own_nothing, (ops.DestroyPool, ops.Free)),
    Rule(
        "A freed block serves the next request of its size, alignment, pool and stream.",
        Kind.NOT_REUSED,
        freed_block_serves_its_size,
        (ops.Allocate,),
        promise=Promise.REUSES_BLOCKS,
    ),
    Rule(
        "After a trim, a pool holds only memory that is owned or in flight.",
        Kind.NOT_RELEASED,
        trim_returns_what_nobody_uses,
        (ops.Trim,),
        promise=Promise.TRIMS_TO_ZERO,
    ),
    Rule(
        "A pinned source is staged without another pinned buffer.",
        Kind.NEEDLESS_COPY,
        pinned_source_is_copied_directly,
        (ops.Stage,),
        promise=Promise.STAGES_PINNED_DIRECTLY,
    ),
    Rule(
        "Pinned requests are rounded to powers of two.",
        Kind.FRAGMENTATION,
        pinned_sizes_are_powers_of_two,
        MAKING_BLOCKS,
        "made",
        promise=Promise.ROUNDS_PINNED_TO_POWERS_OF_TWO,
    ),
    Rule(
        "After everything was released, a pool grows from its first chunk size again.",
        Kind.NOT_REUSED,
        growth_starts_over_after_squeeze,
        (ops.Allocate,),
        "asks",
        promise=Promise.GROWTH_RESETS,
    ),
    Rule(
        "A pool that cannot grow by its usual chunk tries a smaller one before it fails.",
        Kind.MISSING_RETRY,
        pool_falls_back_to_a_smaller_chunk,
        (ops.Allocate,),
        "asks",
        promise=Promise.RETRIES_SMALLER,
    ),
)
