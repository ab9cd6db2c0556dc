"""Every faulty allocator: what it is a variant of, the class of its fault, and which accusations name that fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quiesce.backend import DeviceProfile

from . import faulty_counting as counting
from . import faulty_ordering as ordering
from . import faulty_placing as placing
from . import faulty_returning as returning
from .bench import Bench, Trial
from .correct import CORRECT

_BY_NAME: Final = {trial.name: trial for trial in CORRECT}

OVERLAP: Final = "live_blocks_do_not_overlap"
SPACE: Final = "blocks_lie_in_the_address_space"
ALIGNED: Final = "addresses_are_aligned"
WITHIN: Final = "blocks_lie_within_upstream_memory"
OWNED: Final = "owned_memory_stays_upstream"
REUSE: Final = "memory_is_reused_only_after_its_last_use"
IN_FLIGHT: Final = "memory_in_flight_stays_upstream"
TRIM: Final = "trim_returns_what_nobody_uses"
LEFT: Final = "nothing_is_left_at_quiescence"
HANDLES: Final = "handles_are_destroyed_at_quiescence"
POOLS: Final = "destroyed_pools_own_nothing"
FITS: Final = "request_fits_but_out_of_memory"
SMALLER: Final = "pool_falls_back_to_a_smaller_chunk"
GROWTH: Final = "growth_starts_over_after_squeeze"
LIMIT: Final = "capacity_is_enforced"
REFUSED: Final = "invalid_requests_are_refused"
LIVE: Final = "live_bytes_return_to_where_they_were"
NEGATIVE: Final = "gauges_are_not_negative"
COST: Final = "cost_per_iteration_stays_flat"


@dataclass(frozen=True)
class Faulty:
    """A faulty allocator, the correct one that it is a variant of, and what is a right accusation."""

    name: str
    fault_class: str
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


def _policy(sibling: str, policy: type, fault_class: str, *accusations: str, hostile: bool = False) -> Faulty:
    correct = _BY_NAME[sibling]
    backend = replace(correct, name=policy.__name__, policy=policy)
    return Faulty(policy.__name__, fault_class, backend, correct, frozenset(accusations), hostile)


def _bench(
    sibling: str,
    bench: Callable[[Trial, DeviceProfile], Bench],
    fault_class: str,
    *accusations: str,
    hostile: bool = False,
) -> Faulty:
    correct = _BY_NAME[sibling]
    name = bench.__name__
    return Faulty(
        name, fault_class, replace(correct, name=name, context=bench), correct, frozenset(accusations), hostile
    )


FAULTY: Final[tuple[Faulty, ...]] = (
    _policy("coarse chunks", ordering.TwoDependencies, "ORD", REUSE, IN_FLIGHT),
    _policy("coarse chunks", ordering.BareRemainder, "ORD", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.SameStreamNeedsNothing, "ORD", REUSE),
    _policy("polled events", ordering.LastEventDecides, "ORD", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.HandlesAreStreams, "SID", REUSE),
    _policy("powers of two", ordering.SqueezesInFlight, "ORD", IN_FLIGHT),
    _policy("bump with reset", ordering.StartsOverEarly, "ORD", REUSE),
    _policy("buddies", ordering.HastyBuddies, "ORD", REUSE, IN_FLIGHT),
    _policy("powers of two", ordering.DefaultStreamWaitsForAll, "SID", REUSE),
    _policy("polled events", ordering.DeadStreamsAreDone, "SID", REUSE, IN_FLIGHT),
    _policy("huge pages", ordering.HostWaitsLikeAStream, "ORD", REUSE),
    _policy("powers of two", ordering.ReleasesAtOnce, "TEAR", IN_FLIGHT),
    _policy("powers of two", ordering.RecordsOnTheDefaultStream, "DEV", REUSE, IN_FLIGHT),
    _policy("coarse chunks", returning.KeepsOneOfSixteen, "UP", TRIM, FITS),
    _policy("coarse chunks", returning.LosesTheTail, "LOST", TRIM),
    _policy("coarse chunks", returning.MergesAcrossChunks, "LOST", OWNED, TRIM),
    _policy("coarse chunks", returning.ReleasesUsualChunks, "UP", POOLS, LEFT),
    _policy("powers of two", returning.ReleasesItsOwnStream, "UP", POOLS, LEFT),
    _policy("powers of two", returning.PinnedNeverShrinks, "UP", TRIM, FITS),
    _policy("polled events", returning.StopsAtTheFirstPending, "PEND", TRIM),
    _policy("best fit, addresses never again", returning.NeverSqueezes, "RETRY", FITS),
    _policy("powers of two", returning.SqueezesTheLargeOnly, "RETRY", FITS),
    _policy("powers of two", returning.SqueezesTheIdleOnly, "RETRY", FITS),
    _policy("powers of two", returning.CachedCountsAgainstTheLimit, "LIM", FITS),
    _policy("exact sizes from the top down", returning.LimitIsCheckedBehind, "LIM", LIMIT),
    _policy("coarse chunks", returning.NeverASmallerChunk, "RETRY", SMALLER, FITS),
    _policy("doubling chunks", returning.NeverStartsOver, "FRAG", GROWTH),
    _policy("exact sizes from the top down", returning.TakesWithoutNoting, "ROLL", FITS),
    _policy("exact sizes from the top down", returning.SqueezesSmallFirst, "RETRY", FITS),
    _policy("powers of two", placing.SizesWrap, "SIZE", OVERLAP, SPACE, WITHIN, LIMIT, hostile=True),
    _policy("powers of two", placing.NullWhereThereIsNone, "SIZE", SPACE, hostile=True),
    _policy("huge pages", placing.SizesHave32Bits, "SIZE", OVERLAP, WITHIN, LIMIT, hostile=True),
    _policy("coarse chunks", placing.OddSizesMoveTheRest, "ALN", ALIGNED),
    _policy("powers of two", placing.CachedAlignmentIsAnybodys, "ALN", ALIGNED),
    _policy("slabs", placing.OneCellTooMany, "OVL", OVERLAP, WITHIN),
    _policy("bump with reset", placing.PaddingIsForgotten, "ALN", OVERLAP, WITHIN),
    _policy("coarse chunks", placing.SumsTheWrongSize, "FRAG", OVERLAP, WITHIN, TRIM, FITS),
    _policy("coarse chunks", placing.SplitsWithoutUnlinking, "OVL", OVERLAP, OWNED, REUSE),
    _bench("powers of two", ordering.BuffersAreReadAtOnce, "ORD", REUSE, IN_FLIGHT),
    _bench("powers of two", placing.NothingIsSomebody, "ZERO", OVERLAP, hostile=True),
    _bench("polled events", placing.FreesTwice, "DBL", REFUSED, OVERLAP, hostile=True),
    _bench("powers of two", placing.DefaultPoolsShareADevice, "DEV", WITHIN),
    _bench("powers of two", placing.PoolsShareADevice, "DEV", WITHIN),
    _bench("polled events", placing.LargeBlocksLeaveTheirPool, "PRIM", POOLS, LIMIT, TRIM),
    _policy("huge pages", placing.MovesTheOwned, "UP", OWNED, OVERLAP),
    _policy("polled events", counting.EventsAreForgotten, "HND", HANDLES),
    _bench("coarse chunks", counting.SubtractsTheMergedSize, "CNT", LIVE, NEGATIVE),
    _bench("powers of two", counting.CountsBeforeItKnows, "CNT", LIVE),
    _bench("buddies", counting.ResettingThePeakResetsAll, "PEAK", LIVE, NEGATIVE),
    _bench("polled events, upstream ledger alone", counting.StagingKeepsTheDestination, "ROLL", TRIM),
    _bench("exact sizes from the top down", counting.ManagedIsNobodys, "FIN", TRIM, FITS),
    _bench("slabs", counting.BusyStreamsAreKept, "HND", HANDLES),
    _policy("counted steps", counting.SearchesAllItEverMade, "HIST", COST),
    _policy("counted steps", counting.SwallowsForeignErrors, "ROLL", REFUSED),
)

_SEEDS: Final = {
    "CachedAlignmentIsAnybodys": 2,
    "CachedCountsAgainstTheLimit": 2,
    "DefaultStreamWaitsForAll": 4,
    "LastEventDecides": 2,
    "ManagedIsNobodys": 2,
    "NeverSqueezes": 3,
    "ReleasesAtOnce": 2,
    "SqueezesSmallFirst": 3,
    "SqueezesTheIdleOnly": 3,
    "SqueezesTheLargeOnly": 5,
    "SwallowsForeignErrors": 2,
    "TwoDependencies": 2,
}
"""Where the first seed needs many more operations."""
_RARE: Final = frozenset(
    {
        "CachedCountsAgainstTheLimit",
        "ManagedIsNobodys",
        "OneCellTooMany",
        "StagingKeepsTheDestination",
        "TakesWithoutNoting",
    }
)
