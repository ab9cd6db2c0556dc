"""Streams that are stalled by work: a capture refuses it, or takes it into its graph."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import Operation
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED, Done, Outcome

from .adapter import Session
from .captures import Refused


class CapturesRefuseStalls(Session):
    """The work waits for the host, which no capture allows."""

    def answer_order(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.Stall) and self.named_queue(operation.slot) in self.captures.of:
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        return super().answer_order(operation)


class CapturesTakeStalls(Session):
    """The work is captured, and holds nothing."""

    def answer_order(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.Stall) and self.named_queue(operation.slot) in self.captures.of:
            return Done()
        return super().answer_order(operation)
