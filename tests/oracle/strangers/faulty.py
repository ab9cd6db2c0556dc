"""Every faulty stranger, the correct one that it is a variant of, and which accusations name its fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from . import checkpoints, graph_memory, lingering, magazines, private, reserved, rings, settled
from . import faulty_devices as devices
from . import faulty_mapped as mapped
from . import faulty_order as order
from . import faulty_spans as spans
from .adapter import Stranger
from .correct import CORRECT

_BY_NAME: Final = {stranger.name: stranger for stranger in CORRECT}

OVERLAP: Final = "live_blocks_do_not_overlap"
ALIGNED: Final = "addresses_are_aligned"
WITHIN: Final = "blocks_lie_within_backing_memory"
KEPT: Final = "graph_memory_is_kept"
OWNED: Final = "owned_memory_is_not_released"
REUSE: Final = "memory_is_reused_only_after_its_last_use"
IN_FLIGHT: Final = "memory_in_flight_is_not_released"
TRIM: Final = "trim_returns_what_nobody_uses"
LEFT: Final = "nothing_is_left_at_quiescence"
HANDLES: Final = "handles_are_destroyed_at_quiescence"
POOLS: Final = "destroyed_pools_own_nothing"
FITS: Final = "request_fits_but_out_of_memory"
LIVE: Final = "live_bytes_return_to_where_they_were"
NEGATIVE: Final = "gauges_are_not_negative"
CLAIMS: Final = "claims_agree_with_the_ledger"
RAISES: Final = "backend_answers_without_raising"
EARLY: Final = "completion_is_not_reported_early"
GONE: Final = "waits_name_live_streams"
KNOWN: Final = "known_completion_is_reported"
ENFORCED: Final = "capacity_is_enforced"


@dataclass(frozen=True)
class Faulty:
    """A faulty stranger."""

    name: str
    backend: Stranger
    correct: Stranger
    accusations: frozenset[str]

    @property
    def seed(self) -> int:
        """A seed that finds the fault soon."""
        return _SEEDS.get(self.name, 1)

    @property
    def rare(self) -> bool:
        """Whether it takes many thousands of operations, or misuse."""
        return self.name in _RARE


def _pool(sibling: str, pool: type, *accusations: str) -> Faulty:
    correct = _BY_NAME[sibling]
    name = pool.__name__
    return Faulty(name, replace(correct, name=name, make_pool=pool), correct, frozenset(accusations))


def _session(sibling: str, session: type, *accusations: str) -> Faulty:
    correct = _BY_NAME[sibling]
    name = session.__name__
    return Faulty(name, replace(correct, name=name, make_session=session), correct, frozenset(accusations))


FAULTY: Final[tuple[Faulty, ...]] = (
    _pool("segregated fit", spans.TailBeginsEarly, OVERLAP, REUSE, IN_FLIGHT),
    _pool("segregated fit", spans.HeadIsDropped, TRIM, FITS),
    _pool("segregated fit", spans.MergesTwiceInTheList, OVERLAP, OWNED, WITHIN, RAISES),
    _pool("segregated fit", spans.SmallChunksStay, TRIM, FITS),
    _pool("segregated fit", order.HigherNeighboursAreDone, REUSE, IN_FLIGHT),
    _pool("stealing arenas", spans.WalksWhileItRemoves, TRIM, FITS),
    _pool("stealing arenas", spans.StolenIsKeptToo, OVERLAP, OWNED, RAISES),
    _pool("stealing arenas", spans.FitsByAStepLess, OVERLAP, WITHIN, LIVE),
    _pool("stealing arenas", spans.OrphansAreLeftBehind, POOLS, LEFT, CLAIMS),
    _pool("stealing arenas", spans.CountsWhatItDidNotGet, CLAIMS),
    _pool("segregated fit", order.DefaultIsDone, REUSE, IN_FLIGHT),
    _pool("stealing arenas", order.DefaultUsesAreDone, REUSE, IN_FLIGHT, EARLY),
    _pool("stealing arenas", order.OrphansAreIdle, REUSE, IN_FLIGHT),
    _pool("stealing arenas", order.OrphansForgetUsers, REUSE, IN_FLIGHT),
    _pool("stealing arenas", order.HandlesComeAgain, REUSE),
    _pool("stealing arenas", order.WaitsForTheNewest, REUSE),
    _pool("decaying runs", spans.SlotsAreRoundedUp, OVERLAP, WITHIN),
    _pool("decaying runs", spans.TrimmedRunsAreRemembered, OVERLAP, WITHIN, RAISES),
    _pool("decaying runs", spans.SlotsCollide, HANDLES, TRIM, FITS),
    _pool("decaying runs", spans.FirstWordDecides, OWNED),
    _pool("decaying runs", spans.DirtyOfAnyAlignment, ALIGNED),
    _pool("decaying runs", order.DecaysInFlight, IN_FLIGHT),
    _pool("decaying runs", order.AsksTheFirstMarker, REUSE, IN_FLIGHT),
    _pool("deferred batches", order.MarksWhenItOpens, REUSE, IN_FLIGHT),
    _pool("deferred batches", order.DeadStreamsMarkElsewhere, REUSE, IN_FLIGHT),
    _pool("epochs", order.EveryEpochByItself, REUSE, IN_FLIGHT),
    _pool("epochs", order.OnlyWhoFreesIsMarked, REUSE, IN_FLIGHT),
    _pool("epochs", order.EpochsEndUnmarked, REUSE, IN_FLIGHT),
    _pool("segments of streams", spans.MarkersGoWithTheSegment, HANDLES),
    _pool("segments of streams", spans.JoinsWhatIsOwned, REUSE, IN_FLIGHT, TRIM),
    _pool("segments of streams", spans.FailedSegmentsCount, FITS),
    _pool("segments of streams", order.FreedElsewhereIsAtHome, REUSE),
    _pool("mapped segments", mapped.PrefixesStay, CLAIMS),
    _pool("mapped segments", mapped.PartsAreUnmapped, OWNED, IN_FLIGHT),
    _pool("mapped segments", mapped.UnmapsInFlight, IN_FLIGHT),
    _pool("mapped segments", mapped.JoinsForEveryMarker, REUSE, IN_FLIGHT),
    _pool("mapped segments", mapped.FailedRequestsPollOnly, FITS),
    _pool("mapped segments", mapped.LastGranuleIsLost, TRIM, FITS),
    _session("segregated fit", spans.AlignedBlocksShrink, LIVE, NEGATIVE),
    _session("stealing arenas", spans.FailedRequestsKeepTheirSlot, LIVE),
    _session("decaying runs", order.OneCopy, REUSE, IN_FLIGHT),
    _session("stealing arenas", order.EventsStandForNow, REUSE, IN_FLIGHT),
    _session("stealing arenas", order.BlockingStreamsAreOne, REUSE, IN_FLIGHT),
    _session("segments of streams", order.GraphsCountOnce, REUSE, IN_FLIGHT),
    _session("deferred batches", order.BadCapturesLoseFrees, TRIM, LEFT, FITS),
    _session("segments of streams", order.AbandonedCapturesStay, TRIM, LEFT, FITS),
    _session("epochs", order.ManagedDrainsOneDevice, IN_FLIGHT),
    _session("deferred batches", order.StallsAreDone, EARLY),
    _session("memory of graphs", private.GraphsAreKeptForEver, TRIM, LEFT),
    _session("memory of graphs", private.FailedCapturesKeepTheirs, TRIM, LEFT),
    _pool("magazines", magazines.DepotForgetsMarkers, REUSE, IN_FLIGHT),
    _pool("magazines", magazines.OverflowsTwice, OVERLAP, REUSE, IN_FLIGHT, OWNED, TRIM, RAISES),
    _pool("magazines", magazines.MagazinesDieWithTheirStream, TRIM, FITS),
    _pool("magazines", magazines.LargeOfAnyAlignment, ALIGNED),
    _pool("checkpoints", checkpoints.RollsBackTooFar, OVERLAP),
    _pool("checkpoints", checkpoints.HandsOverInFlight, REUSE, IN_FLIGHT),
    _pool("checkpoints", checkpoints.OrphansAreNotTrimmed, TRIM, FITS),
    _pool("ring", rings.HeadMeetsTail, OVERLAP, REUSE, IN_FLIGHT),
    _pool("ring", rings.LaterFreesCarryEarlier, OVERLAP, OWNED, HANDLES),
    _pool("ring", rings.OwnersAloneAreMarked, REUSE, IN_FLIGHT),
    _pool("ring", rings.EndsWithFreedBlocks, IN_FLIGHT),
    _session("reserved captures", reserved.CutsBeyondItsEnd, WITHIN),
    _session("kept for graphs", graph_memory.AnyQueueMayHaveIt, REUSE),
    _session("kept for graphs", graph_memory.GraphsShareOnePool, KEPT, TRIM),
    _session("kept for graphs", graph_memory.GoesBackUnderTheGraph, KEPT),
    _session("kept for graphs", graph_memory.GoesBackInFlight, IN_FLIGHT),
    _session("kept for graphs", graph_memory.OwnedBlocksAreReused, OVERLAP, RAISES),
    _session("lingering pools", lingering.BusyPoolsAreForgotten, TRIM),
    _pool("settled checkpoints", settled.SettlesItsOwn, GONE),
    _pool("settled checkpoints", settled.SettlesTheLast, GONE),
    _session("stealing arenas", devices.PoolsElsewhereAreNotTrimmed, TRIM),
    _session("segregated fit", devices.StreamsElsewhereAreNotWaitedFor, KNOWN),
    _session("decaying runs", devices.EventsComeAgain, KNOWN),
    _pool("stealing arenas", devices.LimitsAreReachedTooLate, ENFORCED),
)

_SEEDS: Final = {
    "BadCapturesLoseFrees": 3,
    "BlockingStreamsAreOne": 2,
    "BusyPoolsAreForgotten": 2,
    "CountsWhatItDidNotGet": 2,
    "CutsBeyondItsEnd": 2,
    "DepotForgetsMarkers": 4,
    "DirtyOfAnyAlignment": 3,
    "EndsWithFreedBlocks": 2,
    "EventsComeAgain": 0,
    "EveryEpochByItself": 3,
    "FailedRequestsKeepTheirSlot": 2,
    "FirstWordDecides": 6,
    "FreedElsewhereIsAtHome": 2,
    "HeadIsDropped": 2,
    "HeadMeetsTail": 5,
    "HigherNeighboursAreDone": 2,
    "LargeOfAnyAlignment": 3,
    "ManagedDrainsOneDevice": 3,
    "OrphansAreIdle": 2,
    "PoolsElsewhereAreNotTrimmed": 7,
    "SettlesItsOwn": 0,
    "SlotsAreRoundedUp": 2,
    "SmallChunksStay": 2,
    "StallsAreDone": 3,
    "StreamsElsewhereAreNotWaitedFor": 3,
}
"""Where the first seed needs many more operations."""
_RARE: Final = frozenset(
    {
        "AbandonedCapturesStay",
        "DecaysInFlight",
        "EveryEpochByItself",
        "FailedCapturesKeepTheirs",
        "FailedRequestsPollOnly",
        "FailedSegmentsCount",
        "HandlesComeAgain",
        "JoinsForEveryMarker",
        "JoinsWhatIsOwned",
        "ManagedDrainsOneDevice",
        "WaitsForTheNewest",
    }
)
