"""Strangers that take the current device for that of a request, an old name for the same event, and miss a limit."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Done, Outcome

from .adapter import Session
from .arenas import StealingArenas
from .device import NoRoom, Point
from .work import Event


class PoolsElsewhereAreNotTrimmed(Session):
    """A pool is trimmed where it is of the current device."""

    def trim(self, kind: MemoryKind, slot: Slot | None) -> None:
        if slot is None or self.pool(kind, slot).store.device == self.device:
            super().trim(kind, slot)


class StreamsElsewhereAreNotWaitedFor(Session):
    """Whoever waits for a stream waits for one of the current device."""

    def answer(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.SynchronizeStream):
            queue = self.queues.get(operation.slot or "")
            if queue is not None and queue.device != self.device:
                return Done()
        return super().answer(operation)


class EventsComeAgain(Session):
    """An event that is made under an old name has the old one's record."""

    last: dict[Slot, Point | None] | None = None

    def answer(self, operation: Operation) -> Outcome:
        self.last = self.last or {}
        if isinstance(operation, ops.DestroyEvent) and operation.slot in self.events:
            self.last[operation.slot] = self.events[operation.slot].point
        outcome = super().answer(operation)
        if isinstance(operation, ops.CreateEvent) and operation.slot in self.last:
            self.events[operation.slot] = Event(self.device, self.last[operation.slot])
        return outcome


class LimitsAreReachedTooLate(StealingArenas):
    """A pool that is full to its limit has room for one chunk more."""

    def take(self, size: int, align: int = 1) -> int:
        limit, self.limit = self.limit, None
        try:
            if limit is not None and self.held != limit and self.held + size > limit:
                raise NoRoom
            return super().take(size, align)
        finally:
            self.limit = limit
