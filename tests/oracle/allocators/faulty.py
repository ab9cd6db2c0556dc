"""Every faulty allocator: what it is a variant of, the class of its fault, and which accusations name that fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quiesce.model.backend import DeviceProfile

from . import faulty_chunks as chunks
from . import faulty_counting as counting
from . import faulty_ordering as ordering
from . import faulty_placing as placing
from . import faulty_returning as returning
from . import hoarding, lifetimes
from .bench import Bench, Trial
from .correct import CORRECT

_BY_NAME: Final = {trial.name: trial for trial in CORRECT}

OVERLAP: Final = "live_blocks_do_not_overlap"
SPACE: Final = "blocks_lie_in_the_address_space"
ALIGNED: Final = "addresses_are_aligned"
WITHIN: Final = "blocks_lie_within_backing_memory"
OWNED: Final = "owned_memory_is_not_released"
REUSE: Final = "memory_is_reused_only_after_its_last_use"
IN_FLIGHT: Final = "memory_in_flight_is_not_released"
TRIM: Final = "trim_returns_what_nobody_uses"
LEFT: Final = "nothing_is_left_at_quiescence"
HANDLES: Final = "handles_are_destroyed_at_quiescence"
POOLS: Final = "destroyed_pools_own_nothing"
FITS: Final = "request_fits_but_out_of_memory"
SMALLER: Final = "pool_falls_back_to_a_smaller_chunk"
GROWTH: Final = "growth_starts_over_after_squeeze"
LIMIT: Final = "capacity_is_enforced"
REFUSED: Final = "invalid_requests_are_refused"
PASSED_ON: Final = "foreign_errors_are_passed_on"
LIVE: Final = "live_bytes_return_to_where_they_were"
NEGATIVE: Final = "gauges_are_not_negative"
COST: Final = "cost_per_iteration_stays_flat"


@dataclass(frozen=True)
class Faulty:
    """A faulty allocator, the correct one that it is a variant of, and what is a right accusation."""

    name: str
    kind: str
    backend: Trial
    correct: Trial
    accusations: frozenset[str]
    hostile: bool = False

    @property
    def seed(self) -> int:
        """A seed that finds the fault soon."""
        return _SEEDS.get(self.name, 1)

    @property
    def rare(self) -> bool:
        """Whether it takes tens of thousands of operations."""
        return self.name in _RARE


def _policy(sibling: str, policy: type, kind: str, *accusations: str, hostile: bool = False) -> Faulty:
    correct = _BY_NAME[sibling]
    backend = replace(correct, name=policy.__name__, policy=policy)
    return Faulty(policy.__name__, kind, backend, correct, frozenset(accusations), hostile)


def _bench(
    sibling: str,
    bench: Callable[[Trial, DeviceProfile], Bench],
    kind: str,
    *accusations: str,
    hostile: bool = False,
) -> Faulty:
    correct = _BY_NAME[sibling]
    name = bench.__name__
    return Faulty(name, kind, replace(correct, name=name, context=bench), correct, frozenset(accusations), hostile)


FAULTY: Final[tuple[Faulty, ...]] = (
    _policy("coarse chunks", ordering.TwoDependencies, "race", REUSE, IN_FLIGHT),
    _policy("coarse chunks", ordering.BareRemainder, "race", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.SameStreamNeedsNothing, "race", REUSE),
    _policy("polled events", ordering.LastEventDecides, "race", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.HandlesAreStreams, "stream identity", REUSE),
    _policy("powers of two", ordering.SqueezesInFlight, "race", IN_FLIGHT),
    _policy("bump with reset", ordering.StartsOverEarly, "race", REUSE),
    _policy("buddies", ordering.HastyBuddies, "race", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.DefaultStreamWaitsForAll, "stream identity", REUSE),
    _policy("polled events", ordering.DeadStreamsAreDone, "stream identity", REUSE, IN_FLIGHT),
    _policy("huge pages", ordering.HostWaitsLikeAStream, "race", REUSE),
    _policy("powers of two", ordering.ReleasesAtOnce, "early release", IN_FLIGHT),
    _policy("powers of two", ordering.RecordsOnTheDefaultStream, "wrong device", REUSE, IN_FLIGHT),
    _policy("coarse chunks", returning.KeepsOneOfSixteen, "memory not released", TRIM, FITS),
    _policy("coarse chunks", returning.LosesTheTail, "lost block", TRIM),
    _policy("coarse chunks", returning.MergesAcrossChunks, "lost block", OWNED, TRIM),
    _policy("coarse chunks", returning.ReleasesUsualChunks, "memory not released", POOLS, LEFT),
    _policy("powers of two", returning.ReleasesItsOwnStream, "memory not released", POOLS, LEFT),
    _policy("powers of two", returning.PinnedNeverShrinks, "memory not released", TRIM, FITS),
    _policy("polled events", returning.StopsAtTheFirstPending, "missed completion", TRIM),
    _policy("best fit, addresses never again", returning.NeverSqueezes, "missing retry", FITS),
    _policy("powers of two", returning.SqueezesTheLargeOnly, "missing retry", FITS),
    _policy("powers of two", returning.SqueezesTheIdleOnly, "missing retry", FITS),
    _policy("powers of two", returning.CachedCountsAgainstTheLimit, "wrong limit", FITS),
    _policy("exact sizes from the top down", returning.LimitIsCheckedBehind, "wrong limit", LIMIT),
    _policy("coarse chunks", returning.NeverASmallerChunk, "missing retry", SMALLER, FITS),
    _policy("coarse chunks", returning.TriesALargerChunk, "missing retry", SMALLER, FITS),
    _policy("coarse chunks", returning.GivesUpAfterAnError, "missing retry", SMALLER),
    _policy("doubling chunks", returning.NeverStartsOver, "fragmentation", GROWTH),
    _policy("exact sizes from the top down", returning.TakesWithoutNoting, "missing rollback", FITS),
    _policy("exact sizes from the top down", returning.SqueezesSmallFirst, "missing retry", FITS),
    _policy("powers of two", placing.SizesWrap, "size overflow", OVERLAP, SPACE, WITHIN, LIMIT, hostile=True),
    _policy("powers of two", placing.NullWhereThereIsNone, "size overflow", SPACE, hostile=True),
    _policy("huge pages", placing.SizesHave32Bits, "size overflow", OVERLAP, WITHIN, LIMIT, hostile=True),
    _policy("powers of two", placing.PowersAreRoundedDown, "overlapping blocks", OVERLAP, WITHIN),
    _policy("chunks of 8 MiB", placing.SizesAreRoundedDown, "block that is too small", LIVE, OVERLAP, WITHIN),
    _policy("powers of two", placing.PinnedMemoryLiesOnPages, "misaligned address", ALIGNED),
    _policy("coarse chunks", placing.OddSizesMoveTheRest, "misaligned address", ALIGNED),
    _policy("coarse chunks", placing.LargeBlocksLieOnHugePages, "misaligned address", ALIGNED),
    _policy("powers of two", placing.CachedAlignmentIsAnybodys, "misaligned address", ALIGNED),
    _policy("slabs", placing.OneCellTooMany, "overlapping blocks", OVERLAP, WITHIN),
    _policy("bump with reset", placing.PaddingIsForgotten, "misaligned address", OVERLAP, WITHIN),
    _policy("coarse chunks", placing.SumsTheWrongSize, "fragmentation", OVERLAP, WITHIN, TRIM, FITS),
    _policy("coarse chunks", placing.SplitsWithoutUnlinking, "overlapping blocks", OVERLAP, OWNED, REUSE),
    _bench("powers of two", ordering.BuffersAreReadAtOnce, "race", REUSE, IN_FLIGHT),
    _bench("powers of two", placing.NothingIsSomebody, "zero size", OVERLAP, hostile=True),
    _bench("polled events", placing.FreesTwice, "double free", REFUSED, OVERLAP, hostile=True),
    _bench("powers of two", placing.DefaultPoolsShareADevice, "wrong device", WITHIN),
    _bench("powers of two", placing.PoolsShareADevice, "wrong device", WITHIN),
    _bench("polled events", placing.LargeBlocksLeaveTheirPool, "wrong pool", POOLS, LIMIT, TRIM),
    _policy("huge pages", placing.MovesTheOwned, "memory not released", OWNED, OVERLAP),
    _policy("polled events", counting.EventsAreForgotten, "handle leak", HANDLES),
    _bench("coarse chunks", counting.SubtractsTheMergedSize, "wrong counter", LIVE, NEGATIVE),
    _bench("powers of two", counting.CountsBeforeItKnows, "wrong counter", LIVE),
    _bench("buddies", counting.ResettingThePeakResetsAll, "wrong peak", LIVE, NEGATIVE),
    _bench(
        "polled events, the backing ledger alone",
        counting.StagingKeepsTheDestination,
        "missing rollback",
        TRIM,
    ),
    _bench("exact sizes from the top down", counting.ManagedIsNobodys, "missing finalizer", TRIM, FITS),
    _bench("slabs", counting.BusyStreamsAreKept, "handle leak", HANDLES),
    _policy("counted steps", counting.SearchesAllItEverMade, "cost grows with history", COST),
    _policy("counted steps", counting.SwallowsForeignErrors, "swallowed error", PASSED_ON),
    _policy("counted steps", counting.ReleasesForForeignErrors, "swallowed error", PASSED_ON),
    _policy("chunks of 8 MiB", chunks.RefusesItsLimit, "wrong limit", FITS),
    _policy("chunks of 8 MiB", chunks.NeverSplits, "fragmentation", FITS),
    _policy("powers of two", chunks.TrimEndsAtTheFirstBusy, "memory not released", TRIM),
    _policy("chunks of 8 MiB, untold", chunks.TrimEndsAtTheFirstBusyChunk, "memory not released", TRIM),
    _policy("counted slabs", chunks.TrimEndsAtTheFirstBusyLargeBlock, "memory not released", TRIM),
    _policy("counted slabs", chunks.OneClassIsTooSmall, "overlapping blocks", OVERLAP),
    _policy("counted slabs", chunks.CountsInEightBits, "wrong counter", OWNED),
    _policy("counted slabs", chunks.OneSlabOfASize, "memory not released", TRIM, FITS),
    _bench("powers of two", chunks.ClosesInFlight, "memory not released", LEFT),
    _policy("exact sizes from the top down", chunks.TakesAPageMore, "larger than declared", FITS),
    _policy("counted slabs", chunks.TakesTwoSlabs, "larger than declared", FITS),
    _policy("coarse chunks, declared by the smallest", chunks.NeverBelowHalfAChunk, "larger than declared", FITS),
    _policy("one arena", hoarding.LosesEightBytes, "lost block", FITS),
    _policy("one arena, mute", hoarding.ArenaShrinks, "lost block", FITS),
    _policy("chunks of 8 MiB", hoarding.KeepsOneChunk, "missing retry", FITS),
    _policy("chunks of 8 MiB, untold", hoarding.LimitCountsWhatIsGone, "wrong limit", FITS),
    _bench(
        "slabs that stay for their blocks", lifetimes.StaysForEver, "memory not released", POOLS, TRIM, hostile=True
    ),
    _bench("chunks that outlive their pool", lifetimes.NeverLooksAgain, "memory not released", FITS),
    _bench("slabs that share a device", lifetimes.ManagedAsksItself, "missing retry", FITS),
    _bench("chunks of 8 MiB, untold", ordering.StagedBlocksAreForgotten, "race", REUSE, IN_FLIGHT),
    _bench("powers of two", ordering.ManagedBlocksAreForgotten, "race", REUSE, IN_FLIGHT),
    _policy("counted slabs", ordering.GuardsItsUsesAlone, "race", REUSE, IN_FLIGHT),
    _policy("counted slabs", ordering.OneRecordBetweenRequests, "race", REUSE, IN_FLIGHT),
)

_SEEDS: Final = {
    "ArenaShrinks": 0,
    "CachedAlignmentIsAnybodys": 2,
    "CachedCountsAgainstTheLimit": 2,
    "DefaultStreamWaitsForAll": 4,
    "GivesUpAfterAnError": 3,
    "GuardsItsUsesAlone": 0,
    "LastEventDecides": 2,
    "LosesTheTail": 2,
    "ManagedAsksItself": 0,
    "ManagedIsNobodys": 2,
    "NeverLooksAgain": 2,
    "NeverSplits": 4,
    "NeverSqueezes": 3,
    "NeverStartsOver": 5,
    "OneSlabOfASize": 2,
    "ReleasesAtOnce": 2,
    "ReleasesForForeignErrors": 3,
    "SqueezesSmallFirst": 3,
    "SqueezesTheIdleOnly": 3,
    "SqueezesTheLargeOnly": 5,
    "StagedBlocksAreForgotten": 2,
    "StaysForEver": 2,
    "SwallowsForeignErrors": 2,
    "TriesALargerChunk": 5,
    "TwoDependencies": 2,
}
"""Where the first seed needs many more operations."""
_RARE: Final = frozenset(
    {
        "CachedCountsAgainstTheLimit",
        "ManagedIsNobodys",
        "OneCellTooMany",
        "OneRecordBetweenRequests",
        "StagingKeepsTheDestination",
        "TakesWithoutNoting",
    }
)
