"""Correct allocators of different policy, each with declarations of its own. No finding on any of them is legal."""

from __future__ import annotations

from typing import Final

from quiesce.model.backend import Capability, Promise
from quiesce.model.gauges import Gauge

from .arenas import Buddy, Bump, Coarse, Slab
from .bench import BOTH, CLAIM, Traits, Trial
from .caching import BestFit, Direct, Exact, HugePages, Polling, PowersOfTwo
from .heap import Placement
from .hoarding import Arena
from .lifetimes import LeavesWhatIsBusy, SharesADevice, StaysForItsBlocks
from .slabs import Chunks, CountedSlabs
from .unusual import (
    CostBench,
    Counted,
    DefragmentsOnTrim,
    Doubling,
    GuardPages,
    Heaps,
    Quarantine,
    RecyclingBench,
    ReservesAtOnce,
    ReturnsInQueueOrder,
    StopsTheWorld,
    TakesAnyErrorForLackOfMemory,
)

_COUNTS = (Gauge.LIVE, Gauge.BLOCKS, Gauge.RESERVED, Gauge.PINNED, Gauge.STREAMS, Gauge.EVENTS, Gauge.BACKING_CALLS)
_EVERY = dict.fromkeys((*_COUNTS, Gauge.RETAINED), BOTH)
_CLAIMS = dict.fromkeys(_COUNTS, CLAIM)
_HELD = {Gauge.RESERVED: BOTH, Gauge.PINNED: CLAIM}

_POOL = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.CAPACITY_LIMIT, Promise.TRIMS_TO_ZERO, Promise.GROWTH_RESETS})
_POOL |= {Promise.WAITS_BEFORE_OOM, Promise.PASSES_FOREIGN_ERRORS}
_TRACKED = _POOL | {Promise.TRACKS_USES}
_IN_PLACE = frozenset({Promise.REUSES_BLOCKS, Promise.CAPACITY_LIMIT})

