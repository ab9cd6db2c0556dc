"""Strangers that lose, double or misplace memory: faults of lists, splits, merges, and of what is counted."""

from __future__ import annotations

from collections.abc import Collection

from quiesce.model import operations as ops
from quiesce.model.operations import Operation, Slot
from quiesce.model.outcomes import Outcome

from .adapter import Session
from .arenas import StealingArenas
from .device import Broken, NoRoom, Queue
from .pool import Piece
from .runs import PAGE_BYTES, SMALL_BYTES_MAX, DecayingRuns, Run
from .segments import Part, StreamSegments
from .spans import SegregatedFit, Span


class TailBeginsEarly(SegregatedFit):
    """What is left of a span begins one step too early where it is large."""

    def split(self, span: Span, size: int, align: int) -> None:
        super().split(span, size, align)
        tail = span.after
        if tail is not None and tail.is_free and tail.size > 4 << 20:
            self.unlink(tail)
            tail.start, tail.size = tail.start - self.step, tail.size + self.step
            self.link(tail)


class HeadIsDropped(SegregatedFit):
    """What a large alignment cuts off in front is put in no list, and merges with nobody."""

    def split(self, span: Span, size: int, align: int) -> None:
        super().split(span, size, align)
        head = span.before
        if head is not None and head.is_free and align > 4096:
            self.unlink(head)
            head.is_free = False
            for marker in head.behind:
                self.runtime.retire(marker)


class MergesTwiceInTheList(SegregatedFit):
    """A span that merged on both sides is linked twice."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        span = self.owned[piece.address]
        low, high = span.before, span.after
        super().free(piece, queue, touched)
        if low is not None and low.is_free and high is not None and high.is_free:
            self.inherit(Span(low.start, low.size, low.chunk), low)


class SmallChunksStay(SegregatedFit):
    """A trim looks for chunks of the usual size, and forgets those of the second attempt."""

    def whole(self) -> list[Span]:
        return [span for span in super().whole() if span.size >= self.chunk]


class WalksWhileItRemoves(StealingArenas):
    """A trim removes from the list that it walks, and so skips the next."""

    def trim(self) -> None:
        for arena in self.arenas.values():
            for piece in arena:
                if self.is_idle(piece):
                    arena.remove(piece)
                    self.drop(piece.address)


class StolenIsKeptToo(StealingArenas):
    """What is stolen while idle stays in its old arena as well."""

    def steal(self, size: int, align: int, queue: Queue) -> Piece | None:
        for owner, arena in self.arenas.items():
            if owner is not queue:
                idle = [piece for piece in arena if self.is_idle(piece)]
                if (piece := self.pick(idle, size, align)) is not None:
                    return piece
        return None


class FitsByAStepLess(StealingArenas):
    """A kept piece may be one step smaller than the request."""

    def pick(self, arena: list[Piece], size: int, align: int) -> Piece | None:
        return super().pick(arena, size - self.step if size > 4 * self.step else size, align)


class OrphansAreLeftBehind(StealingArenas):
    """A pool that is destroyed forgets what belonged to streams that are gone."""

    def close(self) -> None:
        for piece in self.arenas[None]:
            self.held -= self.chunks.pop(piece.address)
        super().close()


class CountsWhatItDidNotGet(StealingArenas):
    """Where the call below fails for another reason than memory, its bytes stay counted."""

    def take(self, size: int, align: int = 1) -> int:
        try:
            return super().take(size, align)
        except Broken:
            self.held += size
            raise


class SlotsAreRoundedUp(DecayingRuns):
    """Where a run is no multiple of its class, it has one slot too many."""

    def allocate_small(self, size: int, queue: Queue) -> Piece:
        for run in self.runs.get(size, ()):
            run.count = -(-round_to_pages(size) // size)
        return super().allocate_small(size, queue)


def round_to_pages(size: int) -> int:
    """Return the length of a run for a class."""
    return -(-max(SMALL_BYTES_MAX, 8 * size) // PAGE_BYTES) * PAGE_BYTES


class TrimmedRunsAreRemembered(DecayingRuns):
    """A run that goes back stays in the list of its class when it is the only one."""

    def trim(self) -> None:
        kept: dict[int, Run] = {size: runs[0] for size, runs in self.runs.items() if len(runs) == 1}
        super().trim()
        for size, run in kept.items():
            if not self.runs[size]:
                self.runs[size].append(run)
                self.run_at[run.address] = run

    def drop(self, address: int) -> None:
        if address in self.chunks:
            super().drop(address)


class SlotsCollide(DecayingRuns):
    """Which slot was freed is worked out with the class's power of two: some slots replace others, and are lost."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        run = self.run_at.get(piece.chunk)
        if run is None or run.size & (run.size - 1) == 0:
            super().free(piece, queue, touched)
            return
        self.mark(piece, piece.queue, queue, *touched)
        run.slots[(piece.address - run.address) >> (run.size - 1).bit_length()] = piece


