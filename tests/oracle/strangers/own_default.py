"""A default stream that waits for no other and goes on beside captures, as CUDA's per-thread one does.

Whoever ends a capture where it was joined spoils it.
"""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import Operation, Slot
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED, INVALID_VALUE, Outcome

from .adapter import Session
from .captures import Refused
from .device import Queue
from .work import Event


class OwnDefault(Session):
    """Nothing on the default stream has to do with captures, unless it joins one."""

    def enqueue(self, slots: tuple[Slot, ...], queue: Queue) -> None:
        if queue.name == "" and queue not in self.captures.of:
            blocks = [self.block(slot) for slot in slots]
            self.runtime.issue(queue)
            for block in blocks:
                block.touched[queue] = None
        else:
            super().enqueue(slots, queue)

    def asked(self, slot: Slot | None) -> Queue:
        queue = self.queue(slot)
        if queue in self.captures.of:
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        return queue

    def wait(self, queue: Queue, event: Event) -> None:
        if queue.name != "":
            super().wait(queue, event)
        elif event.capture is not None:
            self.captures.join(queue, event.capture, event.known)
        elif queue in self.captures.of:
            self.captures.of[queue].is_invalid = True
            raise Refused(CAPTURE_UNSUPPORTED)
        elif event.point is not None:
            self.runtime.issue(queue, event.point)

    def answer_capture(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.EndCapture) and operation.stream in self.queues:
            queue = self.queues[operation.stream]
            capture = self.captures.of.get(queue)
            if capture is not None and capture.origin is not queue:
                capture.is_invalid = True
                raise Refused(INVALID_VALUE)
        return super().answer_capture(operation)
