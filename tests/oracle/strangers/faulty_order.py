"""Strangers that lose the order: memory is reused, or released, before the work on it is done."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from quiesce.model import operations as ops
from quiesce.model.operations import Operation, Slot
from quiesce.model.outcomes import Done, Outcome

from .adapter import Session
from .arenas import StealingArenas
from .batches import Batch, DeferredBatches
from .device import Marker, Queue
from .epochs import EpochRegions
from .host_pool import PinnedPool
from .pool import Piece
from .runs import DecayingRuns
from .segments import StreamSegments
from .spans import SegregatedFit, Span


class HigherNeighboursAreDone(SegregatedFit):
    """A merge keeps what the lower span is behind, and forgets the higher one's."""

    def absorb(self, low: Span, high: Span) -> None:
        for marker in high.behind:
            self.runtime.retire(marker)
        high.behind = []
        super().absorb(low, high)


class DecaysInFlight(DecayingRuns):
    """What is old enough goes back, whether or not work still uses it."""

    def purge(self, before: int) -> None:
        for entry in [entry for entry in self.dirty if entry[0] <= before and before < self.tick]:
            for marker in entry[1].behind:
                self.runtime.retire(marker)
            self.dirty.remove(entry)
            self.drop(entry[1].address)
        super().purge(before)


class AsksTheFirstMarker(DecayingRuns):
    """Of all markers of a slot the first is asked."""

    def is_idle(self, piece: Piece) -> bool:
        if piece.behind and not self.runtime.ask(piece.behind[0]):
            return False
        for marker in piece.behind:
            self.runtime.retire(marker)
        piece.behind = []
        return True


class MarksWhenItOpens(DeferredBatches):
    """A batch's marker is behind the first free in it, and not behind the last."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.early: dict[Batch, Marker] = {}

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        known = set(map(id, self.batches))
        super().free(piece, queue, touched)
        for batch in self.batches:
            if id(batch) not in known and batch.marker is None:
                self.early[batch] = self.runtime.record(queue)

    def close_batch(self, batch: Batch) -> None:
        if batch.pieces and batch.marker is None and batch in self.early:
            batch.marker = self.early.pop(batch)
        super().close_batch(batch)

    def forget(self) -> None:
        for marker in self.early.values():
            self.runtime.retire(marker)
        self.early.clear()
        super().forget()


class DeadStreamsMarkElsewhere(DeferredBatches):
    """The batch of a stream that is destroyed gets a marker of the default stream."""

    def queue_is_going(self, queue: Queue) -> None:
        for batch in [each for each in self.batches if each.queue is queue and each.marker is None]:
            batch.marker = self.runtime.record(self.runtime.defaults[self.store.device])


class EveryEpochByItself(EpochRegions):
    """An epoch has passed when its own markers are done; those before it are not asked."""

    def has_passed(self, number: int) -> bool:
        epoch = next((each for each in self.epochs if each.number == number), None)
        if epoch is None:
            return True
        return epoch.is_closed and all(self.runtime.ask(marker) for marker in epoch.markers)


class OnlyWhoFreesIsMarked(EpochRegions):
    """An epoch marks the streams that freed, and not those that used."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        super().free(piece, queue, ())


class EpochsEndUnmarked(EpochRegions):
    """A stream that is destroyed is taken out of the open epoch."""

    def queue_is_going(self, queue: Queue) -> None:
        self.current.queues.pop(queue, None)


class FreedElsewhereIsAtHome(StreamSegments):
    """A part that another stream freed serves its own stream at once."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        super().free(piece, piece.queue, [each for each in touched if each is not queue])


class DefaultIsDone(SegregatedFit):
    """What the default stream was given is taken to be done."""

    def mark(self, piece: Piece, *queues: Queue) -> None:
        super().mark(piece, *(queue for queue in queues if queue not in self.runtime.defaults))


class DefaultUsesAreDone(StealingArenas):
    """Work on the default stream that used a piece of another stream is taken to be done."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        super().free(piece, queue, [each for each in touched if each not in self.runtime.defaults])


class OrphansAreIdle(StealingArenas):
    """What a stream that is gone has left is taken to be done."""

    def queue_is_going(self, queue: Queue) -> None:
        for piece in self.arenas.get(queue, ()):
            for marker in piece.behind:
                self.runtime.retire(marker)
            piece.behind = []
        super().queue_is_going(queue)