class FirstWordDecides(DecayingRuns):
    """A run is empty where nobody owns any of its first 32 slots: more is not in a word of its map."""

    def trim(self) -> None:
        for runs in self.runs.values():
            for run in list(runs):
                word = [run.slots.get(number) for number in range(min(32, run.unborn))]
                if all(piece is not None and self.is_idle(piece) for piece in word):
                    for piece in run.slots.values():
                        self.settle(piece)
                    runs.remove(run)
                    del self.run_at[run.address]
                    self.drop(run.address)
        super().trim()


class DirtyOfAnyAlignment(DecayingRuns):
    """A dirty extent serves a request of any alignment."""

    def allocate_large(self, size: int, align: int, queue: Queue) -> Piece:
        for entry in self.dirty:
            if entry[1].size == size and self.is_idle(entry[1]):
                self.dirty.remove(entry)
                return self.hand_out(entry[1], queue)
        return super().allocate_large(size, align, queue)


class MarkersGoWithTheSegment(StreamSegments):
    """Where memory ran out, what was waited for is forgotten without its markers."""

    def release_all(self) -> None:
        self.runtime.drain_device(self.store.device)
        for part in self.waiting:
            part.piece.behind = []
        self.poll()
        self.release_whole()


class JoinsWhatIsOwned(StreamSegments):
    """A part that waits for another stream counts as free to its neighbours."""

    def join(self, part: Part) -> None:
        for other in (part.before, part.after):
            if other is not None and other.state == "waits":
                other.state = "free"
                for marker in other.piece.behind:
                    self.runtime.retire(marker)
                other.piece.behind = []
                self.waiting.remove(other)
                self.free_parts.append(other)
        super().join(part)


class FailedSegmentsCount(StreamSegments):
    """A segment that could not be had is counted against the pool's limit."""

    owed = 0

    def take(self, size: int, align: int = 1) -> int:
        if self.limit is not None and self.held + self.owed + size > self.limit:
            raise NoRoom
        try:
            return super().take(size, align)
        except NoRoom:
            self.owed += size
            raise


class AlignedBlocksShrink(Session):
    """The free of an aligned block takes what was asked for from the count, and not what it took."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.aligned: set[Slot] = set()

    def answer(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.Allocate) and operation.alignment_bytes:
            self.aligned.add(operation.slot)
        return super().answer(operation)

    def take_out(self, slot: Slot) -> None:
        block = self.blocks[slot]
        super().take_out(slot)
        if slot in self.aligned and block.piece is not None:
            self.live_bytes += block.piece.size - block.size


class FailedRequestsKeepTheirSlot(Session):
    """A request that failed for another reason than memory leaves its block in the table."""

    def allocate(self, operation: ops.Allocate) -> Outcome:
        try:
            return super().allocate(operation)
        except Broken:
            self.live_bytes += operation.size_bytes
            raise
