"""Invariants of policy: each applies only where the backend made the promise that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce import operations as ops
from quiesce.backend import Promise
from quiesce.findings import Finding, Grade
from quiesce.gauges import Gauge, best_reading
from quiesce.observations import CopyEnqueued, UpstreamAllocated, UpstreamRefused
from quiesce.operations import MemoryKind
from quiesce.oracle.memory import UpstreamRange
from quiesce.oracle.model import Change, Model
from quiesce.oracle.rules import Invariant, found
from quiesce.outcomes import Done

_KINDS: Final = {MemoryKind.DEVICE: Gauge.RESERVED, MemoryKind.PINNED: Gauge.PINNED}


def trim_returns_what_nobody_uses(model: Model, change: Change) -> Iterator[Finding]:
    """After a trim, everything still held has a block in it, or work that may be in flight."""
    operation = change.operation
    if not isinstance(operation, ops.Trim) or not isinstance(change.outcome, Done):
        return
    if not model.promises(Promise.TRIMS_TO_ZERO) or model.captures.any_active:
        return
    if model.memory.upstream_seen:
        kept = [held for held in model.memory.upstream if _is_trimmed(operation, held[2].kind, held[2].pool)]
        idle = [(start, end) for start, end, held in kept if not _in_use(model, start, end, held)]
        observed = sum(end - start for start, end in idle)
    else:
        if operation.kind not in _KINDS or any(True for _ in model.memory.live) or _any_in_flight(model):
            return
        observed = best_reading(change.after, _KINDS[operation.kind]) or 0
    if observed:
        yield found(
            "trim_returns_what_nobody_uses",
            "0 bytes that nobody owns and no work uses",
            f"{observed} bytes are still held",
            grade=Grade.CACHED,
        )


def _is_trimmed(operation: ops.Trim, kind: MemoryKind, pool: str | None) -> bool:
    if operation.pool is not None:
        return pool == operation.pool
    return kind is operation.kind and pool is None


def _in_use(model: Model, start: int, end: int, held: UpstreamRange) -> bool:
    if held.kind is MemoryKind.DEVICE and held.last_freed_on is not None and held.last_freed_on.stalled_from is not None:
        return True  # a free ordered on a stalled stream has not happened yet
    if model.memory.live.overlapping(start, end):
        return True
    return any(
        not model.order.is_ordered(freed.guard, None) for _, _, freed in model.memory.guarded.overlapping(start, end)
    )


def _any_in_flight(model: Model) -> bool:
    return any(not model.order.is_ordered(freed.guard, None) for _, _, freed in model.memory.guarded)


def growth_starts_over_after_squeeze(model: Model, change: Change) -> Iterator[Finding]:
    """When nothing is held any more, a pool does not ask upstream for more than it did for such a request at first."""
    operation = change.operation
    if not isinstance(operation, ops.Allocate) or not model.promises(Promise.GROWTH_RESETS):
        return
    size_class = max(operation.size_bytes - 1, 0).bit_length()
    key = (operation.pool, size_class)
    held = model.memory.held_bytes[operation.pool]
    for observation in change.observations:
        if not isinstance(observation, UpstreamAllocated | UpstreamRefused) or observation.kind is not operation.kind:
            continue
        size = observation.size_bytes
        if isinstance(observation, UpstreamAllocated):
            held -= size
        first = model.first_chunk_bytes.setdefault(key, size)
        if held <= 0 and size > max(first, 2 << size_class):
            yield found(
                "growth_starts_over_after_squeeze",
                f"a chunk of at most {first} bytes, as for the first such request",
                f"{size} bytes asked of upstream with nothing held",
            )
            return


def pool_falls_back_to_a_smaller_chunk(model: Model, change: Change) -> Iterator[Finding]:
    """A pool that cannot get its usual chunk asks for a smaller one before it gives up."""
    if not model.promises(Promise.RETRIES_SMALLER) or not isinstance(change.operation, ops.Allocate):
        return
    refused = [o.size_bytes for o in change.observations if isinstance(o, UpstreamRefused)]
    grew = any(isinstance(o, UpstreamAllocated) for o in change.observations)
    if not refused or grew or change.made is not None or model.failure_armed:
        return
    granularity = model.profile.granularity_bytes
    rounded = -(-change.operation.size_bytes // granularity) * granularity
    least = max(granularity, 1 << (rounded - 1).bit_length()) if rounded else granularity
    if min(refused) > 2 * least:
        yield found(
            "pool_falls_back_to_a_smaller_chunk",
            f"a last attempt of about {least} bytes",
            f"gave up after asking for {min(refused)}",
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
        observed = f"pinned memory grew by {grew} bytes" if grew > 0 else "the copy reads another buffer"
        yield found(
            "pinned_source_is_copied_directly", f"a copy from '{source.slot}' itself", observed, source.made_by
        )


def destroyed_pools_own_nothing(model: Model, change: Change) -> Iterator[Finding]:
    """Once a pool is destroyed, everything that it took from upstream is back."""
    operation = change.operation
    if not isinstance(operation, ops.DestroyPool) or not isinstance(change.outcome, Done):
        return
    held = model.memory.held_bytes[operation.slot]
    if held:
        yield found("destroyed_pools_own_nothing", "0 bytes held", f"{held} bytes held", grade=Grade.LIVE_LEAK)


INVARIANTS: Final = (
    Invariant("destroyed_pools_own_nothing", "A destroyed pool holds nothing.", "UP", destroyed_pools_own_nothing),
    Invariant(
        "growth_starts_over_after_squeeze", "Growth starts over.", "RETRY", growth_starts_over_after_squeeze
    ),
    Invariant(
        "pool_falls_back_to_a_smaller_chunk", "Smaller chunks are tried.", "RETRY", pool_falls_back_to_a_smaller_chunk
    ),
    Invariant("trim_returns_what_nobody_uses", "Trim returns the unused.", "UP", trim_returns_what_nobody_uses),
    Invariant("pinned_source_is_copied_directly", "Pinned is staged directly.", "PEND", pinned_source_is_copied_directly),
)