class OrphansForgetUsers(StealingArenas):
    """What a stream that is gone has left is behind the work of that stream alone."""

    def queue_is_going(self, queue: Queue) -> None:
        for piece in self.arenas.get(queue, ()):
            others = [marker for marker in piece.behind if marker.point.queue is not queue]
            for marker in others:
                piece.behind.remove(marker)
                self.runtime.retire(marker)
        super().queue_is_going(queue)


class HandlesComeAgain(StealingArenas):
    """A marker of a stream with the same handle needs no wait; the runtime hands handles out again."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.handles: dict[Queue, int] = {}

    def handle(self, queue: Queue) -> int:
        if queue not in self.handles:
            taken = {number for each, number in self.handles.items() if each.is_alive}
            self.handles[queue] = next(number for number in itertools.count() if number not in taken)
        return self.handles[queue]

    def line_up(self, piece: Piece, queue: Queue) -> None:
        if not self.is_idle(piece):
            for marker in piece.behind:
                if self.handle(marker.point.queue) != self.handle(queue):
                    self.runtime.wait(queue, marker)


class WaitsForTheNewest(StealingArenas):
    """Of all markers of a stolen piece the last is waited for."""

    def line_up(self, piece: Piece, queue: Queue) -> None:
        if not self.is_idle(piece):
            for marker in piece.behind[-1:]:
                if marker.point.queue is not queue:
                    self.runtime.wait(queue, marker)


class PinnedKnowsOneCopy(PinnedPool):
    """A pinned block waits for one of its copies."""

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        super().free(piece, queue, list(touched)[:1])


class OneCopy(Session):
    """Has the pinned pool that knows one copy."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.pinned = PinnedKnowsOneCopy(self.runtime, self.pinned.store, self.unit, None)


class EventsStandForNow(Session):
    """Once the host has waited for an event, all that its stream was given by then is taken to be done."""

    def answer_order(self, operation: Operation) -> Outcome:
        outcome = super().answer_order(operation)
        if isinstance(operation, ops.SynchronizeEvent):
            point = self.events[operation.slot].point
            if point is not None:
                for block in self.blocks.values():
                    block.touched.pop(point.queue, None)
        return outcome


class BlockingStreamsAreOne(Session):
    """Once the host has waited for a blocking stream, what the default one was given is taken to be done."""

    def answer_order(self, operation: Operation) -> Outcome:
        outcome = super().answer_order(operation)
        if isinstance(operation, ops.SynchronizeStream) and self.queue(operation.slot).blocking:
            for block in self.blocks.values():
                block.touched.pop(self.runtime.defaults[self.device], None)
        return outcome


class GraphsCountOnce(Session):
    """What a graph uses is noted when it runs for the first time."""

    def answer_capture(self, operation: Operation) -> Outcome:
        outcome = super().answer_capture(operation)
        if isinstance(operation, ops.LaunchGraph) and operation.slot in self.graphs:
            self.graphs[operation.slot] = [() for _ in self.graphs[operation.slot]]
        return outcome


class BadCapturesLoseFrees(Session):
    """What was freed during a capture is forgotten where the capture ends badly."""

    def answer_capture(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.EndCapture) and any(capture.is_invalid for capture in self.captures.of.values()):
            self.deferred.clear()
        return super().answer_capture(operation)


class AbandonedCapturesStay(Session):
    """What was freed during a capture is forgotten where the capture's stream is destroyed."""

    def destroy_queue(self, slot: Slot) -> None:
        if slot in self.queues and self.queues[slot] in self.captures.of:
            self.deferred = []
        super().destroy_queue(slot)


class ManagedDrainsOneDevice(Session):
    """The free of a managed block waits for the current device alone."""

    def free(self, slot: Slot, stream: Slot | None) -> None:
        block = self.block(slot)
        if block.pool is self.managed:
            block.touched = {queue: None for queue in block.touched if queue.device == self.device}
        super().free(slot, stream)


class StallsAreDone(Session):
    """The query of an event says done where the work was issued, whether or not it has run."""

    def answer_order(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.QueryEvent) and operation.slot in self.events:
            event = self.events[operation.slot]
            newest = event.point is not None and event.point.number == event.point.queue.issued
            if newest and event.capture is None and not self.captures.any_active:
                return Done()
        return super().answer_order(operation)
