"""Allocators with one historic mistake each, and with as few declarations as show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability, DeviceProfile, Promise
from quiesce.gauges import Gauge, Source
from quiesce.operations import MemoryKind, Slot
from quiesce.outcomes import Allocated, Done, Outcome

from .arenas import Coarse, Slab
from .bench import BOTH, CLAIM, Bench, Block, Traits, Trial
from .caching import BestFit, Direct, Exact, Polling, PowersOfTwo
from .heap import ForeignError, Heap, NoMemory
from .machine import Event, Stream
from .policy import Area, Use, round_up


class ForgetsPending(PowersOfTwo):
    def wait_for(self, area: Area, stream: Stream) -> None:
        area.guards = []


class DropsDependency(PowersOfTwo):
    def wait_for(self, area: Area, stream: Stream) -> None:
        super().wait_for(area, stream)
        area.guards = []  # what the new owner was ordered behind is not passed on


class GuardsFreeStreamOnly(PowersOfTwo):
    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        super().free(area, [use for use in uses if use.stream is stream], stream)


class ReturnsInFlight(PowersOfTwo):
    def is_idle(self, area: Area) -> bool:
        area.guards = []
        return True


class ReturnsAtOnce(Direct):
    def free(self, area: Area, uses: list[Use], stream: Stream) -> None:
        self.give_back(area.address)  # the driver frees asynchronously


class ComparesHandles(PowersOfTwo):
    def wait_for(self, area: Area, stream: Stream) -> None:
        area.guards = [e for e in area.guards if e.stream is None or e.stream.handle != stream.handle]
        super().wait_for(area, stream)


class ForgetsDeadStreams(PowersOfTwo):
    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        return super().guard(area, [use for use in uses if use.stream.alive])


class FirstDevice(Bench):
    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        device, self.device = self.device, 0
        try:
            return super().take(operation, size, align, stream)
        finally:
            self.device = device


class ForgetsCache(PowersOfTwo):
    def release(self) -> None:
        self.clear()


class TrimDoesNothing(PowersOfTwo):
    def trim(self) -> None:
        pass


class TrimsLargestOnly(PowersOfTwo):
    def trim(self) -> None:
        kept, self.cached = self.cached, {size: areas for size, areas in self.cached.items() if size > 1 << 20}
        super().trim()
        self.cached = {**kept, **self.cached}


class LeaksEvents(PowersOfTwo):
    def drop(self, event: Event) -> None:
        self.events.pop(event, None)


class NeverSqueezes(PowersOfTwo):
    def squeeze(self) -> None:
        pass


class NeverMerges(Coarse):
    def insert(self, area: Area) -> None:
        self.ranges.append(area)


class DropsRemainder(Coarse):
    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        taken = super().cut(area, size, align, stream)
        self.ranges = [kept for kept in self.ranges if kept.size > 16 << 20 or kept.address < taken.address]
        return taken


class FirstUnfinishedStops(Polling):
    def poll(self) -> None:
        while self.queue and self.is_idle(self.queue[0]):
            self.kept.append(self.queue.pop(0))


class Doubles(PowersOfTwo):
    def find(self, size: int, align: int, stream: Stream) -> Area | None:
        area = super().find(size, align, stream)
        if area is not None:
            self.cached[area.size].insert(0, Area(area.address, area.size, area.chunk))  # found, and not unlinked
        return area


class IgnoresAlignment(Coarse):
    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        return super().allocate(size, 1, stream)


class ThirtyTwoBits(Exact):
    def footprint(self, size: int) -> int:
        return super().footprint(size % (1 << 32) or 512)


class Wraps(Exact):
    def footprint(self, size: int) -> int:
        return round_up(size, 512) % (1 << 64) or 512


class OneTooMany(Slab):
    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        area = super().allocate(size, align, stream)
        cells = self.cells.get(area.size, [])
        last = max((cell.address for cell in cells if cell.chunk == area.chunk), default=0)
        if last + area.size == area.chunk + self.slab and len(cells) == self.slab // area.size - 1:
            cells.append(Area(last + area.size, area.size, area.chunk))  # one cell more than fits
        return area


class IgnoresLimit(PowersOfTwo):
    def obtain(self, size: int, align: int = 1) -> int:
        self.limit = None
        return super().obtain(size, align)


class CacheCounts(Exact):
    def squeeze(self) -> None:
        if self.limit is None:
            super().squeeze()


class TrimsOwned(Coarse):
    def trim(self) -> None:
        for area in list(self.ranges):
            if area.chunk in self.chunks:
                self.ranges = [kept for kept in self.ranges if kept.chunk != area.chunk]
                self.give_back(area.chunk)


class SwallowsForeign(Exact):
    def obtain(self, size: int, align: int = 1) -> int:
        try:
            return super().obtain(size, align)
        except ForeignError:
            raise NoMemory from None


class OrphansOnFailure(Coarse):
    def grow(self, size: int) -> None:
        spare = self.heap.allocate(4096)  # for the book-keeping
        super().grow(size)
        self.heap.free(spare)


class Ratchet(Exact):
    growth = 1 << 20

    def footprint(self, size: int) -> int:
        return round_up(size, 512)

    def fresh(self, size: int, align: int) -> Area:
        self.growth *= 2
        return super().fresh(max(size, self.growth) if size < 4 << 20 else size, align)


class GivesUp(Coarse):
    """Chunks double; where the usual one does not fit, no smaller one is tried."""

    step = 1 << 20

    def grow(self, size: int) -> None:
        self.step *= 2
        address = self.obtain(max(self.step, size), self.alignment)
        self.ranges.append(Area(address, self.chunks[address], address))


class DoubleFree(Bench):
    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        if slot in self.blocks or slot in self.empty:
            self.last: dict[Slot, Block] = {**getattr(self, "last", {}), slot: self.blocks[slot]}
            return super().free(slot, on)
        if slot in getattr(self, "last", {}):
            block = self.last[slot]
            self.give(block, [], block.stream)
            return Done()
        return super().free(slot, on)


class ZeroIsLast(Bench):
    def allocate(self, operation: ops.Allocate) -> Outcome:
        if operation.size_bytes == 0 and self.blocks:
            self.empty.add(operation.slot)
            return Allocated(next(reversed(self.blocks.values())).area.address)
        return super().allocate(operation)


class SubtractsRequest(Bench):
    def count_block(self, block: Block, sign: int) -> None:
        self.claimed_live += block.area.size if sign > 0 else -block.size
        self.claimed_blocks += sign


class ForgetsStagedBlock(Bench):
    def _forget(self, slot: Slot) -> None:
        if self.blocks[slot].kind is MemoryKind.DEVICE:
            return  # a failed staging gives up here
        super()._forget(slot)


class QueryLies(Bench):
    @staticmethod
    def query(done: bool) -> Outcome:
        return Done()


class StagesTwice(Bench):
    def stage(self, slot: Slot, source: Slot, on: Slot | None) -> Outcome:
        self.traits = Traits(stages_through_buffer=True)
        return super().stage(slot, source, on)


class StaleReserved(Bench):
    """``reserved`` as the pool claims it only ever rises."""

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        super().__init__(trial, profile)
        self.peak = 0

    def readings(self) -> dict[tuple[Gauge, Source], int]:
        held = self.count()[Gauge.RESERVED]
        self.peak = max(held, self.peak)
        return {(Gauge.RESERVED, Source.LEDGER): held, (Gauge.RESERVED, Source.CLAIM): self.peak}


class Slow(Bench):
    """Every free looks through everything that was ever allocated."""

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        super().__init__(trial, profile)
        self.cost = 0
        self.ever = 0

    def count(self) -> dict[Gauge, int]:
        return {**super().count(), Gauge.COST: self.cost}

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        self.ever += 1
        return super().take(operation, size, align, stream)

    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        self.cost += 1 + self.ever
        return super().free(slot, on)


@dataclass(frozen=True)
class Mistake:
    """A faulty allocator, the class of the fault catalogue that it belongs to, and the rules that can catch it."""

    trial: Trial
    fault_class: str
    caught_by: frozenset[str]


_NOBODY_TELLS: Final = {"upstream_ledger": False, "order_ledger": False}
_REUSE = "memory_is_reused_only_after_its_last_use"
_IN_FLIGHT = "memory_in_flight_stays_upstream"
_FITS = "request_fits_but_out_of_memory"
_OVERLAP = "live_blocks_do_not_overlap"
_TRIM = "trim_returns_what_nobody_uses"
_RECLAIMS = frozenset({Promise.RECLAIMS_BEFORE_OOM})
_TRIMS = frozenset({Promise.TRIMS_TO_ZERO})
_HELD = {Gauge.RESERVED: CLAIM, Gauge.PINNED: CLAIM}


def _mute(fault_class: str, name: str, caught_by: str, policy: type, **more: object) -> Mistake:
    options = {**_NOBODY_TELLS, **more}
    return Mistake(Trial(name, policy, **options), fault_class, frozenset({caught_by}))  # type: ignore[arg-type]


FAULTY: Final[tuple[Mistake, ...]] = (
    _mute("ORD", "forgets what is pending", _REUSE, ForgetsPending),
    _mute("ORD", "drops a dependency", _REUSE, DropsDependency),
    _mute("ORD", "waits for the freeing stream alone", _REUSE, GuardsFreeStreamOnly, promises={Promise.TRACKS_USES}),
    _mute("ORD", "returns what is in flight", _IN_FLIGHT, ReturnsInFlight, upstream_ledger=True),
    _mute("ORD", "returns at once", _IN_FLIGHT, ReturnsAtOnce, upstream_ledger=True),
    _mute("SID", "compares handles", _REUSE, ComparesHandles),
    _mute("SID", "forgets dead streams", _REUSE, ForgetsDeadStreams),
    _mute(
        "DEV",
        "serves the first device",
        "blocks_lie_within_upstream_memory",
        PowersOfTwo,
        upstream_ledger=True,
        context=FirstDevice,
    ),
    _mute("UP", "forgets its cache", "nothing_is_left_at_quiescence", ForgetsCache, gauges=_HELD),
    _mute("UP", "trims nothing", _TRIM, TrimDoesNothing, promises=_TRIMS, gauges=_HELD),
    _mute("UP", "trims large blocks alone", _TRIM, TrimsLargestOnly, promises=_TRIMS, upstream_ledger=True),
    _mute("HND", "leaks events", "handles_are_destroyed_at_quiescence", LeaksEvents, gauges={Gauge.EVENTS: CLAIM}),
    _mute("RETRY", "never squeezes", _FITS, NeverSqueezes, promises=_RECLAIMS),
    _mute(
        "RETRY",
        "growth ratchet",
        "growth_starts_over_after_squeeze",
        Ratchet,
        upstream_ledger=True,
        promises=_RECLAIMS | {Promise.GROWTH_RESETS, Promise.EXACT_FOOTPRINT},
    ),
    _mute(
        "RETRY",
        "gives up",
        "pool_falls_back_to_a_smaller_chunk",
        GivesUp,
        upstream_ledger=True,
        promises=_RECLAIMS | {Promise.RETRIES_SMALLER},
    ),
    _mute("FRAG", "never merges", _FITS, NeverMerges, promises=_RECLAIMS),
    _mute("LOST", "drops the remainder", _TRIM, DropsRemainder, promises=_TRIMS, gauges=_HELD),
    _mute("PEND", "stops at the first unfinished", _TRIM, FirstUnfinishedStops, promises=_TRIMS, upstream_ledger=True),
    _mute(
        "PEND",
        "stages twice",
        "pinned_source_is_copied_directly",
        PowersOfTwo,
        context=StagesTwice,
        gauges=_HELD,
        promises={Promise.STAGES_PINNED_DIRECTLY},
    ),
    _mute("OVL", "found and not unlinked", _OVERLAP, Doubles),
    _mute("OVL", "one cell too many", "blocks_lie_within_upstream_memory", OneTooMany, upstream_ledger=True),
    _mute("ALN", "ignores the alignment", "addresses_are_aligned", IgnoresAlignment, alignment=16),
    _mute("SIZE", "32 bits", _OVERLAP, ThirtyTwoBits),
    _mute("SIZE", "wraps", "blocks_lie_in_the_address_space", Wraps),
    _mute("ZERO", "no bytes are the last block", _OVERLAP, PowersOfTwo, context=ZeroIsLast),
    _mute("DBL", "accepts a double free", "invalid_requests_are_refused", PowersOfTwo, context=DoubleFree),
    _mute("LIM", "ignores the limit", "capacity_is_enforced", IgnoresLimit),
    _mute(
        "LIM",
        "counts the cache against the limit",
        _FITS,
        CacheCounts,
        promises=_RECLAIMS | {Promise.EXACT_FOOTPRINT},
        footprint_factor=1,
    ),
    _mute("TEAR", "trims what is owned", "owned_memory_stays_upstream", TrimsOwned, upstream_ledger=True),
    _mute("ROLL", "swallows foreign errors", "invalid_requests_are_refused", SwallowsForeign, gauges=_HELD),
    _mute("ROLL", "orphans on failure", "nothing_is_left_at_quiescence", OrphansOnFailure, upstream_ledger=True),
    _mute(
        "ROLL",
        "keeps a failed staging's block",
        "block_count_follows_the_sequence",
        PowersOfTwo,
        context=ForgetsStagedBlock,
        gauges={Gauge.BLOCKS: CLAIM},
    ),
    _mute(
        "CNT",
        "subtracts what was asked for",
        "live_bytes_return_to_where_they_were",
        BestFit,
        context=SubtractsRequest,
        gauges={Gauge.LIVE: CLAIM},
    ),
    _mute(
        "CNT",
        "reserved only rises",
        "claims_agree_with_the_ledger",
        PowersOfTwo,
        context=StaleReserved,
        gauges={Gauge.RESERVED: BOTH},
    ),
    _mute(
        "HIST",
        "looks through all there ever was",
        "cost_per_iteration_stays_flat",
        PowersOfTwo,
        context=Slow,
        gauges={Gauge.COST: CLAIM},
        promises={Promise.FLAT_COST},
    ),
    _mute("ERR", "a query always says done", "completion_is_not_reported_early", PowersOfTwo, context=QueryLies),
)
