"""Rules of growth: how much a request takes from the backing allocator, and how it asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.footprints import worst_class
from quiesce.allocators.oracle.memory import SOME_POOL
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.rule import Rule, found
from quiesce.model import operations as ops
from quiesce.model.backend import Promise
from quiesce.model.findings import Finding
from quiesce.model.observations import BackingRefused
from quiesce.model.operations import Slot
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words


def growth_starts_over_after_squeeze(model: Model, change: Change) -> Iterator[Finding]:
    """When nothing is held any more, a pool asks for no more backing memory than it did for such a request at first."""
    operation = change.operation
    if not change.asks or not isinstance(operation, ops.Allocate) or not model.promises(Promise.GROWTH_RESETS):
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
            model.first_chunks.setdefault(key, (seen.size_bytes, size))
        if key not in model.first_chunks:
            continue
        first, smallest = model.first_chunks[key]
        # The first request may have been the smallest of the class and this the largest: a chunk of n blocks doubles.
        most = (first if size <= smallest else 2 * first) + (2 << size_class)
        if seen.size_bytes > most:
            yield found(
                "growth_starts_over_after_squeeze",
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
    if not change.asks or not isinstance(operation, ops.Allocate) or not model.promises(Promise.RETRIES_SMALLER):
        return
    key = (operation.pool, operation.kind)
    sizes = [ask.observation.size_bytes for ask in change.asks if ask.observation.kind is operation.kind]
    if not sizes:
        return
    known = model.smallest_chunk_bytes.get(key, max(sizes))
    model.smallest_chunk_bytes[key] = min(known, *sizes)
    if change.made is not None or change.armed is not None:
        return
    if not all(isinstance(ask.observation, BackingRefused) for ask in change.asks):
        return
    if min(sizes) < max(sizes) or _is_short_of_a_chunk(model, operation.pool):
        return
    least = 2 * worst_class(model, operation.size_bytes + (operation.alignment_bytes or 0))
    largest = max(least, min(known, model.description.chunk_bytes // 2))
    if min(sizes) > largest:
        yield found(
            "pool_falls_back_to_a_smaller_chunk",
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
    Rule(
        "growth_starts_over_after_squeeze",
        "After everything was released, a pool grows from its first chunk size again.",
        Kind.NOT_REUSED,
        growth_starts_over_after_squeeze,
        (ops.Allocate,),
        "asks",
    ),
    Rule(
        "pool_falls_back_to_a_smaller_chunk",
        "A pool that cannot grow by its usual chunk tries a smaller one before it fails.",
        Kind.MISSING_RETRY,
        pool_falls_back_to_a_smaller_chunk,
        (ops.Allocate,),
        "asks",
    ),
)