CORRECT: Final[tuple[Trial, ...]] = (
    Trial("powers of two", PowersOfTwo, promises=_TRACKED | _IN_PLACE, gauges=_EVERY),
    Trial(
        "powers of two, claims only",
        PowersOfTwo,
        Traits(zero="unique", stall_is_work=True),
        promises=_POOL,
        gauges=_CLAIMS,
        backing_ledger=False,
        order_ledger=False,
    ),
    Trial(
        "huge pages",
        HugePages,
        Traits(zero="unique", huge_is_invalid=True, alignment_max=256, pageable_copies_block=False),
        promises=_TRACKED | {Promise.RETRIES_SMALLER, Promise.STAGES_PINNED_DIRECTLY},
        gauges=_EVERY,
    ),
    Trial(
        "exact sizes from the top down",
        Exact,
        Traits(placement=Placement.HIGHEST, live_counts_host=False, tracks_uses=False),
        promises=_POOL | {Promise.EXACT_FOOTPRINT},
        gauges=_EVERY,
    ),
    Trial(
        "best fit, addresses never again",
        BestFit,
        Traits(placement=Placement.NEVER_AGAIN, live_counts_footprint=False, stages_through_buffer=True),
        promises=_TRACKED,
        gauges=_HELD,
        order_ledger=False,
    ),
    Trial(
        "nothing is kept",
        Direct,
        Traits(zero="rejected", copies_itself=False),
        promises=_TRACKED | {Promise.EXACT_FOOTPRINT, Promise.RETRIES_SMALLER, Promise.STAGES_PINNED_DIRECTLY},
        without=frozenset({Capability.POOL}),
        gauges=_EVERY,
    ),
    Trial(
        "nothing is kept, nothing is told",
        Direct,
        Traits(huge_is_invalid=True, stall_is_work=True),
        promises=_TRACKED | {Promise.EXACT_FOOTPRINT},
        without=frozenset({Capability.POOL}),
        order_ledger=False,
    ),
    Trial("coarse chunks", Coarse, promises=_TRACKED | {Promise.RETRIES_SMALLER}, gauges=_EVERY, chunk_bytes=33 << 20),
    Trial(
        "coarse chunks, mute",
        Coarse,
        Traits(zero="unique", tracks_uses=False, refuses_busy_pools=True),
        promises=_POOL,
        backing_ledger=False,
        order_ledger=False,
        chunk_bytes=33 << 20,
    ),
    Trial("bump with reset", Bump, Traits(zero="unique", stall_is_work=True), gauges=_EVERY),
    Trial(
        "buddies",
        Buddy,
        promises=_IN_PLACE | {Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO},
        gauges=_EVERY,
    ),
    Trial("slabs", Slab, Traits(zero="unique"), promises=_IN_PLACE, gauges=_EVERY),
    Trial("chunks of 8 MiB", Chunks, promises=_TRACKED, gauges=_EVERY, chunk_bytes=8 << 20),
    Trial("chunks of 8 MiB, untold", Chunks, promises=_TRACKED, order_ledger=False, chunk_bytes=8 << 20),
    Trial(
        "chunks that outlive their pool",
        Chunks,
        promises=_TRACKED - {Promise.TRIMS_TO_ZERO},
        gauges=_EVERY,
        order_ledger=False,
        chunk_bytes=8 << 20,
        context=LeavesWhatIsBusy,
    ),
    Trial("counted slabs", CountedSlabs, promises=_TRACKED | _IN_PLACE, gauges=_EVERY, chunk_bytes=2 << 20),
    Trial(
        "counted slabs, untold",
        CountedSlabs,
        promises=_TRACKED,
        gauges=_EVERY,
        order_ledger=False,
        chunk_bytes=2 << 20,
    ),
    Trial(
        "polled events",
        Polling,
        Traits(pageable_copies_block=False),
        promises=frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO}),
        gauges=_EVERY,
    ),
    Trial(
        "polled events, the backing ledger alone",
        Polling,
        Traits(tracks_uses=False, huge_is_invalid=True),
        promises=frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRIMS_TO_ZERO}),
        order_ledger=False,
    ),
    Trial(
        "coarse chunks, declared by the smallest",
        Coarse,
        promises=_TRACKED | {Promise.RETRIES_SMALLER},
        gauges=_EVERY,
        chunk_bytes=1 << 20,
    ),
    Trial(
        "slabs that stay for their blocks",
        CountedSlabs,
        promises=_TRACKED,
        gauges=_EVERY,
        chunk_bytes=2 << 20,
        context=StaysForItsBlocks,
    ),
    Trial(
        "slabs that share a device",
        CountedSlabs,
        promises=_TRACKED | {Promise.SHARES_BACKING},
        gauges=_EVERY,
        chunk_bytes=2 << 20,
        context=SharesADevice,
    ),
    Trial("doubling chunks", Doubling, promises=_TRACKED, gauges=_EVERY, chunk_bytes=66 << 20),
    Trial(
        "counted steps",
        Counted,
        Traits(zero="unique"),
        promises=_TRACKED | {Promise.FLAT_COST},
        gauges={**_EVERY, Gauge.COST: CLAIM},
        context=CostBench,
    ),
    Trial(
        "takes any error for lack of memory",
        TakesAnyErrorForLackOfMemory,
        promises=_TRACKED - {Promise.PASSES_FOREIGN_ERRORS},
        gauges=_EVERY,
    ),
    Trial("reserves at once", ReservesAtOnce, promises=_TRACKED, gauges=_EVERY, chunk_bytes=33 << 20),
    Trial("defragments on trim", DefragmentsOnTrim, promises=_TRACKED, gauges=_EVERY, chunk_bytes=33 << 20),
    Trial(
        "guard pages",
        GuardPages,
        Traits(zero="unique", alignment_max=4096),
        promises=_TRACKED,
        gauges=_EVERY,
        order_ledger=False,
    ),
    Trial("quarantine", Quarantine, promises=_TRACKED, gauges=_EVERY),
    Trial("stops the world", StopsTheWorld, Traits(stall_is_work=True), promises=_TRACKED, order_ledger=False),
    Trial(
        "a heap for each stream",
        Heaps,
        Traits(zero="unique"),
        promises=frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRACKS_USES}),
        gauges=_EVERY,
    ),
    Trial("one arena", Arena, promises=_TRACKED - {Promise.TRIMS_TO_ZERO}, gauges=_EVERY, chunk_bytes=0),
    Trial(
        "one arena, mute",
        Arena,
        promises=_TRACKED - {Promise.TRIMS_TO_ZERO},
        backing_ledger=False,
        order_ledger=False,
        chunk_bytes=8 << 20,
    ),
    Trial("returns in the order of the queue", ReturnsInQueueOrder, promises=_TRACKED, gauges=_EVERY),
    Trial("recycled event names", PowersOfTwo, promises=_TRACKED, gauges=_EVERY, context=RecyclingBench),
    Trial(
        "recycled event names of buddies",
        Buddy,
        promises=frozenset({Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO, Promise.CAPACITY_LIMIT}),
        gauges=_EVERY,
        context=RecyclingBench,
    ),
)
