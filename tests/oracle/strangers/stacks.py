"""A runtime that takes memory of the device for each stream: a stack. Where none is left, there is no stream."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.backend import Context, DeviceProfile, Reply
from quiesce.operations import Operation
from quiesce.outcomes import Allocated, OutOfMemory

from .withholding import Withholding, WithholdingContext

_STACK_BYTES = 1 << 20


class StacksOfStreams(Withholding):
    """Another backend whose streams have stacks."""

    def open(self, profile: DeviceProfile) -> WithholdingContext:
        return StacksContext(self.backend.open(profile), self)


class StacksContext(WithholdingContext):
    """A context in which a stream's stack is a block of the backend's own."""

    def __init__(self, context: Context, by: Withholding) -> None:
        super().__init__(context, by)
        self.made = 0

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, ops.CreateStream):
            self.made += 1
            stack = super().perform(ops.Allocate(f"stack[{self.made}]", _STACK_BYTES))
            if not isinstance(stack.outcome, Allocated):
                return Reply(OutOfMemory(), stack.observations)
        return super().perform(operation)
