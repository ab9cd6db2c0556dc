"""The part of a session that is about order: streams, events, captures, and the work on blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    INVALID_HANDLE,
    INVALID_VALUE,
    NOT_READY,
    Done,
    Outcome,
    Rejected,
    Unsupported,
)

from .captures import Capture, Captures, Refused
from .device import Point, Queue, Runtime
from .pool import Piece, Pool


@dataclass(eq=False, slots=True)
class Block:
    """What a slot stands for. A block of no bytes has neither piece nor pool."""

    size: int
    kind: MemoryKind
    queue: Queue
    piece: Piece | None = None
    pool: Pool | None = None
    touched: dict[Queue, None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Event:
    """An event of the sequence: a point in a queue, or in a capture."""

    device: int
    point: Point | None = None
    capture: Capture | None = None
    known: dict[Queue, int] = field(default_factory=dict)


class Work:
    """Queues, events and captures under the sequence's names."""

    def __init__(self, runtime: Runtime, profile: DeviceProfile) -> None:
        self.runtime, self.profile = runtime, profile
        self.captures = Captures()
        self.device = 0
        self.blocks: dict[Slot, Block] = {}
        self.queues: dict[Slot, Queue] = {}
        self.events: dict[Slot, Event] = {}

    def synchronize_device(self) -> None:
        raise NotImplementedError

    def destroy_queue(self, slot: Slot) -> None:
        raise NotImplementedError

    def answer_order(self, operation: Operation) -> Outcome:
        runtime = self.runtime
        match operation:
            case ops.CreateStream(slot, nonblocking):
                queue = self.queues[slot] = Queue(slot, self.device, blocking=not nonblocking)
                runtime.queues.append(queue)
            case ops.DestroyStream(slot):
                self.destroy_queue(slot)
            case ops.SynchronizeStream(slot):
                runtime.synchronize(self.asked(slot))
            case ops.QueryStream(slot):
                return Done() if self.asked(slot).last.is_done else Rejected(NOT_READY)
            case ops.CreateEvent(slot):
                self.events[slot] = Event(self.device)
            case ops.DestroyEvent(slot):
                self.event(slot)
                del self.events[slot]
            case ops.RecordEvent(slot, stream):
                self.record(self.event(slot), self.queue(stream))
            case ops.WaitEvent(slot, stream):
                self.wait(self.queue(stream), self.event(slot))
            case ops.QueryEvent(slot):
                point = self.asked_event(slot)
                return Done() if point is None or point.is_done else Rejected(NOT_READY)
            case ops.SynchronizeEvent(slot):
                point = self.asked_event(slot)
                if point is not None:
                    point.queue.force(point.number)
            case ops.SynchronizeDevice():
                self.synchronize_device()
            case ops.Stall(slot):
                self.named_queue(slot).stall()
            case ops.Release(slot):
                self.named_queue(slot).release()
            case _:
                return Unsupported(type(operation).__name__)
        return Done()

    def named_queue(self, slot: Slot) -> Queue:
        if slot not in self.queues:
            raise Refused(INVALID_HANDLE)
        return self.queues[slot]

    def queue(self, slot: Slot | None) -> Queue:
        return self.runtime.defaults[self.device] if slot is None else self.named_queue(slot)

    def asked(self, slot: Slot | None) -> Queue:
        """Return a queue that is asked about, or waited for, which no capture allows for its streams."""
        queue = self.queue(slot)
        if queue in self.captures.of or (slot is None and self.captures.involve_blocking(self.device)):
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        return queue

    def event(self, slot: Slot) -> Event:
        if slot not in self.events:
            raise Refused(INVALID_HANDLE)
        return self.events[slot]

    def asked_event(self, slot: Slot) -> Point | None:
        event = self.event(slot)
        if event.capture is not None or self.captures.any_strict:
            self.captures.invalidate()
            raise Refused(CAPTURED_EVENT if event.capture is not None else CAPTURE_UNSUPPORTED)
        return event.point

    def block(self, slot: Slot) -> Block:
        if slot not in self.blocks:
            raise Refused(INVALID_VALUE)
        return self.blocks[slot]

    def enqueue(self, slots: tuple[Slot, ...], queue: Queue) -> None:
        blocks = [self.block(slot) for slot in slots]
        if queue.name == "" and self.captures.involve_blocking(queue.device):
            self.captures.invalidate()
            raise Refused(CAPTURE_IMPLICIT)
        capture = self.captures.of.get(queue)
        if capture is not None:
            capture.add(queue, slots)
            return
        self.runtime.issue(queue)
        for block in blocks:
            block.touched[queue] = None

    def launch(self, slots: tuple[Slot, ...], stream: Slot | None) -> None:
        self.enqueue(slots, self.queue(stream))

    def record(self, event: Event, queue: Queue) -> None:
        if event.device != queue.device:
            raise Refused(INVALID_HANDLE)
        capture = self.captures.of.get(queue)
        if capture is None:
            self.enqueue((), queue)
            event.point, event.capture = queue.last, None
        else:
            capture.require_valid()
            event.capture, event.known = capture, dict(capture.progress[queue])

    def wait(self, queue: Queue, event: Event) -> None:
        capture = self.captures.of.get(queue)
        if event.capture is not None:
            if queue.name == "":
                event.capture.is_invalid = True
                raise Refused(CAPTURE_IMPLICIT)
            self.captures.join(queue, event.capture, event.known)
        elif capture is not None:
            capture.require_valid()
            if event.point is not None:
                capture.is_invalid = True
                raise Refused(CAPTURE_UNSUPPORTED)
        elif queue.name == "" and self.captures.involve_blocking(queue.device):
            self.captures.invalidate()
            raise Refused(CAPTURE_IMPLICIT)
        elif event.point is not None:
            self.runtime.issue(queue, event.point)
