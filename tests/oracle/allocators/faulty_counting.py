"""Faults of accounts: counters that drift, handles and memory that nobody gives back, work that grows with history."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.gauges import Gauge
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Outcome

from .arenas import Coarse
from .bench import Bench, Block
from .caching import Polling
from .heap import ForeignError, NoMemory
from .machine import Event, Stream
from .policy import Area, Use
from .unusual import Counted


class EventsAreForgotten(Polling):
    """An event that nobody waits for any more is erased from the books and not destroyed."""

    def drop(self, event: Event) -> None:
        self.events[event] = self.events.get(event, 1) - 1
        if not self.events[event]:
            del self.events[event]


class SubtractsTheMergedSize(Bench):
    """A free takes the size of the range that the block was merged into."""

    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        block = self.blocks.get(slot)
        outcome = super().free(slot, on)
        if block is not None and slot not in self.blocks and isinstance(block.owner, Coarse):
            address = block.area.address
            merged = next(a for a in block.owner.ranges if a.address <= address < a.address + a.size)
            self.claimed_live -= merged.size - block.area.size
        return outcome


class CountsBeforeItKnows(Bench):
    """A request is counted before it is served, and stays counted where it fails."""

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        try:
            return super().take(operation, size, align, stream)
        except NoMemory:
            self.claimed_live += size
            raise


class ResettingThePeakResetsAll(Bench):
    """A trim starts the statistics over, and takes the live total with them."""

    def trim(self, kind: MemoryKind, pool: Slot | None) -> Outcome:
        self.claimed_live = 0
        return super().trim(kind, pool)


class StagingKeepsTheDestination(Bench):
    """Where the staging buffer cannot be had, the block that was made for the data is not given back."""

    staging = False

    def give(self, block: Block, uses: list[Use], stream: Stream) -> None:
        if not self.staging:
            super().give(block, uses, stream)

    def stage(self, slot: Slot, source: Slot, on: Slot | None) -> Outcome:
        self.staging = True
        try:
            return super().stage(slot, source, on)
        finally:
            self.staging = False


class ManagedIsNobodys(Bench):
    """Managed blocks are taken back by a path that does not know them."""

    def give(self, block: Block, uses: list[Use], stream: Stream) -> None:
        if block.kind is not MemoryKind.MANAGED:
            super().give(block, uses, stream)


class BusyStreamsAreKept(Bench):
    """A stream that is destroyed with work on it is never cleaned up."""

    kept = 0

    def answer_order(self, operation: Operation) -> Outcome:
        stream = self.streams.get(operation.slot) if isinstance(operation, ops.DestroyStream) else None
        if stream is not None and not stream.tail.done:
            self.kept += 1
        return super().answer_order(operation)

    def count(self) -> dict[Gauge, int]:
        counted = super().count()
        return {**counted, Gauge.STREAMS: counted[Gauge.STREAMS] + self.kept}


class SearchesAllItEverMade(Counted):
    """A request looks through every block that there ever was."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.made: list[int] = []

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.steps += len(self.made)
        area = super().allocate(size, align, stream)
        self.made.append(area.address)
        return area


class ReleasesForForeignErrors(Counted):
    """A foreign error costs all that is kept, though it is passed on then."""

    def obtain(self, size: int, align: int = 1) -> int:
        try:
            return super().obtain(size, align)
        except ForeignError:
            self.squeeze()
            raise


class SwallowsForeignErrors(Counted):
    """Any error from below is taken for a lack of memory, and the request is tried again."""

    def obtain(self, size: int, align: int = 1) -> int:
        try:
            return super().obtain(size, align)
        except ForeignError:
            self.squeeze()
            return super().obtain(size, align)
