"""Rules of policy: each applies only where the backend made the promise that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.footprints import intact_block, is_anything_in_flight, is_in_use
from quiesce.allocators.oracle.memory import SOME_POOL, BackingRange, held_in_words
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import MAKING_BLOCKS, Rule, found
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Promise
from quiesce.model.findings import Finding, Grade
from quiesce.model.gauges import Gauge, best_reading
from quiesce.model.observations import CopyEnqueued
from quiesce.model.operations import MemoryKind
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
    if not model.promises(Promise.TRIMS_TO_ZERO) or model.captures.any_active or model.completion_in_doubt:
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
        yield found(
            "trim_returns_what_nobody_uses",
            "no memory that nobody owns and no work uses",
            f"still held: {observed}",
            grade=Grade.CACHED,
        )


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
    orphaned = held.pool not in (None, SOME_POOL) and held.pool not in model.pools | model.orphans.keys()
    return held.kind is operation.kind and (held.pool is None or orphaned) and not elsewhere


def _is_alone(model: Model, operation: ops.Trim) -> bool:
    """Whether the gauge counts nothing else than what the trim is about, and nobody uses any of that."""
    if operation.kind not in _KINDS or operation.pool is not None or model.pools or model.profile.devices > 1:
        return False
    if _KINDS[operation.kind] in model.kept_unseen:
        return False
    counted = {kind for kind, gauge in _KINDS.items() if gauge is _KINDS[operation.kind]}
    if operation.kind is MemoryKind.PINNED:
        counted.add(MemoryKind.PAGEABLE)  # which may lie in registered memory
    used = {kind for kind in counted if kind in model.kinds_used or model.memory.is_backing_seen(kind)}
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
            "freed_block_serves_its_size",
            f"allocated: '{freed.slot}' had as much memory on that stream, and its place is free",
            "out of memory",
        )


def pinned_source_is_copied_directly(model: Model, change: Change) -> Iterator[Finding]:
    """A source that is pinned already is the source of the copy; no other pinned buffer is made for it."""
    operation = change.operation
    if not isinstance(operation, ops.Stage) or not model.promises(Promise.STAGES_PINNED_DIRECTLY):
        return
    source = model.blocks.get(operation.source)
    if source is None or source.kind is not MemoryKind.PINNED:
        return
    through = [o for o in change.observations if isinstance(o, CopyEnqueued) and o.source_address != source.address]
    before, after = (best_reading(readings, Gauge.PINNED) for readings in (change.before, change.after))
    grew = (after or 0) - (before or 0)
    if through or grew > 0:
        observed = f"pinned memory grew by {bytes_in_words(grew)}" if grew > 0 else "the copy reads another buffer"
        yield found("pinned_source_is_copied_directly", f"a copy from '{source.slot}' itself", observed, source.made_by)


def pinned_sizes_are_powers_of_two(model: Model, change: Change) -> Iterator[Finding]:
    """A pinned block that has a backing allocation to itself takes a power of two of 512 bytes, as in CuPy's pool."""
    made = change.made
    if made is None or made.kind is not MemoryKind.PINNED or not model.promises(Promise.ROUNDS_PINNED_TO_POWERS_OF_TWO):
        return
    holding = model.memory.holding(made) if model.memory.is_backing_seen(made.kind) else []
    if not holding or holding[0].address != made.address or made.alignment_bytes:
        return
    units = -(-made.size_bytes // _PINNED_UNIT_BYTES)
    granularity = model.profile.granularity_bytes
    expected = -(-(_PINNED_UNIT_BYTES << (units - 1).bit_length()) // granularity) * granularity
    if holding[0].size_bytes != expected:
        yield found(
            "pinned_sizes_are_powers_of_two",
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
            "destroyed_pools_own_nothing",
            f"no memory held: pool '{pool.partition(SOME_POOL)[0]}' is destroyed{last}",
            f"still held: {held_in_words(ranges)}",
            grade=Grade.LIVE_LEAK,
        )


RULES: Final = (
    Rule(
        "destroyed_pools_own_nothing",
        "A destroyed pool holds nothing.",
        Kind.MEMORY_LEAK,
        destroyed_pools_own_nothing,
        (ops.DestroyPool, ops.Free),
    ),
    Rule(
        "freed_block_serves_its_size",
        "A freed block serves the next request of its size, alignment, pool and stream.",
        Kind.NOT_REUSED,
        freed_block_serves_its_size,
        (ops.Allocate,),
    ),
    Rule(
        "trim_returns_what_nobody_uses",
        "After a trim, a pool holds only memory that is owned or in flight.",
        Kind.NOT_RELEASED,
        trim_returns_what_nobody_uses,
        (ops.Trim,),
    ),
    Rule(
        "pinned_source_is_copied_directly",
        "A pinned source is staged without another pinned buffer.",
        Kind.NEEDLESS_COPY,
        pinned_source_is_copied_directly,
        (ops.Stage,),
    ),
    Rule(
        "pinned_sizes_are_powers_of_two",
        "Pinned requests are rounded to powers of two.",
        Kind.FRAGMENTATION,
        pinned_sizes_are_powers_of_two,
        MAKING_BLOCKS,
        "made",
    ),
)
