"""Strangers that keep the contract. No finding on any of them is legal."""

from __future__ import annotations

from typing import Final

from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Capability, Promise
from quiesce.model.gauges import Gauge

from .adapter import Stranger
from .arenas import StealingArenas
from .batches import DeferredBatches
from .behind import RecordsItsWork, WaitsForItsWork, WholeBlocks
from .checkpoints import Checkpoints
from .coalescing import CoalescingSpans
from .epochs import EpochRegions
from .graph_memory import KeptForGraphs
from .late import LateSession
from .lingering import LingeringPools
from .magazines import Magazines
from .mapped import MappedSegments
from .own_default import OwnDefault
from .private import GraphSession
from .reserved import ReservingSession
from .rings import Ring
from .runs import DecayingRuns
from .runtimes import InitializedFirst, ScratchOfLaunches, StacksOfStreams
from .segments import StreamSegments
from .settled import SettledCheckpoints
from .spans import SegregatedFit
from .stalls import CapturesRefuseStalls, CapturesTakeStalls
from .temporaries import TakesTemporaries
from .withholding import Withholding

_POOL: Final = frozenset(
    {
        Promise.RECLAIMS_BEFORE_OOM,
        Promise.WAITS_BEFORE_OOM,
        Promise.CAPACITY_LIMIT,
        Promise.TRIMS_TO_ZERO,
        Promise.PASSES_FOREIGN_ERRORS,
    }
)
_TRACKS: Final = _POOL | {Promise.TRACKS_USES}
_ORDER: Final = frozenset({Capability.ORDER_LEDGER})
_LEGACY: Final = frozenset({Capability.LEGACY_DEFAULT_STREAM})
_CAPTURE: Final = frozenset({Capability.CAPTURE})

_COALESCING: Final = Stranger(
    "coalescing spans", CoalescingSpans, _TRACKS | {Promise.RETRIES_SMALLER}, chunk_bytes=512 << 10
)

_RING: Final = Stranger("ring", Ring, _TRACKS, _ORDER | _LEGACY | _CAPTURE, chunk_bytes=1 << 20)

_KEPT: Final = Stranger(
    "kept for graphs",
    DeferredBatches,
    frozenset(
        {Promise.CAPACITY_LIMIT, Promise.TRIMS_TO_ZERO, Promise.ALLOCATES_IN_CAPTURES, Promise.KEEPS_GRAPH_MEMORY}
    ),
    _ORDER | _LEGACY | _CAPTURE,
    chunk_bytes=0,
    make_session=KeptForGraphs,
)

