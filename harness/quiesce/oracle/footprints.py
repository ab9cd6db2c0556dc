"""What memory a request could need at worst, and what could be free for it at worst: the basis of every OOM verdict."""

from __future__ import annotations

from typing import Final

from quiesce.backend import Promise
from quiesce.operations import MemoryKind, Slot
from quiesce.oracle.model import Model

LARGE_REQUEST_BYTES: Final = 1 << 20
"""Above this, ``exact-footprint`` holds (every pool of the catalogue that promises it cuts no chunk for such a request)."""


def worst_footprint(model: Model, size_bytes: int) -> int:
    """Return the most bytes that a correct backend of this description takes upstream for one request."""
    granularity = model.profile.granularity_bytes
    rounded = -(-size_bytes // granularity) * granularity
    if model.promises(Promise.EXACT_FOOTPRINT) and size_bytes > LARGE_REQUEST_BYTES:
        return rounded
    factor = model.description.footprint_factor
    scaled = rounded if factor == 1 else factor * rounded
    if model.promises(Promise.EXACT_FOOTPRINT) or factor == 1:
        scaled = max(scaled, 1 << (rounded - 1).bit_length()) if rounded else granularity
    if model.promises(Promise.RETRIES_SMALLER):
        return scaled
    return scaled + model.description.chunk_bytes


def certain_room(model: Model, kind: MemoryKind, pool: Slot | None) -> int:
    """Return the largest contiguous room that is certainly free once everything reclaimable went back upstream.

    Memory that blocks in the sequence's hands pin is counted at its worst; n pinned ranges leave at least one hole of
    a (n+1)-th of the rest.
    """
    capacity = model.profile.pinned_capacity_bytes if kind is MemoryKind.PINNED else model.profile.capacity_bytes
    limit = model.pools.get(pool) if pool is not None else None
    if limit is not None:
        capacity = min(capacity, limit)
    if model.memory.upstream_seen:
        pinned, count = _pinned_upstream(model, kind, pool)
    else:
        pinned, count = _pinned_at_worst(model, kind)
    if limit is not None and limit <= capacity:
        return max(0, capacity - pinned)  # a limit counts bytes; the device below it has room to spare or not
    return max(0, capacity - pinned) // (count + 1)


def _pinned_upstream(model: Model, kind: MemoryKind, pool: Slot | None) -> tuple[int, int]:
    shared = model.promises(Promise.SHARES_UPSTREAM)
    pinned = count = 0
    for start, end, held in model.memory.upstream:
        if held.kind is not kind:
            continue
        foreign = held.pool != pool and not shared
        if foreign or model.memory.live.overlapping(start, end):
            pinned += held.size_bytes
            count += 1
    return pinned, count


def _pinned_at_worst(model: Model, kind: MemoryKind) -> tuple[int, int]:
    blocks = [block for _, _, block in model.memory.live if block.kind is kind]
    chunk = model.description.chunk_bytes
    return sum(worst_footprint(model, block.size_bytes) + chunk for block in blocks), len(blocks)