CORRECT: Final[tuple[Stranger, ...]] = (
    Stranger(
        "segregated fit",
        SegregatedFit,
        _TRACKS | {Promise.RETRIES_SMALLER, Promise.GROWTH_RESETS},
        _ORDER | _LEGACY,
        keeps_spares=True,
    ),
    Stranger("decaying runs", DecayingRuns, _TRACKS | {Promise.GROWTH_RESETS}, _ORDER, chunk_bytes=512 << 10),
    Stranger("deferred batches", DeferredBatches, _POOL, _ORDER | _CAPTURE, chunk_bytes=0, keeps_spares=True),
    Stranger("deferred batches, untold", DeferredBatches, _POOL, _LEGACY | _CAPTURE, chunk_bytes=0),
    Stranger("epochs", EpochRegions, _TRACKS - {Promise.TRIMS_TO_ZERO}, _ORDER | _LEGACY, chunk_bytes=4 << 20),
    Stranger("segments of streams", StreamSegments, _TRACKS, _ORDER | _LEGACY | _CAPTURE, chunk_bytes=20 << 20),
    Stranger("segments of streams, untold", StreamSegments, _TRACKS, chunk_bytes=20 << 20),
    Stranger("stealing arenas", StealingArenas, _TRACKS, _ORDER, chunk_bytes=0, keeps_spares=True),
    Stranger("mapped segments", MappedSegments, _TRACKS, _ORDER | _LEGACY, chunk_bytes=4 << 20),
    _COALESCING,
    Stranger(
        "memory of graphs",
        DeferredBatches,
        frozenset({Promise.CAPACITY_LIMIT, Promise.TRIMS_TO_ZERO, Promise.ALLOCATES_IN_CAPTURES}),
        _ORDER | _CAPTURE,
        chunk_bytes=0,
        make_session=GraphSession,
    ),
    Stranger(
        "reserved captures",
        DeferredBatches,
        frozenset({Promise.CAPACITY_LIMIT, Promise.ALLOCATES_IN_CAPTURES}),
        _ORDER | _LEGACY | _CAPTURE,
        chunk_bytes=256 << 10,
        make_session=ReservingSession,
    ),
    Stranger(
        "captures refuse stalls",
        DeferredBatches,
        _POOL,
        _ORDER | _CAPTURE,
        chunk_bytes=0,
        make_session=CapturesRefuseStalls,
    ),
    Stranger(
        "captures take stalls",
        DeferredBatches,
        _POOL,
        _ORDER | _CAPTURE,
        chunk_bytes=0,
        make_session=CapturesTakeStalls,
    ),
    Stranger("lingering pools", StealingArenas, _TRACKS, _ORDER, chunk_bytes=0, make_session=LingeringPools),
    Stranger("magazines", Magazines, _TRACKS, _ORDER, chunk_bytes=256 << 10),
    Stranger(
        "checkpoints",
        Checkpoints,
        frozenset({Promise.CAPACITY_LIMIT, Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO}),
        _ORDER | _LEGACY,
        chunk_bytes=1 << 20,
    ),
    _RING,
    Stranger("own default", DeferredBatches, _POOL, _ORDER | _CAPTURE, chunk_bytes=0, make_session=OwnDefault),
    Stranger("late arenas", StealingArenas, _TRACKS, _ORDER, chunk_bytes=0, make_session=LateSession),
    Stranger("late arenas, untold", StealingArenas, _TRACKS, chunk_bytes=0, make_session=LateSession),
    _KEPT,
    Stranger(
        "settled checkpoints",
        SettledCheckpoints,
        frozenset({Promise.CAPACITY_LIMIT, Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO}),
        _ORDER | _LEGACY | {Capability.FLAVOUR},
        chunk_bytes=1 << 20,
    ),
    Stranger(
        "temporaries in a ring", Ring, _TRACKS, _ORDER | _LEGACY, chunk_bytes=1 << 20, make_session=TakesTemporaries
    ),
    Stranger(
        "temporaries at checkpoints",
        Checkpoints,
        frozenset({Promise.CAPACITY_LIMIT, Promise.TRACKS_USES, Promise.TRIMS_TO_ZERO}),
        _LEGACY,
        chunk_bytes=1 << 20,
        make_session=TakesTemporaries,
    ),
)

_POOLS: Final = frozenset({Capability.POOL, Capability.POOLS, Capability.POOL_LIMIT})
_WHOLE: Final = frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.CAPACITY_LIMIT, Promise.TRACKS_USES})

WITHHOLDING: Final = (
    Withholding(
        Stranger("", WholeBlocks, _WHOLE, _ORDER, chunk_bytes=0, make_session=RecordsItsWork),
        "records its work",
        _POOLS,
    ),
    Withholding(
        Stranger("", WholeBlocks, _WHOLE, _ORDER, chunk_bytes=0, make_session=WaitsForItsWork),
        "waits for its work",
        _POOLS | {Capability.STALL},
    ),
    Withholding(_COALESCING, "coalescing spans, nothing told", frozenset({Capability.BACKING_LEDGER})),
    Withholding(_KEPT, "kept for graphs, nothing told", _ORDER | {Capability.BACKING_LEDGER}),
    Withholding(_RING, "ring, nothing told", _ORDER | {Capability.BACKING_LEDGER}),
    InitializedFirst(reference(), "reference, initialised first"),
    ScratchOfLaunches(reference(), "reference, short of scratch", promises=frozenset({Promise.FLAT_COST})),
    StacksOfStreams(
        _COALESCING,
        "coalescing spans, and stacks",
        promises=_COALESCING.promises - {Promise.TRACKS_USES},
        gauges=frozenset({Gauge.LIVE, Gauge.BLOCKS}),
    ),
)
"""Some of them, claiming less."""
